//go:build linux

package input

import (
	"context"
	"errors"
	"math"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
)

func TestPointerEvents(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	ctx := t.Context()
	do := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}

	do(d.Move(ctx, Point{300.4, 299.6}))
	if p, err := d.Pointer(ctx); p != (Point{300, 300}) || err != nil {
		t.Errorf("the pointer is at %v, %v", p, err)
	}
	l.want(t, "M300,300/0")

	// Buttons 1, 2, 3 are left, middle, right; 8 and 9 back and forward.
	for b, want := range map[Button][]string{
		Left:    {"P1@300,300/0", "R1/100"},
		Middle:  {"P2@300,300/0", "R2/200"},
		Right:   {"P3@300,300/0", "R3/400"},
		Back:    {"P8@300,300/0", "R8/0"},
		Forward: {"P9@300,300/0", "R9/0"},
	} {
		do(d.Button(ctx, b, true, 1), d.Button(ctx, b, false, 1))
		l.want(t, want...)
	}
	if err := d.Button(ctx, Button(77), true, 1); err == nil {
		t.Error("button 77 was pressed")
	}

	// A drag's motions carry the button.
	do(d.Button(ctx, Left, true, 1), d.Move(ctx, Point{310, 305}), d.Move(ctx, Point{320, 310}), d.Button(ctx, Left, false, 1))
	l.want(t, "P1@300,300/0", "M310,305/100", "M320,310/100", "R1/100")

	// Down and right are buttons 5 and 7.
	for _, c := range []struct {
		dx, dy float64
		want   string
	}{{0, 60, "P5"}, {0, -60, "P4"}, {60, 0, "P7"}, {-60, 0, "P6"}, {0, 1, "P5"}, {-1, 0, "P6"}} {
		do(d.Move(ctx, Point{320, 310}))
		l.take(t)
		do(d.Scroll(ctx, c.dx, c.dy))
		got := l.take(t)
		if len(got) != 2 || !strings.HasPrefix(got[0], c.want+"@320,310") {
			t.Errorf("scroll %g,%g: %v, want one %s", c.dx, c.dy, got, c.want)
		}
	}
	do(d.Scroll(ctx, 0, 0))
	l.want(t)

	for _, p := range []Point{{math.NaN(), 1}, {1, math.Inf(1)}, {1e300, 0}, {0, -40000}} {
		if err := d.Move(ctx, p); err == nil {
			t.Errorf("moved to %v", p)
		}
	}
	for _, dy := range []float64{math.NaN(), 1e300, math.Inf(-1)} {
		if err := d.Scroll(ctx, 0, dy); err == nil {
			t.Errorf("scrolled by %v", dy)
		}
	}
	l.want(t)
}

// holdPresses plays a window manager that raises windows on a click: the server
// holds every press of a button back until the manager has had a look at it.
func holdPresses(t *testing.T, v *virtual.Virtual, button byte, busy time.Duration) {
	t.Helper()
	manager := make(chan xgb.Event, 1024)
	c, err := x11.Dial(t.Context(), v.Display(), func(ev xgb.Event) { manager <- ev })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if err := xproto.GrabButtonChecked(c.Conn, false, c.Root, xproto.EventMaskButtonPress, xproto.GrabModeSync,
		xproto.GrabModeAsync, 0, 0, button, xproto.ModMaskAny).Check(); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			select {
			case ev := <-manager:
				if e, ok := ev.(xproto.ButtonPressEvent); ok {
					time.Sleep(busy)
					xproto.AllowEvents(c.Conn, xproto.AllowReplayPointer, e.Time)
				}
			case <-c.Dead():
				return
			}
		}
	}()
}

// TestGrabbedPress clicks and drags where a window manager holds every press
// back for a while.
func TestGrabbedPress(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	ctx := t.Context()
	holdPresses(t, v, 1, 60*time.Millisecond)
	do := func(errs ...error) {
		t.Helper()
		if err := errors.Join(errs...); err != nil {
			t.Fatal(err)
		}
	}
	do(d.Move(ctx, Point{300, 300}), d.Button(ctx, Left, true, 1), d.Button(ctx, Left, false, 1))
	l.want(t, "M300,300/0", "P1@300,300/0", "R1/100")
	do(d.Button(ctx, Left, true, 1), d.Move(ctx, Point{310, 305}), d.Move(ctx, Point{320, 310}), d.Move(ctx, Point{330, 310}),
		d.Button(ctx, Left, false, 1))
	l.want(t, "P1@300,300/0", "M310,305/100", "M320,310/100", "M330,310/100", "R1/100")
}

