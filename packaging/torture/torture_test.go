//go:build linux

package main

import (
	"context"
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

	"drawbridge/bridge/computer"
	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
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
	chords, err := r.panics(t.Context(), 5, rand.New(rand.NewPCG(uint64(time.Now().UnixNano()), 0)))
	if err != nil || len(chords) != 5 {
		t.Errorf("%d panic chords: %v", len(chords), err)
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
		w, err := namer.Focused(t.Context()) // it may not be told in time
		if w != nil && w.App == "Mousepad" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the editor does not come up: %+v, %v", w, err)
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

// run runs actions. What the person did before that, to mark the log, may be seen only
// then: they are run again.
func (r *rig) run(t *testing.T, format string, args ...any) computer.Structured {
	t.Helper()
	for {
		s, err := r.call(t.Context(), "tester", "["+fmt.Sprintf(format, args...)+"]")
		if err != nil {
			t.Fatal(err)
		}
		if s.Stopped == nil || s.Stopped.Reason != stop.HandBack {
			return s
		}
	}
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
	// On a busy machine it may not be told in time who has the keyboard: then it is all
	// done again.
	told := func(meanwhile func() error, text string) (s computer.Structured) {
		t.Helper()
		for end := time.Now().Add(limit); ; {
			r.log.take()
			var done sync.WaitGroup
			done.Go(func() {
				if err := meanwhile(); err != nil {
					t.Error(err)
				}
			})
			s = r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"type","text":"%s"}`, ex, ey, text)
			done.Wait()
			if f := s.Executed[1].Focus; f != nil && f.Before != nil || time.Now().After(end) {
				return s
			}
		}
	}
	s := told(func() error { return nil }, "secret")
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
	s = told(func() error {
		if err := r.log.await(t.Context(), func(all []did) bool { return len(all) > 100 }); err != nil {
			return err
		}
		return late.focus()
	}, strings.Repeat("0123456789", 40_000))
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
