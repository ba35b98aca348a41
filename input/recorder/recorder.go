// Package recorder is an input driver that has no desktop: it writes down the
// events that it is given, in order. It stands in for a platform where a test
// asks what was posted, and makes any event fail where a test asks what happens
// then. It follows the contract of input.Driver and nothing else: motions while
// a button is down are drags, the pointer is where the last motion left it.
package recorder

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"

	"drawbridge/input"
)

// Driver records. Its zero value is ready; set the fields before its first use.
type Driver struct {
	// Before, if set, is called before each event is written down, with the
	// event's line. An error is returned instead of posting the event.
	Before func(ctx context.Context, line string) error
	// Out, if set, receives each line as it is posted.
	Out io.Writer
	// Window, if set, names the window at p, or the one with the keyboard where p
	// is nil.
	Window func(ctx context.Context, p *input.Point) (*input.Window, error)
	// Part, if set, tells the part of a window at p, or the one that takes the keys
	// where p is nil.
	Part func(ctx context.Context, p *input.Point) (*input.Part, error)
	// Drift is added to the pointer's place when it is read back.
	Drift input.Point

	mu      sync.Mutex // guards what follows
	lines   []string
	held    []string
	pointer input.Point
	buttons int
}

var (
	_ input.Driver    = (*Driver)(nil)
	_ input.Inspector = (*Driver)(nil)
)

// Lines returns what was posted so far: "move 1,2", "drag 1,2", "left down 1",
// "key shift up", "scroll 0,480", `type "text"`, "sync", "stray", "close".
func (d *Driver) Lines() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.lines)
}

// Held returns what is down now, in the order of the presses.
func (d *Driver) Held() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.held)
}

func (d *Driver) post(ctx context.Context, line string, apply func()) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if d.Before != nil {
		if err := d.Before(ctx, line); err != nil {
			return err
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, line)
	if apply != nil {
		apply()
	}
	if d.Out != nil {
		if _, err := fmt.Fprintln(d.Out, line); err != nil {
			return fmt.Errorf("record %q: %w", line, err)
		}
	}
	return nil
}

// hold keeps held up to date. The caller holds d.mu.
func (d *Driver) hold(name string, down bool) {
	if down {
		d.held = append(d.held, name)
	} else if i := slices.Index(d.held, name); i >= 0 {
		d.held = slices.Delete(d.held, i, i+1)
	}
}

func state(down bool) string {
	if down {
		return "down"
	}
	return "up"
}

func (d *Driver) Move(ctx context.Context, p input.Point) error {
	d.mu.Lock()
	kind := "move"
	if d.buttons > 0 {
		kind = "drag"
	}
	d.mu.Unlock()
	return d.post(ctx, fmt.Sprintf("%s %g,%g", kind, p.X, p.Y), func() { d.pointer = p })
}

func (d *Driver) Button(ctx context.Context, b input.Button, down bool, clicks int) error {
	return d.post(ctx, fmt.Sprintf("%s %s %d", b, state(down), clicks), func() {
		d.hold(b.String(), down)
		if down {
			d.buttons++
		} else if d.buttons > 0 {
			d.buttons--
		}
	})
}

func (d *Driver) Scroll(ctx context.Context, dx, dy float64) error {
	return d.post(ctx, fmt.Sprintf("scroll %g,%g", dx, dy), nil)
}

func (d *Driver) Key(ctx context.Context, k input.Key, down bool) error {
	return d.post(ctx, fmt.Sprintf("key %s %s", k, state(down)), func() { d.hold(string(k), down) })
}

func (d *Driver) Type(ctx context.Context, text string) (int, error) {
	if err := d.post(ctx, fmt.Sprintf("type %q", text), nil); err != nil {
		return 0, err
	}
	return len(text), nil
}

func (d *Driver) Pointer(ctx context.Context) (input.Point, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return input.Point{X: d.pointer.X + d.Drift.X, Y: d.pointer.Y + d.Drift.Y}, ctx.Err()
}

// Focused implements input.Namer.
func (d *Driver) Focused(ctx context.Context) (*input.Window, error) { return d.name(ctx, nil) }

// Under implements input.Namer.
func (d *Driver) Under(ctx context.Context, p input.Point) (*input.Window, error) {
	return d.name(ctx, &p)
}

func (d *Driver) name(ctx context.Context, p *input.Point) (*input.Window, error) {
	if err := ctx.Err(); err != nil || d.Window == nil {
		return nil, err
	}
	return d.Window(ctx, p)
}

// PartFocused implements input.Inspector.
func (d *Driver) PartFocused(ctx context.Context) (*input.Part, error) { return d.inspect(ctx, nil) }

// PartUnder implements input.Inspector.
func (d *Driver) PartUnder(ctx context.Context, p input.Point) (*input.Part, error) {
	return d.inspect(ctx, &p)
}

func (d *Driver) inspect(ctx context.Context, p *input.Point) (*input.Part, error) {
	if err := ctx.Err(); err != nil || d.Part == nil {
		return nil, err
	}
	return d.Part(ctx, p)
}

func (d *Driver) Sync(ctx context.Context) error { return d.post(ctx, "sync", nil) }

func (d *Driver) ReleaseStray(ctx context.Context) error {
	return d.post(ctx, "stray", func() { d.held, d.buttons = nil, 0 })
}

func (d *Driver) Close() error { return d.post(context.Background(), "close", nil) }