// TestGrabbedWheel turns the wheel where a window manager holds every notch back.
// It looks at them at different speeds, so that it lets go at any moment of the
// turn.
func TestGrabbedWheel(t *testing.T) {
	for _, busy := range []time.Duration{0, 100 * time.Microsecond, time.Millisecond} {
		t.Run(busy.String(), func(t *testing.T) {
			v := startDesk(t)
			d := openDriver(t, v, true)
			l := newLogger(t, v)
			ctx := t.Context()
			holdPresses(t, v, 5, busy)
			const notches = 100
			for range 5 {
				if err := errors.Join(d.Move(ctx, Point{300, 300}), d.Scroll(ctx, 0, notches*notchPixels)); err != nil {
					t.Fatal(err)
				}
				var got [2]int
				for _, e := range l.take(t) {
					switch {
					case strings.HasPrefix(e, "P5@300,300/"):
						got[0]++
					case strings.HasPrefix(e, "R5/"):
						got[1]++
					}
				}
				if got != [2]int{notches, notches} {
					t.Errorf("%d presses and %d releases arrived, want %d of each", got[0], got[1], notches)
				}
			}
		})
	}
}

// TestSwappedButtons clicks on the display of a left-handed person who likes the
// wheel the other way round.
func TestSwappedButtons(t *testing.T) {
	need(t, "xmodmap", "x11-xserver-utils")
	v := startDesk(t)
	d := openDriver(t, v, false)
	l := newLogger(t, v)
	ctx := t.Context()
	if err := errors.Join(d.Move(ctx, Point{300, 300}), d.Button(ctx, Left, true, 1), d.Button(ctx, Left, false, 1)); err != nil {
		t.Fatal(err)
	}
	l.want(t, "M300,300/0", "P1@300,300/0", "R1/100")
	cmd := exec.Command("xmodmap", "-e", "pointer = 3 2 1 5 4 6 7 8 9 10")
	cmd.Env = v.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("xmodmap: %v: %s", err, out)
	}
	eventually(t, "the driver hears of the buttons", d.rewired.Load)
	if err := errors.Join(d.Button(ctx, Left, true, 1), d.Button(ctx, Left, false, 1), d.Scroll(ctx, 0, 53)); err != nil {
		t.Fatal(err)
	}
	l.want(t, "P1@300,300/0", "R1/100", "P5@300,300/0", "R5/1000")
}

func TestWheelNotches(t *testing.T) {
	for _, c := range []struct {
		name  string
		turns []float64
		want  []int
	}{
		{"one notch", []float64{53}, []int{1}},
		{"ten", []float64{530}, []int{10}},
		{"back", []float64{-530}, []int{-10}},
		{"rounded", []float64{79, 80}, []int{1, 2}}, // 159 pixels are three notches
		{"a little is a notch", []float64{1}, []int{1}},
		{"little adds up", []float64{10, 10, 10, 10, 10, 10}, []int{1, 0, 0, 0, 0, 0}},
		{"more adds up", []float64{20, 20, 20, 20, 20, 20}, []int{1, 0, 0, 1, 0, 0}},
		{"turned round", []float64{20, -20}, []int{1, -1}},
		{"in parts as at once", []float64{120, 120, 120, 120, 50}, []int{2, 3, 2, 2, 1}}, // 530
		{"nothing", []float64{0}, []int{0}},
	} {
		var w wheel
		for i, d := range c.turns {
			_, n, err := w.turn(0, d)
			if err != nil || n != c.want[i] {
				t.Errorf("%s: turn %d by %g gives %d (%v), want %d", c.name, i, d, n, err, c.want[i])
			}
		}
	}
}

