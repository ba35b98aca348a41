//go:build linux

// Command torture lets a person break into batches at random moments, on a virtual
// desktop, and checks that each gives the desktop back: no key or button stays
// down, no event comes after the end. It prints how long that took.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"time"

	"drawbridge/input"
)

func main() {
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
	if _, ok := r.desk.Input.(input.Grabber); ok {
		chords, err := r.panics(ctx, max(n/10, 1))
		if err != nil {
			return fmt.Errorf("the panic chord: %w", err)
		}
		trials = append(trials, chords...)
	}
	fmt.Println("from the person's first event to the last one injected:")
	fmt.Print(table(trials))
	batches, err := r.crowd(ctx, 10, clients)
	if err != nil {
		return err
	}
	fmt.Printf("10 clients at once for %v: %d batches, each of them whole\n", clients, batches)
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
