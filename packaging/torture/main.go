//go:build linux

// Command torture lets a person break into batches at random moments, on a virtual
// desktop, and checks that each gives the desktop back: no key or button stays down,
// no event comes after the end. It stops batches by the panic chord and by the
// command, kills processes in the middle of theirs, and lets ten clients send batches
// at once. It prints how long everything took, against what is promised.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"drawbridge/packaging/agent"
)

func main() {
	if what, dir, ok := strings.Cut(os.Getenv(childEnv), " "); ok {
		onFirstThread(func() { fmt.Fprintln(os.Stderr, "torture:", doom(what, dir)) })
		os.Exit(1)
	}
	n := flag.Int("n", 1000, "how many hand-backs")
	seed := flag.Uint64("seed", uint64(time.Now().UnixNano()), "of the random moments")
	minute := flag.Duration("clients", time.Minute, "how long ten clients send batches at once")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	var err error
	onFirstThread(func() { err = torture(ctx, *n, *seed, *minute) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "torture:", err)
		os.Exit(1)
	}
}

func torture(ctx context.Context, n int, seed uint64, clients time.Duration) (err error) {
	dir, err := os.MkdirTemp("", "drawbridge-torture-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin, err := agent.Build(ctx, dir)
	if err != nil {
		return err
	}
	r, err := newRig(ctx, dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	fmt.Printf("%d hand-backs, seed %d\n", n, seed)
	trials, err := r.handBacks(ctx, n, seed)
	if err != nil {
		return fmt.Errorf("after %d of them: %w", len(trials), err)
	}
	few := max(n/10, 1)
	rnd := rand.New(rand.NewPCG(seed, 1))
	chords, err := r.panics(ctx, few, rnd)
	if err != nil {
		return fmt.Errorf("the panic chord, after %d: %w", len(chords), err)
	}
	trials = append(trials, chords...)
	commands, err := stops(ctx, bin, filepath.Join(dir, "agent"), few, rnd)
	if err != nil {
		return fmt.Errorf("drawbridge stop, after %d: %w", len(commands), err)
	}
	trials = append(trials, commands...)
	fmt.Println("from the person's first event to the last one injected:")
	fmt.Print(table(trials))
	for _, what := range slices.Sorted(maps.Keys(doomed)) {
		held, kills := 0, max(n/50, 1)
		for i := range kills {
			left, err := r.kill(ctx, bin, filepath.Join(dir, fmt.Sprint("killed", i, what)), what, rnd)
			if err != nil {
				return fmt.Errorf("killed in a %s: %w", what, err)
			}
			if len(left) > 0 {
				held++
			}
		}
		fmt.Printf("killed %d times in a %s, %d of them with something down: nothing was when the next agent served\n", kills, what, held)
	}
	batches, err := r.crowd(ctx, 10, clients)
	if err != nil {
		return err
	}
	fmt.Printf("10 clients at once for %v: %d batches, each of them whole, in the order of the queue\n", clients, batches)
	fmt.Print(bars(r.measure(ctx, trials)))
	return nil
}

func (r *rig) handBacks(ctx context.Context, n int, seed uint64) ([]trial, error) {
	if err := r.look(ctx, "torture"); err != nil {
		return nil, err
	}
	rnd := rand.New(rand.NewPCG(seed, 0))
	var trials []trial
	for range n {
		t, err := r.handBack(ctx, rnd)
		if err != nil {
			return trials, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}
