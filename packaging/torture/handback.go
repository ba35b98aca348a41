//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/internal/x11"
)

// batch is a batch with a name for the table.
type batch struct{ name, actions string }

// batches are what the person breaks into. Each goes on for much longer than the
// person waits.
var batches = []batch{
	{"click", repeat(12, `{"type":"click","x":%d,"y":300},{"type":"double_click","x":%d,"y":400,"keys":["SHIFT"]}`)},
	{"drag", repeat(8, `{"type":"drag","path":[[%d,100],[700,500],[%d,590]]}`)},
	{"type", repeat(60, `{"type":"type","text":"`+strings.Repeat("The quick brown fox. ", 60)+`"}`)},
	{"scroll", repeat(20, `{"type":"scroll","x":%d,"y":300,"scroll_y":4800}`)},
	{"keypress", repeat(60, `{"type":"keypress","keys":["CTRL","SHIFT","A"]}`)},
}

// repeat makes a batch of n times the same, at other places.
func repeat(n int, action string) string {
	var all []string
	for i := range n {
		all = append(all, strings.ReplaceAll(action, "%d", fmt.Sprint(100+10*i)))
	}
	return "[" + strings.Join(all, ",") + "]"
}

// latest is how long after the batch's first event the person acts at the latest.
const latest = 120 * time.Millisecond

// The person's keys: a letter's code on the keyboard of Xvfb.
const letterKey = 38

// trial is one hand-back.
type trial struct {
	batch   string
	latency time.Duration // from the person's first event to the last one injected that is no release
	after   int           // events injected after the person's first
}

// handBack lets the person break into one batch, and fails where anything is not
// as promised.
func (r *rig) handBack(ctx context.Context, rnd *rand.Rand) (trial, error) {
	return r.interrupted(ctx, r.tool, "torture", batches[rnd.IntN(len(batches))], rnd,
		func(context.Context, context.CancelCauseFunc) error { return r.act(rnd) },
		func(all []did) int { return slices.IndexFunc(all, func(e did) bool { return !e.Device.XTest }) },
		stop.HandBack)
}

// interrupted has a batch run and at a random moment of it the person do something,
// which is to end it for that reason. first finds the event from which on it is to
// end. It fails where the batch ends otherwise, where something stays down, or where
// an event comes after the end.
func (r *rig) interrupted(ctx context.Context, tool *computer.Tool, client string, b batch, rnd *rand.Rand,
	act func(ctx context.Context, stopNow context.CancelCauseFunc) error, first func([]did) int, reason stop.Reason) (trial, error) {
	t := trial{batch: b.name}
	r.log.take()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	running, stopNow := context.WithCancelCause(ctx)
	defer stopNow(nil)

	type outcome struct {
		reason  stop.Reason
		message string
		err     error
	}
	ended := make(chan outcome, 1)
	waiting, over := context.WithCancel(ctx)
	defer over()
	go func() {
		defer over()
		s, err := call(running, tool, client, b.actions)
		o := outcome{err: err}
		if s.Stopped != nil {
			o.reason, o.message = s.Stopped.Reason, s.Stopped.Message
		}
		ended <- o
	}()
	if err := r.log.await(waiting, func(all []did) bool { return len(all) > 0 }); err != nil {
		stopNow(nil)
		o := <-ended
		if o.reason == stop.HandBack && o.err == nil && ctx.Err() == nil {
			// What the person did last, after the trial before, was seen only now.
			return r.interrupted(ctx, tool, client, b, rnd, act, first, reason)
		}
		return t, fmt.Errorf("%s: no event came: %w; it ended with %q (%s), %v", b.name, err, o.reason, o.message, o.err)
	}
	time.Sleep(time.Duration(rnd.Int64N(int64(latest))))
	if err := act(ctx, stopNow); err != nil {
		return t, fmt.Errorf("%s: %w", b.name, err)
	}
	o := <-ended
	if o.err != nil {
		return t, o.err
	}
	if o.reason != reason {
		return t, fmt.Errorf("%s: stopped for %q (%s), want %q", b.name, o.reason, o.message, reason)
	}
	if err := r.allUp(); err != nil {
		return t, fmt.Errorf("%s: %w", b.name, err)
	}
	if err := r.mark(ctx); err != nil {
		return t, err
	}
	events := r.log.take()
	t.after, t.latency = injectedAfter(events, first(events))
	// Whatever was still on its way when the answer came would show by now.
	if err := r.mark(ctx); err != nil {
		return t, err
	}
	for _, e := range r.log.take() {
		if e.Device.XTest {
			return t, fmt.Errorf("%s: an event came after the end of the batch: %+v", b.name, e.Raw)
		}
	}
	return t, nil
}

// injectedAfter is how many events were injected after the event at this index, and
// how long after it the last that is no release.
func injectedAfter(events []did, at int) (n int, last time.Duration) {
	for _, e := range events[at+1:] {
		if !e.Device.XTest {
			continue
		}
		n++
		if !e.release() {
			last = max(last, e.at.Sub(events[at].at))
		}
	}
	return n, last
}

// upTime is what a window manager that has grabbed a press, the person's own, gets
// to let it through.
const upTime = 500 * time.Millisecond

// allUp fails when the server still holds something for pressed.
func (r *rig) allUp() error {
	for start := time.Now(); ; time.Sleep(time.Millisecond) {
		held, err := r.down() // the answer comes after all events so far
		if err != nil || len(held) == 0 {
			return err
		}
		if time.Since(start) > upTime {
			return fmt.Errorf("still down: %s", strings.Join(held, ", "))
		}
	}
}

