package ui

import "time"

const (
	// reflex is how long a prompt must have stood before an answer counts: who
	// was just doing something else did not read it.
	reflex = 400 * time.Millisecond
	// afterInput is how long after an event of ours no answer counts: it may be
	// that event which gave it.
	afterInput = 300 * time.Millisecond
)

// tooSoon tells whether an answer now cannot be a person's who read what was
// shown since then. injected is when we last sent an event; nil means that we
// send none.
func tooSoon(now, since time.Time, injected func() time.Time) bool {
	return now.Sub(since) < reflex || injected != nil && now.Sub(injected()) < afterInput
}
