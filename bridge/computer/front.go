package computer

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/input"
)

// expected refuses an action that does not meet what its expect asks for.
func (r *run) expected(a *action, w *input.Window, where string) error {
	if a.expect == nil {
		return nil
	}
	if w != nil && (a.expect.app == "" || strings.EqualFold(w.App, a.expect.app)) &&
		strings.Contains(strings.ToLower(w.Title), strings.ToLower(a.expect.window)) {
		return nil
	}
	var want []string
	if a.expect.app != "" {
		want = append(want, "the application "+quote(a.expect.app))
	}
	if a.expect.window != "" {
		want = append(want, "a window with "+quote(a.expect.window)+" in its title")
	}
	got := "no window that gives its name"
	if w != nil {
		got = r.quoted(w)
	}
	return &stop.Error{Reason: stop.Expect, Message: fmt.Sprintf("%s was expected, but %s %s; nothing of the action was sent; look again",
		strings.Join(want, " and "), got, where)}
}

// quoted is a window in a sentence.
func (r *run) quoted(w *input.Window) string {
	t := r.target(w, nil)
	return fmt.Sprintf("%s with the window %s", quote(t.App), quote(t.Window))
}

// aimed refuses to press at p when the window that was there is there no more: one
// that moves away from the pointer would leave the click to whatever lies below.
// That is seen up to a fraction of a millisecond before the press.
func (r *run) aimed(ctx context.Context, p input.Point, before *input.Window) error {
	if before == nil {
		return nil
	}
	now, known := r.under(ctx, p)
	if !known || now != nil && now.App == before.App && now.Bounds == before.Bounds {
		return nil
	}
	got := "no window that gives its name"
	if now != nil {
		if got = r.quoted(now); now.App == before.App {
			got += ", moved or of another size"
		}
	}
	return &stop.Error{Reason: stop.Misplaced, Message: fmt.Sprintf(
		"%s was at %s,%s; when the pointer came, there was %s; nothing was pressed; look again before acting",
		r.quoted(before), number(p.X), number(p.Y), got)}
}

// A program that pulls itself to the front takes what is typed. What can be seen
// of it: a click went into one application, and the keyboard is with another one
// that had it before; or the keyboard moves to another application in the middle
// of a text. Both end the batch: to send the rest again costs one call, to type it
// into the wrong program cannot be undone.

const (
	// focusTime is what a window manager gets to move the keyboard after a click.
	focusTime = 100 * time.Millisecond
	focusLook = 10 * time.Millisecond
)

// click is the last action that should have moved the keyboard.
type click struct {
	into   *input.Window
	before *input.Window // had the keyboard when it began
	told   bool          // that is known
}

// passive are the roles of what a click works on without moving the keyboard.
var passive = map[string]bool{
	"menu": true, "dropdown_menu": true, "popup_menu": true, "combo": true, "tooltip": true, "notification": true,
	"toolbar": true, "utility": true, "splash": true, "dock": true, "desktop": true, "dnd": true,
}

// clicked notes an action that may move the keyboard.
func (r *run) clicked(ctx context.Context, a *action, into *input.Window) {
	switch {
	case a.spec.typ == Move || a.spec.typ == Scroll:
		return // they move no keyboard
	case into == nil || passive[into.Role] || strings.HasPrefix(into.Role, "AXMenu") || strings.HasPrefix(into.Role, "AXDock") ||
		a.spec.typ != DoubleClick && a.button != input.Left:
		r.click = nil
	default:
		r.click = &click{into: into}
		r.click.before, r.click.told = r.focused(ctx)
	}
}

// settledFocus is the window with the keyboard, once the last click has had its
// effect on that, and an error if a program took the keyboard back. Where it is not
// known who had it before the click, whoever has it now and was not clicked counts as
// one that took it.
func (r *run) settledFocus(ctx context.Context) (*input.Window, error) {
	w, _ := r.focused(ctx)
	c := r.click
	r.click = nil
	if c == nil || c.told && (c.before == nil || c.before.App == c.into.App) {
		return w, nil
	}
	back := func() bool {
		if w == nil || !c.told {
			return w != nil && w.App != c.into.App
		}
		return w.App == c.before.App
	}
	for start := time.Now(); back() && time.Since(start) < focusTime; {
		if sleep(ctx, focusLook) != nil {
			return w, nil // what ended it is the reason
		}
		if now, known := r.focused(ctx); known {
			w = now
		}
	}
	if !back() {
		return w, nil
	}
	return w, &stop.Error{Reason: stop.FocusStolen, Message: fmt.Sprintf(
		"%s has the keyboard although the click went into %s, so nothing was typed; send the rest again if it is meant for %s",
		quote(w.App), quote(c.into.App), quote(w.App))}
}

// whileKept returns a context for a text that ends when the keyboard goes to
// another application. kept ends the watch and returns why the text was ended,
// nil if it was not.
func (r *run) whileKept(ctx context.Context) (_ context.Context, kept func() error) {
	before := r.keyboard
	if before == nil {
		return ctx, func() error { return nil }
	}
	ctx, cancel := context.WithCancelCause(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for sleep(ctx, focusLook) == nil {
			if w, _ := r.focused(ctx); w != nil && w.App != before.App {
				cancel(&stop.Error{Reason: stop.FocusStolen, Message: fmt.Sprintf(
					"%s took the keyboard from %s in the middle of the text; the rest was not typed; look again",
					quote(w.App), quote(before.App))})
				return
			}
		}
	}()
	return ctx, func() error {
		cancel(nil)
		<-ended
		if e := (*stop.Error)(nil); errors.As(context.Cause(ctx), &e) && e.Reason == stop.FocusStolen {
			return e
		}
		return nil
	}
}
