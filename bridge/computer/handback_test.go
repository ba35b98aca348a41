package computer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/input"
	"drawbridge/input/recorder"
)

// actAt lets the person act right before the event with this line is posted.
func (r *rig) actAt(line string) {
	r.driver.Before = func(_ context.Context, l string) error {
		if l == line {
			r.person.Act("moved the pointer")
		}
		return nil
	}
}

func TestHandBack(t *testing.T) {
	for _, c := range []struct {
		name, actions, at string
		index             int
		statuses          string
		lines             []string // what is posted from the person's act on
	}{
		{"in a click", `[{"type":"wait"},{"type":"click","x":20,"y":10},{"type":"type","text":"a"}]`, "left down 1", 1,
			"executed partial skipped", []string{"left down 1", "left up 1"}},
		{"in a held chord", `[{"type":"keypress","keys":["CTRL","SHIFT","a"]}]`, "key a down", 0,
			"partial", []string{"key a down", "key a up", "key shift up", "key control up"}},
		{"in a drag", `[{"type":"drag","path":[[0,0],[79,59]]},{"type":"wait"}]`, "left down 1", 0,
			"partial skipped", []string{"left down 1", "left up 1"}},
		{"after the last event", `[{"type":"click","x":20,"y":10},{"type":"click","x":20,"y":10}]`, "left up 1", 1,
			"executed refused", []string{"left up 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.look()
				r.actAt(c.at)
				res := r.call(t.Context(), c.actions)
				s := res.StructuredContent.Stopped
				if !res.IsError || s == nil || s.Reason != stop.HandBack || s.Index != c.index || !strings.Contains(s.Message, "moved the pointer") {
					t.Fatalf("stopped: %+v", s)
				}
				if got := res.statuses(); got != c.statuses {
					t.Errorf("statuses %q, want %q", got, c.statuses)
				}
				lines := slices.DeleteFunc(r.driver.Lines(), func(l string) bool { return l == "sync" })
				if got := lines[slices.Index(lines, c.at):]; !slices.Equal(got, c.lines) {
					t.Errorf("posted from then on %q, want %q", got, c.lines)
				}
				if len(r.driver.Held()) > 0 || !r.lease.free() || res.StructuredContent.Picture == nil {
					t.Errorf("held %q, lease free %v, picture %v", r.driver.Held(), r.lease.free(), res.StructuredContent.Picture)
				}
			})
		})
	}
}

// A wait is part of the batch: the person need not fight what comes after it.
func TestHandBackInAWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		start := time.Now()
		time.AfterFunc(time.Second, func() { r.person.Act("pressed a key") })
		res := r.call(t.Context(), `[{"type":"move","x":1,"y":1},{"type":"wait"},{"type":"click","x":1,"y":1}]`)
		if s := res.StructuredContent.Stopped; s == nil || s.Reason != stop.HandBack || s.Index != 1 || res.statuses() != "executed partial skipped" {
			t.Errorf("stopped %+v, %s", s, res.statuses())
		}
		if took := time.Since(start); took > time.Second+400*time.Millisecond {
			t.Errorf("the wait went on: %v", took)
		}
		// To look alone takes nothing from the person.
		time.AfterFunc(time.Second, func() { r.person.Act("pressed a key") })
		if res := r.call(t.Context(), `[{"type":"screenshot"},{"type":"wait"}]`); res.IsError {
			t.Errorf("a look was stopped: %+v", res.StructuredContent.Stopped)
		}
	})
}

