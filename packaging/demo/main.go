// Command demo shows the main job end to end, as a client would do it: it starts
// an agent in a temporary folder, looks, sends one batch, prints the record, and
// then checks on the other side that every action had its effect. It ends with 0
// only if all of them had, and leaves nothing running.
//
// With -desktop simulated it needs nothing but the drawbridge command; with
// -desktop virtual it types into a real editor (mousepad) on an Xvfb and compares
// the saved file byte by byte.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
)

func main() {
	drawbridge := flag.String("drawbridge", "build/drawbridge", "the `command` to show")
	desktop := flag.String("desktop", "simulated", "simulated or virtual")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, *drawbridge, *desktop); err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, command, desktop string) (err error) {
	show, ok := map[string]func(context.Context, *client) error{"simulated": simulatedDesktop, "virtual": virtualDesktop}[desktop]
	if !ok {
		return fmt.Errorf("there is no desktop %q: use simulated or virtual", desktop)
	}
	dir, err := os.MkdirTemp("", "drawbridge-demo-")
	if err != nil {
		return err
	}
	c := &client{command: command, state: filepath.Join(dir, "state"), pictures: filepath.Join(dir, "pictures")}
	log := filepath.Join(dir, "agent.log")
	a, err := startAgent(ctx, c, desktop, log)
	if err == nil {
		err = show(ctx, c)
		if err != nil && ctx.Err() != nil {
			err = errors.New("interrupted") // what broke off with it is no news
		}
		err = errors.Join(err, a.stop())
	}
	if err != nil {
		return fmt.Errorf("%w\nwhat is left of it is in %s; the agent's log is %s", err, dir, log)
	}
	fmt.Printf("\nAll of it had its effect. The pictures are in %s\n", c.pictures)
	return errors.Join(os.RemoveAll(c.state), os.Remove(log))
}
