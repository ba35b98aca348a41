//go:build linux

package main

import (
	"context"
	"encoding/json"
	"fmt"
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
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/person"
	"drawbridge/packaging/agent"
)

// limit is how long a test waits for what a healthy machine does at once.
const limit = 30 * time.Second

// childEnv names the state directory of the child that TestKilled kills.
const childEnv = "DRAWBRIDGE_TORTURE_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childEnv); dir != "" {
		onFirstThread(func() { fmt.Fprintln(os.Stderr, dragForever(dir)) })
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
	if _, ok := r.desk.Input.(input.Grabber); ok {
		if chords, err = r.panics(t.Context(), 5); err != nil || len(chords) != 5 {
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
	editor.Env = append(append(os.Environ(), r.env...), "GSETTINGS_BACKEND=memory", "NO_AT_BRIDGE=1", "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir,
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

	// One that flees from the pointer: the record tells what was there before the
	// event, and a guard keeps the next click from whatever lies below.
	_, mx, my := r.fixture(t, "Mover", 1, func(w *window, ev xgb.Event) {
		if _, ok := ev.(xproto.EnterNotifyEvent); ok {
			xproto.ConfigureWindow(w.conn.Conn, w.id, xproto.ConfigWindowX, []uint32{0})
		}
	})
	click := fmt.Sprintf(`{"type":"click","x":%d,"y":%d,"expect":{"app":"Mover"}}`, mx, my)
	s = r.run(t, `%s,{"type":"wait"},%s`, click, click)
	if e := s.Executed[0]; e.Status != computer.Executed || e.Target == nil || e.Target.App != "Mover" {
		t.Errorf("the first click: %+v", e)
	}
	if e := s.Executed[2]; s.Stopped == nil || s.Stopped.Reason != stop.Expect || e.Target == nil || e.Target.App != "Ground" || e.Status != computer.Refused {
		t.Errorf("the second click: %+v, %+v", s.Stopped, e)
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

// dragForever is a program that drags with two keys held, until it is killed. It
// is what an agent is in the middle of a batch.
func dragForever(dir string) error {
	ctx := context.Background()
	d, err := desk.Open(ctx, desk.Options{Backend: desk.Native, StateDir: dir, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	journal, err := input.OpenJournal(filepath.Join(dir, "held.json"))
	if err != nil {
		return err
	}
	r := &rig{ground: &ground{desk: d}, tool: computer.New(computer.Options{
		Desk: d, Config: computer.DefaultConfig(), Lease: gate.NewLease(filepath.Join(dir, "desktop.lease"), 1), Journal: journal, Log: zerolog.Nop(),
	})}
	if err := r.look(ctx, "child"); err != nil {
		return err
	}
	path := strings.Repeat("[100,100],[700,500],", 400) + "[100,100]"
	s, err := r.call(ctx, "child", `[{"type":"drag","keys":["CTRL","SHIFT"],"path":[`+path+`]}]`)
	return fmt.Errorf("the drag ended: %+v, %w", s.Stopped, err)
}

// A process that is killed in the middle of a drag with a chord held leaves them
// down. The next agent lets go of them before it serves.
func TestKilled(t *testing.T) {
	r := start(t)
	state := newState(t)
	env := append(os.Environ(), r.env...)
	child := exec.Command(os.Args[0])
	child.Env = append(env, childEnv+"="+state)
	child.Stderr = os.Stderr
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { child.Process.Kill(); child.Wait() }()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	dragging := func(all []did) bool {
		motions := 0
		for _, e := range all {
			if e.Kind == x11.RawMotion {
				motions++
			}
		}
		return motions > 20
	}
	if err := r.log.await(ctx, dragging); err != nil {
		t.Fatalf("the child does not drag: %v", err)
	}
	if err := child.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	child.Wait()
	if held, err := r.down(); err != nil || len(held) != 3 {
		t.Fatalf("after the kill %q are down, %v; want a button and two keys", held, err)
	}

	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Start(t.Context(), agent.Options{Bin: bin, State: state, Args: []string{"--backend", "native"}, Env: env})
	if err != nil {
		t.Fatal(err)
	}
	held, err := r.down()
	if err != nil || len(held) > 0 {
		t.Errorf("the agent serves while %q are down, %v", held, err)
	}
	if err := a.Stop(); err != nil {
		t.Error(err)
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
	const control, alt, escape = 37, 64, 9
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