func TestQuietTime(t *testing.T) {
	const click = `[{"type":"click","x":20,"y":10}]`
	synctest.Test(t, func(t *testing.T) {
		quiet := 3 * time.Second
		r := newRig(t, func(o *Options) { o.HandBack = func() HandBack { return HandBack{Quiet: quiet} } })
		r.look()
		r.actAt("left down 1")
		r.call(t.Context(), click)
		r.driver.Before = nil
		posted := len(r.driver.Lines())

		time.Sleep(time.Second) // with the settling before it, less than 1.5 s
		res := r.call(t.Context(), click)
		s := res.StructuredContent.Stopped
		if s == nil || s.Reason != stop.Quiet || !strings.Contains(s.Message, "3s") || res.StructuredContent.Picture == nil {
			t.Errorf("in the quiet time: %+v", s)
		}
		if got := len(r.driver.Lines()); got != posted {
			t.Errorf("%d events were posted", got-posted)
		}
		// Whatever the person does starts the quiet time again.
		r.person.Act("pressed a key")
		time.Sleep(2 * time.Second)
		if s := r.call(t.Context(), click).StructuredContent.Stopped; s == nil || s.Reason != stop.Quiet || !strings.Contains(s.Message, "in 1s") {
			t.Errorf("after another key: %+v", s)
		}
		time.Sleep(time.Second)
		if res := r.call(t.Context(), click); res.IsError {
			t.Errorf("after the quiet time: %+v", res.StructuredContent.Stopped)
		}
		// The quiet time follows a hand-back, not anything the person does.
		r.person.Act("pressed a key")
		time.Sleep(restTime)
		if res := r.call(t.Context(), click); res.IsError {
			t.Errorf("without a hand-back: %+v", res.StructuredContent.Stopped)
		}

		quiet = 0
		r.actAt("left down 1")
		r.call(t.Context(), click)
		r.driver.Before = nil
		if res := r.call(t.Context(), click); res.IsError {
			t.Errorf("with a quiet time of nothing: %+v", res.StructuredContent.Stopped)
		}
	})
}

// The person's last touch before the batch, such as the click that allowed it,
// delays it and does not end it.
func TestPersonComesToRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		r.person.Act("pressed a button of the mouse")
		start := time.Now()
		time.AfterFunc(200*time.Millisecond, func() { r.person.Act("moved the pointer") })
		res := r.call(t.Context(), `[{"type":"move","x":20,"y":10}]`)
		if res.IsError {
			t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
		}
		if took := time.Since(start); took < 500*time.Millisecond {
			t.Errorf("it began while the person was still at it, after %v at most", took)
		}
		// One who does not come to rest is not waited for.
		busy := time.NewTicker(100 * time.Millisecond)
		defer busy.Stop()
		end := make(chan struct{})
		defer close(end)
		go func() {
			for {
				select {
				case <-busy.C:
					r.person.Act("pressed a key")
				case <-end:
					return
				}
			}
		}()
		time.Sleep(time.Second)
		res = r.call(t.Context(), `[{"type":"move","x":20,"y":10}]`)
		if s := res.StructuredContent.Stopped; s == nil || s.Reason != stop.Quiet || res.statuses() != "refused" {
			t.Errorf("under a busy person: %+v", s)
		}
	})
}

func TestUnwatched(t *testing.T) {
	const click = `[{"type":"wait"},{"type":"click","x":20,"y":10}]`
	for _, c := range []struct {
		name      string
		own, vain bool
		allow     bool
		want      bool // it runs
	}{
		{"a person's display", false, false, false, false},
		{"a person's display, allowed", false, false, true, true},
		{"a display of our own", true, false, false, true},
		{"a watcher that has ended", false, true, false, false},
		{"a watcher that has ended, allowed", false, true, true, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t, func(o *Options) {
					if !c.vain {
						o.Desk.Person, o.Desk.Unwatched = nil, errors.New("no eyes")
					}
					o.Desk.Own = c.own
					o.HandBack = func() HandBack { return HandBack{Quiet: time.Second, AllowUnwatched: c.allow} }
				})
				r.look()
				if c.vain {
					r.person.Vanish()
				}
				res := r.call(t.Context(), click)
				if s := res.StructuredContent.Stopped; res.IsError == c.want ||
					!c.want && (s.Reason != stop.Unwatched || s.Index != 1 || !strings.Contains(s.Message, "hand_back.allow_unwatched")) {
					t.Errorf("stopped: %+v", s)
				}
			})
		})
	}
}

