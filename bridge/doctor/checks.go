package doctor

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/measured"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/input/simulated"
)

// checkTime bounds one check, so that a desktop that hangs cannot hold the
// doctor up for long.
const checkTime = 10 * time.Second

// The texts that are typed: what every keyboard has; what only some have; and
// what none has, with characters that are made of several.
const (
	asciiText  = "The quick brown fox, 0123456789 (jumps) [over] {the} \"lazy\" dog's ~!@#$%^&*_+-=|\\:;<>?/` end"
	accentText = "äöü ÄÖÜ ß éèêë ñ çÇ Åå øØ ¿¡ £ €"
	emojiText  = "日本語 한국어 😀 👩‍💻 👍🏽 🇨🇭 ❤️"
)

// Hints by kind of gesture: what to do when it did not arrive.
const (
	hintPointer = "see that no program holds the pointer (an open menu, a screen locker, a game) and that the grant for posting events is given, then run doctor --test-input again"
	hintDrag    = "see that no window manager shortcut takes drags and that nobody moved the mouse meanwhile, then run doctor --test-input again"
	hintScroll  = "see that nobody used the mouse meanwhile, then run doctor --test-input again"
	hintInvert  = "the wheel turns the other way here: set invert_scroll (computer section of the configuration) the other way round"
	hintType    = "see that no input method is switched on and that nobody typed meanwhile, then run doctor --test-input again"
	hintUnicode = "close clipboard managers and input methods, which can swallow such characters, then run doctor --test-input again"
	hintChord   = "see that no global shortcut takes Ctrl+Shift+A and that no modifier key sticks, then run doctor --test-input again"
	hintFirst   = "mend the pointer check first: without it a press could go anywhere"
	hintFocus   = "close what covers the test window or takes the focus, then run doctor --test-input again"
	hintWindow  = "the test window could not be opened: see that the display is reachable and takes new windows"
)

// gesture is one check in a window.
type gesture struct {
	name string
	at   func(s Spots) []input.Point // where it presses; nil: a check of the keyboard
	make func(ctx context.Context, h Gestures, s Spots) error
	// judge says what was expected, whether it was seen, and what to do if not.
	judge func(seen Seen, s Spots) (want string, ok bool, next string)
}

var testChord = Chord{Mods: []input.Key{input.Control, input.Shift}, Key: "a"}

// gestures lists the checks after "pointer", in the order of the report.
var gestures = []gesture{
	clicks("click", []Click{{input.Left, 1}}, func(ctx context.Context, h Gestures, s Spots) error {
		return h.Click(ctx, s.Click, input.Left, nil)
	}),
	clicks("double_click", []Click{{input.Left, 1}, {input.Left, 2}}, func(ctx context.Context, h Gestures, s Spots) error {
		return h.DoubleClick(ctx, s.Click, nil)
	}),
	{
		name: "drag",
		at:   func(s Spots) []input.Point { return s.Drag[:] },
		make: func(ctx context.Context, h Gestures, s Spots) error {
			return h.Drag(ctx, s.Drag[:], input.Left, nil)
		},
		judge: func(seen Seen, s Spots) (string, bool, string) {
			want := "a drag from one place to the other, with motion in between"
			n := len(seen.Drag)
			ok := n >= 3 && near(seen.Drag[0], s.Drag[0]) && near(seen.Drag[n-1], s.Drag[1])
			return want, ok, hintDrag
		},
	},
	scrolls("scroll_up", 0, -1),
	scrolls("scroll_down", 0, 1),
	scrolls("scroll_left", -1, 0),
	scrolls("scroll_right", 1, 0),
	types("type_ascii", asciiText, hintType),
	types("type_accents", accentText, hintUnicode),
	types("type_emoji", emojiText, hintUnicode),
	{
		name: "chord",
		make: func(ctx context.Context, h Gestures, _ Spots) error {
			return h.Chord(ctx, testChord.Mods, testChord.Key)
		},
		judge: func(seen Seen, _ Spots) (string, bool, string) {
			ok := len(seen.Chords) == 1 && seen.Chords[0].equal(testChord) && seen.Text == ""
			return "the chord " + testChord.String(), ok, hintChord
		},
	},
}

func clicks(name string, want []Click, make func(context.Context, Gestures, Spots) error) gesture {
	return gesture{
		name: name, make: make,
		at: func(s Spots) []input.Point { return []input.Point{s.Click} },
		judge: func(seen Seen, _ Spots) (string, bool, string) {
			return Seen{Clicks: want}.String(), slices.Equal(seen.Clicks, want), hintPointer
		},
	}
}

