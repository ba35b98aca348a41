//go:build linux

package main

import (
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"drawbridge/input"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/program"
)

// watchRounds is how often each half of watching is measured, in turn: other things
// that the machine does come and go.
const watchRounds = 5

// watching measures what an event of the person's costs this process because it is
// watched: processor time, with a watcher and without, over n presses of a key each.
func (r *rig) watching(ctx context.Context, n int) (perEvent time.Duration, err error) {
	spend := func(seen func() error) (time.Duration, error) {
		r.log.take()
		begin := processorTime()
		for range n / watchRounds {
			if err := r.key(); err != nil {
				return 0, err
			}
		}
		// Several acts at once may be told as one: that all were seen is told by the
		// last, of another kind.
		err := r.press()
		if err == nil { // and the log, which hears it all too, is through in either case
			err = r.log.await(ctx, func(all []did) bool {
				return len(all) > 0 && all[len(all)-1].Kind == x11.RawButtonRelease
			})
		}
		if err == nil {
			err = seen()
		}
		return processorTime() - begin, err
	}
	events := 2 * (n/watchRounds + 1) // a key goes down and up
	watched := func() (time.Duration, error) {
		w, err := r.desk.Input.(input.Watched).Watch(ctx)
		if err != nil {
			return 0, err
		}
		defer w.Close()
		return spend(func() error {
			for {
				p, changed := w.Person()
				if strings.Contains(p.What, "button") {
					return nil
				}
				select {
				case <-changed:
				case <-ctx.Done():
					return context.Cause(ctx)
				}
			}
		})
	}
	var cost durations
	for range watchRounds {
		without, err := spend(func() error { return nil })
		if err != nil {
			return 0, err
		}
		with, err := watched()
		if err != nil {
			return 0, err
		}
		cost = append(cost, (with-without)/time.Duration(events))
	}
	return cost.at(0.5), nil
}

// processorTime is what this process has used.
func processorTime() time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// lookups measures, on a window whose program has accessibility, what the
// look-ups of an action cost: everything that the record asks for, before and after.
func (r *rig) lookups(ctx context.Context, n int) (click, key durations, err error) {
	if err := program.Available(); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	form, err := r.program(ctx, program.Form, "Form", program.Place{X: 300, Y: 150, Width: 300, Height: 300})
	if err != nil {
		return nil, nil, err
	}
	defer form.Close()
	if err := form.Await(ctx, "focused"); err != nil {
		return nil, nil, err
	}
	// In turn into the entry and onto the button.
	places := []float64{190, 410}
	at := input.Point{X: 450, Y: places[0]}
	namer := r.desk.Input.(input.Namer)
	part, focusedPart := func() {}, func() {} // where the platform tells of parts with their windows
	if in, ok := r.desk.Input.(input.Inspector); ok {
		// At first there is a connection to be made.
		for {
			if p, _ := in.PartUnder(ctx, at); p != nil {
				break
			}
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			time.Sleep(10 * time.Millisecond)
		}
		part = func() { _, _ = in.PartUnder(ctx, at) }
		focusedPart = func() { _, _ = in.PartFocused(ctx) }
	}
	// A question that is not answered in time costs what it may.
	under := func() { _, _ = namer.Under(ctx, at) }
	focused := func() { _, _ = namer.Focused(ctx) }
	took := func(all ...func()) time.Duration {
		begin := time.Now()
		for _, f := range all {
			f()
		}
		return time.Since(begin)
	}
	beside := func(other func(), all ...func()) func() {
		return func() {
			var done sync.WaitGroup
			done.Go(other)
			took(all...)
			done.Wait()
		}
	}
	for i := range n {
		at.Y = places[i%len(places)]
		click = append(click, took(beside(part, under, focused), under))
		key = append(key, took(beside(focusedPart, focused), beside(focusedPart, focused)))
	}
	return click, key, context.Cause(ctx)
}

// bar is a promise, with what was measured of it.
type bar struct {
	what     string
	measured time.Duration
	below    time.Duration
	missing  string // why it was not measured, or is not held against the promise
}

// bars prints promises as a table.
func bars(all []bar) string {
	width := 0
	for _, b := range all {
		width = max(width, len(b.what))
	}
	var out strings.Builder
	for _, b := range all {
		verdict := "held"
		if b.measured >= b.below {
			verdict = "MISSED"
		}
		switch {
		case b.missing != "" && b.measured > 0:
			fmt.Fprintf(&out, "%-*s  %9v  %s\n", width, b.what, short(b.measured), b.missing)
			continue
		case b.missing != "":
			fmt.Fprintf(&out, "%-*s  not measured: %s\n", width, b.what, b.missing)
			continue
		}
		fmt.Fprintf(&out, "%-*s  %9v  below %-6v %s\n", width, b.what, short(b.measured), b.below, verdict)
	}
	return out.String()
}

// short rounds to three digits.
func short(d time.Duration) time.Duration {
	unit := time.Duration(math.Pow10(max(0, len(fmt.Sprint(int64(d)))-3)))
	return d.Round(unit)
}

// measure holds what was measured against what is promised.
func (r *rig) measure(ctx context.Context, trials []trial) []bar {
	all := []bar{
		{what: "person's first event to the last injected, 99 %", measured: latencies(trials, trial.handBack).at(0.99), below: 50 * time.Millisecond},
		{what: "panic chord to the last injected, 99 %", measured: latencies(trials, func(t trial) bool { return t.batch == panicName }).at(0.99), below: 50 * time.Millisecond},
		{what: "`drawbridge stop` to the last injected, longest", measured: latencies(trials, func(t trial) bool { return t.batch == stopName }).at(1), below: 100 * time.Millisecond},
	}
	watch := bar{what: "watching, processor time an event of the person's", below: 50 * time.Microsecond, missing: notOurs}
	var err error
	if watch.measured, err = r.watching(ctx, 10_000); err != nil {
		watch.missing = err.Error()
	}
	click := bar{what: "look-ups of a click, median", below: 5 * time.Millisecond, missing: notOurs}
	key := bar{what: "look-ups of a keypress, median", below: 5 * time.Millisecond, missing: notOurs}
	clicks, keys, err := r.lookups(ctx, 500)
	if err != nil {
		click.missing, key.missing = err.Error(), err.Error()
	} else {
		click.measured, key.measured = clicks.at(0.5), keys.at(0.5)
	}
	return append(all, watch, click, key)
}

// handBack tells whether a trial was one.
func (t trial) handBack() bool { return t.batch != panicName && t.batch != stopName }

// program starts a program on the desktop, in a session that the first one begins.
func (r *rig) program(ctx context.Context, kind, title string, at program.Place) (*program.Program, error) {
	if r.session == nil {
		dir := filepath.Join(r.dir, "session")
		if err := os.Mkdir(dir, 0o700); err != nil {
			return nil, err
		}
		env := r.environ()
		var err error
		if r.session, r.endSession, err = program.Session(dir, env); err != nil {
			return nil, err
		}
	}
	return program.Start(ctx, r.session, kind, title, at)
}
