package doctor

import (
	"context"

	"drawbridge/input"
	"drawbridge/input/simulated"
)

// simulatedWindow reads gestures back from the simulated desktop itself: from
// what its widgets made of them.
type simulatedWindow struct {
	desktop *simulated.Desktop
	driver  input.Driver // its Sync waits until the desktop has seen everything
	from    [2]float64   // where the list was at Begin
}

func openSimulated(d *simulated.Desktop, driver input.Driver) *simulatedWindow {
	return &simulatedWindow{desktop: d, driver: driver}
}

func (w *simulatedWindow) Spots() Spots {
	widgets := w.desktop.State().Widgets
	return Spots{
		Click:  widgets[simulated.Press].Center(),
		Scroll: widgets[simulated.List].Center(),
		Drag:   [2]input.Point{widgets[simulated.Box].Center(), widgets[simulated.Target].Center()},
	}
}

// Ready always is: there is no other window.
func (w *simulatedWindow) Ready(ctx context.Context, _ ...input.Point) error { return ctx.Err() }

// Begin puts the list in the middle, so that it can scroll either way, and the
// keyboard into the text field, so that typing does not depend on a click.
func (w *simulatedWindow) Begin(context.Context) error {
	w.desktop.Reset()
	reach := w.desktop.State().List.Max
	w.desktop.ScrollTo(reach[0]/2, reach[1]/2)
	w.from = w.desktop.State().List.Offset
	return w.desktop.Focus(simulated.Field)
}

// Seen waits for nothing more than Sync, which is exact here.
func (w *simulatedWindow) Seen(ctx context.Context, _ func(Seen) bool) (Seen, error) {
	if err := w.driver.Sync(ctx); err != nil {
		return Seen{}, err
	}
	s := w.desktop.State()
	seen := Seen{
		Text:   s.Text,
		Scroll: [2]float64{s.List.Offset[0] - w.from[0], s.List.Offset[1] - w.from[1]},
	}
	for n := range s.Clicks.Left {
		// The desktop counts; of two clicks that are a double one, the last is
		// the second.
		count := 1
		if n == s.Clicks.Left-1 && s.Clicks.Double > 0 {
			count = 2
		}
		seen.Clicks = append(seen.Clicks, Click{input.Left, count})
	}
	if len(s.Drag.Path) > 1 {
		for _, p := range s.Drag.Path {
			seen.Drag = append(seen.Drag, input.Point{X: p[0], Y: p[1]})
		}
	}
	if n := len(s.Chord); n > 1 {
		c := Chord{Key: input.Key(s.Chord[n-1])}
		for _, m := range s.Chord[:n-1] {
			c.Mods = append(c.Mods, input.Key(m))
		}
		seen.Chords = []Chord{c}
	}
	return seen, nil
}

// Close leaves the desktop as a new one.
func (w *simulatedWindow) Close() error {
	w.desktop.Reset()
	return nil
}