// scrolls checks one direction: x and y are -1, 0 or 1.
func scrolls(name string, x, y float64) gesture {
	const amount = 120 // pixels: more than one notch of any wheel
	return gesture{
		name: name,
		at:   func(s Spots) []input.Point { return []input.Point{s.Scroll} },
		make: func(ctx context.Context, h Gestures, s Spots) error {
			return h.Scroll(ctx, s.Scroll, x*amount, y*amount, nil)
		},
		judge: func(seen Seen, _ Spots) (string, bool, string) {
			got := [2]float64{sign(seen.Scroll[0]), sign(seen.Scroll[1])}
			next := hintScroll
			if got == [2]float64{-x, -y} {
				next = hintInvert
			}
			return name[len("scroll_"):] + " by scrolling", got == [2]float64{x, y}, next
		},
	}
}

func types(name, text, hint string) gesture {
	return gesture{
		name: name,
		make: func(ctx context.Context, h Gestures, _ Spots) error {
			_, err := h.Type(ctx, text)
			return err
		},
		judge: func(seen Seen, _ Spots) (string, bool, string) {
			return fmt.Sprintf("the text %q", text), seen.Text == text && len(seen.Chords) == 0, hint
		},
	}
}

func sign(v float64) float64 {
	switch {
	case v > 0:
		return 1
	case v < 0:
		return -1
	}
	return 0
}

// near allows for whole pixels on a display that has no halves.
func near(a, b input.Point) bool { return math.Hypot(a.X-b.X, a.Y-b.Y) <= 2 }

// testInput makes every gesture and reads it back, and measures what the platform
// does not say. It sends nothing that could go to another window.
func testInput(ctx context.Context, o Options, displays []capture.Display) (checks []Check, found *measured.Facts) {
	driver := o.Desk.Input
	hand := o.hand()
	start, err := driver.Pointer(ctx)
	if err != nil {
		err = fmt.Errorf("the pointer's place cannot be read: %w", err)
		return append(checks, failAll(true, err, hintPointer)...), nil
	}
	defer func() {
		// Put back also after a cancel; a failure shows in the pointer check.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), checkTime)
		defer cancel()
		if _, err := hand.Release(ctx); err == nil {
			_ = hand.Move(ctx, start, nil)
		}
	}()
	pointer := checkPointer(ctx, driver, hand, start, displays)
	if c, held := o.held(); held {
		return []Check{c}, nil
	}
	checks = append(checks, pointer)

	open := o.Open
	if open == nil {
		open = func(ctx context.Context) (Window, error) { return openFor(ctx, o.Desk) }
	}
	window, err := open(ctx)
	if err != nil {
		return append(checks, failAll(false, err, hintWindow)...), nil
	}
	defer window.Close()
	if o.Desk.System != "" {
		found = &measured.Facts{System: o.Desk.System, When: time.Now(), Typing: true}
		if pointer.OK {
			checks = append(checks, measureWheel(ctx, o.plainHand(), driver, window, found), measureWatch(ctx, o.Desk.Person, found))
		}
	}
	for _, g := range gestures {
		if g.at != nil && !pointer.OK {
			checks = append(checks, Check{Name: g.name, Detail: "not tried, since the pointer does not go where it is sent", Next: hintFirst})
			continue
		}
		c := g.check(ctx, hand, driver, window)
		if held, is := o.held(); is {
			return append(checks, held), nil // and it may have been held before it was made
		}
		if found != nil && strings.HasPrefix(g.name, "type_") {
			found.Typing = found.Typing && c.OK
		}
		checks = append(checks, c)
	}
	return checks, found
}

// measureWheel finds out which way the wheel turns, and has it turn the right way
// from now on.
func measureWheel(ctx context.Context, hand Gestures, driver input.Driver, w Window, found *measured.Facts) Check {
	c := Check{Name: "wheel", OK: true, Detail: "it turns as documented"}
	wheel, ok := driver.(input.Wheeler)
	if !ok {
		return c
	}
	wheel.ReverseWheel(false)
	down := scrolls("scroll_down", 0, 1)
	if down.check(ctx, hand, driver, w).OK {
		return c
	}
	wheel.ReverseWheel(true)
	if down.check(ctx, hand, driver, w).OK {
		found.WheelReversed = true
		c.Detail = "it turns the other way than documented, which is kept in mind"
		return c
	}
	wheel.ReverseWheel(false)
	return Check{Name: "wheel", Detail: "it scrolls nothing, whichever way it is turned", Next: hintScroll}
}

