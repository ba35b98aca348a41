//go:build linux

package input

import (
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jezek/xgb/xproto"

	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/person"
)

func watch(t testing.TB, d *x11Driver) *x11Watcher {
	t.Helper()
	w, err := d.Watch(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { w.Close() })
	return w.(*x11Watcher)
}

func sitDown(t testing.TB, v *virtual.Virtual) *person.Person {
	t.Helper()
	p, err := person.Open(t.Context(), v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// told waits until the watcher has read all that was posted so far: a key of the
// person's comes last. It returns what the person had done before that.
func told(t testing.TB, w *x11Watcher, p *person.Person) Person {
	t.Helper()
	before, _ := w.Person()
	for _, down := range []bool{true, false} {
		if err := p.Key(38, down); err != nil {
			t.Fatal(err)
		}
	}
	var is Person
	eventually(t, "the watcher tells of the keys", func() bool {
		is, _ = w.Person()
		return is.Acts >= before.Acts+2 && is.What == "pressed a key"
	})
	is.Acts -= 2
	return is
}

func TestWatchKnowsItsOwn(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	w := watch(t, d)
	p := sitDown(t, v)
	ctx := t.Context()
	h := NewHand(d, HandOptions{})
	for name, f := range map[string]func() error{
		"click":  func() error { return h.Click(ctx, Point{200, 200}, Left, []Key{Shift}) },
		"double": func() error { return h.DoubleClick(ctx, Point{201, 200}, nil) },
		"drag":   func() error { return h.Drag(ctx, []Point{{150, 150}, {400, 300}, {160, 160}}, Left, nil) },
		"scroll": func() error { return h.Scroll(ctx, Point{300, 300}, -240, 1200, nil) },
		"chord":  func() error { return h.Chord(ctx, []Key{Control, Alt}, "a") },
		"type":   func() error { _, err := h.Type(ctx, "Grüße 你好 👩‍🚀\n"); return err },
		"stray":  func() error { return d.ReleaseStray(ctx) },
		"held": func() error {
			// Longer than the server takes to repeat a key.
			if err := d.Key(ctx, "b", true); err != nil {
				return err
			}
			time.Sleep(time.Second)
			return d.Key(ctx, "b", false)
		},
	} {
		before, _ := w.Person()
		if err := f(); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if is := told(t, w, p); is.Acts != before.Acts {
			t.Errorf("%s was taken for %d acts of the person", name, is.Acts-before.Acts)
		}
	}
	if len(l.take(t)) == 0 {
		t.Error("no event arrived")
	}
}

func TestWatchSeesThePerson(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	w := watch(t, d)
	p := sitDown(t, v)
	// Somebody at a remote desktop comes through XTEST, as we do.
	remote := openDriver(t, v, true)
	ctx := t.Context()
	if err := d.Move(ctx, Point{300, 300}); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, what string
		acts       int
		do         func() error
	}{
		{"a key", "pressed a key", 1, func() error { return p.Key(40, true) }},
		{"its release", "pressed a key", 1, func() error { return p.Key(40, false) }},
		{"a button", "pressed a button of the mouse", 1, func() error { return p.Button(1, true) }},
		{"its release", "pressed a button of the mouse", 1, func() error { return p.Button(1, false) }},
		{"a long motion", "moved the pointer", 1, func() error { return p.Move(0, 7) }},
		{"a remote key", "pressed a key", 1, func() error { return remote.Key(ctx, "a", true) }},
		{"its release", "pressed a key", 1, func() error { return remote.Key(ctx, "a", false) }},
		{"a remote motion", "moved the pointer", 1, func() error { return remote.Move(ctx, Point{310, 300}) }},
	} {
		before, _ := w.Person()
		if err := c.do(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		var is Person
		eventually(t, c.name+" is seen", func() bool {
			is, _ = w.Person()
			return is.Acts >= before.Acts+c.acts
		})
		if is.Acts != before.Acts+c.acts || is.What != c.what || time.Since(is.Last) > limit {
			t.Errorf("%s: %+v after %+v", c.name, is, before)
		}
	}

	// A drift is none, however often it goes to and fro.
	time.Sleep(restTime) // so that the motion above has ended
	before, _ := w.Person()
	for range 20 {
		if err := p.Move(3, 3); err != nil {
			t.Fatal(err)
		}
		if err := p.Move(-3, -3); err != nil {
			t.Fatal(err)
		}
	}
	if is := told(t, w, p); is.Acts != before.Acts {
		t.Errorf("a drift was taken for %d acts", is.Acts-before.Acts)
	}
}

// Beside XWayland the person works in windows that it knows nothing of.
func TestWatchRefusesXWayland(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	t.Setenv("DISPLAY", v.Display())
	t.Setenv("WAYLAND_DISPLAY", "wayland-0")
	if w, err := d.Watch(t.Context()); err == nil || !strings.Contains(err.Error(), "WAYLAND_DISPLAY") {
		t.Errorf("watched all the same: %v, %v", w, err)
	}
}

func TestWatchEnds(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	w := watch(t, d)
	if err := w.Err(); err != nil {
		t.Fatal(err)
	}
	_, changed := w.Person()
	v.Close()
	select {
	case <-changed:
	case <-time.After(limit):
		t.Fatal("the end of the server was not noticed")
	}
	if w.Err() == nil {
		t.Error("the person is still seen")
	}
}

func TestDrift(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d drift
		for _, c := range []struct {
			after  time.Duration
			dx, dy float64
			want   bool
		}{
			{0, 3, 0, false}, {0, -3, 0, false}, {0, 5.9, 0, false},
			{restTime + 1, 5.9, 0, false}, // rested: it does not add up
			{restTime, 0, 2, true},        // not yet rested
			{0, -5, 0, true},              // the same motion goes on
			{restTime + 1, 1, 0, false},
		} {
			time.Sleep(c.after)
			if got := d.add(c.dx, c.dy, time.Now()); got != c.want {
				t.Errorf("%+v: %v", c, got)
			}
		}
	})
}