// A watcher that has to prove that it sees the person does so before the first
// event, and the batch waits for nothing else to end when it sees them.
func TestProven(t *testing.T) {
	click := `[{"type":"click","x":20,"y":10},{"type":"wait"},{"type":"click","x":20,"y":10}]`
	for _, c := range []struct {
		name   string
		proof  error
		reason stop.Reason // empty: it runs
	}{
		{"seen", nil, ""},
		{"unseen", fmt.Errorf("%w: no grant", input.ErrUnseen), stop.Unwatched},
		{"locked meanwhile", input.ErrLocked, stop.Locked},
	} {
		synctest.Test(t, func(t *testing.T) {
			p := &recorder.Prover{Proof: c.proof}
			r := newRig(t, func(o *Options) { o.Desk.Person = p })
			r.look()
			res := r.call(t.Context(), click)
			s := res.StructuredContent.Stopped
			if (s == nil) != (c.reason == "") || s != nil && s.Reason != c.reason || p.Proven != 1 {
				t.Errorf("%s: asked %d times, stopped %+v", c.name, p.Proven, s)
			}
			if c.reason != "" && len(r.driver.Lines()) > 0 {
				t.Errorf("%s: posted %q", c.name, r.driver.Lines())
			}
		})
	}
	// One that sees only by looking is asked in a wait, too.
	synctest.Test(t, func(t *testing.T) {
		p := &recorder.Prover{}
		r := newRig(t, func(o *Options) { o.Desk.Person = p })
		r.look()
		start := time.Now()
		var act sync.Once
		p.Look = func() {
			if time.Since(start) > time.Second {
				act.Do(func() { p.Act("pressed a key") })
			}
		}
		res := r.call(t.Context(), click)
		if s := res.StructuredContent.Stopped; s == nil || s.Reason != stop.HandBack || s.Index != 1 {
			t.Errorf("stopped %+v", s)
		}
		if took := time.Since(start); took > time.Second+400*time.Millisecond {
			t.Errorf("the wait went on: %v", took)
		}
	})
}

// A watcher that ends while a batch runs ends the batch.
func TestWatcherLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		r.driver.Before = func(_ context.Context, l string) error {
			if l == "left down 1" {
				r.person.Vanish()
			}
			return nil
		}
		res := r.call(t.Context(), `[{"type":"click","x":20,"y":10}]`)
		if s := res.StructuredContent.Stopped; s == nil || s.Reason != stop.Unwatched || len(r.driver.Held()) > 0 {
			t.Errorf("stopped %+v, held %q", s, r.driver.Held())
		}
	})
}

// What the person does to answer a prompt is an answer, and no hand-back.
func TestAnsweringIsNoHandBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := &approvals{changed: make(chan struct{})}
		r := newRig(t, func(o *Options) { o.Quiet = p.quiet })
		r.look()
		r.tool.SetConfig(func() Config { c := DefaultConfig(); c.WaitMS = 1000; return c }())
		// During the wait a prompt comes, the person answers it and moves away.
		time.AfterFunc(200*time.Millisecond, func() { p.set(1) })
		time.AfterFunc(400*time.Millisecond, func() { r.person.Act("moved the pointer") })
		time.AfterFunc(1200*time.Millisecond, func() { r.person.Act("pressed a button of the mouse"); p.set(0) })
		time.AfterFunc(1300*time.Millisecond, func() { r.person.Act("moved the pointer") })
		start := time.Now()
		res := r.call(t.Context(), `[{"type":"move","x":1,"y":1},{"type":"wait"},{"type":"move","x":20,"y":10}]`)
		if res.IsError {
			t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
		}
		if took := time.Since(start); took < 1600*time.Millisecond {
			t.Errorf("it went on before the person was at rest, after %v at most", took)
		}
	})
}

// A drift that is no hand-back is no miss either.
func TestDrift(t *testing.T) {
	for _, c := range []struct {
		drift float64
		want  bool
	}{{5.9, true}, {6.1, false}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.look()
			r.driver.Drift = input.Point{X: c.drift}
			if res := r.call(t.Context(), `[{"type":"click","x":20,"y":10}]`); res.IsError == c.want {
				t.Errorf("a drift of %g points: %+v", c.drift, res.StructuredContent.Stopped)
			}
		})
	}
}