// act is one thing that a person does.
func (r *rig) act(rnd *rand.Rand) error {
	switch rnd.IntN(3) {
	case 0:
		return r.person.Move(9, -9)
	case 1:
		return r.press()
	}
	return r.key()
}

func (r *rig) press() error {
	if err := r.person.Button(1, true); err != nil {
		return err
	}
	return r.person.Button(1, false)
}

func (r *rig) key() error {
	if err := r.person.Key(letterKey, true); err != nil {
		return err
	}
	return r.person.Key(letterKey, false)
}

// mark waits until the log has heard everything so far: a key of the person's
// comes last.
func (r *rig) mark(ctx context.Context) error {
	count := func(all []did) int {
		n := 0
		for _, e := range all {
			if !e.Device.XTest && e.Kind == x11.RawKeyRelease {
				n++
			}
		}
		return n
	}
	before := 0
	if err := r.log.await(ctx, func(all []did) bool { before = count(all); return true }); err != nil {
		return err
	}
	if err := r.key(); err != nil {
		return err
	}
	return r.log.await(ctx, func(all []did) bool { return count(all) > before })
}

// The codes of the panic chord's keys on the keyboard of Xvfb.
const control, alt, escape = 37, 64, 9

// panics lets the person press the panic chord in n batches, at random moments,
// where nothing but the chord stops a batch: their input is not watched.
func (r *rig) panics(ctx context.Context, n int, rnd *rand.Rand) (trials []trial, err error) {
	blind := *r.desk
	blind.Person, blind.Unwatched = nil, nil
	tool := computer.New(computer.Options{Desk: &blind, Config: r.config(), Lease: r.order,
		HandBack: func() computer.HandBack { return computer.HandBack{AllowUnwatched: true} }, Log: zerolog.Nop()})
	defer tool.Close()
	pressed := make(chan struct{}, 1)
	g, err := r.desk.Input.(input.Grabber).Grab(ctx, []input.Key{input.Control, input.Alt}, input.Escape, func() {
		select {
		case pressed <- struct{}{}:
		default: // once is enough
		}
	})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, g.Close()) }()
	if _, err := call(ctx, tool, "panic", `[{"type":"screenshot"}]`); err != nil {
		return nil, err
	}
	for range n {
		b := batches[rnd.IntN(len(batches))]
		t, err := r.interrupted(ctx, tool, "panic", b, rnd, func(ctx context.Context, stopNow context.CancelCauseFunc) error {
			return r.chord(ctx, pressed, func() { stopNow(&stop.Error{Reason: stop.Stopped, Message: "the panic chord"}) })
		}, func(all []did) int { // the chord is whole with its last key
			last := -1
			for i, e := range all {
				if !e.Device.XTest && e.Kind == x11.RawKeyPress && e.Detail == escape {
					last = i
				}
			}
			return last
		}, stop.Stopped)
		t.batch = panicName
		if err != nil {
			return trials, err
		}
		trials = append(trials, t)
	}
	return trials, nil
}

const panicName = "panic chord"

// again is after how long the person presses a chord once more that was not heard.
const again = 200 * time.Millisecond

// chord has the person press the panic chord until it is heard.
func (r *rig) chord(ctx context.Context, pressed <-chan struct{}, heard func()) error {
	select {
	case <-pressed: // of the trial before
	default:
	}
	keys := []byte{control, alt, escape}
	for try := 1; try <= chordTries; try++ {
		for _, k := range keys {
			if err := r.person.Key(k, true); err != nil {
				return err
			}
		}
		var late <-chan time.Time
		if try < chordTries {
			late = time.After(again)
		}
		done := false
		select {
		case <-pressed:
			heard()
			done = true
		case <-late:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		for _, k := range slices.Backward(keys) {
			if err := r.person.Key(k, false); err != nil {
				return err
			}
		}
		if done {
			return nil
		}
	}
	return fmt.Errorf("the panic chord was pressed %d times and not heard", chordTries)
}

// table sums trials up, by batch and all together.
func table(trials []trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-15s %7s %9s %9s %9s %9s\n", "batch", "trials", "median", "90 %", "99 %", "longest")
	row := func(name string, of func(trial) bool) {
		if l := latencies(trials, of); len(l) > 0 {
			fmt.Fprintf(&b, "%-15s %7d %9v %9v %9v %9v\n", name, len(l), l.at(0.5), l.at(0.9), l.at(0.99), l.at(1))
		}
	}
	for _, k := range batches {
		row(k.name, func(t trial) bool { return t.batch == k.name })
	}
	row("hand-backs", trial.handBack)
	row(panicName, func(t trial) bool { return t.batch == panicName })
	row(stopName, func(t trial) bool { return t.batch == stopName })
	return b.String()
}

// durations are measured ones.
type durations []time.Duration

// at is the duration below which that part of them lie.
func (l durations) at(part float64) time.Duration {
	l = slices.Sorted(slices.Values(l))
	d := l[min(len(l)-1, int(part*float64(len(l))))]
	return d.Round(max(time.Microsecond, d/1000).Truncate(time.Microsecond))
}

// latencies are those of the trials that are meant.
func latencies(trials []trial, of func(trial) bool) (l durations) {
	for _, t := range trials {
		if of(t) {
			l = append(l, t.latency)
		}
	}
	return l
}
