//go:build linux && !standin

package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

// desk is a gate whose person has notifications, served by a fake daemon.
type desk struct {
	t       *testing.T
	daemon  *fakeDaemon
	gate    *gate.Gate
	surface *Notifications
	details atomic.Int64
}

// past makes prompts have been shown long ago, so that an answer counts, without
// a test that waits for it.
func past(n *Notifications) { shift(n, -time.Hour) }

// shift moves the time at which prompts were shown. Into the future it makes
// sure, on a machine however slow, that they were shown just now.
func shift(n *Notifications, by time.Duration) {
	done := make(chan struct{})
	n.do(func(d *notifier) {
		for _, u := range d.up {
			u.since = u.since.Add(by)
		}
		close(done)
	})
	<-done
}

func newDesk(t *testing.T, o gate.Options, can ...string) *desk {
	t.Helper()
	startBus(t)
	d := &desk{t: t, daemon: newFakeDaemon(t, append(can, "actions")...)}
	ready := make(chan struct{}, 8)
	d.surface = NewNotifications(NotificationOptions{
		Log: zerolog.Nop(), Changed: func() { ready <- struct{}{} }, Details: func() { d.details.Add(1) },
		Preview: func(ctx context.Context, p *gate.Pending) image.Image { return (&Previews{}).Small(ctx, p) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- d.surface.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if n := d.daemon.count(); n != 0 {
			t.Errorf("%d notifications were left behind", n)
		}
	})
	<-ready
	d.gate = gate.New(o)
	d.gate.AddSurface(d.surface)
	return d
}

func (d *desk) ask(ctx context.Context, client string) <-chan gate.Verdict {
	r := &gate.Request{ID: "c-1", Client: client, Conn: "k", Host: "omp", Tool: "bash", Args: json.RawMessage(`{"command":"<b>ls</b> & rm"}`)}
	c := make(chan gate.Verdict, 1)
	go func() { c <- d.gate.Decide(ctx, r) }()
	return c
}

func (d *desk) next() fakeNotification {
	d.t.Helper()
	select {
	case n := <-d.daemon.news:
		return n
	case <-time.After(time.Minute):
		d.t.Fatal("no notification")
		panic("unreached")
	}
}

func TestNotification(t *testing.T) {
	d := newDesk(t, gate.Options{}, "body", "body-markup")
	for _, tt := range []struct {
		name string
		do   func(id uint32)
		want gate.Outcome
	}{
		{"allow", func(id uint32) { d.daemon.click(id, "once") }, gate.Allowed},
		{"deny", func(id uint32) { d.daemon.click(id, "deny") }, gate.Denied},
		{"dismissed", func(id uint32) { d.daemon.end(id, 2) }, gate.Denied},
	} {
		v := d.ask(t.Context(), tt.name)
		n := d.next()
		if !strings.Contains(n.summary, tt.name+" wants to run bash") {
			t.Errorf("%s: summary %q", tt.name, n.summary)
		}
		if !strings.Contains(n.body, `"&lt;b&gt;ls&lt;/b&gt; &amp; rm"`) {
			t.Errorf("%s: body %q", tt.name, n.body)
		}
		if got := strings.Join(n.actions, ","); got != "once,Allow once,deny,Deny,details,Details" || n.timeout != 0 {
			t.Errorf("%s: %s, timeout %d", tt.name, got, n.timeout)
		}
		past(d.surface)
		tt.do(n.id)
		if got := <-v; got.Outcome != tt.want || got.By != "person at the notification" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}

// TestNotificationIsNoAnswer: what expires, what is taken away by the daemon,
// the details, an answer that came too soon, a button that is none, and a signal
// that another program sends answer nothing.
func TestNotificationIsNoAnswer(t *testing.T) {
	d := newDesk(t, gate.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	for i, do := range []func(id uint32){
		func(id uint32) { d.daemon.end(id, 1) },
		func(id uint32) { d.daemon.end(id, 4) },
		func(id uint32) { d.daemon.click(id, "details") },
		func(id uint32) { d.daemon.click(id, "default") },
	} {
		d.ask(ctx, fmt.Sprint("c", i))
		n := d.next()
		past(d.surface)
		do(n.id)
	}
	v := d.ask(ctx, "quick")
	n := d.next()
	if n.body != strings.TrimSpace(n.body) || strings.Contains(n.body, "&lt;") {
		t.Errorf("body without markup: %q", n.body)
	}
	// Another program poses as the daemon.
	other := busConn(t)
	if err := other.Emit(notifyPath, notifyName+".ActionInvoked", n.id, "once"); err != nil {
		t.Fatal(err)
	}
	// An answer within the time of a reflex: it is asked again.
	shift(d.surface, time.Hour)
	d.daemon.click(n.id, "once")
	again := d.next()
	if again.summary != n.summary {
		t.Errorf("asked %q, then %q", n.summary, again.summary)
	}
	if got := len(d.gate.List()); got != 5 {
		t.Errorf("%d of 5 prompts wait", got)
	}
	if d.details.Load() != 1 {
		t.Errorf("details were opened %d times", d.details.Load())
	}
	past(d.surface)
	d.daemon.click(again.id, "once")
	if got := <-v; got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
}

// TestNotificationWithdrawn: who cancels is gone from the screen, also from the
// queue, and a late click says so and runs nothing.
func TestNotificationWithdrawn(t *testing.T) {
	d := newDesk(t, gate.Options{PerClient: 100})
	ctx, cancel := context.WithCancel(t.Context())
	var all []<-chan gate.Verdict
	for i := range mostNotified + 3 {
		all = append(all, d.ask(ctx, fmt.Sprint("c", i)))
	}
	for range mostNotified {
		d.next()
	}
	cancel()
	for range mostNotified {
		<-d.daemon.gone
	}
	for _, v := range all {
		if got := <-v; got.Outcome != gate.Gone {
			t.Errorf("%+v", got)
		}
	}
	if n := len(d.daemon.news); n != 0 {
		t.Errorf("%d more were shown after the cancel", n)
	}
}

// TestNotificationLate: the answer came from elsewhere, and the click here was
// under way already.
func TestNotificationLate(t *testing.T) {
	d := newDesk(t, gate.Options{})
	v := d.ask(t.Context(), "c")
	n := d.next()
	past(d.surface)
	// Both at once, as far as the surface can tell.
	d.surface.do(func(dd *notifier) {
		for _, u := range dd.up {
			if err := u.p.Answer(gate.Answer{By: "tray"}); err != nil {
				t.Error(err)
			}
			dd.answer(u, "once")
		}
	})
	if got := <-v; got.Outcome != gate.Denied {
		t.Errorf("%+v", got)
	}
	if late := d.next(); !strings.Contains(late.body, "too late, nothing was run: it was answered at the tray") || len(late.actions) != 0 {
		t.Errorf("%+v after %+v", late, n)
	}
	<-d.daemon.gone
	d.daemon.end(n.id+1, 1)
}

// TestNotificationKinds: the other prompts have their own buttons.
func TestNotificationKinds(t *testing.T) {
	d := newDesk(t, gate.Options{})
	ok := make(chan bool, 1)
	go func() {
		yes, err := d.gate.ConfirmPage(t.Context(), []string{"17", "42", "80"}, "42")
		if err != nil {
			t.Error(err)
		}
		ok <- yes
	}()
	n := d.next()
	if got := strings.Join(n.actions, ","); got != "choice-17,17,choice-42,42,choice-80,80,deny,None of these" {
		t.Error(got)
	}
	past(d.surface)
	d.daemon.click(n.id, "choice-42")
	if !<-ok {
		t.Error("not confirmed")
	}
	d.gate.Pause("a test")
	n = d.next()
	if got := strings.Join(n.actions, ","); got != "once,Go on,deny,Stay paused" {
		t.Error(got)
	}
	past(d.surface)
	d.daemon.click(n.id, "once")
	for _, paused := d.gate.Paused(); paused; _, paused = d.gate.Paused() {
		time.Sleep(time.Millisecond)
	}
	if err := d.gate.SetPolicy(gate.Policy{Rules: []gate.Rule{{Tool: "<i>*", Then: gate.ThenAllow}}}); err != nil {
		t.Fatal(err)
	}
	n = d.next()
	if got := strings.Join(n.actions, ","); got != "once,Accept all of this,deny,Keep it as it is" || !strings.Contains(n.body, `{tool: "\u003ci\u003e*", then: allow}`) {
		t.Errorf("%s: %s", got, n.body)
	}
	past(d.surface)
	d.daemon.click(n.id, "deny")
}

// TestNotificationDaemonRestarts: what the old daemon lost is shown by the new
// one.
func TestNotificationDaemonRestarts(t *testing.T) {
	d := newDesk(t, gate.Options{})
	v := d.ask(t.Context(), "c")
	d.next()
	if err := d.daemon.conn.Close(); err != nil {
		t.Fatal(err)
	}
	d.daemon = newFakeDaemon(t, "actions")
	n := d.next()
	past(d.surface)
	d.daemon.click(n.id, "once")
	if got := <-v; got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
}

// TestNotificationDaemonDies: a prompt that a daemon died of is shown by the next
// one.
func TestNotificationDaemonDies(t *testing.T) {
	d := newDesk(t, gate.Options{})
	d.daemon.mu.Lock()
	d.daemon.dies = true
	d.daemon.mu.Unlock()
	v := d.ask(t.Context(), "c")
	d.next()
	<-d.daemon.conn.Context().Done()
	d.daemon = newFakeDaemon(t, "actions")
	n := d.next()
	past(d.surface)
	d.daemon.click(n.id, "once")
	if got := <-v; got.Outcome != gate.Allowed {
		t.Errorf("%+v", got)
	}
}

func TestNoBus(t *testing.T) {
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "")
	t.Setenv("XDG_RUNTIME_DIR", t.TempDir())
	n := NewNotifications(NotificationOptions{Log: zerolog.Nop()})
	if err := n.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "DBUS_SESSION_BUS_ADDRESS") {
		t.Error(err)
	}
	if n.Ready() || n.Tell("x") || n.Show(nil) == nil {
		t.Error("ready without a bus")
	}
}

func TestImageData(t *testing.T) {
	im := image.NewNRGBA(image.Rect(1, 1, 3, 2))
	im.Pix = []byte{1, 2, 3, 255, 4, 5, 6, 255}
	got := imageData(im)
	if got.Width != 2 || got.Height != 1 || got.Stride != 6 || string(got.Data) != "\x01\x02\x03\x04\x05\x06" {
		t.Errorf("%+v", got)
	}
	if sig := dbus.SignatureOf(got).String(); sig != "(iiibiiay)" {
		t.Error(sig)
	}
}

// TestNotificationAcceptances: what does not fit into a notification is not shown in
// part and has no yes there, whatever the daemon says was clicked.
func TestNotificationAcceptances(t *testing.T) {
	for name, p := range acceptances() {
		v := NewPrompt(p, noon)
		summary, body := notifyText(&v)
		actions := notifyActions(&v)
		golden(t, "notify/accept-"+name+".txt", strings.Join(append([]string{summary, body}, actions...), "\n")+"\n")
		if yes := slices.Contains(actions, "once"); yes != (name == "three" || name == "posing") || yes && !shows(body, p) {
			t.Errorf("%s: a yes is offered: %v", name, yes)
		}
	}
	d := newDesk(t, gate.Options{})
	policy := gate.Policy{Rules: []gate.Rule{{Tool: "*", Then: gate.ThenAllow}}}
	for i := range 12 {
		policy.Rules = append(policy.Rules, gate.Rule{Tool: fmt.Sprint("harmless", i), Then: gate.ThenAllow})
	}
	if err := d.gate.SetPolicy(policy); err != nil {
		t.Fatal(err)
	}
	n := d.next()
	if got := strings.Join(n.actions, ","); got != "deny,Keep it as it is,details,Details" || !strings.Contains(n.body, "13 changes") || strings.Contains(n.body, "harmless") {
		t.Errorf("%s: %s", got, n.body)
	}
	past(d.surface)
	d.surface.do(func(dd *notifier) {
		for _, u := range dd.up {
			dd.answer(u, "once") // no button of it
		}
	})
	d.surface.do(func(dd *notifier) { dd.tell("done") }) // after it
	told := d.next()
	if len(d.gate.List()) != 1 {
		t.Fatal("it was answered by a button that it has not")
	}
	d.daemon.click(n.id, "deny")
	for len(d.gate.List()) > 0 {
		time.Sleep(time.Millisecond)
	}
	d.daemon.end(told.id, 1)
}

// TestNotificationLoosen: what loosens is asked with its own words and buttons,
// and each of them does what it says.
func TestNotificationLoosen(t *testing.T) {
	d := newDesk(t, gate.Options{CoolDown: time.Nanosecond}, "body", "body-markup")
	for _, tt := range []struct {
		name string
		do   func(id uint32)
		want gate.Outcome
	}{
		{"allow", func(id uint32) { d.daemon.click(id, "once") }, gate.Allowed},
		{"keep", func(id uint32) { d.daemon.click(id, "deny") }, gate.Denied},
		{"dismissed", func(id uint32) { d.daemon.end(id, 2) }, gate.Denied},
	} {
		v := make(chan gate.Verdict, 1)
		go func() {
			v <- d.gate.Loosen(t.Context(), "edi\u202etor", gate.Item{Key: "host-llm", Text: "hosts may call <b>their</b> models"})
		}()
		n := d.next()
		golden(t, "notify/loosen.txt", strings.Join(append([]string{n.summary, n.body}, n.actions...), "\n")+"\n")
		past(d.surface)
		tt.do(n.id)
		if got := <-v; got.Outcome != tt.want || got.By != "person at the notification" {
			t.Errorf("%s: %+v", tt.name, got)
		}
	}
}
