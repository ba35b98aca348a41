// Package atspi asks the programs of a Linux desktop what lies inside of their
// windows, over the accessibility bus that screen readers use (AT-SPI 2). It
// only reads, asks no program but the one that is meant, and starts nothing.
//
// Whoever asks says how long it may take: a program that hangs is not waited
// for, and is left alone for a while afterwards.
package atspi

import (
	"context"
	"errors"
	"fmt"
	"image"
	"regexp"
	"slices"
	"sync"
	"time"

	"github.com/godbus/dbus/v5"
)

// Part is a part of a window: a button, a text field.
type Part struct {
	Role   string // the protocol's name for what it is: "push button"; empty: nobody says
	Secure bool   // it shows no one what is typed into it
	Lines  bool   // it is a text of several lines, which takes a Tab as text
}

// Window says which window is meant: whose it is, and where on the screen, in
// pixels. The protocol knows nothing of the window system's own numbers.
type Window struct {
	PID uint32
	At  image.Rectangle
}

// ErrHung: the program did not answer in time a moment ago, and is not asked.
var ErrHung = errors.New("the program does not answer about its windows")

// hungTime is how long a program that did not answer is left alone: what it costs
// is not to be paid for every action.
const hungTime = 2 * time.Second

// What strangers tell is taken up to here.
const (
	mostDeep  = 64   // parts inside of each other
	mostWide  = 256  // parts side by side
	mostParts = 2000 // that are looked at for the one with the keyboard
)

// aside is by how many pixels each edge of a window may differ between what the
// window system and what the program says: one counts frames or shadows in, the
// other does not.
const aside = 64

// Names of the protocol.
const (
	registryName = "org.a11y.atspi.Registry"
	rootPath     = "/org/a11y/atspi/accessible/root"
	nullPath     = "/org/a11y/atspi/null"
	accessible   = "org.a11y.atspi.Accessible."
	component    = "org.a11y.atspi.Component."
	pidOf        = "org.freedesktop.DBus.GetConnectionUnixProcessID"

	screenCoordinates = uint32(0)
)

// States of a part, as numbers of bits.
const (
	stateFocused            = 12
	stateMultiLine          = 17
	stateShowing            = 25
	stateManagesDescendants = 31
)

// ref names a part. The fields are in the order of the protocol.
type ref struct {
	Name string
	Path dbus.ObjectPath
}

// none is also what can name nobody: the bus ends the connection of whoever writes
// to such a name.
func (r ref) none() bool {
	return r.Path == nullPath || !r.Path.IsValid() || !uniqueName.MatchString(r.Name)
}

// uniqueName is what programs are called by the bus, and call each other here.
var uniqueName = regexp.MustCompile(`^:[0-9]+\.[0-9]+$`)

// Desktop is a connection to an accessibility bus. Its methods may be called by
// several goroutines; they ask one after the other.
type Desktop struct {
	bus   *dbus.Conn
	close sync.Once
	turn  chan struct{} // holds one value while somebody asks, who then owns what follows

	roots map[uint32][]ref     // of programs, by their process
	last  map[uint32]ref       // the part of a program that was under the pointer or had the keyboard
	hung  map[string]time.Time // since when programs do not answer, by their name on the bus
}

// Open connects to the accessibility bus at address, until Close. ctx bounds the
// connecting alone.
func Open(ctx context.Context, address string) (*Desktop, error) {
	life, cancel := context.WithCancel(context.Background())
	stop := context.AfterFunc(ctx, cancel)
	bus, err := dbus.Connect(address, dbus.WithContext(life))
	if !stop() {
		err = errors.Join(context.Cause(ctx), err)
	}
	if err != nil {
		cancel()
		if bus != nil {
			bus.Close()
		}
		return nil, fmt.Errorf("connect to the accessibility bus: %w", err)
	}
	context.AfterFunc(bus.Context(), cancel)
	return &Desktop{bus: bus, turn: make(chan struct{}, 1),
		roots: map[uint32][]ref{}, last: map[uint32]ref{}, hung: map[string]time.Time{}}, nil
}

// Done is closed when the connection has ended.
func (d *Desktop) Done() <-chan struct{} { return d.bus.Context().Done() }

// Close ends the connection and waits until nobody asks any more. An error says
// that it had ended already.
func (d *Desktop) Close() error {
	err := d.bus.Close()
	d.close.Do(func() { d.turn <- struct{}{} })
	return err
}

