package atspi

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

	"drawbridge/internal/session/saver"
)

// limit is how long a test waits for what a healthy machine does at once.
const limit = 30 * time.Second

// node is a part of a window as the fake program tells of it, with the methods
// that the interfaces Accessible and Component of at-spi2-core 2.46 have and that
// we ask for. What a real toolkit answers is tested where there is a display.
type node struct {
	name     string
	role     uint32
	state    []uint32
	at       [4]int32
	children []ref
	point    ref           // what GetAccessibleAtPoint answers
	points   map[int32]ref // and at some places, by how far right they are
	hang     chan struct{} // holds every answer back until it is closed
}

func (n *node) wait() {
	if n.hang != nil {
		<-n.hang
	}
}

func (n *node) GetChildren() ([]ref, *dbus.Error) { n.wait(); return n.children, nil }
func (n *node) GetRole() (uint32, *dbus.Error)    { n.wait(); return n.role, nil }
func (n *node) GetState() ([]uint32, *dbus.Error) { n.wait(); return n.state, nil }
func (n *node) GetExtents(uint32) (struct{ X, Y, Width, Height int32 }, *dbus.Error) {
	n.wait()
	return struct{ X, Y, Width, Height int32 }{n.at[0], n.at[1], n.at[2], n.at[3]}, nil
}
func (n *node) GetAccessibleAtPoint(x, y int32, _ uint32) (ref, *dbus.Error) {
	n.wait()
	point, ok := n.points[x]
	if !ok {
		point = n.point
	}
	if point.Name == "" {
		return ref{point.Name, nullPath}, nil
	}
	return point, nil
}

// program is a fake program, or the fake registry.
type program struct {
	t    *testing.T
	conn *dbus.Conn
	name string
	more []ref // windows beside the first
}

func join(t *testing.T, address string) *program {
	t.Helper()
	c, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return &program{t: t, conn: c, name: c.Names()[0]}
}

// put adds a part and returns its name on the bus.
func (p *program) put(path string, n *node) ref {
	p.t.Helper()
	for _, face := range []string{"org.a11y.atspi.Accessible", "org.a11y.atspi.Component", "org.freedesktop.DBus.Properties"} {
		if err := p.conn.Export(n, dbus.ObjectPath(path), face); err != nil {
			p.t.Fatal(err)
		}
	}
	return ref{p.name, dbus.ObjectPath(path)}
}

var (
	showing = []uint32{1 << stateShowing, 0}
	focused = []uint32{1<<stateShowing | 1<<stateFocused, 0}
	whole   = image.Rect(100, 100, 500, 400)
	size    = [4]int32{100, 100, 400, 300}
)

func here() Window { return Window{PID: uint32(os.Getpid()), At: whole} }

