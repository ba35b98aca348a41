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
	"slices"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/gate"
	"drawbridge/input"
	"drawbridge/internal/x11"
	"drawbridge/packaging/agent"
)

// stopName is the table's name for the stops by the command.
const stopName = "drawbridge stop"

// journalFile is the agent's own name for what it holds down.
const journalFile = "held.json"

// stops has n batches run in an agent and ends each by the command `drawbridge
// stop`, and measures from the start of that command to the last event. dir, a new
// directory, is for its files.
func stops(ctx context.Context, bin, dir string, n int, rnd *rand.Rand) (trials []trial, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	a, display, end, err := startAgent(ctx, bin, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, end()) }()
	state := a.State
	log, err := openDeviceLog(ctx, display)
	if err != nil {
		return nil, err
	}
	defer log.close()
	long := `{"actions":` + repeat(20, `{"type":"scroll","x":%d,"y":10,"scroll_y":4800}`) + `}`
	pictures := filepath.Join(dir, "pictures")
	if out, err := exec.CommandContext(ctx, bin, "call", "--state", state, "computer", `{"actions":[{"type":"screenshot"}]}`, "--out", pictures).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("the first look: %w\n%s", err, out)
	}
	for range n {
		log.take()
		call := exec.CommandContext(ctx, bin, "call", "--state", state, "--json", "computer", long, "--out", pictures)
		ended := make(chan []byte, 1)
		go func() {
			out, _ := call.Output() // a batch that stopped is an error to the command
			ended <- out
		}()
		if err := log.await(ctx, func(all []did) bool { return len(all) > 0 }); err != nil {
			return trials, err
		}
		time.Sleep(time.Duration(rnd.Int64N(int64(latest))))
		begin := time.Now()
		if out, err := exec.CommandContext(ctx, bin, "stop", "--state", state).CombinedOutput(); err != nil {
			return trials, fmt.Errorf("drawbridge stop: %w\n%s", err, out)
		}
		var result struct{ StructuredContent computer.Structured }
		out := <-ended
		if err := json.Unmarshal(out, &result); err != nil || result.StructuredContent.Stopped == nil || result.StructuredContent.Stopped.Reason != "stopped" {
			return trials, fmt.Errorf("the batch answered %s", out)
		}
		t := trial{batch: stopName}
		for _, e := range log.take() {
			if !e.release() && e.at.After(begin) {
				t.after++
				t.latency = max(t.latency, e.at.Sub(begin))
			}
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// What a process that is killed is in the middle of.
var doomed = map[string]string{
	"drag": `[{"type":"drag","keys":["CTRL","SHIFT"],"path":` + way(400) + `}]`,
	// Chord after chord, so that most moments lie in one.
	"chord": repeat(900, `{"type":"keypress","keys":["CTRL","SHIFT","A"]}`),
}

func way(n int) string {
	path := "[[100,100]"
	for range n {
		path += ",[700,500],[100,100]"
	}
	return path + "]"
}

// childEnv makes this program the one that is killed. It holds what it is to do and
// its directory.
const childEnv = "DRAWBRIDGE_TORTURE_CHILD"

// doom runs a batch on $DISPLAY for ever, as an agent would, until it is killed.
func doom(what, dir string) error {
	ctx := context.Background()
	d, err := desk.Open(ctx, desk.Options{Backend: desk.Native, StateDir: dir, Log: zerolog.Nop()})
	if err != nil {
		return err
	}
	journal, err := input.OpenJournal(filepath.Join(dir, journalFile))
	if err != nil {
		return err
	}
	cfg := computer.DefaultConfig()
	cfg.MaxActionsPerCall = 1000
	tool := computer.New(computer.Options{Desk: d, Config: cfg, Lease: gate.NewLease(filepath.Join(dir, leaseFile), 1), Journal: journal, Log: zerolog.Nop()})
	if _, err := call(ctx, tool, "child", `[{"type":"screenshot"}]`); err != nil {
		return err
	}
	for {
		if s, err := call(ctx, tool, "child", doomed[what]); err != nil || s.Stopped != nil {
			return fmt.Errorf("the %s ended: %+v, %w", what, s.Stopped, err)
		}
	}
}

// kill has a process of its own hold something down, kills it, and starts an agent
// with its state, a new directory. It fails where the desktop stays leased, or where the agent serves
// while anything is down. It returns what the killed process had left.
func (r *rig) kill(ctx context.Context, bin, state, what string, rnd *rand.Rand) (left []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	if err := os.Mkdir(state, 0o700); err != nil {
		return nil, err
	}
	env := r.environ()
	r.log.take()
	child := exec.Command(os.Args[0])
	child.Env, child.Stderr = append(env, childEnv+"="+what+" "+state), os.Stderr
	if err := child.Start(); err != nil {
		return nil, err
	}
	gone := func() { _ = child.Process.Kill(); _ = child.Wait() }
	defer gone()
	if err := r.log.await(ctx, func(all []did) bool { return len(all) > 20 }); err != nil {
		return nil, fmt.Errorf("the child does nothing: %w", err)
	}
	lease := gate.NewLease(filepath.Join(state, leaseFile), 1)
	held, end := context.WithCancelCause(ctx)
	if _, err := lease.Acquire(held, "another", func(string) { end(errHeld) }); !errors.Is(err, errHeld) {
		return nil, fmt.Errorf("the desktop that the child uses is free for another: %w", err)
	}
	// A held chord is most surely hit right after its last press.
	if what == "chord" {
		r.log.take()
		pressed := func(e did) bool { return e.Kind == x11.RawKeyPress && e.Detail == letterKey }
		if err := r.log.await(ctx, func(all []did) bool { return slices.ContainsFunc(all, pressed) }); err != nil {
			return nil, err
		}
	} else {
		time.Sleep(time.Duration(rnd.Int64N(int64(latest))))
	}
	gone()
	if left, err = r.down(); err != nil {
		return nil, err
	}
	release, err := lease.Acquire(ctx, "another", nil)
	if err != nil {
		return left, fmt.Errorf("the dead child holds the desktop: %w", err)
	}
	release()
	a, err := agent.Start(ctx, agent.Options{Bin: bin, State: state, Args: []string{"--backend", "native"}, Env: env})
	if err != nil {
		return left, err
	}
	now, err := r.down()
	if err == nil && len(now) > 0 {
		err = fmt.Errorf("the agent serves while %q are down", now)
	}
	return left, errors.Join(err, a.Stop())
}

var errHeld = errors.New("the desktop is held")
