package ui

import (
	"fmt"
	"slices"
	"time"

	"drawbridge/bridge/gate"
	"drawbridge/bridge/tally"
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
	Models      Models
	Rules       []Rule            // what is remembered
	Permissions map[string]string // as in /status
	Warnings    []string
	Login       Login
	Requests    []tally.Kind // the latest first
}

// Login tells whether the agent starts at login.
type Login struct {
	Known bool // it can be told and changed here
	On    bool
}

// Rule is something that is remembered: a rule, or what a person allowed for a
// while. Its text is as the programs gave it; whoever shows it escapes it.
type Rule struct {
	Key   string
	Text  string
	Fixed bool      // it is the configuration's, and is not revoked from here
	Lasts string    // how long what is no rule lasts, such as "for its connection"; empty where Until says it
	Until time.Time // zero: Lasts says it, or it stands until it is revoked
	Left  time.Duration
}

// lasts says how long it holds; empty: until it is revoked.
func (r *Rule) lasts() string {
	switch {
	case r.Left > 0:
		return fmt.Sprintf("%d min left", (r.Left+time.Minute-1)/time.Minute)
	case r.Fixed:
		return "from the configuration"
	}
	return r.Lasts
}

// Models is the switch of the hosts' models: what was asked, and what is so. The
// zero Models are allowed, and known to concern nobody.
type Models struct {
	Denied bool
	By     string
	Hosts  []ModelHost
}

// ModelHost is one host that calls a model of its own.
type ModelHost struct {
	Name   string
	Denied bool // a layer refuses its model requests now
}

// denied counts the hosts whose requests are refused, and names the others.
func (m *Models) denied() (n int, open []string) {
	for _, h := range m.Hosts {
		if h.Denied {
			n++
		} else {
			open = append(open, h.Name)
		}
	}
	return n, open
}

// String is the switch in one line: what was asked, and where it is in force.
func (m *Models) String() string {
	n, _ := m.denied()
	switch {
	case !m.Denied && n > 0:
		return fmt.Sprintf("Models: allowed (still denied in %d of %s)", n, plural(len(m.Hosts), "host"))
	case !m.Denied:
		return "Models: allowed"
	case len(m.Hosts) == 0:
		return "Models: denied (no host yet)"
	}
	return fmt.Sprintf("Models: denied (in force for %d of %s)", n, plural(len(m.Hosts), "host"))
}

// warning names the hosts that call their models all the same; empty: none.
func (m *Models) warning() string {
	if _, open := m.denied(); m.Denied && len(open) > 0 {
		return "Not covered, may call models: " + listing(open)
	}
	return ""
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
		v.Client, v.Tool, v.Host = r.Client, r.Tool, r.Host
		v.Args = argumentLines(p, brief)
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

// argumentLines lays out all that a call carries.
func argumentLines(p *gate.Pending, most room) []string {
	var lines []string
	if p.Kind == gate.AskCall {
		lines = laidOut(p.Request.Args, most)
	}
	if p.Request.Extra != nil {
		lines = append(append(lines, "and sends along, beside the arguments:"), laidOut(p.Request.Extra, most)...)
	}
	return lines
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
	case s.Models.warning() != "":
		return IconProblem, "Models denied. " + s.Models.warning()
	case len(s.Working) > 0:
		return IconWorking, "Working for " + listing(s.Working) + s.modelsDenied()
	}
	if s.Models.Denied {
		return IconDenied, "Ready" + s.modelsDenied()
	}
	return IconReady, "Ready"
}

// modelsDenied is what a state line ends with while models are denied.
func (s *State) modelsDenied() string {
	if s.Models.Denied {
		return ", models denied"
	}
	return ""
}

// refused are the requests that were refused, by kind.
func (s *State) refused() []tally.Kind {
	return slices.DeleteFunc(slices.Clone(s.Requests), func(k tally.Kind) bool { return k.Why == "" })
}

// request is a kind of request in one line.
func request(k tally.Kind) string {
	text := k.What
	if k.Said != "" {
		text += " (" + Escape(k.Said, 40) + ")"
	}
	if k.Why != "" {
		text += ": " + k.Why
	}
	return fmt.Sprintf("%s; %s, last at %s", text, plural(k.Count, "time"), k.Last.Format(time.TimeOnly))
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
