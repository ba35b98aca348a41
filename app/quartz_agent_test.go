//go:build standin

package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"drawbridge/bridge/measured"
	"drawbridge/internal/x11"
	hand "drawbridge/internal/x11/person"
)

// macAgent is the whole agent as it runs on a Mac, over the stand-in, and a person
// in front of its screen.
type macAgent struct {
	t     *testing.T
	x     *x11.Conn
	p     *hand.Person
	state string
	env   []string
}

// The screen has one pixel to a point and no window manager, as macOS has none.
func startMacAgent(t *testing.T) *macAgent {
	t.Helper()
	xvfb, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip("Xvfb is not installed (Debian package xvfb)")
	}
	a := &macAgent{t: t, state: filepath.Join(t.TempDir(), "state")}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server := exec.Command(xvfb, "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset", "-ac")
	server.ExtraFiles = []*os.File{w}
	a.start(server)
	w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	display := ":" + strings.TrimSpace(number)
	a.env = append(os.Environ(), "DISPLAY="+display, "STANDIN_x="+display, "STANDIN_displays=1:0,0,1280,800,1,0,0", "STANDIN_log="+filepath.Join(t.TempDir(), "posted"))
	if a.x, err = x11.Dial(t.Context(), display, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.x.Close)
	if a.p, err = hand.Open(t.Context(), display); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(a.p.Close)
	run := exec.Command("drawbridge", "run", "--backend", "native", "--listen", "127.0.0.1:0", "--state", a.state)
	run.Env = a.env
	a.start(run)
	a.until("the agent answers", func() bool { return a.command("status").Run() == nil })
	return a
}

// start starts a program that ends with the test.
func (a *macAgent) start(cmd *exec.Cmd) {
	a.t.Helper()
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		_ = cmd.Wait()
		if a.t.Failed() {
			a.t.Logf("%s said\n%s", filepath.Base(cmd.Path), said.String())
		}
	})
}

func (a *macAgent) command(args ...string) *exec.Cmd {
	cmd := exec.Command("drawbridge", append([]string{"--state", a.state}, args...)...)
	cmd.Env = a.env
	return cmd
}

func (a *macAgent) until(what string, so func() bool) {
	a.t.Helper()
	for end := time.Now().Add(60 * time.Second); !so(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			a.t.Fatalf("not within 60 s: %s", what)
		}
	}
}

// call calls the computer tool; what it said and how it ended come later.
func (a *macAgent) call(actions string) <-chan ended {
	c := make(chan ended, 1)
	cmd := a.command("call", "computer", `{"actions":`+actions+`}`)
	go func() {
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if err != nil && !errors.As(err, &exit) {
			a.t.Error(err)
		}
		c <- ended{string(out), cmd.ProcessState.ExitCode()}
	}()
	return c
}

type ended struct {
	said string
	code int
}

// panelSize is how wide the panel is; its place is that of the one window of this
// width.
const panelSize = 520

// panel waits for the panel, and until an answer to it counts.
func (a *macAgent) panel() (x, y, w, h int) {
	a.t.Helper()
	a.until("a panel", func() bool {
		tree, err := xproto.QueryTree(a.x.Conn, a.x.Root).Reply()
		if err != nil {
			a.t.Fatal(err)
		}
		for _, c := range tree.Children {
			g, err := xproto.GetGeometry(a.x.Conn, xproto.Drawable(c)).Reply()
			if err != nil {
				continue // it is gone
			}
			at, err := xproto.GetWindowAttributes(a.x.Conn, c).Reply()
			if err == nil && at.MapState == xproto.MapStateViewable && g.Width >= panelSize && g.Width <= panelSize+4 {
				x, y, w, h = int(g.X), int(g.Y), int(g.Width), int(g.Height)
				return true
			}
		}
		return false
	})
	time.Sleep(time.Second)
	return x, y, w, h
}

// answer clicks at a place until the call has ended: a press that is let go before
// GNUstep has looked at it is lost.
func (a *macAgent) answer(c <-chan ended, x, y int) ended {
	a.t.Helper()
	var e ended
	a.until("the pointer is there", func() bool { // the server accelerates each motion
		at, err := xproto.QueryPointer(a.x.Conn, a.x.Root).Reply()
		if err != nil {
			a.t.Fatal(err)
		}
		dx, dy := x-int(at.RootX), y-int(at.RootY)
		if dx == 0 && dy == 0 {
			return true
		}
		if err := a.p.Move(dx, dy); err != nil {
			a.t.Fatal(err)
		}
		return false
	})
	a.until("the call has ended", func() bool {
		err := a.p.Button(1, true)
		time.Sleep(100 * time.Millisecond)
		if err = errors.Join(err, a.p.Button(1, false)); err != nil {
			a.t.Fatal(err)
		}
		select {
		case e = <-c:
			return true
		case <-time.After(time.Second):
			return false
		}
	})
	return e
}

// TestQuartzAgent: a call comes up in the panel; a person allows one, denies one
// and stops one by the panic chord; a second start hands over; and the agent ends
// in order.
func TestQuartzAgent(t *testing.T) {
	a := startMacAgent(t)
	// Everything is granted, so the first start goes on to measure.
	a.until("this Mac is measured", func() bool {
		_, err := os.Stat(filepath.Join(a.state, measured.FileName))
		return err == nil
	})
	const look, act = `[{"type":"screenshot"}]`, `[{"type":"keypress","keys":["shift"]}]`
	// From below, in points: the rim, the margin, the denial's row, another one.
	const rim, margin, row, middle = 9, 16, 38, 15

	c := a.call(look)
	x, y, w, h := a.panel()
	if e := a.answer(c, x+w/4, y+h-rim-margin-2*row-middle); e.code != 0 || !strings.Contains(e.said, "screenshot 1280x800 px") {
		t.Errorf("allowed once: %+v", e)
	}
	c = a.call(act)
	x, y, w, h = a.panel()
	if e := a.answer(c, x+3*w/4, y+h-rim-margin-middle); e.code != exitRefused || !strings.Contains(e.said, "a person denied this call") {
		t.Errorf("denied: %+v", e)
	}
	// The cool-down after a denial is over when the call is asked about.
	var e ended
	a.until("it asks again", func() bool {
		c = a.call(act)
		select {
		case e = <-c:
			return !strings.Contains(e.said, "it may ask again")
		case <-time.After(3 * time.Second):
			return true
		}
	})
	a.panel()
	const control, option, escape = 37, 64, 9
	for _, k := range []struct {
		code byte
		down bool
	}{{control, true}, {option, true}, {escape, true}, {escape, false}, {option, false}, {control, false}} {
		if err := a.p.Key(k.code, k.down); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case e = <-c:
	case <-time.After(60 * time.Second):
		t.Fatal("the chord stopped nothing within 60 s")
	}
	if e.code == 0 || !strings.Contains(e.said, "panic chord") {
		t.Errorf("stopped: %+v", e)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 60*time.Second)
	defer cancel()
	second := exec.CommandContext(ctx, "drawbridge", "--state", a.state)
	second.Env = a.env
	if out, err := second.CombinedOutput(); err != nil || !strings.Contains(string(out), "already running") {
		t.Errorf("a second start: %v\n%s", err, out)
	}
	if out, err := a.command("stop", "--quit").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	a.until("the agent is gone", func() bool {
		_, err := os.Stat(filepath.Join(a.state, "endpoint.json"))
		return errors.Is(err, os.ErrNotExist)
	})
}
