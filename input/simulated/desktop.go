package simulated

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rivo/uniseg"

	"drawbridge/capture"
	"drawbridge/input"
)

// Options says how a desktop is made. The zero value is one display of 1280×800
// points at scale 1, with everything granted and no state file.
type Options struct {
	// StateFile is where the [State] is written, as JSON. Empty: nowhere.
	StateFile string
	// Displays lists the displays, the main one first; see [Display].
	Displays []capture.Display
	// Window is the window's top left corner in global points; nil puts it 40
	// points inside the main display.
	Window *input.Point
	// Lag is how long the window takes to see an event.
	Lag time.Duration
	// WithholdInput drops every event and reports success.
	WithholdInput bool
	// WithholdCapture refuses every picture.
	WithholdCapture bool
}

// Display makes a display for [Options.Displays] of a size in points, with its
// corner at an origin in global points.
func Display(index int, width, height, scale float64, origin input.Point) capture.Display {
	return capture.Display{
		Index: index, Name: fmt.Sprintf("SIM-%d", index+1),
		Points: [2]float64{width, height},
		Pixels: [2]int{int(width*scale + 0.5), int(height*scale + 0.5)},
		Origin: [2]float64{origin.X, origin.Y}, Scale: scale,
	}
}

var (
	_ input.Driver   = (*Desktop)(nil)
	_ capture.Source = (*Desktop)(nil)
)

// Desktop is a simulated desktop. Its methods may be called by several
// goroutines.
type Desktop struct {
	lag       time.Duration
	stateFile string

	mu       sync.Mutex // guards all below
	closed   bool
	input    bool // events are taken
	capture  bool // pictures are given
	displays []capture.Display
	pointer  input.Point
	keys     []input.Key    // held, in the order of pressing
	buttons  []input.Button // held, in the order of pressing
	caps     bool
	posted   int     // events taken by the display server
	queue    []event // events that the window has not seen yet
	window   window

	rev      uint64 // rises with every change that State shows
	written  uint64 // the rev that the state file holds
	writeErr error
	pictures map[int]picture // by display index
}

// New makes a desktop and writes its first state.
func New(o Options) *Desktop {
	displays := slices.Clone(o.Displays)
	if len(displays) == 0 {
		displays = []capture.Display{Display(0, 1280, 800, 1, input.Point{})}
	}
	main := displays[0]
	corner := input.Point{X: main.Origin[0] + 40, Y: main.Origin[1] + 40}
	if o.Window != nil {
		corner = *o.Window
	}
	d := &Desktop{
		lag: o.Lag, stateFile: o.StateFile,
		input: !o.WithholdInput, capture: !o.WithholdCapture,
		displays: displays,
		pointer:  input.Point{X: main.Origin[0] + main.Points[0]/2, Y: main.Origin[1] + main.Points[1]/2},
		window:   newWindow(corner),
		rev:      1,
		pictures: map[int]picture{},
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.save()
	return d
}

// post hands one event to the window, now or after the lag. change is what the
// display server itself does with it; both do nothing without permission.
// Called with mu held.
func (d *Desktop) post(ctx context.Context, change func() event) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.closed {
		return input.ErrGone
	}
	if !d.input {
		return nil
	}
	e := change()
	e.at, e.mods, e.caps = d.pointer, d.mods(), d.caps
	d.posted++
	d.rev++
	e.due = time.Now().Add(d.lag)
	d.queue = append(d.queue, e)
	d.catchUp()
	return nil
}

// catchUp lets the window see the events that are due. Called with mu held.
func (d *Desktop) catchUp() {
	now := time.Now()
	n := 0
	for n < len(d.queue) && !d.queue[n].due.After(now) {
		d.window.handle(d.queue[n])
		d.rev++
		n++
	}
	d.queue = slices.Delete(d.queue, 0, n)
}

// mods lists the held modifiers. Called with mu held.
func (d *Desktop) mods() []input.Key {
	var mods []input.Key
	for _, m := range modifierOrder {
		if slices.Contains(d.keys, m) {
			mods = append(mods, m)
		}
	}
	return mods
}

// Move puts the pointer at p, or at the nearest place on a display.
func (d *Desktop) Move(ctx context.Context, p input.Point) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.post(ctx, func() event {
		d.pointer = d.nearest(p)
		return event{kind: motion, buttons: slices.Clone(d.buttons)}
	})
}

