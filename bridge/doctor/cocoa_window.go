//go:build darwin || standin

package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/ebitengine/purego/objc"

	"drawbridge/bridge/computer"
	"drawbridge/input"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

// openNative opens a window of AppKit's.
func openNative(ctx context.Context, d *computer.Desk) (Window, error) {
	namer, ok := d.Input.(input.Namer)
	if !ok {
		return nil, errors.New("this backend cannot tell whose a window is, so nothing is tested in one: use --backend native")
	}
	if err := cocoa.Start(); err != nil {
		return nil, fmt.Errorf("open a test window: %w", err)
	}
	w := &cocoaWindow{namer: namer}
	if err := cocoa.Main(w.open); err != nil {
		return nil, fmt.Errorf("open a test window: %w", err)
	}
	if err := w.Begin(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// The window's parts, in points.
const (
	cocoaPad    = 200.0 // a side of what takes clicks and keys, and of what scrolls
	cocoaGround = 4000.0
	cocoaMiddle = (cocoaGround - cocoaPad) / 2
)

// How long the window is given to hear of what was posted, at most, and between two
// looks.
const (
	cocoaLate = 2 * time.Second
	cocoaLook = 5 * time.Millisecond
)

// cocoaWindow is a window of AppKit's with a view that notes what is done to it, and
// one that scrolls. All but namer is the main thread's.
type cocoaWindow struct {
	namer                 input.Namer
	window, pad, scroller objc.ID

	seen    Seen
	pressed *input.Point // where a button is held
	last    time.Time    // of the last press
	from    quartz.CGPoint
}

func (w *cocoaWindow) open() {
	w.window = cocoa.Window("Drawbridge: test of mouse and keyboard", 2*cocoaPad, cocoaPad)
	in := cocoa.Content(w.window)
	w.pad = cocoa.EventView(in, cocoa.Rect(0, 0, cocoaPad, cocoaPad), 0, w.note)
	w.scroller = cocoa.Scroller(in, cocoa.Rect(cocoaPad, 0, cocoaPad, cocoaPad), 0, quartz.CGSize{Width: cocoaGround, Height: cocoaGround})
}

// note is told of what comes to the pad.
func (w *cocoaWindow) note(e cocoa.Event) {
	at := input.Point{X: e.At.X, Y: cocoa.ScreenHeight() - e.At.Y}
	switch e.Kind {
	case cocoa.Pressed:
		w.pressed, w.seen.Drag, w.last = &at, nil, time.Now()
	case cocoa.Dragged:
		if w.pressed != nil {
			if w.seen.Drag == nil {
				w.seen.Drag = []input.Point{*w.pressed}
			}
			w.seen.Drag = append(w.seen.Drag, at)
		}
	case cocoa.Released:
		switch {
		case w.pressed == nil:
		case w.seen.Drag != nil:
			w.seen.Drag = append(w.seen.Drag, at)
		case near(*w.pressed, at):
			w.seen.Clicks = append(w.seen.Clicks, Click{cocoaButton(e.Button), e.Clicks})
		}
		w.pressed = nil
	case cocoa.KeyDown:
		w.key(e)
	}
}

func cocoaButton(n int) input.Button {
	return [...]input.Button{input.Left, input.Right, input.Middle}[n]
}

// key notes a text or a chord.
func (w *cocoaWindow) key(e cocoa.Event) {
	var c Chord
	for _, m := range []struct {
		flag uint
		key  input.Key
	}{
		{cocoa.NSEventModifierFlagControl, input.Control}, {cocoa.NSEventModifierFlagOption, input.Alt},
		{cocoa.NSEventModifierFlagCommand, input.Command}, {cocoa.NSEventModifierFlagShift, input.Shift},
	} {
		if e.Flags&m.flag != 0 {
			c.Mods = append(c.Mods, m.key)
		}
	}
	const others = cocoa.NSEventModifierFlagControl | cocoa.NSEventModifierFlagOption | cocoa.NSEventModifierFlagCommand
	if e.Flags&others != 0 {
		c.Key = input.Key(strings.ToLower(e.Bare))
		w.seen.Chords = append(w.seen.Chords, c)
		return
	}
	w.seen.Text += strings.ReplaceAll(e.Text, "\r", "\n")
}

// main runs f on the main thread.
func (w *cocoaWindow) main(f func()) error {
	if err := cocoa.Main(f); err != nil {
		return fmt.Errorf("the test window: %w", err)
	}
	return nil
}

func (w *cocoaWindow) Spots() (s Spots) {
	err := w.main(func() {
		height := cocoa.ScreenHeight()
		at := func(view objc.ID, x, y float64) input.Point {
			r := cocoa.OnScreen(view)
			return input.Point{X: math.Round(r.Origin.X + x*r.Size.Width), Y: math.Round(height - r.Origin.Y - y*r.Size.Height)}
		}
		s = Spots{Click: at(w.pad, 0.5, 0.5), Scroll: at(w.scroller, 0.5, 0.5), Drag: [2]input.Point{at(w.pad, 0.2, 0.8), at(w.pad, 0.8, 0.3)}}
	})
	if err != nil {
		nowhere := input.Point{X: math.Inf(1), Y: math.Inf(1)} // Ready fails there
		return Spots{Click: nowhere, Scroll: nowhere, Drag: [2]input.Point{nowhere, nowhere}}
	}
	return s
}

// Begin gives the window the keyboard, which may take macOS a moment, and puts the
// scroller into the middle. No click is counted on from one gesture to the next.
func (w *cocoaWindow) Begin(ctx context.Context) error {
	var wait time.Duration
	err := w.main(func() { wait = time.Until(w.last.Add(cocoa.DoubleClickTime())) })
	if err == nil && wait > 0 {
		err = rest(ctx, wait)
	}
	if err != nil {
		return err
	}
	for {
		has := false
		err := w.main(func() {
			if has = cocoa.HasKeyboard(w.window); !has {
				cocoa.ShowActive(w.window)
			}
			cocoa.GiveKeys(w.window, w.pad)
			cocoa.ScrollTo(w.scroller, quartz.CGPoint{X: cocoaMiddle, Y: cocoaMiddle})
			w.seen, w.pressed, w.from = Seen{}, nil, cocoa.ScrolledTo(w.scroller)
		})
		if err != nil || has {
			return err
		}
		if err := rest(ctx, 10*cocoaLook); err != nil {
			return fmt.Errorf("the test window does not get the keyboard: %w", err)
		}
	}
}

func rest(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (w *cocoaWindow) Ready(ctx context.Context, at ...input.Point) error {
	us := os.Getpid()
	for _, p := range at {
		if got, err := w.namer.Under(ctx, p); err != nil {
			return err
		} else if got == nil || got.PID != us {
			return fmt.Errorf("the test window is covered at %g, %g, so a press would go to another one", p.X, p.Y)
		}
	}
	if len(at) > 0 {
		return nil
	}
	has := false
	if err := w.main(func() { has = cocoa.HasKeyboard(w.window) }); err != nil {
		return err
	}
	if !has {
		return errors.New("the test window has lost the keyboard, so keys would go to another one")
	}
	return nil
}

func (w *cocoaWindow) Seen(ctx context.Context, enough func(Seen) bool) (Seen, error) {
	for end := time.Now().Add(cocoaLate); ; {
		var seen Seen
		err := w.main(func() {
			seen = w.seen
			seen.Clicks, seen.Chords, seen.Drag = slices.Clone(seen.Clicks), slices.Clone(seen.Chords), slices.Clone(seen.Drag)
			to := cocoa.ScrolledTo(w.scroller)
			// The ground is measured upwards: what shows more of its lower part has
			// been scrolled down.
			seen.Scroll = [2]float64{to.X - w.from.X, w.from.Y - to.Y}
		})
		if err != nil || enough(seen) || time.Now().After(end) {
			return seen, err
		}
		if err := rest(ctx, cocoaLook); err != nil {
			return Seen{}, fmt.Errorf("read back from the test window: %w", err)
		}
	}
}

func (w *cocoaWindow) Close() error {
	return w.main(func() {
		cocoa.ForgetEvents(w.pad)
		cocoa.CloseWindow(w.window)
	})
}
