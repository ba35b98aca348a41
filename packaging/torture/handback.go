//go:build linux

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/internal/x11"
)

// batches are what the person breaks into. Each goes on for much longer than the
// person waits.
var batches = []struct{ name, actions string }{
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
	b := batches[rnd.IntN(len(batches))]
	t := trial{batch: b.name}
	r.log.take()
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()

	type outcome struct {
		reason stop.Reason
		err    error
	}
	ended := make(chan outcome, 1)
	go func() {
		s, err := r.call(ctx, "torture", b.actions)
		o := outcome{err: err}
		if s.Stopped != nil {
			o.reason = s.Stopped.Reason
		}
		ended <- o
	}()
	if err := r.log.await(ctx, func(all []did) bool { return len(all) > 0 }); err != nil {
		return t, fmt.Errorf("%s: no event came: %w", b.name, err)
	}
	time.Sleep(time.Duration(rnd.Int64N(int64(latest))))
	if err := r.act(rnd); err != nil {
		return t, err
	}
	o := <-ended
	if o.err != nil {
		return t, o.err
	}
	if o.reason != stop.HandBack {
		return t, fmt.Errorf("%s: stopped for %q, want a hand-back", b.name, o.reason)
	}
	if err := r.allUp(); err != nil {
		return t, fmt.Errorf("%s: %w", b.name, err)
	}
	if err := r.mark(ctx); err != nil {
		return t, err
	}
	events := r.log.take()
	first := slices.IndexFunc(events, func(e did) bool { return !e.Device.XTest })
	for _, e := range events[first+1:] {
		if !e.Device.XTest {
			continue
		}
		t.after++
		if !e.release() {
			t.latency = max(t.latency, e.at.Sub(events[first].at))
		}
	}
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
		if err := r.person.Button(1, true); err != nil {
			return err
		}
		return r.person.Button(1, false)
	}
	return r.key()
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

// panics lets the person press the panic chord n times, and measures each from the
// press of its last key until we are told.
func (r *rig) panics(ctx context.Context, n int) ([]trial, error) {
	const control, alt, escape = 37, 64, 9
	pressed := make(chan time.Time, 1)
	g, err := r.desk.Input.(input.Grabber).Grab(ctx, []input.Key{input.Control, input.Alt}, input.Escape, func() { pressed <- time.Now() })
	if err != nil {
		return nil, err
	}
	defer g.Close()
	var trials []trial
	for range n {
		for _, k := range []byte{control, alt} {
			if err := r.person.Key(k, true); err != nil {
				return nil, err
			}
		}
		begin := time.Now()
		if err := r.person.Key(escape, true); err != nil {
			return nil, err
		}
		select {
		case at := <-pressed:
			trials = append(trials, trial{batch: panicName, latency: at.Sub(begin)})
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		for _, k := range []byte{escape, alt, control} {
			if err := r.person.Key(k, false); err != nil {
				return nil, err
			}
		}
	}
	return trials, nil
}

const panicName = "panic chord"

// table sums trials up, by batch and all together.
func table(trials []trial) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-12s %7s %9s %9s %9s %9s\n", "batch", "trials", "median", "90 %", "99 %", "longest")
	row := func(name string, of func(trial) bool) {
		var l []time.Duration
		for _, t := range trials {
			if of(t) {
				l = append(l, t.latency)
			}
		}
		if len(l) == 0 {
			return
		}
		slices.Sort(l)
		at := func(p float64) time.Duration {
			return l[min(len(l)-1, int(p*float64(len(l))))].Round(10 * time.Microsecond)
		}
		fmt.Fprintf(&b, "%-12s %7d %9v %9v %9v %9v\n", name, len(l), at(0.5), at(0.9), at(0.99), l[len(l)-1].Round(10*time.Microsecond))
	}
	for _, k := range batches {
		row(k.name, func(t trial) bool { return t.batch == k.name })
	}
	row("hand-backs", func(t trial) bool { return t.batch != panicName })
	row(panicName, func(t trial) bool { return t.batch == panicName })
	return b.String()
}