// Button presses or releases b where the pointer is.
func (d *Desktop) Button(ctx context.Context, b input.Button, down bool, clicks int) error {
	if b < input.Left || b > input.Forward {
		return fmt.Errorf("%v is no pointer button: use left, right, middle, back or forward", b)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.post(ctx, func() event {
		d.buttons = held(d.buttons, b, down)
		return event{kind: button, button: b, down: down, clicks: clicks}
	})
}

// Scroll turns the wheel where the pointer is.
func (d *Desktop) Scroll(ctx context.Context, dx, dy float64) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.post(ctx, func() event { return event{kind: wheel, dx: dx, dy: dy} })
}

// Key presses or releases one key. Caps Lock turns over with each press.
func (d *Desktop) Key(ctx context.Context, k input.Key, down bool) error {
	if !known(k) {
		return fmt.Errorf("key %q: %w", k, input.ErrNoKey)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.post(ctx, func() event {
		d.keys = held(d.keys, k, down)
		if k == input.CapsLock && down {
			d.caps = !d.caps
		}
		return event{kind: key, key: k, down: down}
	})
}

// Type enters text, one grapheme an event. It does not go through keys, so that
// neither Shift nor Caps Lock changes it. All line ends become a newline, which
// is what Return types.
func (d *Desktop) Type(ctx context.Context, text string) (n int, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for state := -1; text != ""; {
		var grapheme string
		grapheme, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		entered := grapheme
		if strings.HasPrefix(grapheme, "\r") {
			entered = "\n"
		}
		if err := d.post(ctx, func() event { return event{kind: typed, text: entered} }); err != nil {
			return n, err
		}
		n += len(grapheme)
	}
	return n, nil
}

// Pointer tells where the pointer is.
func (d *Desktop) Pointer(ctx context.Context) (input.Point, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return input.Point{}, input.ErrGone
	}
	return d.pointer, ctx.Err()
}

// Sync waits until the window has seen every event, and writes the state file.
func (d *Desktop) Sync(ctx context.Context) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	for len(d.queue) > 0 && !d.closed {
		wait := time.Until(d.queue[len(d.queue)-1].due)
		d.mu.Unlock()
		err := sleep(ctx, wait)
		d.mu.Lock()
		if err != nil {
			return err
		}
		d.catchUp()
	}
	if d.closed {
		return input.ErrGone
	}
	d.save()
	return d.writeErr
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// ReleaseStray lets go of every button and key that is held.
func (d *Desktop) ReleaseStray(ctx context.Context) error {
	d.mu.Lock()
	buttons, keys := slices.Clone(d.buttons), slices.Clone(d.keys)
	d.mu.Unlock()
	for _, b := range slices.Backward(buttons) {
		if err := d.Button(ctx, b, false, 1); err != nil {
			return fmt.Errorf("release button %v: %w", b, err)
		}
	}
	for _, k := range slices.Backward(keys) {
		if err := d.Key(ctx, k, false); err != nil {
			return fmt.Errorf("release key %q: %w", k, err)
		}
	}
	return nil
}

// Close writes the last state and ends the desktop; every later call fails.
// Closing it again does nothing: a desk closes its driver and its source, which
// are one here.
func (d *Desktop) Close() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil
	}
	d.catchUp()
	d.save()
	d.closed = true
	clear(d.pictures)
	return d.writeErr
}

// Granted tells what the platform grants: posting events, taking pictures.
func (d *Desktop) Granted() (input, capture bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.input, d.capture
}

// Grant changes what the platform grants, as a person does in the settings.
func (d *Desktop) Grant(input, capture bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.input, d.capture = input, capture
}

// Reset puts the window back to how it was at the start. It is no event: it is
// for whoever wants to begin with a known state, not for clients.
func (d *Desktop) Reset() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.window = newWindow(d.window.corner)
	d.rev++
}

// Focus gives the keyboard to a widget, without a click.
func (d *Desktop) Focus(widget string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !slices.Contains(focusOrder, widget) {
		return fmt.Errorf("widget %q takes no keyboard focus: use one of %s", widget, strings.Join(focusOrder, ", "))
	}
	d.window.focus = widget
	d.rev++
	return nil
}

// ScrollTo puts the list at an offset in points, without a wheel.
func (d *Desktop) ScrollTo(x, y float64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.window.scrollTo(x, y)
	d.rev++
}

// held adds v to a list of held things, or takes it out.
func held[T comparable](list []T, v T, down bool) []T {
	i := slices.Index(list, v)
	switch {
	case down && i < 0:
		return append(list, v)
	case !down && i >= 0:
		return slices.Delete(list, i, i+1)
	}
	return list
}
