package computer

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/capture"
)

func TestBlocked(t *testing.T) {
	for err, want := range map[error]stop.Reason{capture.ErrLocked: stop.Locked, capture.ErrAsleep: stop.Asleep, capture.ErrLoginWindow: stop.LoginWindow} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, func(o *Options) { o.Desk.Blocked = func(context.Context) error { return err } })
			r.look() // to look posts nothing
			res := r.call(t.Context(), `[{"type":"wait"},{"type":"keypress","keys":["a"]}]`)
			if s := res.StructuredContent.Stopped; s == nil || s.Reason != want || s.Index != 1 || res.statuses() != "executed refused" {
				t.Errorf("%v: stopped %+v, %s", err, s, res.statuses())
			}
		})
	}
}

// A screen that is locked while a batch waits gets nothing of what follows.
func TestLockedMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var locked atomic.Bool
		r := newRig(t, func(o *Options) {
			o.Desk.Blocked = func(context.Context) error {
				if locked.Load() {
					return capture.ErrLocked
				}
				return nil
			}
		})
		r.look()
		time.AfterFunc(time.Second, func() { locked.Store(true) })
		res := r.call(t.Context(), `[{"type":"keypress","keys":["a"]},{"type":"wait"},{"type":"type","text":"secret"}]`)
		if s := res.StructuredContent.Stopped; s == nil || s.Reason != stop.Locked || s.Index != 2 || res.statuses() != "executed executed refused" {
			t.Errorf("stopped %+v, %s", s, res.statuses())
		}
	})
}

// The display is kept awake exactly while a batch acts, however it ends.
func TestKeptAwake(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, times := 0, 0
		r := newRig(t, func(o *Options) {
			o.Desk.Blocked = func(context.Context) error {
				if kept != 0 {
					t.Error("whether the display sleeps is asked when it has been woken")
				}
				return nil
			}
			o.Desk.Awake = func(context.Context) func() { kept++; times++; return func() { kept-- } }
		})
		r.look()
		if times != 0 {
			t.Error("kept awake to look")
		}
		r.driver.Before = func(_ context.Context, line string) error {
			if kept != 1 && line != "sync" && line != "key b up" { // the latter is let go afterwards
				t.Errorf("%d times kept awake at %q", kept, line)
			}
			if line == "key b down" {
				panic("broken")
			}
			return nil
		}
		r.call(t.Context(), `[{"type":"keypress","keys":["a"]}]`)
		if res := r.call(t.Context(), `[{"type":"keypress","keys":["b"]}]`); !res.IsError {
			t.Error("a fault went by")
		}
		if kept != 0 || times != 2 {
			t.Errorf("still kept awake %d times, of %d", kept, times)
		}
	})
}
