package computer

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/input"
)

// HandBack says how a batch gives way to the person.
type HandBack struct {
	// Quiet is how long after a hand-back no input is sent, counted from the last
	// thing that the person did; 0: not at all.
	Quiet time.Duration
	// AllowUnwatched lets batches run on a person's display also where the
	// person's input cannot be seen.
	AllowUnwatched bool
}

// DefaultHandBack is what holds where nothing else is said.
var DefaultHandBack = HandBack{Quiet: 3 * time.Second}

// Before a batch's first event, and after a prompt, the person gets a moment to
// take the hand off the mouse: the click that allowed the batch must not end it.
const (
	restTime = 300 * time.Millisecond // without input of the person's
	restMax  = 3 * time.Second        // longest wait for that
)

// lookEvery is how often a watcher that has to look does so while a batch runs.
const lookEvery = 10 * time.Millisecond

// heed is the watch over the person while a batch sends input.
type heed struct {
	tool *Tool

	mu   sync.Mutex // guards what follows
	on   bool
	base int // the person's acts when the watch began
}

// acted returns the error that ends the batch if the person did something since
// the watch began.
func (h *heed) acted() error {
	w := h.tool.desk.Person
	h.mu.Lock()
	on, base := h.on, h.base
	h.mu.Unlock()
	if w == nil || !on {
		return nil
	}
	if err := w.Err(); err != nil {
		return h.tool.unwatched(err)
	}
	if p, _ := w.Person(); p.Acts != base {
		return errHandBack(p)
	}
	return nil
}

func (h *heed) running() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.on
}

func (h *heed) set(on bool, base int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.on, h.base = on, base
}

func errHandBack(p input.Person) *stop.Error {
	return &stop.Error{Reason: stop.HandBack, Message: "the person at the desktop " + p.What +
		", so it was handed back to them; look again before acting, and ask them if in doubt"}
}

// unwatched refuses where the person's input cannot be seen and must be.
func (t *Tool) unwatched(why error) error {
	if t.desk.Own || t.handBack().AllowUnwatched {
		return nil
	}
	message := "the person's own input cannot be seen here, so a batch could not give way to it"
	if why != nil {
		message += " (" + oneLine(why) + ")"
	}
	return &stop.Error{Reason: stop.Unwatched, Message: message +
		"; to run all the same a person can set hand_back.allow_unwatched: true in the configuration"}
}

// begin starts the watch: from now on whatever the person does ends the batch,
// by end. It first waits until they rest. done ends the watch.
func (h *heed) begin(ctx context.Context, tell func(string), end context.CancelCauseFunc) (done func(), err error) {
	t := h.tool
	w := t.desk.Person
	if w == nil {
		return func() {}, t.unwatched(t.desk.Unwatched)
	}
	prover, proves := w.(input.Prover)
	if err := w.Err(); err != nil && !proves {
		return func() {}, t.unwatched(err)
	}
	p, err := t.rested(ctx, w, tell)
	if err != nil {
		return func() {}, err
	}
	if proves {
		// Now, since a person who rests does not blur the proof.
		err := prover.Prove(ctx)
		switch {
		case errors.Is(err, input.ErrUnseen):
			return func() {}, t.unwatched(err)
		case err != nil:
			return func() {}, err
		}
	}
	h.set(true, p.Acts)
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		var again <-chan time.Time
		if proves {
			// It may see the person only when it looks.
			t := time.NewTicker(lookEvery)
			defer t.Stop()
			again = t.C
		}
		for {
			_, changed := w.Person()
			if err := h.acted(); err != nil {
				// What the person does while they are asked something is their
				// answer. Nothing is sent meanwhile, and the watch begins again.
				if n, _ := t.pending(); n > 0 {
					h.set(false, 0)
				} else {
					end(err)
				}
				return
			}
			select {
			case <-changed:
			case <-again:
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { cancel(); <-ended; h.set(false, 0) }, nil
}

// rested waits until the person rests, and refuses while the quiet time of a
// hand-back runs.
func (t *Tool) rested(ctx context.Context, w input.Watcher, tell func(string)) (input.Person, error) {
	quiet := t.handBack().Quiet
	start := time.Now()
	for told := false; ; told = true {
		p, _ := w.Person()
		since := time.Since(p.Last)
		if quiet <= 0 || p.Last.IsZero() {
			return p, nil
		}
		if t.handed.Load() {
			if rest := quiet - since; rest > 0 {
				return p, &stop.Error{Reason: stop.Quiet, Message: fmt.Sprintf(
					"the person took the desktop back and used it %s ago; no input is sent until they have left it alone for %s: try again in %s",
					round(since), round(quiet), round(rest))}
			}
			t.handed.Store(false)
		}
		if since >= restTime {
			return p, nil
		}
		if time.Since(start) >= restMax {
			return p, &stop.Error{Reason: stop.Quiet, Message: fmt.Sprintf(
				"the person is using the desktop; no input is sent until they have left it alone for %s: try again in %s",
				round(restTime), round(quiet))}
		}
		if !told {
			tell("waiting until the person leaves mouse and keyboard alone")
		}
		if err := sleep(ctx, restTime-since); err != nil {
			return p, err
		}
	}
}

// round makes a duration fit for a sentence, and never shorter than it is.
func round(d time.Duration) time.Duration {
	const unit = 100 * time.Millisecond
	return (d + unit - 1).Truncate(unit)
}
