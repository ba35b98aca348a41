package ui

import (
	"context"
	"fmt"
	"strings"
)

// Grant is one permission that the system gives or withholds, as the onboarding
// window shows it.
type Grant struct {
	Name    string // stable, as in /status: "accessibility", …
	Title   string // as the system's settings call it
	Purpose string // what it is for, in a sentence
	State   string // granted, missing or unknown, as in /status
	Detail  string // what was found out, or what to do next; may be empty
}

// Measure is one thing that only this machine can tell, such as the way its
// wheel turns.
type Measure struct {
	Name   string // stable
	Title  string // what is measured, in a few words
	State  string // waiting, running, done or failed
	Detail string // what came of it; may be empty
}

// Onboarding is what the onboarding window shows and does. Its methods are called
// by one goroutine of the window, and may take their time.
type Onboarding interface {
	// Grants lists the grants in the order in which they are asked for. It asks
	// the system and never prompts; the window calls it about every second while
	// it is open.
	Grants(ctx context.Context) []Grant
	// Request has the system ask the person for a grant, where it would.
	Request(ctx context.Context, name string) error
	// OpenSettings opens the system's settings where the grant is given.
	OpenSettings(ctx context.Context, name string) error
	// Measure takes and stores the measurements, once the grants are there, and
	// tells of all of them each time that one changes.
	Measure(ctx context.Context, tell func([]Measure)) error
}

// onboardingView is what the window shows, decided apart from how it is drawn. Its
// texts are those of our own program, and need no escaping.
type onboardingView struct {
	title  string
	grants []grantView
	result string // of the measurements, in lines
	done   bool   // every grant is there and the measurements were tried
	step   int    // the grant whose turn it is; -1: none
}

type grantView struct {
	title, state, text string
}

// newOnboardingView lays the window out. measured tells that the measurements
// were tried; err is what failed last, of them or of what the person asked for.
func newOnboardingView(grants []Grant, measures []Measure, measured bool, err error) onboardingView {
	v := onboardingView{step: -1}
	given := 0
	for i, g := range grants {
		row := grantView{title: g.Title, state: "not given yet", text: g.Purpose}
		switch g.State {
		case granted:
			row.state = "✓ given"
			given++
		case missing:
		default:
			row.state = "cannot be told yet"
		}
		if g.State != granted && v.step < 0 {
			v.step = i
		}
		if g.Detail != "" {
			row.text += " " + g.Detail
		}
		v.grants = append(v.grants, row)
	}
	var lines []string
	for _, m := range measures {
		mark := map[string]string{"running": "…", "done": "✓", "failed": "✗"}[m.State]
		if mark == "" {
			mark = "·"
		}
		line := mark + " " + m.Title
		if m.Detail != "" {
			line += ": " + m.Detail
		}
		lines = append(lines, line)
	}
	if err != nil {
		lines = append(lines, "✗ "+err.Error())
	}
	v.result = strings.Join(lines, "\n")
	switch {
	case v.step >= 0:
		v.title = fmt.Sprintf("%d of %s given. Next: %s", given, plural(len(grants), "grant"), grants[v.step].Title)
	case !measured:
		v.title = "Everything is granted. This Mac is being measured; leave mouse and keyboard alone."
	case err != nil:
		v.title = "Everything is granted, and something could not be measured."
		v.done = true
	default:
		v.title = "Drawbridge is ready."
		v.done = true
	}
	return v
}

// The states of a grant, as in /status.
const (
	granted = "granted"
	missing = "missing"
)