// Under tells what lies at p, in pixels of the screen, in window w; nil: its
// program does not say.
func (d *Desktop) Under(ctx context.Context, w Window, p image.Point) (*Part, error) {
	return d.ask(ctx, w, func(ctx context.Context) (*Part, error) {
		top, scale, err := d.find(ctx, w)
		if top.none() || err != nil {
			return nil, err
		}
		r := top
		for range mostDeep {
			var next ref
			if err := d.call(ctx, r, component+"GetAccessibleAtPoint", int32(p.X/scale), int32(p.Y/scale), screenCoordinates).store(&next); err != nil {
				if ctx.Err() != nil {
					return nil, err
				}
				break // what has no parts with places need not answer
			}
			if next.none() || next == r {
				break
			}
			r = next
		}
		part, _, err := d.describe(ctx, r)
		if err == nil {
			d.last[w.PID] = r
		}
		return part, err
	})
}

// Keyboard tells which part of window w, which has the keyboard, takes the keys;
// nil: its program does not say.
func (d *Desktop) Keyboard(ctx context.Context, w Window) (*Part, error) {
	return d.ask(ctx, w, func(ctx context.Context) (*Part, error) {
		// It is mostly where it was, or where the last click went.
		if r, ok := d.last[w.PID]; ok {
			part, s, err := d.describe(ctx, r)
			if err == nil && s.has(stateFocused) {
				return part, nil
			}
			if ctx.Err() != nil {
				return nil, err
			}
		}
		top, _, err := d.find(ctx, w)
		if top.none() || err != nil {
			return nil, err
		}
		r, err := d.focused(ctx, top)
		if r.none() || err != nil {
			return nil, err
		}
		part, _, err := d.describe(ctx, r)
		if err == nil {
			d.last[w.PID] = r
		}
		return part, err
	})
}

