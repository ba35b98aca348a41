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

	"github.com/rs/zerolog"

	"drawbridge/bridge/desk"
	"drawbridge/packaging/agent"
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

// chordTries is how often the person presses the panic chord at most. It is heard
// whatever a batch does meanwhile.
const chordTries = 1

// startAgent starts an agent that asks nobody, and tells on which display it acts.
func startAgent(ctx context.Context, bin, dir string) (a *agent.Agent, display string, end func() error, err error) {
	state := filepath.Join(dir, "state")
	a, err = agent.Start(ctx, agent.Options{Bin: bin, State: state, Args: []string{"--backend", "virtual", "--allow", "computer"}})
	if err != nil {
		return nil, "", nil, err
	}
	out, err := exec.CommandContext(ctx, bin, "status", "--state", state, "--json").Output()
	if err != nil {
		return nil, "", nil, errors.Join(fmt.Errorf("drawbridge status: %w", err), a.Stop())
	}
	var status struct{ Display string }
	if err := json.Unmarshal(out, &status); err != nil || status.Display == "" {
		return nil, "", nil, errors.Join(fmt.Errorf("drawbridge status tells no display: %s", out), a.Stop())
	}
	back := lend(filepath.Join(state, desk.VirtualDir))
	return a, status.Display, func() error { back(); return a.Stop() }, nil
}

// lend opens a desktop to this process, whose authority file is in dir, until it is
// given back.
func lend(dir string) (back func()) {
	before, was := os.LookupEnv("XAUTHORITY")
	os.Setenv("XAUTHORITY", filepath.Join(dir, "Xauthority"))
	return func() {
		if was {
			os.Setenv("XAUTHORITY", before)
		} else {
			os.Unsetenv("XAUTHORITY")
		}
	}
}

func onFirstThread(f func()) { f() }