func TestChords(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	// On this keyboard 37 is Control, 50 Shift, 38 a, 64 Alt, 133 Super, 61 the
	// slash, 21 plus and equals.
	for _, c := range []struct {
		keys []Key
		want []string
	}{
		{[]Key{Control, Shift, "a"}, []string{"K37/0", "K50/4", "K38/5", "k38/5", "k50/5", "k37/4"}},
		{[]Key{"a"}, []string{"K38/0", "k38/0"}},
		{[]Key{"A"}, []string{"K50/0", "K38/1", "k38/1", "k50/1"}},
		{[]Key{Control, "+"}, []string{"K37/0", "K50/4", "K21/5", "k21/5", "k50/5", "k37/4"}},
		{[]Key{Shift, "A"}, []string{"K50/0", "K38/1", "k38/1", "k50/1"}},
		{[]Key{Alt, "f4"}, []string{"K64/0", "K70/8", "k70/8", "k64/8"}},
		{[]Key{Command, "/"}, []string{"K133/0", "K61/40", "k61/40", "k133/40"}},
		{[]Key{Enter}, []string{"K36/0", "k36/0"}},
		{[]Key{KPEnter}, []string{"K104/0", "k104/0"}},
		{[]Key{"kp7"}, []string{"K50/0", "K79/1", "k79/1", "k50/1"}}, // Num Lock is off
		{[]Key{Backspace}, []string{"K22/0", "k22/0"}},
		{[]Key{Delete}, []string{"K119/0", "k119/0"}},
	} {
		chord(t, d, c.keys...)
		if got := l.take(t); strings.Join(got, " ") != strings.Join(c.want, " ") {
			t.Errorf("%v: events %v, want %v", c.keys, got, c.want)
		}
	}
	// Num Lock on: the same key without Shift.
	chord(t, d, NumLock)
	l.take(t)
	chord(t, d, "kp7")
	l.want(t, "K79/10", "k79/10")
	chord(t, d, NumLock)
	l.take(t)

	// Every name has a key on a display of our own.
	for k := range namedKeysyms {
		if k == NumLock || k == CapsLock || k == ScrollLock {
			continue
		}
		chord(t, d, k)
		if got := l.take(t); len(got) < 2 {
			t.Errorf("%s: events %v", k, got)
		}
	}
	for _, k := range []Key{Fn, "nonsense", ""} {
		if err := d.Key(t.Context(), k, true); !errors.Is(err, ErrNoKey) {
			t.Errorf("%q: %v", k, err)
		}
	}
	l.want(t)
}

// TestForeignKeys presses keys that the keymap lacks.
func TestForeignKeys(t *testing.T) {
	v := startDesk(t)
	l := newLogger(t, v)
	theirs := openDriver(t, v, false)
	err := theirs.Key(t.Context(), "я", true)
	if !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), `"я"`) {
		t.Errorf("on a person's display: %v", err)
	}
	l.want(t)

	ours := openDriver(t, v, true)
	mustType(t, ours, "яюэ")
	l.take(t)
	for _, k := range []Key{"я", "ю", "É"} {
		chord(t, ours, Control, k)
		got := l.take(t)
		if len(got) != 4 || !strings.HasSuffix(got[1], "/4") {
			t.Fatalf("Control and %s: events %v", k, got)
		}
		var code int
		for _, c := range got[1][1:strings.Index(got[1], "/")] {
			code = code*10 + int(c-'0')
		}
		m, err := xproto.GetKeyboardMapping(l.conn.Conn, xproto.Keycode(code), 1).Reply()
		if err != nil {
			t.Fatal(err)
		}
		if want := keysymsOf(k)[0]; m.Keysyms[0] != want {
			t.Errorf("%s came as keycode %d with the keysym %#x, want %#x", k, code, m.Keysyms[0], want)
		}
	}
}

// TestKeymapIsPutBack closes a driver that had bound keycodes.
func TestKeymapIsPutBack(t *testing.T) {
	v := startDesk(t)
	l := newLogger(t, v)
	read := func() []xproto.Keysym {
		m, err := xproto.GetKeyboardMapping(l.conn.Conn, 8, 248).Reply()
		if err != nil {
			t.Fatal(err)
		}
		n := int(m.KeysymsPerKeycode)
		var four []xproto.Keysym // the width of the table may grow
		for i := 0; i < len(m.Keysyms); i += n {
			four = append(four, m.Keysyms[i:i+4]...)
		}
		return four
	}
	before := read()
	d := openDriver(t, v, true)
	mustType(t, d, "中文字")
	during := read()
	same := func(a, b []xproto.Keysym) bool {
		for i := range a {
			if a[i] != b[i] {
				return false
			}
		}
		return true
	}
	if same(before, during) {
		t.Fatal("nothing was bound")
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	if !same(before, read()) {
		t.Error("the keymap is another after Close")
	}
}

// TestLayouts presses and types on other layouts.
func TestLayouts(t *testing.T) {
	need(t, "setxkbmap", "x11-xkb-utils")
	v := startDesk(t)
	d := openDriver(t, v, false)
	l := newLogger(t, v)
	layout := func(name string) {
		t.Helper()
		cmd := exec.Command("setxkbmap", name)
		cmd.Env = v.Env()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("setxkbmap: %v: %s", err, out)
		}
		eventually(t, "the driver hears of the layout", d.remapped.Load)
	}
	keys := func(got []string) string {
		var codes []string
		for _, e := range got {
			codes = append(codes, strings.SplitN(e, "/", 2)[0])
		}
		return strings.Join(codes, " ")
	}

	// German: y and z change places, @ is AltGr (92, which stands for it) and q.
	layout("de")
	chord(t, d, Control, "z")
	if got := keys(l.take(t)); got != "K37 K29 k29 k37" {
		t.Errorf("Control and z: %s", got)
	}
	mustType(t, d, "z@")
	if got := keys(l.take(t)); got != "K29 k29 K92 K24 k24 k92" {
		t.Errorf("typed z@: %s", got)
	}
	// French: a is where q is.
	layout("fr")
	chord(t, d, Control, "a")
	if got := keys(l.take(t)); got != "K37 K24 k24 k37" {
		t.Errorf("Control and a: %s", got)
	}
	// Russian alone has no latin letters; its own are typed.
	layout("ru")
	mustType(t, d, "фЫ")
	if got := keys(l.take(t)); got != "K38 k38 K50 K39 k39 k50" {
		t.Errorf("typed in Russian: %s", got)
	}
}

