//go:build linux && !standin

package main

import (
	"context"
	"path/filepath"

	"github.com/rs/zerolog"

	"drawbridge/bridge/desk"
)

// openGround makes a desktop of its own, whose files are in dir.
func openGround(ctx context.Context, dir string) (*ground, error) {
	d, err := desk.Open(ctx, desk.Options{Backend: desk.Virtual, StateDir: dir, Width: width, Height: height, Log: zerolog.Nop()})
	if err != nil {
		return nil, err
	}
	env := []string{"DISPLAY=" + d.Display, "XAUTHORITY=" + filepath.Join(dir, desk.VirtualDir, "Xauthority")}
	return &ground{desk: d, display: d.Display, env: env, close: d.Close}, nil
}

// oneEvent is how many events of the X display one of ours may become.
const oneEvent = 20

// canPanic: the panic chord can be pressed here.
const canPanic = true

func onFirstThread(f func()) { f() }
