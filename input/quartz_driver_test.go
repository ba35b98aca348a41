//go:build standin

package input

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"drawbridge/input/virtual"
	"drawbridge/packaging/standin"
)

// macDesk is a desktop of the stand-in on an X server of the test's own.
type macDesk struct {
	*standin.Desk
	v *virtual.Virtual
	d *quartzDriver
}

const (
	onePlain  = "1:0,0,1280,800,1,0,0"
	oneRetina = "1:0,0,640,400,2,0,0"
	// The main display is a Retina one on the right of the X display; the other,
	// on the left, lies left of it and higher.
	twoDisplays = "1:0,0,320,400,2,640,0 2:-640,-100,640,800,1,0,0"
)

func openMac(t testing.TB, displays string) *macDesk {
	t.Helper()
	v := startDesk(t)
	s := openStandin(t, v, displays)
	d, err := OpenQuartz()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return &macDesk{s, v, d.(*quartzDriver)}
}

func openStandin(t testing.TB, v *virtual.Virtual, displays string) *standin.Desk {
	t.Helper()
	var cookie string
	for _, e := range v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	s, err := standin.Open(v.Display(), cookie, displays, filepath.Join(t.TempDir(), "posted"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (m *macDesk) set(t testing.TB, name, value string) {
	t.Helper()
	if err := m.Set(name, value); err != nil {
		t.Fatal(err)
	}
	m.d.allowed = time.Time{} // what was asked before is forgotten
}

var tagged = fmt.Sprintf(" tag=%x", QuartzTag)

// posted returns the events since the last call without the tag, which each must
// carry; none may make the person's input die.
func (m *macDesk) posted(t testing.TB) []string {
	t.Helper()
	all, err := m.Posted()
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range all {
		var ok bool
		before, after, ok := strings.Cut(e, tagged)
		if !ok && !strings.HasPrefix(e, "select ") {
			t.Errorf("not tagged: %s", e)
		}
		if strings.Contains(after, "suppresses") {
			t.Errorf("the person's input dies with it: %s", e)
		}
		all[i] = before + after
	}
	return all
}

func (m *macDesk) want(t testing.TB, want ...string) {
	t.Helper()
	if got := m.posted(t); !slices.Equal(got, want) {
		t.Errorf("posted\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func do(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func TestQuartzPointer(t *testing.T) {
	for _, c := range []struct {
		name, displays string
		at             Point
		x              [2]int // where that is on the X display
	}{
		{"plain", onePlain, Point{300, 299.6}, [2]int{300, 300}},
		{"retina", oneRetina, Point{150.5, 149.5}, [2]int{301, 299}},
		{"main of two", twoDisplays, Point{10, 150}, [2]int{660, 300}},
		{"negative origin", twoDisplays, Point{-340, 200}, [2]int{300, 300}},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := openMac(t, c.displays)
			l := newLogger(t, m.v)
			ctx := t.Context()
			do(t, m.d.Move(ctx, c.at))
			p, err := m.d.Pointer(ctx)
			if err != nil || !near(p, c.at) {
				t.Errorf("the pointer is at %v, %v; want %v", p, err, c.at)
			}
			l.want(t, fmt.Sprintf("M%d,%d/0", c.x[0], c.x[1]))
		})
	}
}

func TestQuartzButtons(t *testing.T) {
	m := openMac(t, onePlain)
	l := newLogger(t, m.v)
	ctx := t.Context()
	do(t, m.d.Move(ctx, Point{300, 300}))
	l.take(t)
	m.posted(t)
	// X's numbers of the same buttons.
	for b, want := range map[Button]string{Left: "P1 R1 0", Right: "P3 R3 1", Middle: "P2 R2 2", Back: "P8 R8 3", Forward: "P9 R9 4"} {
		do(t, m.d.Button(ctx, b, true, 1), m.d.Button(ctx, b, false, 1))
		w := strings.Fields(want)
		got := l.take(t)
		if len(got) != 2 || !strings.HasPrefix(got[0], w[0]+"@300,300/") || !strings.HasPrefix(got[1], w[1]+"/") {
			t.Errorf("%v: %v", b, got)
		}
		log := m.posted(t)
		if len(log) != 2 || !strings.HasPrefix(log[0], "down "+w[2]+" at 300,300 clicks=1 number=") || !strings.HasPrefix(log[1], "up "+w[2]+" at 300,300 clicks=1 number=") {
			t.Errorf("%v posted %v", b, log)
		}
	}
	if err := m.d.Button(ctx, Button(77), true, 1); err == nil {
		t.Error("button 77 was pressed")
	}
}

func TestQuartzDoubleClick(t *testing.T) {
	m := openMac(t, oneRetina)
	do(t, NewHand(m.d, HandOptions{}).DoubleClick(t.Context(), Point{100, 50}, []Key{Shift, Command}))
	const both = "flags=120000"
	m.want(t,
		"flags-changed 56 units=0 flags=20000",
		"flags-changed 55 units=0 "+both,
		"moved 100,50 delta="+m.delta(100, 50)+" "+both,
		"down 0 at 100,50 clicks=1 number=1 "+both,
		"up 0 at 100,50 clicks=1 number=1 "+both,
		"down 0 at 100,50 clicks=2 number=2 "+both,
		"up 0 at 100,50 clicks=2 number=2 "+both,
		"flags-changed 55 units=0 flags=20000",
		"flags-changed 56 units=0 flags=0")
}

// delta is how far a place is from where Xvfb puts the pointer at start: its
// middle.
func (m *macDesk) delta(x, y float64) string {
	return fmt.Sprintf("%g,%g", x-320, y-200)
}

func TestQuartzDrag(t *testing.T) {
	m := openMac(t, twoDisplays)
	l := newLogger(t, m.v)
	do(t, NewHand(m.d, HandOptions{}).Drag(t.Context(), []Point{{-500, 150}, {-420, 190.5}}, Left, nil))
	log := m.posted(t)
	if len(log) < 13 || !strings.HasPrefix(log[0], "moved -500,150 ") || !strings.HasPrefix(log[1], "down 0 at -500,150 clicks=1 number=1 ") ||
		!strings.HasPrefix(log[len(log)-1], "up 0 at -420,190.5 clicks=1 number=1 ") {
		t.Fatalf("posted\n%s", strings.Join(log, "\n"))
	}
	var dx, dy int
	for _, e := range log[2 : len(log)-1] {
		var x, y float64
		var a, b int
		if _, err := fmt.Sscanf(e, "dragged %g,%g delta=%d,%d flags=0", &x, &y, &a, &b); err != nil || strings.HasSuffix(e, "no-deltas") {
			t.Errorf("%s: %v", e, err)
		}
		dx, dy = dx+a, dy+b
	}
	// The deltas add up to the way, but for what is less than a point.
	if dx != 80 || math.Abs(float64(dy)-40.5) > 0.5 {
		t.Errorf("the deltas add up to %d,%d", dx, dy)
	}
	got := l.take(t)
	if n := len(got); n < 13 || got[1] != "P1@140,250/0" || got[n-1] != "R1/100" || got[n-2] != "M220,291/100" {
		t.Errorf("arrived: %v", got)
	}
}

func TestQuartzScroll(t *testing.T) {
	m := openMac(t, onePlain)
	l := newLogger(t, m.v)
	ctx := t.Context()
	for _, c := range []struct {
		dx, dy float64
		wheel  string
		x      string
	}{
		{0, 60, "wheel -60,0", "P5"}, {0, -60, "wheel 60,0", "P4"}, {30, 0, "wheel 0,-30", "P7"}, {-30, 0, "wheel 0,30", "P6"},
	} {
		do(t, m.d.Move(ctx, Point{300, 300}))
		l.take(t)
		m.posted(t)
		do(t, m.d.Scroll(ctx, c.dx, c.dy))
		m.want(t, c.wheel+" flags=0")
		if got := l.take(t); len(got) == 0 || !strings.HasPrefix(got[0], c.x+"@") {
			t.Errorf("%g,%g: %v", c.dx, c.dy, got)
		}
	}
	// Parts of a pixel are kept until they make a whole one, until the next motion.
	do(t, m.d.Scroll(ctx, 0, 0.4))
	m.want(t)
	do(t, m.d.Scroll(ctx, 0, 0.4))
	m.want(t, "wheel -1,0 flags=0")
	do(t, m.d.Move(ctx, Point{301, 300}))
	m.posted(t)
	do(t, m.d.Scroll(ctx, 0, 0.4))
	m.want(t)
	for _, y := range []float64{math.NaN(), math.Inf(1), 1e300} {
		if m.d.Scroll(ctx, 0, y) == nil || m.d.Move(ctx, Point{y, 0}) == nil {
			t.Errorf("%g was posted", y)
		}
	}
	m.want(t)
}

func TestQuartzChord(t *testing.T) {
	m := openMac(t, onePlain)
	newLogger(t, m.v)
	hand := NewHand(m.d, HandOptions{})
	ctx := t.Context()
	chord := func(keys ...Key) error { return hand.Chord(ctx, keys[:len(keys)-1], keys[len(keys)-1]) }
	layout := func(x, source string) {
		t.Helper()
		need(t, "setxkbmap", "x11-xkb-utils")
		cmd := exec.Command("setxkbmap", strings.Fields(x)...)
		cmd.Env = m.v.Env()
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("setxkbmap: %v\n%s", err, out)
		}
		m.set(t, "source", source)
	}
	for _, c := range []struct {
		x, source string
		keys      []Key
		code      int
		shift     bool
	}{
		// Codes are those of Events.h: places, named after the US layout.
		{"us", "com.apple.keylayout.US", []Key{Command, "a"}, 0, false},
		{"us", "com.apple.keylayout.US", []Key{Command, "A"}, 0, true},
		{"us", "com.apple.keylayout.US", []Key{Command, "/"}, 44, false},
		{"us", "com.apple.keylayout.US", []Key{Command, "+"}, 24, true},
		{"fr -variant mac", "com.apple.keylayout.French", []Key{Command, "a"}, 12, false},
		{"fr -variant mac", "com.apple.keylayout.French", []Key{Command, "q"}, 0, false},
		{"fr -variant mac", "com.apple.keylayout.French", []Key{Command, "z"}, 13, false},
		{"fr -variant mac", "com.apple.keylayout.French", []Key{Command, "1"}, 18, true},
		{"us -variant dvorak", "com.apple.keylayout.Dvorak", []Key{Command, "v"}, 47, false},
		{"us -variant dvorak", "com.apple.keylayout.DVORAK-QWERTYCMD", []Key{Command, "v"}, 9, false},
		{"us -variant dvorak", "com.apple.keylayout.DVORAK-QWERTYCMD", []Key{Control, "v"}, 47, false},
		// A layout without Latin letters, and one without a key table, fall back
		// on the ASCII-capable one.
		{"ru", "com.apple.keylayout.Russian", []Key{Command, "c"}, 8, false},
		{"us", "com.apple.keylayout.old.Roman", []Key{Command, "c"}, 8, false},
	} {
		layout(c.x, c.source)
		m.posted(t)
		do(t, chord(c.keys...))
		mod := map[Key]string{Command: "100000", Control: "40000"}[c.keys[0]]
		code := map[Key]int{Command: 55, Control: 59}[c.keys[0]]
		want := []string{fmt.Sprintf("flags-changed %d units=0 flags=%s", code, mod)}
		with := mod
		if c.shift {
			with = map[string]string{"100000": "120000"}[mod]
			want = append(want, "flags-changed 56 units=0 flags="+with)
		}
		want = append(want, fmt.Sprintf("key-down %d units=0 flags=%s", c.code, with), fmt.Sprintf("key-up %d units=0 flags=%s", c.code, with))
		if c.shift {
			want = append(want, "flags-changed 56 units=0 flags="+mod)
		}
		want = append(want, fmt.Sprintf("flags-changed %d units=0 flags=0", code))
		if got := m.posted(t); !slices.Equal(got, want) {
			t.Errorf("%s: %v:\n%s\nwant\n%s", c.source, c.keys, strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
	}
	// A shift that the chord holds is not pressed again.
	layout("us", "com.apple.keylayout.US")
	m.posted(t)
	do(t, chord(Shift, "?"))
	m.want(t, "flags-changed 56 units=0 flags=20000", "key-down 44 units=0 flags=20000", "key-up 44 units=0 flags=20000", "flags-changed 56 units=0 flags=0")
	// Arrows and function keys carry the flags that real ones do.
	do(t, chord(ArrowLeft), chord("f5"), chord("kp7"), chord(Fn, Delete))
	m.want(t, "key-down 123 units=0 flags=a00000", "key-up 123 units=0 flags=a00000", "key-down 96 units=0 flags=800000", "key-up 96 units=0 flags=800000",
		"key-down 89 units=0 flags=200000", "key-up 89 units=0 flags=200000",
		"flags-changed 63 units=0 flags=800000", "key-down 117 units=0 flags=800000", "key-up 117 units=0 flags=800000", "flags-changed 63 units=0 flags=0")
	for _, k := range []Key{"ж", "f24", CapsLock, MediaPlay, "nonsense", ""} {
		if err := m.d.Key(ctx, k, true); !errors.Is(err, ErrNoKey) {
			t.Errorf("%q: %v", k, err)
		}
	}
	m.want(t)
}

// TestQuartzNamedKeys: each named key has a place of its own.
func TestQuartzNamedKeys(t *testing.T) {
	seen := map[uint16]Key{}
	twins := map[Key]bool{PrintScreen: true, ScrollLock: true, Pause: true} // on F13 to F15
	for k, s := range quartzNamed {
		if twins[k] {
			continue
		}
		if other, ok := seen[s.code]; ok {
			t.Errorf("%s and %s are both at %d", k, other, s.code)
		}
		seen[s.code] = k
	}
}

func TestQuartzTypesIntoEditor(t *testing.T) {
	for _, c := range []struct{ name, x, source string }{
		{"us", "us", "com.apple.keylayout.US"},
		{"azerty", "fr -variant mac", "com.apple.keylayout.French"},
		{"input method", "us", "com.apple.inputmethod.SCIM.ITABC"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := openMac(t, oneRetina)
			need(t, "setxkbmap", "x11-xkb-utils")
			cmd := exec.Command("setxkbmap", strings.Fields(c.x)...)
			cmd.Env = m.v.Env()
			do(t, cmd.Run())
			x := openDriver(t, m.v, false)
			file := editor(t, m.v, x)
			m.set(t, "source", c.source)
			for _, text := range texts {
				if c.name != "us" && !strings.Contains("ascii accents emoji mixed", text.name) {
					continue // what differs by layout is there
				}
				wipe(t, x)
				m.posted(t)
				n, err := m.d.Type(t.Context(), text.text)
				if err != nil || n != len(text.text) {
					t.Fatalf("%s: %d of %d bytes, %v", text.name, n, len(text.text), err)
				}
				if got := saved(t, x, file, text.text); got != text.text {
					t.Errorf("%s: %s", text.name, diff(got, text.text))
				}
				log := m.posted(t)
				for i, e := range log {
					if flawed.MatchString(e) {
						t.Errorf("%s: %s", text.name, e)
					}
					if c.name == "input method" && (i == 0) != (e == "select com.apple.keylayout.US") {
						t.Errorf("%s: event %d is %s", text.name, i, e)
					}
					if i == len(log)-2 {
						break
					}
				}
				if last := log[len(log)-1]; c.name == "input method" && last != "select "+c.source {
					t.Errorf("the input method is not put back: %s", last)
				}
			}
		})
	}
}

// flawed are events that a Mac would not deliver as they were meant.
var flawed = regexp.MustCompile(` (dropped|to-the-login-window|blocked|not-dragged|nothing-held|no-deltas|no-change-of-flags)$|key-up .*units=[1-9]`)

func TestQuartzRefuses(t *testing.T) {
	for _, c := range []struct {
		setting, value string
		want           error
		says           string
	}{
		{"trusted", "0", ErrPermission, "Accessibility"},
		{"post", "0", ErrPermission, "post events"},
		{"graphic", "0", ErrLoginWindow, ""},
		{"console", "0", ErrLoginWindow, "another user"},
		{"locked", "1", ErrLocked, ""},
		{"asleep", "1", ErrAsleep, ""},
		{"secure", fmt.Sprint(os.Getpid()), ErrSecureInput, fmt.Sprintf("input.test (process %d)", os.Getpid())},
		{"secure", "999999999", ErrSecureInput, "process 999999999"},
	} {
		t.Run(c.setting, func(t *testing.T) {
			m := openMac(t, onePlain)
			m.set(t, c.setting, c.value)
			ctx := t.Context()
			_, typed := m.d.Type(ctx, "secret")
			errs := []error{typed, m.d.Key(ctx, "a", true), m.d.Key(ctx, Enter, true)}
			if c.want != ErrSecureInput {
				errs = append(errs, m.d.Move(ctx, Point{1, 1}), m.d.Button(ctx, Left, true, 1), m.d.Scroll(ctx, 0, 9), m.d.Key(ctx, Shift, true))
			}
			for i, err := range errs {
				if !errors.Is(err, c.want) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%d: %v, want %v that says %q", i, err, c.want, c.says)
				}
			}
			m.want(t)
			if got := QuartzTrusted() && QuartzMayPost(); got != (c.setting != "trusted" && c.setting != "post") {
				t.Errorf("may post: %v", got)
			}
			// Looking at the pointer takes no permission, and a release is always posted.
			if _, err := m.d.Pointer(ctx); err != nil {
				t.Error(err)
			}
			do(t, m.d.Button(ctx, Left, false, 1))
			if got := m.posted(t); len(got) != 1 {
				t.Errorf("the release posted %v", got)
			}
		})
	}
}

// TestQuartzGrantArrives: a grant counts as soon as macOS says so.
func TestQuartzGrantArrives(t *testing.T) {
	m := openMac(t, onePlain)
	m.set(t, "trusted", "0")
	if err := m.d.Move(t.Context(), Point{5, 5}); !errors.Is(err, ErrPermission) {
		t.Fatal(err)
	}
	do(t, m.Set("trusted", "1"), m.d.Move(t.Context(), Point{5, 5}))
}

// TestQuartzDeafSource: where the person's input would die, no event is posted.
func TestQuartzDeafSource(t *testing.T) {
	s := openStandin(t, startDesk(t), onePlain)
	do(t, s.Set("deaf", "1"))
	if d, err := OpenQuartz(); err == nil || !strings.Contains(err.Error(), "the person's input") {
		t.Errorf("%v, %v", d, err)
	}
}

func TestQuartzReleaseStray(t *testing.T) {
	m := openMac(t, onePlain)
	ctx := t.Context()
	do(t, m.d.Move(ctx, Point{300, 300}), m.d.Key(ctx, Command, true), m.d.Key(ctx, "a", true), m.d.Button(ctx, Right, true, 1))
	m.posted(t)
	// The next process knows nothing of it but what macOS says.
	next, err := OpenQuartz()
	do(t, err)
	defer next.Close()
	do(t, next.ReleaseStray(ctx))
	m.want(t, "up 1 at 300,300 clicks=1 number=0 flags=0", "key-up 0 units=0 flags=0", "flags-changed 55 units=0 flags=0")
	do(t, next.ReleaseStray(ctx))
	m.want(t)
}

// TestQuartzReleaseOfNothing: what is not known to be down is released all the
// same, as who cannot tell does once too often.
func TestQuartzReleaseOfNothing(t *testing.T) {
	m := openMac(t, onePlain)
	ctx := t.Context()
	do(t, m.d.Key(ctx, "?", false), m.d.Key(ctx, Enter, false), m.d.Key(ctx, Command, false), m.d.Button(ctx, Middle, false, 1))
	log := m.posted(t)
	if len(log) != 4 || log[0] != "key-up 44 units=0 flags=0" || log[1] != "key-up 36 units=0 flags=0" || log[2] != "flags-changed 55 units=0 flags=0" {
		t.Errorf("posted %q", log)
	}
	if err := m.d.Key(ctx, "ж", false); !errors.Is(err, ErrNoKey) {
		t.Error(err)
	}
	do(t, m.d.Key(ctx, Shift, true), m.d.Key(ctx, Shift, true), m.d.Key(ctx, "x", true), m.d.Key(ctx, "x", true),
		m.d.Key(ctx, "x", false), m.d.Key(ctx, Shift, false))
	m.want(t, "flags-changed 56 units=0 flags=20000", "key-down 7 units=0 flags=20000", "key-up 7 units=0 flags=20000", "flags-changed 56 units=0 flags=0")
}

// TestQuartzPointerElsewhere: a pointer that does not arrive is told where it is.
func TestQuartzPointerElsewhere(t *testing.T) {
	m := openMac(t, onePlain)
	ctx := t.Context()
	do(t, m.d.Move(ctx, Point{100, 100}), m.d.Sync(ctx))
	m.d.at = Point{300, 300} // as if the person had moved it away
	if p, err := m.d.Pointer(ctx); p != (Point{100, 100}) || err != nil {
		t.Errorf("%v, %v", p, err)
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := m.d.Pointer(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	if err := m.d.Move(ctx, Point{1, 1}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// focused is the window with the keyboard, once Accessibility tells its role in time.
func (m *macDesk) focused(t *testing.T) *Window {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		w, err := m.d.Focused(t.Context())
		if err == nil && w != nil && w.Role != "" {
			return w
		}
		if time.Now().After(end) {
			t.Fatalf("the keyboard is with %+v, %v", w, err)
		}
	}
}

// keyboard is who has it, as soon as Accessibility answers in time: on a busy machine
// it may not.
func (m *macDesk) keyboard(t *testing.T) (*Window, error) {
	t.Helper()
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if w, err := m.d.Focused(t.Context()); !errors.Is(err, ErrLate) || time.Now().After(end) {
			return w, err
		}
	}
}

// TestQuartzNamesWindows: in points, whatever the scale; titles need the grant
// for screen recording.
func TestQuartzNamesWindows(t *testing.T) {
	m := openMac(t, oneRetina)
	ctx := t.Context()
	for _, p := range []Point{{}, {300, 200}} {
		if w, err := m.d.Under(ctx, p); w != nil || err != nil {
			t.Errorf("an empty desktop has %+v, %v", w, err)
		}
	}
	if w, err := m.keyboard(t); w != nil || err != nil {
		t.Errorf("an empty desktop has %+v, %v", w, err)
	}
	x := openDriver(t, m.v, false)
	launch(t, m.v, x, "xterm", "-T", "a title", "-geometry", "20x5+400+300")
	var inside Point
	var under, focused *Window
	// The window manager may still be about to put it elsewhere.
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
		f, err := x.ping.focus(ctx)
		do(t, err)
		at, err := xproto.TranslateCoordinates(x.conn.Conn, f.named, x.conn.Root, 10, 10).Reply()
		do(t, err)
		inside = Point{float64(at.DstX) / 2, float64(at.DstY) / 2}
		under, err = m.d.Under(ctx, inside)
		do(t, err)
		if focused = m.focused(t); under != nil && *under == *focused {
			break
		}
	}
	if under == nil || under.App != "XTerm" || under.Title != "a title" || under.Role != "AXWindow" || under.Bounds.Width <= 0 || focused == nil || *focused != *under {
		t.Errorf("under the pointer is %+v, the keyboard is with %+v", under, focused)
	}
	if w, err := m.d.Under(ctx, Point{inside.X + 400, inside.Y}); w != nil || err != nil {
		t.Errorf("beside it is %+v, %v", w, err)
	}
	m.set(t, "screen", "0")
	if w, err := m.d.Under(ctx, inside); err != nil || w == nil || w.App != "XTerm" || w.Title != "" {
		t.Errorf("without the grant: %+v, %v", w, err)
	}
	if w := m.focused(t); w == nil || w.Title != "a title" {
		t.Errorf("Accessibility tells no title: %+v", w)
	}
	m.set(t, "trusted", "0")
	if w, err := m.keyboard(t); err != nil || w == nil || *w != (Window{App: "XTerm", Bounds: w.Bounds, PID: w.PID}) {
		t.Errorf("without any grant: %+v, %v", w, err)
	}
	m.set(t, "graphic", "0")
	if w, err := m.keyboard(t); err == nil || w != nil {
		t.Errorf("without a session: %+v, %v", w, err)
	}
}

func TestQuartzTypeIsCancelled(t *testing.T) {
	m := openMac(t, onePlain)
	newLogger(t, m.v)
	ctx, cancel := context.WithCancel(t.Context())
	text := strings.Repeat("A", 4000)
	go func() {
		defer cancel()
		for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(time.Millisecond) {
			if b, _ := os.ReadFile(m.Log()); strings.Count(string(b), "key-down") >= 50 {
				return
			}
		}
	}()
	n, err := m.d.Type(ctx, text)
	if !errors.Is(err, context.Canceled) || n < 50 || n >= len(text) {
		t.Fatalf("%d bytes, %v", n, err)
	}
	log := m.posted(t)
	downs := 0
	for _, e := range log {
		if strings.HasPrefix(e, "key-down 0 ") {
			downs++
		}
	}
	if downs != n || log[0] != "flags-changed 56 units=0 flags=20000" || log[len(log)-1] != "flags-changed 56 units=0 flags=0" {
		t.Errorf("%d presses for %d bytes; the first event is %s, the last %s", downs, n, log[0], log[len(log)-1])
	}
	if n, err := m.d.Type(t.Context(), "a\x1bb"); n != 0 || err == nil {
		t.Errorf("a control character: %d, %v", n, err)
	}
}
