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

	"github.com/rs/zerolog"

	"drawbridge/bridge/desk"
	"drawbridge/input/virtual"
	"drawbridge/internal/quartz"
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

// canPanic: the panic chord cannot be pressed here. It comes through AppKit, which knows
// one display in its life, and each test has its own; package ui presses it.
const canPanic = false

func onFirstThread(f func()) { quartz.Loop(f) }

// openGround makes macOS's desktop over the stand-in, on an X display of its own.
func openGround(ctx context.Context, dir string) (_ *ground, err error) {
	v, err := virtual.Start(ctx, virtual.Options{Dir: filepath.Join(dir, desk.VirtualDir), Width: width, Height: height})
	if err != nil {
		return nil, err
	}
	g := &ground{display: v.Display(), close: v.Close}
	defer func() {
		if err != nil {
			err = errors.Join(err, g.close())
		}
	}()
	g.env = v.Env()
	var cookie string
	for _, e := range v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	displays := fmt.Sprintf("1:0,0,%d,%d,1,0,0", width, height)
	s, err := standin.Open(v.Display(), cookie, displays, "")
	if err != nil {
		return nil, err
	}
	g.close = func() error { return errors.Join(s.Close(), v.Close()) }
	// What a program of its own on this desktop needs to know.
	g.env = append(g.env, "STANDIN_xauthority="+cookie, "STANDIN_x="+v.Display(), "STANDIN_displays="+displays)
	if g.desk, err = desk.Open(ctx, desk.Options{Backend: desk.Native, StateDir: dir, Log: zerolog.Nop()}); err != nil {
		return nil, err
	}
	g.close = func() error { return errors.Join(g.desk.Close(), s.Close(), v.Close()) }
	return g, nil
}
