//go:build linux && !standin

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/session/saver"
	"drawbridge/internal/x11/person"
	"drawbridge/internal/x11/power"
	"drawbridge/internal/x11/program"
	"drawbridge/packaging/agent"
)

// newState makes a state directory.
func newState(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
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
