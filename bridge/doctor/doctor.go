// Package doctor says what works on this machine and what does not, and what to
// do about it. What the platform grants is a claim; with Options.TestInput it is
// put to the test: every kind of gesture is made on the way that a batch takes,
// into a window of our own, and read back from there.
package doctor

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"maps"
	"os"
	"runtime"
	"slices"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/grant"
	"drawbridge/bridge/measured"
	"drawbridge/capture"
	"drawbridge/input"
)

// Options says what to look at.
type Options struct {
	Desk *computer.Desk
	// TestInput makes gestures and reads them back; without it nothing is posted.
	TestInput bool
	// App makes a click, text and a scroll in the application of this name instead,
	// and reads them back through Accessibility.
	App string
	// Hand makes the gestures; nil: a hand of the doctor's own. The agent gives
	// one with its guard and journal.
	Hand Gestures
	// Held says why no gesture may be made now, and what to do about that; why is
	// empty while they may. No more are tried then. nil: they always may.
	Held func() (why, next string)
	// InvertScroll turns the wheel round, as the configuration may ask.
	InvertScroll bool
	// Open opens the window that the gestures go into; nil: the one that fits
	// the desk.
	Open func(ctx context.Context) (Window, error)
}

// Gestures is what the doctor needs of an [input.Hand].
type Gestures interface {
	Move(ctx context.Context, p input.Point, mods []input.Key) error
	Click(ctx context.Context, p input.Point, b input.Button, mods []input.Key) error
	DoubleClick(ctx context.Context, p input.Point, mods []input.Key) error
	Drag(ctx context.Context, path []input.Point, b input.Button, mods []input.Key) error
	Scroll(ctx context.Context, p input.Point, dx, dy float64, mods []input.Key) error
	Chord(ctx context.Context, mods []input.Key, k input.Key) error
	Type(ctx context.Context, text string) (n int, err error)
	Release(ctx context.Context) (released []string, err error)
}

var _ Gestures = (*input.Hand)(nil)

// hand is what makes the gestures, as the configuration asks.
func (o Options) hand() Gestures {
	hand := o.plainHand()
	if o.InvertScroll {
		hand = inverted{hand}
	}
	return hand
}

// held is the check that stands for all that may not be made now.
func (o Options) held() (c Check, held bool) {
	if o.Held == nil {
		return c, false
	}
	why, next := o.Held()
	return Check{Name: "input", Detail: "not tested: " + why, Next: next}, why != ""
}

func (o Options) plainHand() Gestures {
	if o.Hand != nil {
		return o.Hand
	}
	return input.NewHand(o.Desk.Input, input.HandOptions{})
}

// Report is what was found. As JSON it is what `doctor --json` prints.
type Report struct {
	Platform    string                  `json:"platform"`            // linux/amd64
	Binary      string                  `json:"binary"`              // the program that needs the grants
	Bundle      string                  `json:"bundle,omitempty"`    // on macOS: the app that it lies in, which holds the grants
	Signature   string                  `json:"signature,omitempty"` // on macOS: the identifier that the grants are tied to
	Backend     string                  `json:"backend"`
	Reason      string                  `json:"reason"` // why this backend; empty when it was named
	Displays    []computer.DisplayShape `json:"displays"`
	Permissions []Permission            `json:"permissions"`
	Capture     Capture                 `json:"capture"`
	Checks      []Check                 `json:"checks"`             // empty without TestInput
	Measured    *measured.Facts         `json:"measured,omitempty"` // with TestInput, where the platform does not say it
	Warnings    []string                `json:"warnings"`
	OK          bool                    `json:"ok"` // all that was asked works
}

// Permission is one grant: what the platform says, what it is for, and how to
// give it.
type Permission struct {
	Name   string              `json:"name"`
	State  computer.Permission `json:"state"`
	Needed bool                `json:"needed"` // false: there is another way, if a worse one
	For    string              `json:"for"`
	How    string              `json:"how"`
}

// Capture is the outcome of taking a picture of the main display.
type Capture struct {
	OK    bool    `json:"ok"`
	Size  *[2]int `json:"size"` // pixels
	Error string  `json:"error,omitempty"`
	Next  string  `json:"next,omitempty"`
}

// Check is one gesture, made and read back.
type Check struct {
	Name   string `json:"name"`
	OK     bool   `json:"ok"`
	Detail string `json:"detail"`         // what was seen
	Next   string `json:"next,omitempty"` // what to do, when it failed
}