func TestLedger(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l ledger
		l.note(press(9))
		if l.take(press(9)) {
			t.Error("an event counts while nobody watches")
		}
		l.open()
		l.note(press(9))
		l.note(press(9))
		if !l.take(press(9)) || l.take(release(9)) || l.take(press(10)) || !l.take(press(9)) || l.take(press(9)) {
			t.Error("other events than those posted are ours")
		}
		l.note(fake{kind: motionKind, x: -4, y: 7})
		if x, y := l.sent(); x != -4 || y != 7 {
			t.Errorf("sent to %g, %g", x, y)
		}
		// What the server dropped is no credit for what comes much later.
		time.Sleep(creditTime + 1)
		if l.take(fake{kind: motionKind, x: -4, y: 7}) {
			t.Error("an old event is ours")
		}
	})
}

// What Xvfb has no device for: a tablet, which tells places in its own measure,
// and a wheel.
func TestOtherDevices(t *testing.T) {
	w := &x11Watcher{screen: [2]float64{1280, 800}, ledger: &ledger{}, places: map[uint16][2]float64{}}
	at := func(x, y float64) (float64, float64) {
		return w.moved(x11.Raw{Kind: x11.RawMotion, Source: 8, Device: x11.Device{ID: 8, Absolute: true, Extent: [2]float64{1000, 1000}},
			Axes: map[int]x11.Axis{0: {Given: x}, 1: {Given: y}}})
	}
	if dx, dy := at(500, 500); dx != 0 || dy != 0 {
		t.Errorf("the first place is a motion by %g, %g", dx, dy)
	}
	if dx, dy := at(510, 490); math.Abs(dx-12.8) > 1e-9 || math.Abs(dy+8) > 1e-9 {
		t.Errorf("moved by %g, %g", dx, dy)
	}
	for what, e := range map[string]x11.Raw{
		"turned the wheel":              {Kind: x11.RawButtonPress, Detail: 5},
		"pressed a button of the mouse": {Kind: x11.RawButtonRelease, Detail: 8},
	} {
		if got := w.read(e, time.Now()); got != what {
			t.Errorf("button %d is %q", e.Detail, got)
		}
	}
	if got := w.read(x11.Raw{Kind: x11.RawMotion, Axes: map[int]x11.Axis{3: {Moved: 15}}}, time.Now()); got != "turned the wheel" {
		t.Errorf("motion of a wheel is %q", got)
	}
	if got := posted(x11.Raw{Kind: x11.RawButtonPress, Detail: 3}); got != (fake{kind: xproto.ButtonPress, detail: 3}) {
		t.Errorf("a button is %+v", got)
	}
}
