// Package eyes reads what programs say they show on the screen, over the bus of
// assistive technologies (AT-SPI 2): the texts of their buttons and menu items,
// and where they are. Tests find by it what a person would click, whatever fonts
// and themes make of it.
package eyes

import (
	"cmp"
	"context"
	"fmt"
	"image"
	"slices"
	"sync"

	"github.com/godbus/dbus/v5"
)

const (
	registry   = "org.a11y.atspi.Registry"
	root       = "/org/a11y/atspi/accessible/root"
	accessible = "org.a11y.atspi.Accessible"
	component  = "org.a11y.atspi.Component"
)

// Bits of an object's state.
const (
	stateShowing = 25
	stateVisible = 30
)

// deepest is how far down a tree is read: a program could answer with a circle.
const deepest = 40

// Bus is the bus of assistive technologies of one session. It serves one
// goroutine.
type Bus struct {
	conn  *dbus.Conn
	ended sync.WaitGroup

	mu   sync.Mutex // guards seen
	seen map[ref]bool
}

// Open finds the bus, and starts it where nobody has yet. session is the address
// of the session bus.
func Open(ctx context.Context, session string) (*Bus, error) {
	s, err := dbus.Connect(session, dbus.WithContext(ctx))
	if err != nil {
		return nil, fmt.Errorf("the session bus: %w", err)
	}
	defer s.Close()
	var address string
	if err := s.Object("org.a11y.Bus", "/org/a11y/bus").CallWithContext(ctx, "org.a11y.Bus.GetAddress", 0).Store(&address); err != nil {
		return nil, fmt.Errorf("the bus of assistive technologies (Debian package at-spi2-core): %w", err)
	}
	conn, err := dbus.Connect(address)
	if err != nil {
		return nil, fmt.Errorf("the bus of assistive technologies: %w", err)
	}
	b := &Bus{conn: conn, seen: map[ref]bool{}}
	if err := b.listen(ctx); err != nil {
		_ = conn.Close()
		return nil, err
	}
	return b, nil
}

// listen takes note of what changes from now on: some programs list nothing, as a
// panel's plugins whose window is inside another's, and tell only of changes.
func (b *Bus) listen(ctx context.Context) error {
	err := b.conn.Object(registry, "/org/a11y/atspi/registry").CallWithContext(ctx, registry+".RegisterEvent", 0, "object:state-changed", []string{}, "").Err
	if err == nil {
		err = b.conn.AddMatchSignalContext(ctx, dbus.WithMatchInterface("org.a11y.atspi.Event.Object"))
	}
	if err != nil {
		return fmt.Errorf("follow what changes: %w", err)
	}
	signals := make(chan *dbus.Signal, 1024)
	b.conn.Signal(signals)
	b.ended.Go(func() {
		for s := range signals { // closed with the connection
			b.mu.Lock()
			b.seen[ref{s.Sender, s.Path}] = true
			b.mu.Unlock()
		}
	})
	return nil
}

// Close lets the bus go.
func (b *Bus) Close() error {
	err := b.conn.Close()
	b.ended.Wait()
	return err
}

// Item is something on the screen.
type Item struct {
	Role string // such as "push button" or "menu item"
	Name string // its text
	At   image.Rectangle

	ref ref
}

// Middle is where to click it.
func (i Item) Middle() image.Point { return i.At.Min.Add(i.At.Max).Div(2) }

// ref is how objects are named over the bus.
type ref struct {
	Sender string
	Path   dbus.ObjectPath
}

// Showing lists what the program of this name shows on the screen now, from the
// top down. What goes away meanwhile is left out.
func (b *Bus) Showing(ctx context.Context, app string) ([]Item, error) {
	apps, err := b.children(ctx, ref{registry, root})
	if err != nil {
		return nil, err
	}
	var out []Item
	for _, a := range apps {
		name, err := b.property(ctx, a, "Name")
		if err != nil || name != app {
			continue
		}
		all := map[ref]bool{}
		b.walk(ctx, a, 0, all)
		b.mu.Lock()
		for r := range b.seen {
			if r.Sender == a.Sender {
				all[r] = true
			}
		}
		b.mu.Unlock()
		for r := range all {
			if it, ok := b.item(ctx, r); ok {
				out = append(out, it)
			}
		}
	}
	slices.SortFunc(out, func(a, b Item) int { return cmp.Or(a.At.Min.Y-b.At.Min.Y, a.At.Min.X-b.At.Min.X) })
	return out, nil
}

func (b *Bus) walk(ctx context.Context, r ref, depth int, all map[ref]bool) {
	if depth > deepest || all[r] {
		return
	}
	all[r] = true
	kids, err := b.children(ctx, r)
	if err != nil {
		return // it is gone meanwhile
	}
	for _, k := range kids {
		b.walk(ctx, k, depth+1, all)
	}
}

func (b *Bus) item(ctx context.Context, r ref) (it Item, ok bool) {
	var state []uint32
	o := b.conn.Object(r.Sender, r.Path)
	if err := o.CallWithContext(ctx, accessible+".GetState", 0).Store(&state); err != nil || len(state) == 0 ||
		state[0]&(1<<stateShowing) == 0 || state[0]&(1<<stateVisible) == 0 {
		return it, false
	}
	var role string
	if err := o.CallWithContext(ctx, accessible+".GetRoleName", 0).Store(&role); err != nil {
		return it, false
	}
	name, err := b.property(ctx, r, "Name")
	if err != nil {
		return it, false
	}
	var at struct{ X, Y, W, H int32 }
	const onScreen = uint32(0)
	if err := o.CallWithContext(ctx, component+".GetExtents", 0, onScreen).Store(&at); err != nil || at.W <= 0 || at.H <= 0 {
		return it, false
	}
	return Item{role, name, image.Rect(int(at.X), int(at.Y), int(at.X+at.W), int(at.Y+at.H)), r}, true
}

// Shows tells whether an item is still on the screen.
func (b *Bus) Shows(ctx context.Context, i Item) bool {
	_, ok := b.item(ctx, i.ref)
	return ok
}

func (b *Bus) children(ctx context.Context, r ref) ([]ref, error) {
	var kids []ref
	err := b.conn.Object(r.Sender, r.Path).CallWithContext(ctx, accessible+".GetChildren", 0).Store(&kids)
	if err != nil {
		return nil, fmt.Errorf("what is in %s: %w", r.Path, err)
	}
	return kids, nil
}

func (b *Bus) property(ctx context.Context, r ref, name string) (string, error) {
	var v dbus.Variant
	err := b.conn.Object(r.Sender, r.Path).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0, accessible, name).Store(&v)
	s, _ := v.Value().(string)
	return s, err
}
