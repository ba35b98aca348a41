package ui

import (
	"slices"
	"time"

	"drawbridge/bridge/gate"
)

// State is what the surfaces show: a snapshot.
type State struct {
	Version     string
	Backend     string
	Paused      bool
	PausedBy    string
	Pending     []Prompt // oldest first
	Working     []string // clients whose calls run
	Clients     []Client
	Hosts       []Host
	Models      string            // whether hosts may call their own models: allow or deny; empty: not known
	Permissions map[string]string // as in /status
	Warnings    []string
}

// Client is one client in a State.
type Client struct {
	Name        string
	Connections int
	Calls       int
}

// Host is one host in a State.
type Host struct {
	Name, Kind, State string
	Tools             int
	Asking            string // what it asks somebody itself; empty: nothing
}

// Prompt is one question that waits for a person, ready to be shown. Names are
// as the programs gave them; whoever shows them escapes them.
type Prompt struct {
	ID      string
	Kind    gate.Kind
	Client  string
	Tool    string
	Host    string
	Args    []string // laid out in lines that are safe to show
	Again   bool     // it was allowed, and the picture changed since
	Items   []string // of gate.AskAccept and gate.AskLoosen
	Choices []string // of gate.AskPage
	Rule    string   // what gate.Always would write
	Scopes  []gate.Scope
	Since   time.Time
	Left    time.Duration // until the deadline; 0: it stands until it is answered
}

// NewPrompt takes what is to be shown from a gate's prompt.
func NewPrompt(p *gate.Pending, now time.Time) Prompt {
	v := Prompt{ID: p.ID, Kind: p.Kind, Again: p.Again, Choices: p.Choices, Scopes: p.Scopes(), Since: p.Since}
	if r := p.Request; r != nil {
		v.Client, v.Tool, v.Host, v.Args = r.Client, r.Tool, r.Host, arguments(r.Args)
		if r.Extra != nil {
			v.Args = append(append(v.Args, "and sends along, beside the arguments:"), arguments(r.Extra)...)
		}
	}
	for _, it := range p.Items {
		v.Items = append(v.Items, it.Text)
	}
	if p.Rule != nil {
		v.Rule = p.Rule.String()
	}
	if !p.Deadline.IsZero() {
		v.Left = max(time.Millisecond, p.Deadline.Sub(now))
	}
	return v
}

// Offers tells whether an answer makes sense.
func (p *Prompt) Offers(s gate.Scope) bool { return slices.Contains(p.Scopes, s) }

// Status says what the agent is doing: the most pressing thing first. It is one
// line, and an icon of its own.
func (s *State) Status() (Icon, string) {
	waiting := 0
	for _, p := range s.Pending {
		if p.Kind != gate.AskResume { // that is what paused says
			waiting++
		}
	}
	missing := s.missing()
	asking := slices.IndexFunc(s.Hosts, func(h Host) bool { return h.Asking != "" })
	switch {
	case s.Paused:
		text := "Paused"
		if s.PausedBy != "" {
			text += " by " + name(s.PausedBy)
		}
		if waiting > 0 {
			text += ", " + plural(waiting, "question") + " for you"
		}
		return IconPaused, text
	case waiting > 0:
		return IconWaiting, plural(waiting, "question") + " for you"
	case asking >= 0:
		h := s.Hosts[asking]
		return IconWaiting, "Host " + name(h.Name) + " asks: " + Escape(h.Asking, 60)
	case len(missing) > 0:
		return IconProblem, "Permission missing: " + listing(missing)
	case len(s.Working) > 0:
		return IconWorking, "Working for " + listing(s.Working)
	}
	if s.Models == "deny" {
		return IconReady, "Ready, hosts' models are off"
	}
	return IconReady, "Ready"
}

// missing names the permissions that are known to be missing.
func (s *State) missing() []string {
	var out []string
	for name, state := range s.Permissions {
		if state == "missing" {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}
