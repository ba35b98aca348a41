package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

const (
	startTime = 20 * time.Second // until it serves
	stopTime  = 10 * time.Second // until it is gone
	pollEvery = 20 * time.Millisecond
)

// agent is a running `drawbridge run`.
type agent struct {
	process *os.Process
	exited  chan error // gets one error when it has ended
}

// startAgent starts an agent for c and waits until it serves.
func startAgent(ctx context.Context, c *client, backend, log string) (*agent, error) {
	out, err := os.Create(log)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd := exec.Command(c.command, "--state", c.state, "run",
		"--backend", backend, "--allow", "computer", "--no-tray", "--listen", "127.0.0.1:0")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the agent: %w", err)
	}
	a := &agent{process: cmd.Process, exited: make(chan error, 1)}
	go func() { a.exited <- cmd.Wait() }()

	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	err = poll(ctx, func() (bool, error) {
		select {
		case err := <-a.exited:
			a.exited <- err
			return false, fmt.Errorf("the agent ended at once: %v", err)
		default:
		}
		_, err := os.Stat(filepath.Join(c.state, "endpoint.json"))
		return err == nil, nil
	})
	if err != nil {
		return nil, errors.Join(fmt.Errorf("wait for the agent: %w", err), a.stop())
	}
	fmt.Printf("agent %d serves a %s desktop\n", cmd.Process.Pid, backend)
	return a, nil
}

// stop ends the agent as a person would, and by force if it does not go.
func (a *agent) stop() error {
	if err := a.process.Signal(syscall.SIGTERM); errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	select {
	case err := <-a.exited:
		if err != nil {
			return fmt.Errorf("the agent's end: %w", err)
		}
		return nil
	case <-time.After(stopTime):
		err := a.process.Kill()
		<-a.exited
		return errors.Join(fmt.Errorf("the agent was still there %v after SIGTERM and was killed", stopTime), err)
	}
}

// poll asks until done says so or fails, or ctx ends.
func poll(ctx context.Context, done func() (bool, error)) error {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		if ok, err := done(); ok || err != nil {
			return err
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