// measureWatch finds out how the person can be seen.
func measureWatch(ctx context.Context, w input.Watcher, found *measured.Facts) Check {
	c := Check{Name: "person", Next: "switch Input Monitoring on for Drawbridge as said under permissions; until then batches are refused"}
	prover, ok := w.(input.Prover)
	if !ok {
		c.Detail = "nobody watches them, so batches do not stop when they use mouse and keyboard"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	if err := prover.Prove(ctx); err != nil {
		c.Detail = err.Error()
		return c
	}
	found.Watch = prover.How()
	return Check{Name: c.Name, OK: true, Detail: "mouse and keyboard of the person are seen " + found.Watch}
}

// inverted is a hand whose wheel turns the other way.
type inverted struct{ Gestures }

func (h inverted) Scroll(ctx context.Context, p input.Point, dx, dy float64, mods []input.Key) error {
	return h.Gestures.Scroll(ctx, p, -dx, -dy, mods)
}

// failAll fails every check for one reason.
func failAll(pointer bool, err error, next string) (checks []Check) {
	if pointer {
		checks = append(checks, Check{Name: "pointer", Detail: err.Error(), Next: next})
	}
	for _, g := range gestures {
		checks = append(checks, Check{Name: g.name, Detail: "not tried: " + err.Error(), Next: next})
	}
	return checks
}

// checkPointer moves the pointer 40 points and back, and reads both back.
func checkPointer(ctx context.Context, driver input.Driver, hand Gestures, start input.Point, displays []capture.Display) Check {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	const distance = 40
	c := Check{Name: "pointer", Next: hintPointer}
	away := input.Point{X: start.X + distance, Y: start.Y}
	if !slices.ContainsFunc(displays, func(d capture.Display) bool { return onDisplay(d, away) }) {
		away.X = start.X - distance
	}
	for _, to := range []input.Point{away, start} {
		err := hand.Move(ctx, to, nil)
		if err == nil {
			err = driver.Sync(ctx)
		}
		var at input.Point
		if err == nil {
			at, err = driver.Pointer(ctx)
		}
		if err != nil {
			c.Detail = err.Error()
			return c
		}
		if !near(at, to) {
			c.Detail = fmt.Sprintf("sent to %g, %g, the pointer is at %g, %g", to.X, to.Y, at.X, at.Y)
			return c
		}
	}
	c.OK, c.Next = true, ""
	c.Detail = fmt.Sprintf("moved %d points from %g, %g and back", distance, start.X, start.Y)
	return c
}

func onDisplay(d capture.Display, p input.Point) bool {
	x, y := p.X-d.Origin[0], p.Y-d.Origin[1]
	return x >= 0 && y >= 0 && x < d.Points[0] && y < d.Points[1]
}

func (g gesture) check(ctx context.Context, hand Gestures, driver input.Driver, w Window) Check {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	spots := w.Spots()
	c := Check{Name: g.name}
	var at []input.Point
	if g.at != nil {
		at = g.at(spots)
	}
	err := w.Begin(ctx)
	if err == nil {
		err = w.Ready(ctx, at...)
	}
	if err != nil {
		c.Detail, c.Next = "not tried: "+err.Error(), hintFocus
		return c
	}
	err = g.make(ctx, hand, spots)
	if _, released := hand.Release(ctx); released != nil {
		err = errors.Join(err, released)
	}
	if err == nil {
		err = driver.Sync(ctx)
	}
	seen, seenErr := w.Seen(ctx, func(seen Seen) bool {
		_, ok, _ := g.judge(seen, spots)
		return ok
	})
	want, ok, next := g.judge(seen, spots)
	switch {
	case err != nil:
		c.Detail, c.Next = err.Error(), next
	case seenErr != nil:
		c.Detail, c.Next = seenErr.Error(), hintFocus
	case !ok:
		c.Detail, c.Next = fmt.Sprintf("expected %s, the window saw %s", want, seen), next
	default:
		c.OK, c.Detail = true, "seen: "+seen.String()
	}
	return c
}

// openFor opens the window that fits a desk.
func openFor(ctx context.Context, d *computer.Desk) (Window, error) {
	if s, ok := d.Source.(*simulated.Desktop); ok {
		return openSimulated(s, d.Input), nil
	}
	return openNative(ctx, d)
}
