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
	Lines  bool   // it is a text of several lines, which takes a Tab as text; told of the keyboard's part alone
}

// Window says which window is meant: whose it is, where on the screen, in pixels, and
// what it is called. The protocol knows nothing of the window system's own number, by
// which the window is remembered.
type Window struct {
	ID    uint32
	PID   uint32
	At    image.Rectangle
	Title string
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
	mostKept  = 64   // windows that are remembered
	// mostAtOnce parts inside of each other are asked at once.
	mostAtOnce = 16
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

// top is the part of a window that holds all others.
type top struct {
	ref
	scale int // pixels of the screen to one of the program's
}

// Desktop is a connection to an accessibility bus. Its methods may be called by
// several goroutines; they ask one after the other.
type Desktop struct {
	bus   *dbus.Conn
	close sync.Once
	turn  chan struct{} // holds one value while somebody asks, who then owns what follows

	roots map[uint32][]ref     // of programs, by their process
	kept  map[Window]top       // windows that were found
	ways  map[uint32][]ref     // of programs, the parts that lay under the last place, from the window's inwards
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
		roots: map[uint32][]ref{}, kept: map[Window]top{}, ways: map[uint32][]ref{}, last: map[uint32]ref{}, hung: map[string]time.Time{}}, nil
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

// Under tells what lies at p, in pixels of the screen, in window w, but not whether
// it takes lines; nil: its program does not say.
func (d *Desktop) Under(ctx context.Context, w Window, p image.Point) (*Part, error) {
	return d.inside(ctx, w, func(ctx context.Context, t top) (*Part, error) {
		ask := func(r ref) under {
			return under{r, d.call(ctx, r, component+"GetAccessibleAtPoint", int32(p.X/t.scale), int32(p.Y/t.scale), screenCoordinates),
				d.call(ctx, r, accessible+"GetRole")}
		}
		// Each part knows only the next one inside of it. Those on the way that was gone
		// last are asked all at once, since places are mostly near each other; an answer
		// that leads elsewhere makes those after it worthless.
		way := d.ways[w.PID]
		if len(way) == 0 || way[0] != t.ref {
			way = []ref{t.ref}
		}
		known := make([]under, len(way))
		for i, r := range way {
			known[i] = ask(r)
		}
		gone := known[:1:1]
		for len(gone) < mostDeep {
			here := gone[len(gone)-1]
			var next ref
			if err := here.at.store(&next); err != nil && ctx.Err() != nil {
				return nil, err
			}
			// What has no parts with places need not answer.
			if next.none() || next == here.ref {
				break
			}
			if n := len(gone); n < len(known) && known[n].ref == next {
				gone = append(gone, known[n])
				continue
			}
			known = nil
			gone = append(gone, ask(next))
		}
		// The last may be named and not be there.
		for n := len(gone); ; n-- {
			var role uint32
			if err := gone[n-1].role.store(&role); err != nil && (n == 1 || ctx.Err() != nil) {
				return nil, err
			} else if err != nil {
				continue
			}
			way = nil
			for _, u := range gone[:min(n, mostAtOnce)] {
				way = append(way, u.ref)
			}
			d.ways[w.PID], d.last[w.PID] = way, gone[n-1].ref
			return &Part{Role: roleName(role), Secure: role == rolePasswordText}, nil
		}
	})
}

// under is a part that was asked what lies inside of it at a place, and what it is.
type under struct {
	ref
	at, role answer
}

// Keyboard tells which part of window w, which has the keyboard, takes the keys;
// nil: its program does not say.
func (d *Desktop) Keyboard(ctx context.Context, w Window) (*Part, error) {
	return d.inside(ctx, w, func(ctx context.Context, t top) (*Part, error) {
		// It is mostly where it was, or where the last click went.
		if r, ok := d.last[w.PID]; ok {
			part, s, err := d.ask(ctx, r).answer()
			if err == nil && s.has(stateFocused) {
				return part, nil
			}
			if ctx.Err() != nil {
				return nil, err
			}
		}
		r, err := d.focused(ctx, t.ref)
		if r.none() || err != nil {
			return nil, err
		}
		part, _, err := d.ask(ctx, r).answer()
		if err == nil {
			d.last[w.PID] = r
		}
		return part, err
	})
}

// inside lets f ask about what lies in a window. A window that is remembered, and
// whose parts do not answer, is looked for once more: it may be another one.
func (d *Desktop) inside(ctx context.Context, w Window, f func(context.Context, top) (*Part, error)) (*Part, error) {
	return d.wait(ctx, w, func(ctx context.Context) (*Part, error) {
		t, known := d.kept[w]
		if known {
			if part, err := f(ctx, t); err == nil || ctx.Err() != nil {
				return part, err
			}
			delete(d.kept, w)
		}
		t, err := d.find(ctx, w)
		if t.none() || err != nil {
			return nil, err
		}
		if len(d.kept) >= mostKept {
			clear(d.kept)
		}
		d.kept[w] = t
		return f(ctx, t)
	})
}

// wait lets f ask about a window when nobody else asks. It returns when ctx ends
// at the latest; f then ends by itself, or with the connection.
func (d *Desktop) wait(ctx context.Context, w Window, f func(context.Context) (*Part, error)) (*Part, error) {
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

// find looks for a window among those of its program.
func (d *Desktop) find(ctx context.Context, w Window) (top, error) {
	known := d.roots[w.PID] != nil
	t, err := d.findIn(ctx, w)
	if err != nil && known && ctx.Err() == nil {
		// A process of this number had gone.
		d.forget(w.PID)
		t, err = d.findIn(ctx, w)
	}
	return t, err
}

// forget drops what is known of a program.
func (d *Desktop) forget(pid uint32) {
	delete(d.roots, pid)
	delete(d.ways, pid)
	delete(d.last, pid)
}

func (d *Desktop) findIn(ctx context.Context, w Window) (top, error) {
	if d.roots[w.PID] == nil {
		if err := d.enumerate(ctx); err != nil {
			return top{}, err
		}
	}
	best := aside
	var found []top
	for _, root := range d.roots[w.PID] {
		windows, err := d.children(ctx, root)
		if err != nil {
			return top{}, err
		}
		sizes := make([]answer, len(windows))
		for i, r := range windows {
			sizes[i] = d.call(ctx, r, component+"GetExtents", screenCoordinates)
		}
		for i, r := range windows {
			var e struct{ X, Y, Width, Height int32 }
			if err := sizes[i].store(&e); err != nil {
				if ctx.Err() != nil {
					return top{}, err
				}
				continue
			}
			// On screens of many dots toolkits count in pairs of them.
			for _, n := range []int{1, 2} {
				x, y := int(e.X)*n, int(e.Y)*n
				by := apart(image.Rect(x, y, x+int(e.Width)*n, y+int(e.Height)*n), w.At)
				if by < best {
					best, found = by, nil
				}
				if by == best {
					found = append(found, top{r, n})
				}
			}
		}
	}
	return d.called(ctx, found, w.Title)
}

// called picks the window with this title out of several in one place, as those of a
// program that fill the screen are; none: nobody can tell which of them is meant.
func (d *Desktop) called(ctx context.Context, found []top, title string) (top, error) {
	switch len(found) {
	case 0:
		return top{}, nil
	case 1:
		return found[0], nil
	}
	names := make([]answer, len(found))
	for i, t := range found {
		names[i] = d.call(ctx, t.ref, "org.freedesktop.DBus.Properties.Get", "org.a11y.atspi.Accessible", "Name")
	}
	for i, t := range found {
		var name dbus.Variant
		if names[i].store(&name) == nil && name.Value() == title {
			return t, nil
		}
	}
	return top{}, ctx.Err()
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
			d.forget(pid)
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

// asked is a question about what a part is.
type asked struct{ role, state answer }

func (d *Desktop) ask(ctx context.Context, r ref) asked {
	return asked{d.call(ctx, r, accessible+"GetRole"), d.call(ctx, r, accessible+"GetState")}
}

func (a asked) answer() (*Part, states, error) {
	var role uint32
	var s states
	if err := errors.Join(a.role.store(&role), a.state.store(&s)); err != nil {
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
