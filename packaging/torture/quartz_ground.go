//go:build standin

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"drawbridge/bridge/desk"
	"drawbridge/input/virtual"
	"drawbridge/internal/quartz"
	"drawbridge/packaging/agent"
	"drawbridge/packaging/standin"
)

func init() {
	runtime.LockOSThread()
	// The agent that the tests build is one for the stand-in, too.
	os.Setenv("GOFLAGS", "-tags=standin -modfile="+filepath.Join(os.Getenv("DRAWBRIDGE_STANDIN"), "go.mod"))
}

// oneEvent is how many events may come after the person's. The stand-in hears the
// person on a thread of its own, which waits its turn on a busy machine, and a turn
// of the wheel by 480 pixels is 24 events of the X display: what is left to tell is
// that a whole scroll, which is ten of these, is not made.
const oneEvent = 239

// chordTries is how often the person presses the panic chord at most. A hot key is
// for what the keyboard holds in all, and X has one such state for all keyboards: a
// batch that lets go of its own Control lets go of the person's.
const chordTries = 100

// screen is the X display of the process. There is one: the panic chord comes through
// AppKit, which knows one display in its life.
var screen = sync.OnceValues(func() (*virtual.Virtual, error) {
	v, err := virtual.Start(context.Background(), virtual.Options{Width: width, Height: height})
	if err != nil {
		return nil, err
	}
	for _, e := range v.Env() {
		name, value, _ := strings.Cut(e, "=")
		os.Setenv(name, value)
	}
	closeScreen = v.Close
	return v, nil
})

// closeScreen ends the display, which may go only after AppKit's loop: Xlib ends a
// process whose display goes first.
var closeScreen = func() error { return nil }

func onFirstThread(f func()) {
	quartz.Loop(f)
	if err := closeScreen(); err != nil {
		fmt.Fprintln(os.Stderr, "close the display:", err)
	}
}

// displays are macOS's, on the whole of the X display.
var displays = fmt.Sprintf("1:0,0,%d,%d,1,0,0", width, height)

// programEnv is what a program on macOS's desktop over an X display needs to know.
func programEnv(v *virtual.Virtual) []string {
	return append(v.Env(), "STANDIN_xauthority="+os.Getenv("XAUTHORITY"), "STANDIN_x="+v.Display(), "STANDIN_displays="+displays)
}

// mac is the stand-in's one desktop, as it was opened last.
var mac *standin.Desk

// openGround opens macOS's desktop over the stand-in.
func openGround(ctx context.Context, dir string) (*ground, error) {
	v, err := screen()
	if err != nil {
		return nil, err
	}
	if mac, err = standin.Open(v.Display(), os.Getenv("XAUTHORITY"), displays, ""); err != nil {
		return nil, err
	}
	d, err := desk.Open(ctx, desk.Options{Backend: desk.Native, StateDir: dir, Log: zerolog.Nop()})
	if err != nil {
		return nil, errors.Join(err, mac.Close())
	}
	return &ground{desk: d, display: v.Display(), env: programEnv(v), close: func() error { return errors.Join(d.Close(), mac.Close()) }}, nil
}

// startAgent starts an agent on that display. Its rule, which a person accepts at its
// terminal, has it ask nobody.
func startAgent(ctx context.Context, bin, dir string) (a *agent.Agent, display string, end func() error, err error) {
	v, err := screen()
	if err != nil {
		return nil, "", nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("rules:\n  - {tool: computer, then: allow}\n"), 0o600); err != nil {
		return nil, "", nil, err
	}
	a, err = agent.StartAllowed(ctx, agent.Options{Bin: bin, State: filepath.Join(dir, "state"), Args: []string{"--backend", "native", "--config", config}, Env: programEnv(v)})
	if err != nil {
		return nil, "", nil, err
	}
	return a, v.Display(), a.Stop, nil
}
