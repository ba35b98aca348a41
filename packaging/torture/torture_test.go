//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/session/saver"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/person"
	"drawbridge/internal/x11/power"
	"drawbridge/internal/x11/program"
	"drawbridge/packaging/agent"
)

// limit is how long a test waits for what a healthy machine does at once.
const limit = 2 * time.Minute

func TestMain(m *testing.M) {
	if what, dir, ok := strings.Cut(os.Getenv(childEnv), " "); ok {
		onFirstThread(func() { fmt.Fprintln(os.Stderr, doom(what, dir)) })
		os.Exit(1)
	}
	dir, err := os.MkdirTemp("", "drawbridge-torture-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	build = sync.OnceValues(func() (string, error) { return agent.Build(context.Background(), dir) })
	code := 0
	onFirstThread(func() { code = m.Run() })
	os.RemoveAll(dir)
	os.Exit(code)
}

// build makes the command, once.
var build func() (string, error)

// newState makes a state directory.
func newState(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

func start(t *testing.T) *rig {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	r, err := newRig(ctx, t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.close(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func TestHandBacks(t *testing.T) {
	const n = 50
	r := start(t)
	trials, err := r.handBacks(t.Context(), n, uint64(time.Now().UnixNano()))
	if err != nil {
		t.Fatalf("after %d: %v", len(trials), err)
	}
	var chords []trial
	if canPanic {
		if chords, err = r.panics(t.Context(), 5, rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))); err != nil || len(chords) != 5 {
			t.Errorf("%d panic chords: %v", len(chords), err)
		}
	}
	for _, tr := range trials {
		// Beyond what was in the server's hands already, not one whole gesture.
		if tr.batch != "type" && tr.after > oneEvent {
			t.Errorf("%s: %d events came after the person's", tr.batch, tr.after)
		}
	}
	out := table(append(trials, chords...))
	t.Log("\n" + out)
	if !strings.Contains(out, "hand-backs") || len(trials) != n {
		t.Errorf("%d trials", len(trials))
	}
}

// The same in an editor under a window manager, which grabs presses and lets them
// through when it has raised the window.
func TestHandBacksInAnEditor(t *testing.T) {
	if _, err := exec.LookPath("mousepad"); err != nil {
		t.Skip("mousepad is missing: apt-get install mousepad")
	}
	r := start(t)
	r.window.close()
	dir := t.TempDir()
	editor := exec.Command("mousepad", "--disable-server")
	editor.Env = append(r.environ(), "GSETTINGS_BACKEND=memory", "NO_AT_BRIDGE=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir,
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
	if err := editor.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { editor.Process.Kill(); editor.Wait() }()
	namer := r.desk.Input.(input.Namer)
	for end := time.Now().Add(limit); ; time.Sleep(5 * time.Millisecond) {
		w, err := namer.Focused(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if w != nil && w.App == "Mousepad" {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the editor does not come up")
		}
	}
	trials, err := r.handBacks(t.Context(), 15, uint64(time.Now().UnixNano()))
	if err != nil {
		t.Errorf("after %d: %v", len(trials), err)
	}
}

func TestCrowd(t *testing.T) {
	r := start(t)
	n, err := r.crowd(t.Context(), 10, 3*time.Second)
	if err != nil || n < 10 {
		t.Errorf("%d batches: %v", n, err)
	}
}

// fixture opens a window of 200 by 150 in the place of that number.
func (r *rig) fixture(t *testing.T, name string, place int, react func(*window, xgb.Event)) (w *window, x, y int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	at := xproto.Rectangle{X: int16(250 * place), Y: 300, Width: 200, Height: 150}
	w, err := openWindow(ctx, r.display, name, at, react)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.close)
	return w, int(at.X) + 100, int(at.Y) + 75
}

func (r *rig) run(t *testing.T, format string, args ...any) computer.Structured {
	t.Helper()
	s, err := r.call(t.Context(), "tester", "["+fmt.Sprintf(format, args...)+"]")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// What becomes of actions on windows that do not do as they should.
func TestFixtures(t *testing.T) {
	r := start(t)
	r.tool.SetConfig(computer.DefaultConfig())
	if err := r.look(t.Context(), "tester"); err != nil {
		t.Fatal(err)
	}
	repaint := func(w *window, ev xgb.Event) {
		if _, ok := ev.(xproto.ButtonPressEvent); ok {
			c := w.conn.Conn
			xproto.ChangeWindowAttributes(c, w.id, xproto.CwBackPixel, []uint32{0x336699})
			xproto.ClearArea(c, false, w.id, 0, 0, 0, 0)
			xproto.SetInputFocus(c, xproto.InputFocusPointerRoot, w.id, 0)
		}
	}
	_, dx, dy := r.fixture(t, "Deaf", 0, nil)
	_, lx, ly := r.fixture(t, "Lively", 2, repaint)
	s := r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"click","x":%d,"y":%d}`, dx, dy, lx, ly)
	for i, want := range []struct {
		app    string
		effect computer.Effect
	}{{"Deaf", computer.SuspectedNoop}, {"Lively", computer.Delivered}} {
		e := s.Executed[i]
		if e.Target == nil || e.Target.App != want.app || e.Target.Window != want.app || e.Effect == nil || *e.Effect != want.effect {
			t.Errorf("%s: %+v, %v", want.app, e.Target, e.Effect)
		}
	}

	// One that flees from the pointer: nothing is pressed where it was, and a guard
	// keeps the next one from whatever lies below.
	_, mx, my := r.fixture(t, "Mover", 1, func(w *window, ev xgb.Event) {
		if _, ok := ev.(xproto.EnterNotifyEvent); ok {
			xproto.ConfigureWindow(w.conn.Conn, w.id, xproto.ConfigWindowX, []uint32{0})
		}
	})
	r.log.take()
	s = r.run(t, `{"type":"drag","path":[[%d,%d],[%d,%d]]},{"type":"wait"}`, mx, my, mx, my+50)
	if e := s.Executed[0]; s.Stopped == nil || s.Stopped.Reason != stop.Misplaced || e.Status != computer.Partial || e.Target == nil || e.Target.App != "Mover" {
		t.Errorf("the drag: %+v, %+v", s.Stopped, e)
	}
	if err := r.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.log.take() {
		if e.Device.XTest && e.Kind == x11.RawButtonPress {
			t.Errorf("a button was pressed: %+v", e.Raw)
		}
	}
	s = r.run(t, `{"type":"click","x":%d,"y":%d,"expect":{"app":"Mover"}}`, mx, my)
	if e := s.Executed[0]; s.Stopped == nil || s.Stopped.Reason != stop.Expect || e.Target == nil || e.Target.App != "Ground" || e.Status != computer.Refused {
		t.Errorf("the click: %+v, %+v", s.Stopped, e)
	}
}

// The same with real programs of a toolkit, under a window manager.
func TestPrograms(t *testing.T) {
	if err := program.Available(); err != nil {
		t.Skip(err)
	}
	r := start(t)
	r.window.close()
	r.tool.SetConfig(computer.DefaultConfig())
	ctx, cancel := context.WithTimeout(t.Context(), 4*limit)
	defer cancel()
	open := func(kind, title string, at program.Place) *program.Program {
		t.Helper()
		p, err := r.program(ctx, kind, title, at)
		if err == nil {
			err = p.Await(ctx, "focused")
		}
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	stopped := func(s computer.Structured, index int, reason stop.Reason, says string) {
		t.Helper()
		if s.Stopped == nil || s.Stopped.Reason != reason || s.Stopped.Index != index || !strings.Contains(s.Stopped.Message, says) || strings.Contains(s.Stopped.Message, "hunter2") {
			t.Errorf("stopped %+v; want %s that says %q", s.Stopped, reason, says)
		}
	}
	// Under a busy machine an answer may come too late for the record. Then it is all
	// done again: what is tested is what becomes of an answer.
	until := func(told func(computer.Structured) bool, format string, args ...any) (s computer.Structured) {
		t.Helper()
		for end := time.Now().Add(limit); ; time.Sleep(50 * time.Millisecond) {
			if s = r.run(t, format, args...); told(s) || time.Now().After(end) {
				return s
			}
		}
	}
	target := func(s computer.Structured) bool {
		return s.Executed[0].Target != nil && s.Executed[0].Target.Role != "normal"
	}
	focus := func(i int) func(computer.Structured) bool {
		return func(s computer.Structured) bool {
			f := s.Executed[i].Focus
			return f != nil && f.Before != nil && f.Before.Role != "normal"
		}
	}
	effect := func(e computer.Entry, app, role string, want computer.Effect) {
		t.Helper()
		if e.Target == nil || e.Target.App != app || e.Target.Role != role || e.Effect == nil || *e.Effect != want {
			t.Errorf("%+v, %v; want %s, %s", e.Target, e.Effect, role, want)
		}
	}
	if err := r.look(ctx, "tester"); err != nil {
		t.Fatal(err)
	}

	deaf := open(program.Deaf, "Deaf", program.Place{X: 400, Y: 300, Width: 200, Height: 150})
	r.awaitRole(ctx, t, 500, 400, "drawing area")
	s := until(target, `{"type":"click","x":500,"y":400}`)
	effect(s.Executed[0], "Deaf", "drawing area", computer.SuspectedNoop)
	if err := deaf.Await(ctx, "press"); err != nil {
		t.Errorf("the click did not arrive: %v", err)
	}
	deaf.Close()

	for end := time.Now().Add(limit); ; {
		r.run(t, `{"type":"move","x":700,"y":580}`) // it would flee as it shows
		mover := open(program.Mover, "Mover", program.Place{X: 400, Y: 300, Width: 200, Height: 150})
		s = r.run(t, `{"type":"drag","path":[[500,400],[510,450]]},{"type":"wait"}`)
		known, pressed := s.Executed[0].Target != nil, mover.Told("press")
		mover.Close()
		if !known && time.Now().Before(end) {
			continue
		}
		stopped(s, 0, stop.Misplaced, `"Mover"`)
		if pressed != 0 || s.Executed[0].Status != computer.Partial {
			t.Errorf("pressed %d times, %+v", pressed, s.Executed[0])
		}
		break
	}

	form := open(program.Form, "Form", program.Place{X: 50, Y: 50, Width: 300, Height: 400})
	y := r.parts(ctx, t)
	r.awaitRole(ctx, t, 200, y[1], "password text")
	s = until(target, `{"type":"click","x":200,"y":%d}`, y[3])
	effect(s.Executed[0], "Form", "push button", computer.Delivered)
	if err := form.Await(ctx, "clicked"); err != nil {
		t.Errorf("the button: %v", err)
	}
	s = until(focus(1), `{"type":"click","x":200,"y":%d},{"type":"type","text":"hunter2"}`, y[1])
	stopped(s, 1, stop.SecureInput, `"Form"`)
	if f := s.Executed[1].Focus; f == nil || f.Before == nil || f.Before.Role != "password text" || s.Executed[1].Status != computer.Refused {
		t.Errorf("%+v", s.Executed[1])
	}
	s = until(focus(0), `{"type":"keypress","keys":["h"]}`)
	stopped(s, 0, stop.SecureInput, `"Form"`)
	s = until(func(s computer.Structured) bool { return s.Stopped != nil }, `{"type":"click","x":200,"y":%d},{"type":"type","text":"name\thunter2"}`, y[0])
	stopped(s, 1, stop.SecureInput, "password field")
	if s.Executed[1].Status != computer.Partial || s.Executed[1].Summary != "typed 5 of 12 characters" {
		t.Errorf("%+v", s.Executed[1])
	}

	// One that hangs has its name from the window system, and no role of its parts.
	if err := form.Hang(); err != nil {
		t.Fatal(err)
	}
	s = r.run(t, `{"type":"click","x":200,"y":%d}`, y[3])
	effect(s.Executed[0], "Form", "normal", computer.SuspectedNoop)
	t.Logf("a click on a program that hangs took %g ms", s.Executed[0].MS)
	if err := form.Wake(); err != nil {
		t.Fatal(err)
	}
	r.awaitRole(ctx, t, 200, y[0], "text")

	// A program that keeps the keyboard is named.
	thief := open(program.Thief, "Thief", program.Place{X: 400, Y: 300, Width: 200, Height: 150})
	s = r.run(t, `{"type":"click","x":200,"y":%d},{"type":"wait"},{"type":"type","text":"hunter2"}`, y[0])
	stopped(s, 2, stop.FocusStolen, `"Thief"`)
	if thief.Told("key") != 0 {
		t.Errorf("the thief got %d keys", thief.Told("key"))
	}
}

// awaitRole waits until accessibility tells what is at a place: on a busy machine a
// program may at first be too slow for the record.
func (r *rig) awaitRole(ctx context.Context, t *testing.T, x, y int, want string) {
	t.Helper()
	in := r.desk.Input.(input.Inspector)
	var p *input.Part
	for ctx.Err() == nil {
		p, _ = in.PartUnder(ctx, input.Point{X: float64(x), Y: float64(y)})
		if p != nil && p.Role == want {
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
	t.Fatalf("at %d,%d there is %+v, want a %s", x, y, p, want)
}

// parts are the heights of the middles of a form's four parts.
func (r *rig) parts(ctx context.Context, t *testing.T) (y [4]int) {
	t.Helper()
	w, err := r.desk.Input.(input.Namer).Focused(ctx)
	if err != nil || w == nil || w.App != "Form" {
		t.Fatalf("the keyboard is with %+v, %v", w, err)
	}
	for i := range y {
		y[i] = int(w.Bounds.Y + w.Bounds.Height*(float64(i)+0.5)/4)
	}
	return y
}

// On a session that is locked, whose display sleeps, or that is not in front, nothing
// is sent.
func TestLocked(t *testing.T) {
	r := start(t)
	address, end, err := saver.Bus(t.TempDir())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer end()
	session, err := saver.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	defer session.Close()
	var number int
	if _, err := fmt.Sscanf(r.desk.Display, ":%d", &number); err != nil {
		t.Fatal(err)
	}
	relay, err := power.Start(t.TempDir(), number)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	for name, value := range map[string]string{"DBUS_SESSION_BUS_ADDRESS": address, "DBUS_SYSTEM_BUS_ADDRESS": address,
		"DISPLAY": relay.Display(), "WAYLAND_DISPLAY": ""} {
		t.Setenv(name, value)
	}
	d, err := desk.Open(t.Context(), desk.Options{Backend: desk.Native, StateDir: t.TempDir(), Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	cfg := r.config()
	cfg.WaitMS = 1
	tool := computer.New(computer.Options{Desk: d, Config: cfg, Lease: r.order, Log: zerolog.Nop()})
	defer tool.Close()
	if _, err := call(t.Context(), tool, "tester", `[{"type":"screenshot"}]`); err != nil {
		t.Fatal(err)
	}
	r.log.take()
	for _, c := range []struct {
		reason stop.Reason
		set    func(on bool)
	}{
		{stop.Locked, func(on bool) { session.Lock(on, false) }},
		{stop.Locked, func(on bool) { session.Lock(false, on) }},
		{stop.LoginWindow, session.Away},
		{stop.Asleep, func(on bool) { relay.Set(map[bool]uint16{true: power.Off}[on]) }},
	} {
		c.set(true)
		s, err := call(t.Context(), tool, "tester", `[{"type":"wait"},{"type":"click","x":10,"y":10},{"type":"type","text":"secret"}]`)
		if err != nil || s.Stopped == nil || s.Stopped.Reason != c.reason || s.Stopped.Index != 1 || s.Executed[1].Status != computer.Refused || s.Executed[2].Status != computer.Skipped {
			t.Errorf("%s: %v, %+v, %+v", c.reason, err, s.Stopped, s.Executed)
		}
		c.set(false)
	}
	if got := r.log.take(); len(got) > 0 {
		t.Errorf("posted all the same: %+v", got)
	}
	if got := session.Inhibited(); len(got) > 0 {
		t.Errorf("kept awake by %q", got)
	}
	if s, err := call(t.Context(), tool, "tester", `[{"type":"click","x":10,"y":10}]`); err != nil || s.Stopped != nil {
		t.Errorf("once it is unlocked: %v, %+v", err, s.Stopped)
	}
}

func TestFocusThief(t *testing.T) {
	r := start(t)
	if err := r.look(t.Context(), "tester"); err != nil {
		t.Fatal(err)
	}
	take := func(w *window) {
		xproto.SetInputFocus(w.conn.Conn, xproto.InputFocusPointerRoot, w.id, 0)
	}
	_, ex, ey := r.fixture(t, "Editor", 0, func(w *window, ev xgb.Event) {
		if _, ok := ev.(xproto.ButtonPressEvent); ok {
			take(w)
		}
	})
	greedy, _, _ := r.fixture(t, "Thief", 1, func(w *window, ev xgb.Event) {
		if e, ok := ev.(xproto.FocusOutEvent); ok && e.Mode == xproto.NotifyModeNormal {
			take(w)
		}
	})
	r.log.take()
	s := r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"type","text":"secret"}`, ex, ey)
	if s.Stopped == nil || s.Stopped.Reason != stop.FocusStolen || s.Stopped.Index != 1 || !strings.Contains(s.Stopped.Message, `"Thief"`) {
		t.Errorf("stopped: %+v", s.Stopped)
	}
	if err := r.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.log.take() {
		if e.Device.XTest && e.Kind == x11.RawKeyPress {
			t.Errorf("a key was sent to the thief: %+v", e.Raw)
		}
	}

	// One that comes in the middle of a text.
	greedy.close()
	late, _, _ := r.fixture(t, "Late", 2, nil)
	var stole sync.WaitGroup
	stole.Go(func() {
		err := r.log.await(t.Context(), func(all []did) bool { return len(all) > 100 })
		if err == nil {
			err = late.focus()
		}
		if err != nil {
			t.Error(err)
		}
	})
	text := strings.Repeat("0123456789", 40_000)
	s = r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"type","text":"%s"}`, ex, ey, text)
	stole.Wait()
	if s.Stopped == nil || s.Stopped.Reason != stop.FocusStolen || !strings.Contains(s.Stopped.Message, `"Late"`) || s.Executed[1].Status != computer.Partial {
		t.Errorf("stopped: %+v, %+v", s.Stopped, s.Executed[1])
	}
}

// A process that is killed in the middle of a drag or of a held chord leaves them
// down. The next agent lets go of them before it serves, and the desktop is free.
func TestKilled(t *testing.T) {
	r := start(t)
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	rnd := rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0))
	for what, most := range map[string]int{"drag": 1, "chord": 20} {
		// A chord is held for 12 ms: it may be over when the kill comes.
		var left []string
		for range most {
			if left, err = r.kill(t.Context(), bin, filepath.Join(t.TempDir(), "state"), what, rnd); err != nil {
				t.Fatalf("%s: %v, with %q down", what, err, left)
			}
			if len(left) > 0 {
				break
			}
		}
		if len(left) == 0 {
			t.Errorf("%s: the kill never came while anything was down", what)
		}
	}
}

// `drawbridge stop` ends what runs.
func TestStopped(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	trials, err := stops(t.Context(), bin, t.TempDir(), 2, rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)))
	if err != nil || len(trials) != 2 {
		t.Errorf("%d stops: %v", len(trials), err)
	}
	t.Log("\n" + table(trials))
}

// What is measured can be measured; how fast it is depends on the machine.
func TestMeasures(t *testing.T) {
	r := start(t)
	if d, err := r.watching(t.Context(), 200); err != nil {
		t.Errorf("watching cost %v: %v", d, err)
	}
	if err := program.Available(); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if clicks, keys, err := r.lookups(ctx, 3); err != nil || len(clicks) != 3 || len(keys) != 3 {
		t.Errorf("%v, %v: %v", clicks, keys, err)
	}
}

// The panic chord ends what runs in the agent, whatever it is.
func TestPanicChord(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	state := newState(t)
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Start(t.Context(), agent.Options{Bin: bin, State: state, Args: []string{"--backend", "virtual", "--allow", "computer"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	}()
	out, err := exec.Command(bin, "status", "--state", state, "--json").Output()
	if err != nil {
		t.Fatal(err)
	}
	var status struct{ Display string }
	if err := json.Unmarshal(out, &status); err != nil || status.Display == "" {
		t.Fatalf("no display in %s: %v", out, err)
	}
	t.Setenv("XAUTHORITY", filepath.Join(state, desk.VirtualDir, "Xauthority"))
	p, err := person.Open(t.Context(), status.Display)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	// To look and to wait is no input, so nothing but the chord ends it.
	wait := strings.Repeat(`{"type":"wait"},`, 20)
	call := exec.Command(bin, "call", "--state", state, "--json", "computer", `{"actions":[`+wait+`{"type":"screenshot"}]}`, "--out", t.TempDir())
	done := make(chan struct{})
	var result []byte
	go func() {
		defer close(done)
		result, _ = call.Output() // a batch that stopped is an error to the command
	}()
	for end := time.Now().Add(limit); ; {
		for _, k := range []struct {
			code byte
			down bool
		}{{control, true}, {alt, true}, {escape, true}, {escape, false}, {alt, false}, {control, false}} {
			if err := p.Key(k.code, k.down); err != nil {
				t.Fatal(err)
			}
		}
		select {
		case <-done:
		case <-time.After(100 * time.Millisecond):
			if time.Now().Before(end) {
				continue // the call had perhaps not begun
			}
			call.Process.Kill()
			t.Fatal("the chord stopped nothing")
		}
		break
	}
	if s := string(result); !strings.Contains(s, `"reason":"stopped"`) && !strings.Contains(s, `"reason": "stopped"`) || !strings.Contains(s, "panic chord") {
		t.Errorf("the call answered %s", s)
	}
}