func TestReleaseStray(t *testing.T) {
	v := startDesk(t)
	l := newLogger(t, v)
	d := openDriver(t, v, true)
	ctx := t.Context()
	if err := errors.Join(d.Move(ctx, Point{300, 300}), d.Key(ctx, Shift, true), d.Key(ctx, "a", true),
		d.Button(ctx, Left, true, 1), d.Button(ctx, Back, true, 1)); err != nil {
		t.Fatal(err)
	}
	d.conn.Close() // as if the process had died
	l.take(t)

	next := openDriver(t, v, true)
	if err := next.ReleaseStray(ctx); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(l.take(t), " ")
	for _, want := range []string{"R1/", "R8/", "k38/", "k50/"} {
		if !strings.Contains(got, want) {
			t.Errorf("events %q lack %s", got, want)
		}
	}
	p, err := xproto.QueryPointer(l.conn.Conn, l.conn.Root).Reply()
	if err != nil || p.Mask != 0 {
		t.Errorf("the state is %#x after it, %v", p.Mask, err)
	}
	if err := next.ReleaseStray(ctx); err != nil {
		t.Fatal(err)
	}
	l.want(t)
}

// TestServerDies kills the X server while text is typed.
func TestServerDies(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	newLogger(t, v)
	started := make(chan struct{})
	var once sync.Once
	done := make(chan error)
	go func() {
		for {
			if _, err := d.Type(context.Background(), strings.Repeat("text 中 ", 50)); err != nil {
				done <- err
				return
			}
			once.Do(func() { close(started) })
		}
	}()
	<-started
	v.Close()
	select {
	case err := <-done:
		if !errors.Is(err, ErrGone) {
			t.Errorf("Type: %v", err)
		}
	case <-time.After(limit):
		t.Fatal("Type hangs")
	}
	ctx := context.Background()
	_, pointer := d.Pointer(ctx)
	for name, err := range map[string]error{
		"Move": d.Move(ctx, Point{1, 1}), "Button": d.Button(ctx, Left, true, 1), "Scroll": d.Scroll(ctx, 0, 100),
		"Key": d.Key(ctx, "a", true), "Pointer": pointer, "Sync": d.Sync(ctx), "ReleaseStray": d.ReleaseStray(ctx),
	} {
		if !errors.Is(err, ErrGone) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// What was tried is said once.
	h := NewHand(d, HandOptions{})
	for what, err := range map[string]error{"move the pointer": h.Move(ctx, Point{1, 1}, nil), "press the": h.Chord(ctx, nil, "b")} {
		if err == nil || strings.Count(err.Error(), what) != 1 || strings.Contains(err.Error(), "press b") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
}

// TestServerHangs stops the X server: calls end with their context.
func TestServerHangs(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	pid := serverPID(t, v)
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	defer syscall.Kill(pid, syscall.SIGCONT)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := d.Move(ctx, Point{5, 5}); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Move: %v", err)
	}
	if _, err := d.Type(ctx, "text"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Type: %v", err)
	}
	// Until no more fits into the socket: then requests block, too.
	for range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		if err := d.Scroll(ctx, 0, maxNotches*notchPixels); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Scroll: %v", err)
		}
		cancel()
	}
	ctx, cancel = context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := d.Pointer(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Pointer: %v", err)
	}
	if err := d.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Sync: %v", err)
	}
	if err := d.Key(ctx, "a", true); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Key: %v", err)
	}

	// Once it runs again nothing is down, and the driver works.
	if err := syscall.Kill(pid, syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	if err := d.ReleaseStray(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := newLogger(t, v)
	if err := errors.Join(d.Move(t.Context(), Point{300, 300}), d.Key(t.Context(), "a", true), d.Key(t.Context(), "a", false)); err != nil {
		t.Fatal(err)
	}
	l.want(t, "M300,300/0", "K38/0", "k38/0")
}

func TestOpenX11Refuses(t *testing.T) {
	t.Setenv("DISPLAY", "")
	for display, want := range map[string]string{
		"":       "$DISPLAY is not set",
		"what":   "no X display name",
		":59001": "connect to the X display :59001",
	} {
		if _, err := OpenX11(display, false); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", display, err)
		}
	}
}