// open starts a bus with a registry and one program, whose window holds what fill
// puts into it.
func open(t *testing.T, fill func(p *program, top *node)) *Desktop {
	t.Helper()
	address, stop, err := saver.Bus(t.TempDir())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	p, top := join(t, address), &node{role: 23, state: showing, at: size}
	fill(p, top)
	root := p.put(rootPath, &node{children: append([]ref{p.put("/top", top)}, p.more...)})
	registry := join(t, address)
	if _, err := registry.conn.RequestName(registryName, 0); err != nil {
		t.Fatal(err)
	}
	registry.put(rootPath, &node{children: []ref{root}})
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	d, err := Open(ctx, address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func TestDesktop(t *testing.T) {
	for name, c := range map[string]struct {
		fill            func(p *program, top *node)
		under, keyboard *Part
	}{
		"a part in a part": {func(p *program, top *node) {
			button := p.put("/button", &node{role: 43, state: focused})
			top.point = p.put("/box", &node{role: 39, state: showing, children: []ref{button}, point: button})
			top.children = []ref{top.point}
		}, &Part{Role: "push button"}, &Part{Role: "push button"}},
		"a password field": {func(p *program, top *node) {
			top.point = p.put("/secret", &node{role: rolePasswordText, state: focused})
			top.children = []ref{top.point}
		}, &Part{Role: "password text", Secure: true}, &Part{Role: "password text", Secure: true}},
		"a text of several lines": {func(p *program, top *node) {
			top.point = p.put("/text", &node{role: 61, state: []uint32{focused[0] | 1<<stateMultiLine}})
			top.children = []ref{top.point}
		}, &Part{Role: "text"}, &Part{Role: "text", Lines: true}},
		"nothing inside": {func(p *program, top *node) {}, &Part{Role: "frame"}, nil},
		"another window": {func(p *program, top *node) { top.at = [4]int32{0, 0, 50, 50} }, nil, nil},
		"points of two pixels": {func(p *program, top *node) {
			top.at = [4]int32{50, 50, 200, 150}
		}, &Part{Role: "frame"}, nil},
		"a role that nobody knows": {func(p *program, top *node) { top.role = 1 << 31 }, &Part{}, nil},
		"parts that are hidden or made when asked for": {func(p *program, top *node) {
			secret := p.put("/secret", &node{role: rolePasswordText, state: focused})
			top.children = []ref{
				p.put("/hidden", &node{role: 39, state: []uint32{0, 0}, children: []ref{secret}}),
				p.put("/table", &node{role: 55, state: []uint32{showing[0] | 1<<stateManagesDescendants}, children: []ref{secret}}),
			}
		}, &Part{Role: "frame"}, nil},
		"parts that hold each other": {func(p *program, top *node) {
			a, b := &node{role: 39, state: showing}, &node{role: 39, state: showing}
			one, two := p.put("/one", a), p.put("/two", b)
			a.children, a.point, b.children, b.point = []ref{two}, two, []ref{one}, one
			top.children, top.point = []ref{one, two, one}, one
		}, &Part{Role: "panel"}, nil},
		"parts without end": {func(p *program, top *node) {
			many := make([]ref, 10_000)
			for i := range many {
				many[i] = ref{p.name, dbus.ObjectPath(fmt.Sprint("/none/", i))}
			}
			top.children = many
		}, &Part{Role: "frame"}, nil},
		"parts of nobody": {func(p *program, top *node) {
			top.children = []ref{{"no name", "/x"}, {":1.999", "/x"}, {"", nullPath}, {":1.1", "x//y"}, {"org.freedesktop.DBus", "/"}, {p.name, "/not/there"}}
			top.point = ref{":1.999", "/x"}
		}, &Part{Role: "frame"}, nil},
		"a part of no name at the point": {func(p *program, top *node) {
			top.point = ref{"no name", "/x"}
		}, &Part{Role: "frame"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			d := open(t, c.fill)
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			same := func(a, b *Part) bool { return a == b || a != nil && b != nil && *a == *b }
			if got, err := d.Keyboard(ctx, here()); !same(got, c.keyboard) {
				t.Errorf("the keyboard is with %+v, %v; want %+v", got, err, c.keyboard)
			}
			if got, err := d.Under(ctx, here(), image.Pt(300, 300)); !same(got, c.under) {
				t.Errorf("under the point lies %+v, %v; want %+v", got, err, c.under)
			}
			// Asked again, from what it remembers.
			if got, err := d.Keyboard(ctx, here()); !same(got, c.keyboard) {
				t.Errorf("again the keyboard is with %+v, %v; want %+v", got, err, c.keyboard)
			}
			if got, err := d.Under(ctx, Window{PID: 1, At: whole}, image.Pt(300, 300)); got != nil || err != nil {
				t.Errorf("of a process without accessibility: %+v, %v", got, err)
			}
		})
	}
}

// Get is the one property that is asked for.
func (n *node) Get(face, name string) (dbus.Variant, *dbus.Error) {
	if face != "org.a11y.atspi.Accessible" || name != "Name" {
		return dbus.Variant{}, dbus.MakeFailedError(errors.New("no such property"))
	}
	return dbus.MakeVariant(n.name), nil
}

// Of several windows in one place the one with the title is meant.
func TestWindowsInOnePlace(t *testing.T) {
	d := open(t, func(p *program, top *node) {
		top.name = "one"
		p.more = append(p.more, p.put("/two", &node{role: 16, state: showing, at: size, name: "two"}))
	})
	for title, want := range map[string]string{"one": "frame", "two": "dialog", "three": ""} {
		w := here()
		w.Title = title
		got, err := d.Under(t.Context(), w, image.Pt(300, 300))
		if err != nil || (got == nil) != (want == "") || got != nil && got.Role != want {
			t.Errorf("%s: %+v, %v; want %q", title, got, err, want)
		}
	}
}

// What lies at a place does not depend on where was looked before.
func TestUnderElsewhere(t *testing.T) {
	d := open(t, func(p *program, top *node) {
		button, text := p.put("/button", &node{role: 43}), p.put("/text", &node{role: 61})
		inner := p.put("/inner", &node{role: 23, points: map[int32]ref{300: button}})
		box := p.put("/box", &node{role: 39, points: map[int32]ref{300: inner, 301: text, 302: {p.name, "/gone"}}})
		top.points = map[int32]ref{300: box, 301: box, 302: box, 303: text, 305: box}
	})
	want := map[int]string{300: "push button", 301: "text", 302: "panel", 303: "text", 304: "frame", 305: "panel"}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for first := range want {
		for second := range want {
			for _, x := range []int{first, second, second} {
				if got, err := d.Under(ctx, here(), image.Pt(x, 300)); err != nil || got == nil || got.Role != want[x] {
					t.Errorf("at %d, after %d: %+v, %v; want %s", x, first, got, err, want[x])
				}
			}
		}
	}
}

// A program that hangs is not waited for, and not asked again at once.
func TestHung(t *testing.T) {
	hang := make(chan struct{})
	d := open(t, func(p *program, top *node) { top.hang = hang })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if got, err := d.Under(ctx, here(), image.Pt(300, 300)); got != nil || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a program that hangs: %+v, %v", got, err)
	}
	ctx, cancel = context.WithTimeout(t.Context(), limit)
	defer cancel()
	if got, err := d.Keyboard(ctx, here()); got != nil || !errors.Is(err, ErrHung) {
		t.Errorf("asked again: %+v, %v", got, err)
	}
	close(hang)
	for {
		got, err := d.Under(ctx, here(), image.Pt(300, 300))
		if got != nil && got.Role == "frame" {
			break
		}
		if !errors.Is(err, ErrHung) {
			t.Fatalf("once it answers: %+v, %v", got, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func TestNoBus(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if _, err := Open(ctx, "unix:path=/nonexistent/bus"); err == nil {
		t.Error("a bus that is not there was opened")
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nonexistent/bus")
	if got := SessionAddress(ctx); got != "" {
		t.Errorf("an address without a session: %q", got)
	}
	d := open(t, func(*program, *node) {})
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	if got, err := d.Under(ctx, here(), image.Pt(1, 1)); got != nil || err == nil {
		t.Errorf("after the end: %+v, %v", got, err)
	}
}

// status is the accessibility service of a session.
type status struct {
	on      bool
	started chan struct{}
}

func (s status) Get(face, name string) (dbus.Variant, *dbus.Error) {
	return dbus.MakeVariant(s.on), nil
}
func (s status) GetAddress() (string, *dbus.Error) { close(s.started); return "unix:path=/it", nil }

// What the person has switched off is not started.
func TestSessionAddress(t *testing.T) {
	for _, on := range []bool{false, true} {
		address, stop, err := saver.Bus(t.TempDir())
		if errors.Is(err, saver.ErrNoDaemon) {
			t.Skip(err)
		}
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
		p := join(t, address)
		s := status{on, make(chan struct{})}
		for _, face := range []string{"org.freedesktop.DBus.Properties", "org.a11y.Bus"} {
			if err := p.conn.Export(s, "/org/a11y/bus", face); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := p.conn.RequestName("org.a11y.Bus", 0); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		got := SessionAddress(ctx)
		started := false
		select {
		case <-s.started:
			started = true
		default:
		}
		if want := map[bool]string{true: "unix:path=/it"}[on]; got != want || started != on {
			t.Errorf("switched on %v: %q, started %v", on, got, started)
		}
	}
}