// ask lets f ask about a window when nobody else asks. It returns when ctx ends
// at the latest; f then ends by itself, or with the connection.
func (d *Desktop) ask(ctx context.Context, w Window, f func(context.Context) (*Part, error)) (*Part, error) {
	select {
	case d.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	case <-d.Done():
		return nil, dbus.ErrClosed
	}
	type result struct {
		part *Part
		err  error
	}
	ch := make(chan result, 1)
	go func() {
		defer func() { <-d.turn }()
		for _, r := range d.roots[w.PID] {
			if time.Since(d.hung[r.Name]) < hungTime {
				ch <- result{nil, ErrHung}
				return
			}
		}
		part, err := f(ctx)
		ch <- result{part, err}
	}()
	select {
	case r := <-ch:
		return r.part, r.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// find returns the window's part that holds all others, and how many pixels of
// the screen are one of the program's.
func (d *Desktop) find(ctx context.Context, w Window) (top ref, scale int, err error) {
	known := d.roots[w.PID] != nil
	if top, scale, err = d.findIn(ctx, w); err != nil && known && ctx.Err() == nil {
		// A process of this number had gone.
		delete(d.roots, w.PID)
		delete(d.last, w.PID)
		top, scale, err = d.findIn(ctx, w)
	}
	return top, scale, err
}

func (d *Desktop) findIn(ctx context.Context, w Window) (top ref, scale int, err error) {
	if d.roots[w.PID] == nil {
		if err := d.enumerate(ctx); err != nil {
			return ref{}, 0, err
		}
	}
	best := aside + 1
	for _, root := range d.roots[w.PID] {
		tops, err := d.children(ctx, root)
		if err != nil {
			return ref{}, 0, err
		}
		sizes := make([]answer, len(tops))
		for i, r := range tops {
			sizes[i] = d.call(ctx, r, component+"GetExtents", screenCoordinates)
		}
		for i, r := range tops {
			var e struct{ X, Y, Width, Height int32 }
			if err := sizes[i].store(&e); err != nil {
				if ctx.Err() != nil {
					return ref{}, 0, err
				}
				continue
			}
			// On screens of many dots toolkits count in pairs of them.
			for _, n := range []int{1, 2} {
				x, y := int(e.X)*n, int(e.Y)*n
				at := image.Rect(x, y, x+int(e.Width)*n, y+int(e.Height)*n)
				if by := apart(at, w.At); by < best {
					best, top, scale = by, r, n
				}
			}
		}
	}
	return top, scale, nil
}

// apart is by how much two rectangles differ, at the edge where they do most.
func apart(a, b image.Rectangle) int {
	by := 0
	for _, n := range []int{a.Min.X - b.Min.X, a.Min.Y - b.Min.Y, a.Max.X - b.Max.X, a.Max.Y - b.Max.Y} {
		by = max(by, n, -n)
	}
	return by
}

// enumerate asks which programs there are, and which processes they are.
func (d *Desktop) enumerate(ctx context.Context) error {
	all, err := d.children(ctx, ref{registryName, rootPath})
	if err != nil {
		return fmt.Errorf("list the programs with accessibility: %w", err)
	}
	known := map[ref]bool{}
	for pid, roots := range d.roots {
		roots = slices.DeleteFunc(roots, func(r ref) bool { return !slices.Contains(all, r) })
		if len(roots) == 0 {
			delete(d.roots, pid)
			delete(d.last, pid)
			continue
		}
		d.roots[pid] = roots
		for _, r := range roots {
			known[r] = true
		}
	}
	for name := range d.hung {
		if !slices.ContainsFunc(all, func(r ref) bool { return r.Name == name }) {
			delete(d.hung, name)
		}
	}
	bus := ref{"org.freedesktop.DBus", "/org/freedesktop/DBus"}
	all = slices.DeleteFunc(all, func(r ref) bool { return known[r] })
	pids := make([]answer, len(all))
	for i, r := range all {
		pids[i] = d.call(ctx, bus, pidOf, r.Name)
	}
	for i, r := range all {
		var pid uint32
		if pids[i].store(&pid) == nil {
			d.roots[pid] = append(d.roots[pid], r)
		}
	}
	return ctx.Err()
}

// focused looks for the part with the keyboard, level by level, where parts show.
func (d *Desktop) focused(ctx context.Context, top ref) (ref, error) {
	level, seen := []ref{top}, map[ref]bool{top: true}
	for len(level) > 0 && len(seen) < mostParts {
		lists := make([]answer, len(level))
		for i, r := range level {
			lists[i] = d.call(ctx, r, accessible+"GetChildren")
		}
		var parts []ref
		for _, l := range lists {
			var of []ref
			if err := l.store(&of); err != nil && ctx.Err() != nil {
				return ref{}, err
			}
			for _, r := range of[:min(len(of), mostWide)] {
				if !r.none() && !seen[r] && len(seen) < mostParts {
					seen[r] = true
					parts = append(parts, r)
				}
			}
		}
		asked := make([]answer, len(parts))
		for i, r := range parts {
			asked[i] = d.call(ctx, r, accessible+"GetState")
		}
		level = nil
		for i, r := range parts {
			var s states
			if err := asked[i].store(&s); err != nil {
				if ctx.Err() != nil {
					return ref{}, err
				}
				continue
			}
			if s.has(stateFocused) {
				return r, nil
			}
			// Tables make their cells only when they are asked for, without end.
			if s.has(stateShowing) && !s.has(stateManagesDescendants) {
				level = append(level, r)
			}
		}
	}
	return ref{}, nil
}

// states is a set of states: two numbers of 32 bits, the lower first.
type states []uint32

func (s states) has(bit int) bool { return len(s) > bit/32 && s[bit/32]&(1<<(bit%32)) != 0 }

func (d *Desktop) describe(ctx context.Context, r ref) (*Part, states, error) {
	of, in := d.call(ctx, r, accessible+"GetRole"), d.call(ctx, r, accessible+"GetState")
	var role uint32
	var s states
	if err := errors.Join(of.store(&role), in.store(&s)); err != nil {
		return nil, nil, err
	}
	return &Part{Role: roleName(role), Secure: role == rolePasswordText, Lines: s.has(stateMultiLine)}, s, nil
}

func (d *Desktop) children(ctx context.Context, r ref) ([]ref, error) {
	var all []ref
	err := d.call(ctx, r, accessible+"GetChildren").store(&all)
	all = slices.DeleteFunc(all, ref.none)
	return all[:min(len(all), mostWide)], err
}

// answer is what a program was asked and will say.
type answer struct {
	d    *Desktop
	of   ref
	ctx  context.Context
	call *dbus.Call
}

// call asks a program that runs, and does not wait. Several may be asked before
// the first answer is stored.
func (d *Desktop) call(ctx context.Context, r ref, method string, args ...any) answer {
	return answer{d, r, ctx, d.bus.Object(r.Name, r.Path).GoWithContext(ctx, method, dbus.FlagNoAutoStart, make(chan *dbus.Call, 1), args...)}
}

// store waits for the answer.
func (a answer) store(into ...any) error {
	<-a.call.Done // by ctx at the latest
	if a.call.Err != nil && errors.Is(a.ctx.Err(), context.DeadlineExceeded) {
		a.d.hung[a.of.Name] = time.Now()
	}
	return a.call.Store(into...)
}
