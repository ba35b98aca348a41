package bridge

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
)

// TestCalls: an open call is listed as waiting, then as running, can be stopped
// alone, and is told of when it ends.
func TestCalls(t *testing.T) {
	g := newPersonGate()
	ended := make(chan CallStatus, 4)
	var changes atomic.Int64
	r := newRig(t, func(o *Options) {
		o.Gate = g
		o.Changed = func() { changes.Add(1) }
		o.Ended = func(c CallStatus, a Answer) {
			if a.Result == nil {
				t.Error("no answer")
			}
			ended <- c
		}
	})
	c := r.dial()
	send(t, c, callFrame("1", "noop", `{"a":1}`))
	<-g.asked
	send(t, c, callFrame("2", "noop", `{"a":2}`))
	<-g.asked
	all := r.Calls()
	if len(all) != 2 || all[0].Running || all[0].Client != "tester" || all[0].Host != "drawbridge" || all[0].Tool != "noop" || string(all[0].Args) != `{"a":1}` {
		t.Fatalf("%+v", all)
	}
	if r.StopCall("nothing", &stop.Error{}) {
		t.Error("stopped a call that is not there")
	}
	if !r.StopCall(all[0].ID, &stop.Error{Reason: stop.Stopped, Message: "by a person"}) {
		t.Error("not stopped")
	}
	if got := recv(t, c); !strings.Contains(got, "by a person") {
		t.Error(got)
	}
	if e := <-ended; e.ID != all[0].ID || e.Running || e.Outcome != "stopped: stopped" {
		t.Errorf("%+v", e)
	}
	g.answers <- gate.Verdict{Outcome: gate.Allowed, By: "person"}
	recv(t, c)
	if e := <-ended; e.ID != all[1].ID || !e.Running || e.Outcome != "ok" || e.MS <= 0 {
		t.Errorf("%+v", e)
	}
	eventually(t, func() bool { return len(r.Calls()) == 0 })
	// Connected, two calls in, one let through, both out.
	if n := changes.Load(); n < 6 {
		t.Errorf("told of %d changes", n)
	}
}

// TestActivityRoute: requests for the page pass the checks of Host and Origin,
// and no token of a client opens anything there.
func TestActivityRoute(t *testing.T) {
	var paths []string
	r := newRig(t, func(o *Options) {
		o.Activity = http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { paths = append(paths, r.URL.Path) })
	})
	for _, tt := range []struct {
		path, host, origin string
		want               int
	}{
		{"/activity", "127.0.0.1:1", "", 200},
		{"/activity/state", "localhost:7317", "http://localhost:7317", 200},
		{"/activity", "evil.example", "", 403},
		{"/activity/state", "127.0.0.1:7317", "http://127.0.0.1:7318", 403},
		{"/activity/state", "127.0.0.1:7317", "null", 403},
		{"/activityx", "127.0.0.1:1", "", 401},
	} {
		h := http.Header{}
		if tt.origin != "" {
			h.Set("Origin", tt.origin)
		}
		if got := knock(t, r, "GET", tt.path, tt.host, h); got != tt.want {
			t.Errorf("%s at %s from %q: %d, want %d", tt.path, tt.host, tt.origin, got, tt.want)
		}
	}
	if got := strings.Join(paths, " "); got != "/activity /activity/state" {
		t.Error(got)
	}
	if got := knock(t, newRig(t, nil), "GET", "/activity", "127.0.0.1", http.Header{}); got != 401 {
		t.Errorf("without a page: %d", got)
	}
}
