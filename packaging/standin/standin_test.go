//go:build standin

package standin

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ebitengine/purego"

	"drawbridge/input/virtual"
	"drawbridge/internal/quartz"
	"drawbridge/internal/x11/person"
)

// api are functions of the stand-in, to be called the wrong way.
type api struct {
	source    func(state int32) uintptr
	interval  func(source uintptr, seconds float64)
	filter    func(source uintptr, filter, state uint32)
	mouse     func(source uintptr, kind uint32, at quartz.CGPoint, button uint32) uintptr
	keyboard  func(source uintptr, key uint16, down bool) uintptr
	wheel     func(source uintptr, units, n uint32, a, b, c int32) uintptr
	text      func(event uintptr, n uint, units *uint16)
	kind      func(event uintptr, kind uint32)
	flags     func(event uintptr, flags uint64)
	field     func(event uintptr, field uint32, v int64)
	post      func(tap uint32, event uintptr)
	keyState  func(state int32, key uint16) bool
	bitmap    func(data *byte, w, h, bits, row uint, space uintptr, info uint32) uintptr
	translate func(layout string, code, action uint16, mods, kind, options uint32, dead *uint32, most uint, n *uint, out *uint16) int32
}

func open(t *testing.T) (*Desk, *api) {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(context.Background(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	var cookie string
	for _, e := range v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	d, err := Open(v.Display(), cookie, "1:0,0,1280,800,1,0,0", filepath.Join(t.TempDir(), "posted"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	a := new(api)
	for symbol, f := range map[string]any{
		"CGEventSourceCreate": &a.source, "CGEventSourceSetLocalEventsSuppressionInterval": &a.interval,
		"CGEventSourceSetLocalEventsFilterDuringSuppressionState": &a.filter,
		"CGEventCreateMouseEvent":                                 &a.mouse, "CGEventCreateKeyboardEvent": &a.keyboard, "CGEventCreateScrollWheelEvent2": &a.wheel,
		"CGEventKeyboardSetUnicodeString": &a.text, "CGEventSetType": &a.kind, "CGEventSetFlags": &a.flags, "CGEventSetIntegerValueField": &a.field,
		"CGEventPost": &a.post, "CGEventSourceKeyState": &a.keyState, "CGBitmapContextCreate": &a.bitmap, "UCKeyTranslate": &a.translate,
	} {
		purego.RegisterLibFunc(f, purego.RTLD_DEFAULT, symbol)
	}
	return d, a
}

// TestFaultsAreSeen posts each sequence as it was reported not to work.
func TestFaultsAreSeen(t *testing.T) {
	d, a := open(t)
	s := a.source(-1)
	a.interval(s, 0)
	a.filter(s, 7, 0)
	mouse := func(kind uint32, x float64, fields ...int64) {
		e := a.mouse(s, kind, quartz.CGPoint{X: x, Y: 100}, 0)
		for i := 0; i < len(fields); i += 2 {
			a.field(e, uint32(fields[i]), fields[i+1])
		}
		a.post(0, e)
	}
	key := func(code uint16, down bool, flags uint64, kind uint32, units ...uint16) {
		e := a.keyboard(s, code, down)
		if kind != 0 {
			a.kind(e, kind)
		}
		if len(units) > 0 {
			a.text(e, uint(len(units)), &units[0])
		}
		a.flags(e, flags)
		a.post(0, e)
	}
	set := func(name, value string) {
		if err := d.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name string
		do   func()
		want []string // how the lines end
	}{
		{"a motion while a button is down", func() { mouse(1, 50); mouse(5, 80, 4, 30); mouse(2, 50) }, []string{"tag=0", " not-dragged", "tag=0"}},
		{"a drag without deltas", func() { mouse(1, 50); mouse(6, 80); mouse(2, 50) }, []string{"tag=0", " no-deltas", "tag=0"}},
		{"a drag of nothing", func() { mouse(6, 80, 4, 30) }, []string{" nothing-held"}},
		{"a modifier as a key", func() { key(55, true, 0x100000, 0); key(55, false, 0, 0) }, []string{" no-change-of-flags", " no-change-of-flags"}},
		{"a modifier as a change of flags", func() { key(55, true, 0x100000, 12); key(55, false, 0, 12) }, []string{"flags=100000 tag=0", "flags=0 tag=0"}},
		{"Accessibility withheld", func() { set("trusted", "0"); mouse(5, 50); set("trusted", "1") }, []string{" dropped"}},
		{"posting withheld", func() { set("post", "0"); mouse(5, 50); set("post", "1") }, []string{" dropped"}},
		{"a locked session", func() { set("locked", "1"); mouse(5, 50); set("locked", "0") }, []string{" to-the-login-window"}},
		{"secure input", func() { set("secure", "1"); key(0, true, 0, 0); mouse(5, 50); set("secure", "0") }, []string{" blocked", "tag=0"}},
		{"a source as it is made", func() { s0 := s; s = a.source(-1); mouse(5, 51); s = s0 }, []string{" suppresses"}},
		{"no source", func() { s0 := s; s = 0; mouse(5, 52); s = s0 }, []string{" suppresses"}},
		{"a string of 30 units", func() { key(0, true, 0, 0, slices.Repeat([]uint16{'x'}, 30)...) }, []string{"units=20 flags=0 tag=0"}},
		{"a string on the release", func() { key(0, true, 0, 0, 'x'); key(0, false, 0, 0, 'x') }, []string{"key-down 0 units=1 flags=0 tag=0", "key-up 0 units=1 flags=0 tag=0"}},
	} {
		if _, err := d.Posted(); err != nil {
			t.Fatal(err)
		}
		c.do()
		got, err := d.Posted()
		if err != nil || len(got) != len(c.want) {
			t.Errorf("%s: %q, %v", c.name, got, err)
			continue
		}
		for i, w := range c.want {
			if !strings.HasSuffix(got[i], w) {
				t.Errorf("%s: %q, want …%q", c.name, got[i], w)
			}
		}
	}
	// What was dropped has not been pressed.
	set("trusted", "0")
	key(0, true, 0, 0)
	set("trusted", "1")
	if a.keyState(0, 0) {
		t.Error("a key that was dropped is down")
	}
	key(0, true, 0, 0)
	if !a.keyState(0, 0) || a.keyState(1, 0) {
		t.Error("a posted key is not down in the session, or is in the hardware")
	}
	key(0, false, 0, 0)
	if a.wheel(s, 7, 1, 0, 0, 0) != 0 || a.source(9) != 0 {
		t.Error("an event of no unit or a source of no state was made")
	}
	var pix [64]byte
	if a.bitmap(&pix[0], 4, 4, 8, 16, 1, 6) != 0 {
		t.Error("a bitmap was made in an order of bytes that ours is not")
	}
}

func TestTranslate(t *testing.T) {
	_, a := open(t)
	for _, c := range []struct {
		code uint16
		mods uint32
		want string
	}{{0, 0, "a"}, {0, 2, "A"}, {0, 1, "a"}, {18, 2, "!"}, {44, 0, "/"}, {10, 0, ""}, {126, 0, ""}} {
		var dead uint32
		var n uint
		var out [4]uint16
		if st := a.translate("com.apple.keylayout.US", c.code, 0, c.mods, 40, 1, &dead, 4, &n, &out[0]); st != 0 || dead != 0 || n != uint(len(c.want)) || n == 1 && string(rune(out[0])) != c.want {
			t.Errorf("%d/%d: %d %v, want %q", c.code, c.mods, n, out[:n], c.want)
		}
	}
}

// TestTapFaults: what a tap hears, what it does not, and what the counters count.
func TestTapFaults(t *testing.T) {
	d, a := open(t)
	if err := quartz.Load(); err != nil {
		t.Fatal(err)
	}
	var tap struct {
		create  func(where, place, options uint32, mask uint64, callback, info uintptr) uintptr
		enable  func(tap uintptr, on bool)
		enabled func(tap uintptr) bool
		source  func(alloc, tap uintptr, order int) quartz.Ref
		end     func(tap uintptr)
		get     func(event uintptr, field uint32) int64
		count   func(state int32, kind uint32) uint32
		since   func(state int32, kind uint32) float64
		may     func() bool
	}
	for symbol, f := range map[string]any{
		"CGEventTapCreate": &tap.create, "CGEventTapEnable": &tap.enable, "CGEventTapIsEnabled": &tap.enabled,
		"CFMachPortCreateRunLoopSource": &tap.source, "CFMachPortInvalidate": &tap.end, "CGEventGetIntegerValueField": &tap.get,
		"CGEventSourceCounterForEventType": &tap.count, "CGEventSourceSecondsSinceLastEventType": &tap.since, "CGPreflightListenEventAccess": &tap.may,
	} {
		purego.RegisterLibFunc(f, purego.RTLD_DEFAULT, symbol)
	}
	heard := make(chan [2]int64, 64) // kind, tag
	call := purego.NewCallback(func(_ uintptr, kind uint32, event, _ uintptr) uintptr {
		heard <- [2]int64{int64(kind), tap.get(event, 42)}
		return event
	})
	if tap.create(0, 1, 1, ^uint64(0), call, 0) != 0 {
		t.Error("a tap was made where only root may have one")
	}
	port := tap.create(1, 1, 1, 1<<1|1<<2|1<<5|1<<10|1<<11, call, 0)
	thread := quartz.StartThread(tap.source(0, port, 0))
	next := func(kind, tag int64) {
		t.Helper()
		select {
		case got := <-heard:
			if got != [2]int64{kind, tag} {
				t.Errorf("heard %v, want kind %d with the tag %d", got, kind, tag)
			}
		case <-time.After(30 * time.Second):
			t.Errorf("nothing was heard, want kind %d", kind)
		}
	}
	move := func() {
		e := a.mouse(0, 5, quartz.CGPoint{X: 10, Y: 10}, 0)
		a.field(e, 42, 7)
		a.post(0, e)
	}
	set := func(name, value string) {
		t.Helper()
		if err := d.Set(name, value); err != nil {
			t.Error(err)
		}
	}
	session, hardware := tap.count(0, 5), tap.count(1, 5)
	move()
	next(5, 7)
	if tap.count(0, 5) != session+1 || tap.count(1, 5) != hardware+1 || tap.since(1, ^uint32(0)) > 30 || tap.count(1, ^uint32(0)) < hardware+1 {
		t.Error("a posted event is not counted")
	}
	set("counted", "0")
	move()
	next(5, 7)
	if tap.count(0, 5) != session+2 || tap.count(1, 5) != hardware+1 {
		t.Error("a posted event is counted as the hardware's")
	}
	set("counters", "none")
	if tap.count(0, 5) != 0 {
		t.Error("something is counted")
	}
	p, err := person.Open(t.Context(), d.X())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	if err := errors.Join(p.Move(3, 4), p.Button(1, true), p.Button(1, false), p.Key(38, true), p.Key(38, false)); err != nil {
		t.Fatal(err)
	}
	for _, kind := range []int64{5, 1, 2, 10, 11} {
		next(kind, 0)
	}
	set("secure", "1")
	if err := errors.Join(p.Key(38, true), p.Key(38, false), p.Move(1, 1)); err != nil {
		t.Fatal(err)
	}
	next(5, 0) // and no key before it
	set("secure", "0")
	set("tap", "timeout")
	next(0xfffffffe, 0)
	move()
	if tap.enabled(port) {
		t.Error("a tap that was turned off is on")
	}
	tap.enable(port, true)
	set("tap", "deaf")
	move()
	set("tap", "ok")
	set("tap", "user")
	next(0xffffffff, 0) // and no motion before it
	tap.enable(port, true)
	set("tap", "none")
	if tap.create(1, 1, 1, 1<<5, call, 0) != 0 {
		t.Error("a tap was made")
	}
	if _, err := d.Posted(); err != nil {
		t.Fatal(err)
	}
	set("listen", "0")
	tap.create(1, 1, 1, 1<<5, call, 0)
	if log, err := d.Posted(); err != nil || tap.may() || !slices.Contains(log, "prompt listen") {
		t.Errorf("to make a tap without the grant asks nobody: %q, %v", log, err)
	}
	tap.end(port)
	thread.Close()
	move()
	select {
	case got := <-heard:
		t.Errorf("a tap that has ended heard %v", got)
	default:
	}
}

// TestAccessibilityFaults: who may ask, who answers, and how long silence lasts.
func TestAccessibilityFaults(t *testing.T) {
	d, _ := open(t)
	var ax struct {
		system  func() uintptr
		at      func(element uintptr, x, y float32, found *uintptr) int32
		copy    func(element uintptr, name quartz.Ref, value *uintptr) int32
		pid     func(element uintptr, pid *int32) int32
		trusted func(options uintptr) bool
	}
	for symbol, f := range map[string]any{
		"AXUIElementCreateSystemWide": &ax.system, "AXUIElementCopyElementAtPosition": &ax.at,
		"AXUIElementCopyAttributeValue": &ax.copy, "AXUIElementGetPid": &ax.pid, "AXIsProcessTrustedWithOptions": &ax.trusted,
	} {
		purego.RegisterLibFunc(f, purego.RTLD_DEFAULT, symbol)
	}
	if err := quartz.Load(); err != nil {
		t.Fatal(err)
	}
	const noValue, disabled, invalid = -25212, -25211, -25202 // AXError.h
	var e uintptr
	var pid int32
	system := ax.system()
	if st := ax.at(system, 10, 10, &e); st != noValue || e != 0 {
		t.Errorf("on an empty desktop: %d, %d", st, e)
	}
	if st := ax.pid(system, &pid); st != invalid {
		t.Errorf("what stands for all has a process: %d", st)
	}
	name := quartz.NewString("AXFocusedApplication")
	defer quartz.Release(name)
	if st := ax.copy(system, name, &e); st != noValue {
		t.Errorf("nobody has the keyboard: %d", st)
	}
	if err := d.Set("trusted", "0"); err != nil {
		t.Fatal(err)
	}
	if st := ax.at(system, 10, 10, &e); st != disabled {
		t.Errorf("without the grant: %d", st)
	}
	if st := ax.copy(system, name, &e); st != disabled {
		t.Errorf("without the grant: %d", st)
	}
	// To ask without the option prompts nobody.
	if _, err := d.Posted(); err != nil {
		t.Fatal(err)
	}
	if log, err := d.Posted(); ax.trusted(0) || err != nil || len(log) > 0 {
		t.Errorf("asked %q, %v", log, err)
	}
}

func TestSettings(t *testing.T) {
	d, _ := open(t)
	for _, s := range [][2]string{{"nonsense", "1"}, {"displays", "1:0,0"}, {"displays", ""}, {"x", ":99999"}, {"log", "/no/such/place"}} {
		if err := d.Set(s[0], s[1]); err == nil {
			t.Errorf("%s=%s is a setting", s[0], s[1])
		}
	}
}

// TestFaultsOfHotKeys uses Carbon's hot keys as CarbonEvents.h does not allow.
func TestFaultsOfHotKeys(t *testing.T) {
	open(t)
	type id struct{ signature, id uint32 }
	type kind struct{ class, kind uint32 }
	var (
		target     func() uintptr
		register   func(code, mods uint32, id id, target uintptr, options uint32, ref *uintptr) int32
		unregister func(ref uintptr) int32
		install    func(target, handler uintptr, n uint, types *kind, data uintptr, ref *uintptr) int32
		parameter  func(event *id, name, kind uint32, actual *uint32, size uint, got *uint, data *id) int32
	)
	for symbol, f := range map[string]any{
		"GetApplicationEventTarget": &target, "RegisterEventHotKey": &register, "UnregisterEventHotKey": &unregister,
		"InstallEventHandler": &install, "GetEventParameter": &parameter,
	} {
		purego.RegisterLibFunc(f, purego.RTLD_DEFAULT, symbol)
	}
	var ref uintptr
	const escape, nowhere, control, keyboard, pressed, object, hotKey = 53, 10_000, 4096, 0x6b657962, 5, 0x2d2d2d2d, 0x686b6964
	if register(escape, control, id{}, 0, 0, &ref) != -9879 || register(nowhere, control, id{}, target(), 0, &ref) != -9879 {
		t.Error("a hot key of no target, or of no key, is one")
	}
	if unregister(ref) != -9879 {
		t.Error("what is no hot key was given back")
	}
	if install(0, 1, 1, &kind{keyboard, pressed}, 0, nil) != -50 || install(target(), 1, 1, &kind{keyboard, pressed + 1}, 0, nil) != -50 {
		t.Error("a handler of no target, or of another kind, is one")
	}
	event, got := id{1, 2}, id{}
	if parameter(&event, object, hotKey, nil, 4, nil, &got) != -50 || parameter(&event, object, hotKey+1, nil, 8, nil, &got) != -50 {
		t.Error("an id was given into too little room, or as what it is not")
	}
	var size uint
	var actual uint32
	if parameter(&event, object, hotKey, &actual, 8, &size, &got) != 0 || got != event || size != 8 || actual != hotKey {
		t.Errorf("the id is %+v, %d bytes of type %x", got, size, actual)
	}
}