// Run examines a desk. It puts the pointer back where it was and holds nothing
// down afterwards.
func Run(ctx context.Context, o Options) Report {
	d := o.Desk
	r := Report{
		Platform: runtime.GOOS + "/" + runtime.GOARCH, Backend: d.Backend, Reason: d.Reason,
		Displays: []computer.DisplayShape{}, Permissions: []Permission{}, Checks: []Check{}, Warnings: []string{},
	}
	if exe, err := os.Executable(); err == nil {
		r.Binary = exe
		if runtime.GOOS == "darwin" {
			home, _ := os.UserHomeDir() // without one nothing lies in its Downloads
			id := identity{exe: exe, home: home, parent: os.Getppid(), codesign: codesign}
			var warnings []string
			r.Bundle = id.bundle()
			r.Signature, warnings = id.inspect(ctx)
			r.Warnings = append(r.Warnings, warnings...)
		}
	}
	r.permissions(ctx, d)
	displays, err := d.Source.Displays(ctx)
	if err == nil && len(displays) == 0 {
		err = errors.New("there is no display")
	}
	if err != nil {
		r.Capture = failedCapture(fmt.Errorf("list the displays: %w", err))
	} else {
		for _, m := range displays {
			r.Displays = append(r.Displays, computer.DisplayShape{Index: m.Index, Points: m.Points, Pixels: m.Pixels, Origin: m.Origin, Scale: m.Scale})
		}
		r.capture(ctx, d.Source, displays[0])
	}
	held, isHeld := o.held()
	switch {
	case isHeld && (o.App != "" || o.TestInput):
		r.Checks = []Check{held}
	case o.App != "":
		r.Checks = testApp(ctx, o, o.hand())
	case o.TestInput:
		r.Checks, r.Measured = testInput(ctx, o, displays)
	}
	r.OK = r.Capture.OK
	for _, p := range r.Permissions {
		r.OK = r.OK && (p.State != computer.Missing || !p.Needed)
	}
	for _, c := range r.Checks {
		r.OK = r.OK && c.OK
	}
	return r
}

func (r *Report) permissions(ctx context.Context, d *computer.Desk) {
	if d.Permissions == nil {
		return
	}
	states := d.Permissions(ctx)
	if d.Backend == "native" {
		for _, g := range grant.List() {
			states[g.Name] = grant.Probe(ctx, g.Name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(states)) {
		p := Permission{Name: name, State: states[name], Needed: true, For: "unknown", How: "see the platform's settings"}
		if g, ok := grant.Named(name); ok {
			p.Needed, p.For, p.How = g.Needed, g.Purpose, how(d.Backend, g)
		}
		r.Permissions = append(r.Permissions, p)
		if p.State == computer.Unknown {
			r.Warnings = append(r.Warnings, fmt.Sprintf("whether %s is granted could not be found out", name))
		}
	}
}

func how(backend string, g grant.Grant) string {
	switch {
	case backend == "simulated":
		return "the simulated desktop was told to withhold it or not; nothing has to be granted on this machine"
	case len(grant.List()) > 0:
		return g.How()
	}
	return "X11 asks nobody: whoever may connect to the display has it"
}

func (r *Report) capture(ctx context.Context, source capture.Source, main capture.Display) {
	f, err := source.Grab(ctx, main, image.Rectangle{})
	if err != nil {
		r.Capture = failedCapture(err)
		return
	}
	defer f.Release()
	r.Capture.Size = &[2]int{f.Width, f.Height}
	if f.Width != main.Pixels[0] || f.Height != main.Pixels[1] {
		r.Capture.Error = fmt.Sprintf("the picture has %d×%d pixels, the display %d×%d", f.Width, f.Height, main.Pixels[0], main.Pixels[1])
		r.Capture.Next = "run doctor again: the display may just have changed"
		return
	}
	r.Capture.OK = true
	if blank(f) {
		r.Warnings = append(r.Warnings, "the picture shows one colour only: the display may be asleep or locked, or be empty")
	}
}

// blank reports whether all pixels of f are equal, the byte that is ignored
// aside.
func blank(f *capture.Frame) bool {
	first := f.Pix[:3]
	for y := range f.Height {
		row := f.Pix[y*f.Stride:]
		for x := range f.Width {
			if !bytes.Equal(row[4*x:4*x+3], first) {
				return false
			}
		}
	}
	return true
}

func failedCapture(err error) Capture {
	c := Capture{Error: err.Error()}
	switch {
	case errors.Is(err, capture.ErrPermission):
		c.Next = "grant screen_recording as said under permissions, then start Drawbridge again"
	case errors.Is(err, capture.ErrLocked):
		c.Next = "unlock the screen and run doctor again"
	case errors.Is(err, capture.ErrLoginWindow):
		c.Next = "log in and run doctor again"
	case errors.Is(err, capture.ErrAsleep):
		c.Next = "wake the display and run doctor again"
	case errors.Is(err, capture.ErrGone):
		c.Next = "the display server is gone: start it, then drawbridge"
	case errors.Is(err, capture.ErrDisplayChanged):
		c.Next = "the display changed in between: run doctor again"
	default:
		c.Next = "see that a display is connected and that Drawbridge runs in the session that it belongs to"
	}
	return c
}
