package ui

import (
	"strings"
	"time"

	"drawbridge/bridge/gate"
)

// pageState is what the page shows. Every text in it that came from a program
// is safe to show; times are Unix milliseconds, so that the same state is the
// same bytes.
type pageState struct {
	Version  string         `json:"version"`
	Status   string         `json:"status"`
	Icon     string         `json:"icon"`
	Paused   bool           `json:"paused"`
	Answers  answering      `json:"answers"`
	Note     string         `json:"note"` // why it could not be confirmed
	Pending  []pagePrompt   `json:"pending"`
	Running  []pageCall     `json:"running"`
	Finished []pageFinished `json:"finished"`
	Clients  []string       `json:"clients"`
	Hosts    []string       `json:"hosts"`
	Rules    []pageRule     `json:"rules"`
	Warnings []string       `json:"warnings"`
	Refused  []string       `json:"refused"` // requests of programs, by kind
	Asked    []string       `json:"asked"`   // and those that were not refused
	Models   pageModels     `json:"models"`
}

// pageModels is the switch of the hosts' models.
type pageModels struct {
	Text    string   `json:"text"`
	By      string   `json:"by"`      // who set it
	Denied  bool     `json:"denied"`  // as asked
	Warning string   `json:"warning"` // empty: no host goes its own way
	Hosts   []string `json:"hosts"`
}

// pageRule is something that is remembered.
type pageRule struct {
	Key   string `json:"key"`
	Text  string `json:"text"`
	Lasts string `json:"lasts"`
	Until int64  `json:"until"` // 0: it does not end by itself at a known time
	Fixed bool   `json:"fixed"` // it cannot be revoked from here
}

type pagePrompt struct {
	ID       string       `json:"id"`
	Title    string       `json:"title"`
	Lines    []string     `json:"lines"`
	Again    bool         `json:"again"`
	Picture  bool         `json:"picture"`
	Near     bool         `json:"near"`   // there is a piece around the first target
	Native   bool         `json:"native"` // answered only on native surfaces
	Answers  []pageAnswer `json:"answers"`
	Deadline int64        `json:"deadline"` // 0: it stands
}

type pageAnswer struct {
	Name  string `json:"name"`
	Label string `json:"label"`
}

type pageCall struct {
	ID    string `json:"id"`
	Title string `json:"title"`
	Since int64  `json:"since"`
}

type pageFinished struct {
	pageCall
	Outcome string   `json:"outcome"`
	MS      float64  `json:"ms"`
	Lines   []string `json:"lines"` // of the arguments
	Text    []string `json:"text"`  // what it answered
	Before  bool     `json:"before"`
	After   bool     `json:"after"`
}

func newPageState(s *State, a PageAgent, h *History, now time.Time) *pageState {
	icon, status := s.Status()
	v := &pageState{
		Version: s.Version, Status: status, Icon: icon.String(), Paused: s.Paused,
		Pending: []pagePrompt{}, Running: []pageCall{}, Finished: []pageFinished{},
		Clients: []string{}, Hosts: []string{}, Rules: []pageRule{}, Warnings: []string{}, Refused: []string{}, Asked: []string{},
		Models: pageModels{s.Models.String(), name(s.Models.By), s.Models.Denied, s.Models.warning(), []string{}},
	}
	for _, h := range s.Models.Hosts {
		v.Models.Hosts = append(v.Models.Hosts, h.String())
	}
	for _, p := range a.Prompts() {
		v.Pending = append(v.Pending, newPagePrompt(p, now))
	}
	for _, c := range a.Calls() {
		if c.Running {
			v.Running = append(v.Running, pageCall{c.ID, callTitle(c.Client, c.Tool, c.Host), c.Began.UnixMilli()})
		}
	}
	for _, f := range h.List() {
		x := pageFinished{
			pageCall: pageCall{f.ID, callTitle(f.Client, f.Tool, f.Host), f.Began.UnixMilli()},
			Outcome:  Escape(f.Outcome, 100), MS: f.MS, Before: f.before != nil, After: f.after != "",
			Lines: joined(arguments(f.Args)), Text: []string{},
		}
		for _, l := range strings.Split(f.Text, "\n") {
			x.Text = append(x.Text, Escape(l, longest))
		}
		v.Finished = append(v.Finished, x)
	}
	for _, it := range clients(s.Clients).Sub {
		v.Clients = append(v.Clients, it.Label)
	}
	for _, it := range hosts(s.Hosts) {
		for _, sub := range it.Sub {
			v.Hosts = append(v.Hosts, sub.Label)
		}
	}
	for _, r := range s.Rules {
		x := pageRule{Key: r.Key, Text: Escape(r.Text, longest), Fixed: r.Fixed}
		if r.Until.IsZero() {
			x.Lasts = r.lasts()
		} else {
			x.Until = r.Until.UnixMilli()
		}
		v.Rules = append(v.Rules, x)
	}
	for _, k := range s.Requests {
		if k.Why != "" {
			v.Refused = append(v.Refused, request(k))
		} else {
			v.Asked = append(v.Asked, request(k))
		}
	}
	for _, w := range s.Warnings {
		v.Warnings = append(v.Warnings, Escape(w, longest))
	}
	return v
}

func callTitle(client, tool, host string) string {
	title := name(client) + " runs " + name(tool)
	if host != "" {
		title += " of " + name(host)
	}
	return title
}

func newPagePrompt(p *gate.Pending, now time.Time) pagePrompt {
	q := NewPrompt(p, now)
	v := pagePrompt{ID: q.ID, Again: q.Again, Native: q.Kind != gate.AskCall, Lines: joined(q.Args), Answers: []pageAnswer{}}
	if !p.Deadline.IsZero() {
		v.Deadline = p.Deadline.UnixMilli()
	}
	switch q.Kind {
	case gate.AskResume:
		v.Title = "Everything is paused. Go on?"
	case gate.AskPage:
		v.Title = "A page asks to answer for you"
	case gate.AskAccept, gate.AskLoosen:
		v.Title = "Allow more than before?"
		if q.Kind == gate.AskLoosen {
			v.Title = name(q.Client) + " asks to allow more"
		}
		v.Lines = append(v.Lines, q.reading(0, 0).lines...)
	default:
		v.Title = callTitle(q.Client, q.Tool, q.Host)
		v.Picture, v.Near = p.Request.Preview != nil, p.Request.Closeup != nil
		for _, s := range q.Scopes {
			v.Answers = append(v.Answers, pageAnswer{scopeNames[s], pageLabel(&q, s)})
		}
	}
	if v.Lines == nil {
		v.Lines = []string{}
	}
	return v
}

// askElsewhere begins the answers of which the page gives only the yes to this
// call; the rest is asked natively.
const askElsewhere = "Allow once, then ask for "

func pageLabel(p *Prompt, s gate.Scope) string {
	switch s {
	case gate.Once:
		return "Allow once"
	case gate.ForConn:
		return askElsewhere + "this connection"
	case gate.For15m:
		return askElsewhere + "15 minutes"
	case gate.Always:
		return askElsewhere + "the rule " + Escape(p.Rule, longest)
	}
	return "Deny"
}
