package ui

import "context"

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
