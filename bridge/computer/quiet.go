package computer

import (
	"context"

	"drawbridge/bridge/stop"
)

// While an approval waits for a person nobody's input is injected, so that no
// program can click its own prompt.

func errPending(n int) *stop.Error {
	return &stop.Error{Reason: stop.Pending, Message: "no input is sent while a person is being asked; " +
		plural(n, "approval") + " still pending; send the rest again once it is answered"}
}

// untilQuiet waits between two actions until nothing is pending, and tells the
// caller if it has to.
func (t *Tool) untilQuiet(ctx context.Context, tell func(string)) error {
	for told := false; ; told = true {
		n, changed := t.pending()
		if n == 0 {
			return nil
		}
		if !told {
			tell("waiting until a person has answered " + plural(n, "approval"))
		}
		select {
		case <-changed:
		case <-ctx.Done():
			// Out of time while waiting for a person: the person is the reason.
			if reason, _ := reasonOf(ctx, ctx.Err()); reason == stop.Deadline {
				return errPending(n)
			}
			return context.Cause(ctx)
		}
	}
}

// whileQuiet returns a context for one gesture that ends when something becomes
// pending. done ends the watch and waits for it.
func (t *Tool) whileQuiet(ctx context.Context) (_ context.Context, done func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			n, changed := t.pending()
			if n > 0 {
				cancel(errPending(n))
				return
			}
			select {
			case <-changed:
			case <-ctx.Done():
				return
			}
		}
	}()
	return ctx, func() { cancel(nil); <-ended }
}

// guard is asked before every event: the watches of whileQuiet and heed may lag
// behind.
func (t *Tool) guard(context.Context) error {
	if n, _ := t.pending(); n > 0 {
		return errPending(n)
	}
	return t.heed.acted()
}
