package computer

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image"
	"image/color"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/capture"
	"drawbridge/capture/canvas"
	"drawbridge/input"
	"drawbridge/input/recorder"
)

// rig is a tool on a recording driver and a painted display of 80x60 pixels,
// 40x30 points, that lies left of the main one.
type rig struct {
	t      *testing.T
	tool   *Tool
	driver *recorder.Driver
	person *recorder.Person
	screen *canvas.Source
	lease  *oneLease
	caller bridge.Caller
}

var rigDisplay = capture.Display{Name: "left", Points: [2]float64{40, 30}, Pixels: [2]int{80, 60}, Origin: [2]float64{-40, 5}, Scale: 2}

// oneLease is a lease of one process, for one holder and any number who wait.
type oneLease struct {
	turn   chan struct{}
	refuse error

	mu     sync.Mutex // guards holder
	holder string
}

func newLease() *oneLease { return &oneLease{turn: make(chan struct{}, 1)} }

func (l *oneLease) Acquire(ctx context.Context, holder string, waiting func(string)) (func(), error) {
	if l.refuse != nil {
		return nil, l.refuse
	}
	select {
	case l.turn <- struct{}{}:
	default:
		if waiting != nil {
			l.mu.Lock()
			now := l.holder
			l.mu.Unlock()
			waiting(now)
		}
		select {
		case l.turn <- struct{}{}:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.holder = holder
	return func() { <-l.turn }, nil
}

func (l *oneLease) free() bool { return len(l.turn) == 0 }

func newRig(t *testing.T, with ...func(*Options)) *rig {
	r := &rig{t: t, driver: &recorder.Driver{}, person: &recorder.Person{}, screen: canvas.New(rigDisplay), lease: newLease(), caller: bridge.Caller{Client: "tester", Conn: "c1"}}
	o := Options{
		Desk:   &Desk{Backend: "native", Input: r.driver, Source: r.screen, Person: r.person},
		Config: DefaultConfig(), Lease: r.lease,
	}
	for _, f := range with {
		f(&o)
	}
	r.tool = New(o)
	t.Cleanup(r.tool.Close)
	return r
}

// result is a CallToolResult, read as a client reads it.
type result struct {
	Content []struct {
		Type, Text, MimeType string
		Data                 []byte
	}
	StructuredContent *Structured
	IsError           bool

	outcome string
}

func (r *rig) parse(a bridge.Answer) result {
	r.t.Helper()
	res := result{outcome: a.Outcome}
	d := json.NewDecoder(bytes.NewReader(a.Result))
	d.DisallowUnknownFields()
	if err := d.Decode(&res); err != nil {
		r.t.Fatalf("%v in %s", err, a.Result)
	}
	return res
}

func (r *rig) prepare(args string) (*bridge.Prepared, *bridge.Answer) {
	return r.tool.Prepare(r.t.Context(), &bridge.Call{Caller: r.caller, Tool: "computer", Arguments: json.RawMessage(args)})
}

// call runs actions, a JSON array, as an allowed call.
func (r *rig) call(ctx context.Context, actions string) result {
	r.t.Helper()
	p, a := r.prepare(`{"actions":` + actions + `}`)
	if a != nil {
		return r.parse(*a)
	}
	return r.parse(p.Run(ctx))
}

// look gives the caller its first picture.
func (r *rig) look() result {
	r.t.Helper()
	res := r.call(r.t.Context(), `[{"type":"screenshot"}]`)
	if res.IsError {
		r.t.Fatalf("no first picture: %+v", res)
	}
	return res
}

func (r result) statuses() string {
	var s []string
	for _, e := range r.StructuredContent.Executed {
		s = append(s, string(e.Status))
	}
	return strings.Join(s, " ")
}

const everything = `[
	{"type":"screenshot"},
	{"type":"click","x":20,"y":10},
	{"type":"double_click","x":20.5,"y":10,"keys":["SHIFT"]},
	{"type":"move","x":0,"y":0},
	{"type":"drag","path":[[0,0],{"x":79,"y":59}],"button":"middle"},
	{"type":"scroll","x":40,"y":30,"scroll_x":0,"scroll_y":120},
	{"type":"keypress","keys":["CTRL","C"]},
	{"type":"type","text":"Grüße 👩‍🚀\n"},
	{"type":"wait"}]`

func TestWholeBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		res := r.call(t.Context(), everything)
		if res.IsError || res.outcome != "ok" {
			t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
		}
		if got, want := res.statuses(), strings.TrimSpace(strings.Repeat("executed ", 9)); got != want {
			t.Errorf("statuses %q", got)
		}
		lines := slices.DeleteFunc(r.driver.Lines(), func(l string) bool { return strings.HasPrefix(l, "drag ") })
		want := []string{
			"move -30,10", "left down 1", "left up 1",
			"key shift down", "move -29.75,10", "left down 1", "left up 1", "left down 2", "left up 2", "key shift up",
			"move -40,5",
			"move -40,5", "middle down 1", "middle up 1",
			"move -20,20", "scroll 0,120",
			"key control down", "key c down", "key c up", "key control up",
			fmt.Sprintf("type %q", "Grüße 👩‍🚀\n"),
			"sync",
		}
		if !slices.Equal(lines, want) {
			t.Errorf("posted\n%q\nwant\n%q", lines, want)
		}
		if r.screen.Lent() != 0 || !r.lease.free() {
			t.Errorf("%d frames lent, lease free: %v", r.screen.Lent(), r.lease.free())
		}
		picture := res.StructuredContent.Picture
		if picture == nil || len(res.Content) != 2 || res.Content[1].MimeType != "image/png" {
			t.Fatalf("no picture: %+v", res.Content)
		}
		cfg, _, err := image.DecodeConfig(bytes.NewReader(res.Content[1].Data))
		if err != nil || cfg.Width != picture.Width || cfg.Height != picture.Height || picture.Width != 80 || picture.Height != 60 {
			t.Errorf("the picture is %dx%d, told as %+v, %v", cfg.Width, cfg.Height, picture, err)
		}
		if strings.Contains(res.Content[0].Text, "Grüße") {
			t.Error("the summary repeats the typed text")
		}
	})
}

// ended checks what holds after every ending.
func (r *rig) ended(res result, reason stop.Reason, index int, statuses string) {
	r.t.Helper()
	if held := r.driver.Held(); len(held) != 0 {
		r.t.Errorf("still held: %q", held)
	}
	if !r.lease.free() {
		r.t.Error("the desktop is still leased")
	}
	if n := r.screen.Lent(); n != 0 {
		r.t.Errorf("%d frames were not released", n)
	}
	if !res.IsError || res.StructuredContent == nil || res.StructuredContent.Stopped == nil {
		r.t.Fatalf("no stop: %+v", res)
	}
	s := res.StructuredContent.Stopped
	if s.Reason != reason || s.Index != index || s.Message == "" {
		r.t.Errorf("stopped %+v, want %s at %d", *s, reason, index)
	}
	if res.outcome != "stopped: "+string(reason) {
		r.t.Errorf("outcome %q", res.outcome)
	}
	if got := res.statuses(); got != statuses {
		r.t.Errorf("statuses %q, want %q", got, statuses)
	}
	for i, e := range res.StructuredContent.Executed {
		if e.Index != i || e.Summary == "" {
			r.t.Errorf("entry %d: %+v", i, e)
		}
	}
	if !strings.Contains(res.Content[0].Text, fmt.Sprintf("stopped at action %d (%s): %s", index, reason, s.Message)) {
		r.t.Errorf("the text does not tell the stop:\n%s", res.Content[0].Text)
	}
}

const middle = `[{"type":"click","x":1,"y":1},{"type":"drag","path":[[0,0],[70,50]],"keys":["CTRL","SHIFT"]},{"type":"wait"},{"type":"type","text":"x"}]`

// Every ending in mid-drag lets go of all that is held, then gives a picture.
func TestEndings(t *testing.T) {
	broken := errors.New("the wire is cut")
	because := func(reason stop.Reason) func(*rig, context.CancelCauseFunc) error {
		return func(_ *rig, cancel context.CancelCauseFunc) error {
			cancel(&stop.Error{Reason: reason, Message: "told to"})
			return nil
		}
	}
	tests := []struct {
		name      string
		end       func(r *rig, cancel context.CancelCauseFunc) error // at the third motion of the drag
		reason    stop.Reason
		message   string
		noPicture string // why; empty: there is one
	}{
		{name: "cancel", end: because(stop.Cancelled), reason: stop.Cancelled, message: "told to"},
		{name: "stop", end: because(stop.Stopped), reason: stop.Stopped, message: "told to"},
		{name: "pause", end: because(stop.Paused), reason: stop.Paused, message: "told to"},
		{name: "hand back", end: because(stop.HandBack), reason: stop.HandBack, message: "told to"},
		{name: "hang up", end: func(_ *rig, cancel context.CancelCauseFunc) error { cancel(nil); return nil },
			reason: stop.Cancelled, message: "cancelled or hung up"},
		{name: "error", end: func(*rig, context.CancelCauseFunc) error { return broken },
			reason: stop.Err, message: "move the pointer: the wire is cut"},
		{name: "panic", end: func(*rig, context.CancelCauseFunc) error { panic("fault") },
			reason: stop.Err, message: "a fault inside Drawbridge"},
		{name: "grant withdrawn", end: func(*rig, context.CancelCauseFunc) error { return input.ErrPermission },
			reason: stop.Permission, message: "Accessibility"},
		{name: "display unplugged", end: func(r *rig, _ context.CancelCauseFunc) error {
			r.screen.SetDisplays()
			return input.ErrGone
		}, reason: stop.Err, message: "the display is gone; a person must start the desktop and then the agent again", noPicture: "display 0 does not exist now"},
		{name: "screen locked", end: func(r *rig, _ context.CancelCauseFunc) error {
			r.screen.Before = func(context.Context, capture.Display, image.Rectangle) error { return capture.ErrLocked }
			return broken
		}, reason: stop.Err, message: "cut", noPicture: "the screen is locked"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.look()
				ctx, cancel := context.WithCancelCause(t.Context())
				defer cancel(nil)
				motions := 0
				r.driver.Before = func(_ context.Context, line string) error {
					if strings.HasPrefix(line, "drag ") {
						if motions++; motions == 3 {
							return tt.end(r, cancel)
						}
					}
					return nil
				}
				res := r.call(ctx, middle)
				r.ended(res, tt.reason, 1, "executed partial skipped skipped")
				if m := res.StructuredContent.Stopped.Message; !strings.Contains(m, tt.message) {
					t.Errorf("message %q lacks %q", m, tt.message)
				}
				text := res.Content[0].Text
				if !strings.Contains(text, "let go of: left button, shift key, control key") {
					t.Errorf("the text does not tell what was let go of:\n%s", text)
				}
				lines := slices.DeleteFunc(r.driver.Lines(), func(l string) bool { return l == "sync" })
				if got, want := lines[len(lines)-3:], []string{"left up 1", "key shift up", "key control up"}; !slices.Equal(got, want) {
					t.Errorf("ended with %q, want %q", got, want)
				}
				if tt.noPicture == "" {
					if res.StructuredContent.Picture == nil || len(res.Content) != 2 {
						t.Errorf("no picture after the stop:\n%s", text)
					}
				} else if res.StructuredContent.Picture != nil || !strings.Contains(text, "no screenshot: ") || !strings.Contains(text, tt.noPicture) {
					t.Errorf("the text does not say why there is no picture:\n%s", text)
				}
			})
		})
	}
}

// A stop during a pause of a gesture takes effect at once, not after it.
func TestStopIsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		ctx, cancel := context.WithCancelCause(t.Context())
		start := time.Now()
		time.AfterFunc(30*time.Millisecond, func() { cancel(&stop.Error{Reason: stop.Stopped, Message: "stop"}) })
		res := r.call(ctx, `[{"type":"drag","path":[[0,0],[70,50]]},{"type":"wait"}]`) // the pause before its press
		if d := time.Since(start); d != 30*time.Millisecond {
			t.Errorf("ended after %v, want 30 ms", d)
		}
		r.ended(res, stop.Stopped, 0, "partial skipped")

		ctx, cancel = context.WithCancelCause(t.Context())
		start = time.Now()
		time.AfterFunc(time.Second, func() { cancel(&stop.Error{Reason: stop.Paused, Message: "pause"}) })
		res = r.call(ctx, `[{"type":"wait"},{"type":"click","x":1,"y":1}]`)
		if d := time.Since(start); d != time.Second {
			t.Errorf("ended after %v, want 1 s", d)
		}
		r.ended(res, stop.Paused, 0, "partial skipped")

		before := len(r.driver.Lines())
		res = r.call(ctx, `[{"type":"screenshot"},{"type":"type","text":"x"}]`) // ended before it begins
		r.ended(res, stop.Paused, 0, "refused skipped")
		if n := len(r.driver.Lines()) - before; n != 0 {
			t.Errorf("%d events were posted", n)
		}
	})
}

func TestDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Config.BatchTimeoutMS = 3000 })
		r.look()
		start := time.Now()
		res := r.call(t.Context(), `[{"type":"wait"},{"type":"wait"},{"type":"click","x":1,"y":1}]`)
		r.ended(res, stop.Deadline, 1, "executed partial skipped")
		if d := time.Since(start); d != 3*time.Second {
			t.Errorf("ended after %v", d)
		}
		if res.StructuredContent.Picture == nil {
			t.Error("no picture")
		}
	})
}

func TestPartOfText(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.tool.desk.Input = halfTyper{r.driver}
		r.tool.hand = input.NewHand(r.tool.desk.Input, input.HandOptions{})
		res := r.call(t.Context(), `[{"type":"type","text":"é👩‍🚀secret"}]`)
		r.ended(res, stop.Err, 0, "partial")
		if got := res.StructuredContent.Executed[0].Summary; got != "typed 2 of 8 characters" {
			t.Errorf("summary %q", got)
		}
		if strings.Contains(res.Content[0].Text, "secret") {
			t.Error("the text repeats what was typed")
		}
	})
}

// halfTyper types two graphemes and fails.
type halfTyper struct{ *recorder.Driver }

func (halfTyper) Type(context.Context, string) (int, error) {
	return len("é👩‍🚀"), errors.New("the field is gone")
}

// approvals is a count of pending approvals that a test changes.
type approvals struct {
	mu      sync.Mutex // guards what follows
	n       int
	changed chan struct{}
}

func (a *approvals) quiet() (int, <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.n, a.changed
}

func (a *approvals) set(n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.n = n
	close(a.changed)
	a.changed = make(chan struct{})
}

func TestPendingApprovals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := &approvals{changed: make(chan struct{})}
		r := newRig(t, func(o *Options) { o.Quiet = a.quiet; o.Config.BatchTimeoutMS = 10_000 })
		r.look()

		// Between two actions the batch waits.
		a.set(1)
		start := time.Now()
		time.AfterFunc(4*time.Second, func() { a.set(0) })
		var told []string
		p, _ := r.tool.Prepare(t.Context(), &bridge.Call{
			Caller: r.caller, Arguments: json.RawMessage(`{"actions":[{"type":"screenshot"},{"type":"keypress","keys":["a"]}]}`),
			ProgressToken: json.RawMessage(`"t"`), Notify: func(_ string, params json.RawMessage) { told = append(told, string(params)) },
		})
		res := r.parse(p.Run(t.Context()))
		if len(told) != 1 || !strings.Contains(told[0], "waiting until a person has answered 1 approval") {
			t.Errorf("told %q", told)
		}
		if res.IsError || time.Since(start) < 4*time.Second || !slices.Contains(r.driver.Lines(), "key a down") {
			t.Errorf("after %v: %+v", time.Since(start), res.StructuredContent.Stopped)
		}

		// In the middle of a gesture it stops.
		time.AfterFunc(100*time.Millisecond, func() { a.set(2) })
		res = r.call(t.Context(), middle)
		r.ended(res, stop.Pending, 1, "executed partial skipped skipped")
		if m := res.StructuredContent.Stopped.Message; !strings.Contains(m, "2 approvals") {
			t.Errorf("message %q", m)
		}

		// Nobody answers: the deadline, with the reason. Looking goes on meanwhile.
		before := len(r.driver.Lines())
		res = r.call(t.Context(), `[{"type":"screenshot"},{"type":"click","x":1,"y":1}]`)
		r.ended(res, stop.Pending, 1, "executed refused")
		if n := len(r.driver.Lines()) - before; n != 0 {
			t.Errorf("%d events were posted while a person was asked", n)
		}
	})
}

// The guard holds an event back even where the watch has not noticed yet.
func TestGuard(t *testing.T) {
	pending := 0
	r := newRig(t, func(o *Options) {
		o.Quiet = func() (int, <-chan struct{}) { return pending, nil }
	})
	if s := time.Since(r.tool.LastEvent()); s < time.Hour {
		t.Errorf("an event %s ago, before any", s)
	}
	if err := r.tool.guard(t.Context()); err != nil {
		t.Error(err)
	}
	last := r.tool.LastEvent()
	if time.Since(last) > time.Minute {
		t.Errorf("the last event was at %s", last)
	}
	pending = 1
	if err := r.tool.hand.Move(t.Context(), input.Point{}, nil); err == nil || len(r.driver.Lines()) != 0 {
		t.Errorf("posted %q, %v", r.driver.Lines(), err)
	}
	if !r.tool.LastEvent().Equal(last) {
		t.Error("an event that was held back counts as sent")
	}
}

func TestMisplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		r.driver.Drift = input.Point{X: 1.5, Y: -2}
		if res := r.call(t.Context(), `[{"type":"move","x":10,"y":10}]`); res.IsError {
			t.Errorf("two points are near enough: %+v", res.StructuredContent.Stopped)
		}
		r.driver.Drift = input.Point{Y: -20}
		res := r.call(t.Context(), `[{"type":"click","x":10,"y":50},{"type":"keypress","keys":["ENTER"]}]`)
		r.ended(res, stop.Misplaced, 0, "executed skipped")
		e := res.StructuredContent.Executed[0]
		if e.Pointer == nil || *e.Pointer != [2]float64{-35, 10} || *e.Point != [2]float64{-35, 30} || e.Effect != nil {
			t.Errorf("entry %+v", e)
		}
	})
}

func TestPermissions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		grants := map[string]Permission{PermAccessibility: Missing, PermScreenRecording: Granted}
		r := newRig(t, func(o *Options) {
			o.Desk.Permissions = func(context.Context) map[string]Permission { return grants }
		})
		// Screenshot and wait need no accessibility.
		if res := r.call(t.Context(), `[{"type":"screenshot"},{"type":"wait"}]`); res.IsError {
			t.Errorf("looking was refused: %+v", res.StructuredContent.Stopped)
		}
		res := r.call(t.Context(), `[{"type":"wait"},{"type":"click","x":1,"y":1},{"type":"wait"}]`)
		r.ended(res, stop.Permission, 1, "executed refused skipped")
		if m := res.StructuredContent.Stopped.Message; !strings.Contains(m, "Accessibility") {
			t.Errorf("message %q", m)
		}
		if len(r.driver.Lines()) != 0 {
			t.Errorf("posted %q", r.driver.Lines())
		}
		grants = map[string]Permission{PermScreenRecording: Missing}
		res = r.call(t.Context(), `[{"type":"screenshot"}]`)
		r.ended(res, stop.Permission, 0, "refused")
		if m := res.StructuredContent.Stopped.Message; !strings.Contains(m, "Screen & System Audio Recording") {
			t.Errorf("message %q", m)
		}
	})
}

func TestNothingToSee(t *testing.T) {
	for err, reason := range map[error]stop.Reason{
		capture.ErrLocked: stop.Locked, capture.ErrLoginWindow: stop.LoginWindow, capture.ErrAsleep: stop.Asleep,
		capture.ErrPermission: stop.Permission, capture.ErrGone: stop.Err,
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.look()
			r.screen.Before = func(context.Context, capture.Display, image.Rectangle) error { return err }
			res := r.call(t.Context(), `[{"type":"click","x":1,"y":1}]`)
			r.ended(res, reason, 0, "refused")
			if len(r.driver.Lines()) != 0 {
				t.Errorf("%v: posted %q", err, r.driver.Lines())
			}
		})
	}
}

// A batch that was to look and saw nothing has failed, whatever it did besides.
func TestScreenshotWithoutPicture(t *testing.T) {
	for name, tt := range map[string]struct {
		actions, statuses string
		index             int
	}{
		"alone":       {`[{"type":"screenshot"}]`, "refused", 0},
		"after input": {`[{"type":"move","x":1,"y":1},{"type":"screenshot"}]`, "executed refused", 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				r.look()
				r.screen.Before = func(context.Context, capture.Display, image.Rectangle) error {
					if name == "after input" && len(r.driver.Lines()) == 0 {
						return nil
					}
					return capture.ErrLocked
				}
				res := r.call(t.Context(), tt.actions)
				r.ended(res, stop.Locked, tt.index, tt.statuses)
				if res.StructuredContent.Picture != nil || !strings.Contains(res.Content[0].Text, "no screenshot: ") {
					t.Errorf("a picture %v, and the text\n%s", res.StructuredContent.Picture, res.Content[0].Text)
				}
			})
		})
	}
}

func TestLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Config.BatchTimeoutMS = 60_000 })
		r.look()
		release, err := r.lease.Acquire(t.Context(), "another", nil)
		if err != nil {
			t.Fatal(err)
		}
		var told []string
		c := &bridge.Call{Caller: r.caller, Arguments: json.RawMessage(`{"actions":[{"type":"click","x":1,"y":1}]}`),
			ProgressToken: json.RawMessage(`7`),
			Notify:        func(method string, params json.RawMessage) { told = append(told, method+" "+string(params)) }}
		run := func(ctx context.Context) result {
			p, a := r.tool.Prepare(ctx, c)
			if a != nil {
				t.Fatalf("%s", a.Result)
			}
			return r.parse(p.Run(ctx))
		}

		res := run(t.Context()) // never free
		if s := res.StructuredContent.Stopped; s == nil || s.Reason != stop.Lease || !strings.Contains(s.Message, "another") {
			t.Errorf("stopped %+v", s)
		}
		if len(told) != 1 || !strings.Contains(told[0], `notifications/progress {"message":"waiting for the desktop, which another holds","progress":`) || !strings.Contains(told[0], `"progressToken":7`) {
			t.Errorf("told %q", told)
		}

		ctx, cancel := context.WithCancelCause(t.Context()) // cancelled while it waits
		time.AfterFunc(time.Second, func() { cancel(&stop.Error{Reason: stop.Cancelled, Message: "hung up"}) })
		if s := run(ctx).StructuredContent.Stopped; s == nil || s.Reason != stop.Cancelled {
			t.Errorf("stopped %+v", s)
		}
		if len(r.driver.Lines()) != 0 {
			t.Errorf("posted %q without the desktop", r.driver.Lines())
		}

		time.AfterFunc(time.Second, release) // freed in time
		if s := run(t.Context()).StructuredContent.Stopped; s != nil {
			t.Errorf("stopped %+v", s)
		}

		r.lease.refuse = errors.New("the queue for the desktop is full (16); another holds it")
		res = run(t.Context())
		r.ended(res, stop.Lease, 0, "refused")
	})
}

// A caller that gave a token hears of a long batch.
func TestProgress(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		var told []string
		p, _ := r.tool.Prepare(t.Context(), &bridge.Call{
			Caller: r.caller, Arguments: json.RawMessage(`{"actions":[` + strings.Repeat(`{"type":"wait"},`, 7) + `{"type":"wait"}]}`),
			ProgressToken: json.RawMessage(`"t"`), Notify: func(method string, params json.RawMessage) { told = append(told, string(params)) },
		})
		p.Run(t.Context()) // 16 s in steps of 2 s
		if len(told) != 2 {
			t.Fatalf("told %q, want after 6 s and 12 s", told)
		}
		last := 0.0
		for i, want := range []string{"3 of 8 actions done", "6 of 8 actions done"} {
			var m struct {
				ProgressToken, Message string
				Progress               float64
			}
			if err := json.Unmarshal([]byte(told[i]), &m); err != nil || m.ProgressToken != "t" || m.Message != want || m.Progress <= last {
				t.Errorf("told %s after %v, %v", told[i], last, err)
			}
			last = m.Progress
		}
	})
}

// The picture of a cancelled batch was never seen: nothing is measured on it.
func TestCancelledPictureDoesNotCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		ctx, cancel := context.WithCancelCause(t.Context())
		grown := display(160, 60, 2, -80, 5)
		time.AfterFunc(time.Second, func() {
			r.screen.SetDisplays(grown)
			cancel(&stop.Error{Reason: stop.Cancelled, Message: "hung up"})
		})
		r.ended(r.call(ctx, `[{"type":"wait"}]`), stop.Cancelled, 0, "partial")
		if _, a := r.prepare(`{"actions":[{"type":"click","x":1,"y":1}]}`); a == nil || a.Outcome != "stopped: stale_picture" {
			t.Error("coordinates were taken as measured on a picture that nobody saw")
		}
	})
}

// A display that changes between the picture and the click, or between two
// actions, is not clicked on.
func TestDisplayChangesMidBatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		moved := rigDisplay
		moved.Origin = [2]float64{0, 0}
		r.driver.Before = func(_ context.Context, line string) error {
			if line == "key a up" {
				r.screen.SetDisplays(moved)
			}
			return nil
		}
		res := r.call(t.Context(), `[{"type":"click","x":1,"y":1},{"type":"keypress","keys":["a"]},{"type":"type","text":"still fine"},{"type":"click","x":1,"y":1}]`)
		r.ended(res, stop.StalePicture, 3, "executed executed executed refused")
		if d := res.StructuredContent.Display; d.Origin != moved.Origin || res.StructuredContent.Picture == nil {
			t.Errorf("the picture is not of the display as it is now: %+v", d)
		}
		if res := r.call(t.Context(), `[{"type":"click","x":1,"y":1}]`); res.IsError {
			t.Errorf("the new picture does not count: %+v", res.StructuredContent.Stopped)
		}

		r.screen.SetDisplays()
		r.driver.Before = nil
		res = r.call(t.Context(), `[{"type":"screenshot"}]`)
		if !res.IsError || res.StructuredContent.Picture != nil || !strings.Contains(res.Content[0].Text, "display 0 does not exist now") {
			t.Errorf("without a display: %+v", res)
		}
	})
}

// What could not be let go of is tried again before the next batch.
func TestLeftHeld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		stuck := true
		r.driver.Before = func(_ context.Context, line string) error {
			if stuck && line == "key a up" {
				return input.ErrGone
			}
			return nil
		}
		res := r.call(t.Context(), `[{"type":"keypress","keys":["a"]}]`)
		if !strings.Contains(res.Content[0].Text, "could not let go of everything: release the a key") {
			t.Errorf("the text does not tell what stayed:\n%s", res.Content[0].Text)
		}
		res = r.call(t.Context(), `[{"type":"keypress","keys":["b"]}]`)
		if res.StructuredContent.Stopped == nil || slices.Contains(r.driver.Lines(), "key b down") {
			t.Errorf("acted with a key held: %q", r.driver.Lines())
		}
		stuck = false
		if res = r.call(t.Context(), `[{"type":"keypress","keys":["b"]}]`); res.IsError || len(r.driver.Held()) != 0 {
			t.Errorf("not healed: %+v, %q", res.StructuredContent.Stopped, r.driver.Held())
		}
	})
}

// After input the desktop is given time to stand still; after looking it is not.
func TestSettle(t *testing.T) {
	tests := []struct {
		name    string
		actions string
		moves   time.Duration // how long the display keeps changing
		want    time.Duration
	}{
		{"look only", `[{"type":"screenshot"}]`, time.Hour, 0},
		{"wait only", `[{"type":"wait"}]`, time.Hour, 2 * time.Second},
		{"still at once", `[{"type":"type","text":"x"}]`, 0, 300 * time.Millisecond},                          // 250 and one gap
		{"moves for a while", `[{"type":"type","text":"x"}]`, 420 * time.Millisecond, 450 * time.Millisecond}, // looks at 250, 300, … 400 and 450 are equal
		{"never still", `[{"type":"type","text":"x"}]`, time.Hour, 2 * time.Second},                           // settle_max_ms
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				start := time.Now()
				r.screen.Before = func(context.Context, capture.Display, image.Rectangle) error {
					if since := time.Since(start); since < tt.moves {
						r.screen.Paint(0, image.Rect(0, 0, 9, 9), color.RGBA{R: uint8(since.Milliseconds() / 10)})
					}
					return nil
				}
				if res := r.call(t.Context(), tt.actions); res.IsError || res.StructuredContent.Picture == nil {
					t.Fatalf("%+v", res)
				}
				if got := time.Since(start); got != tt.want {
					t.Errorf("took %v, want %v", got, tt.want)
				}
			})
		})
	}
}

func TestInvertScroll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Config.InvertScroll = true })
		r.look()
		r.call(t.Context(), `[{"type":"scroll","x":1,"y":1,"scroll_x":-3,"scroll_y":40}]`)
		if !slices.Contains(r.driver.Lines(), "scroll 3,-40") {
			t.Errorf("posted %q", r.driver.Lines())
		}
	})
}

// Many callers at once: one at a time on the desktop, each with its own record.
func TestConcurrentCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		done := make(chan result)
		for range 20 {
			go func() { done <- r.call(t.Context(), `[{"type":"keypress","keys":["CTRL","a"]},{"type":"wait"}]`) }()
		}
		for range 20 {
			if res := <-done; res.IsError {
				t.Errorf("%+v", res.StructuredContent.Stopped)
			}
		}
		one := []string{"key control down", "key a down", "key a up", "key control up", "sync"}
		lines := r.driver.Lines()
		for i := 0; i < len(lines); i += len(one) {
			if !slices.Equal(lines[i:i+len(one)], one) {
				t.Fatalf("two batches are mixed: %q", lines[i:i+len(one)])
			}
		}
	})
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		time.Sleep(6 * time.Second)
		r.look()
		time.Sleep(6 * time.Second)
		if n := r.screen.Idles(); n != 0 {
			t.Errorf("memory was given back %d times while it was in use", n)
		}
		time.Sleep(6 * time.Second)
		if n := r.screen.Idles(); n != 1 {
			t.Errorf("memory was given back %d times, want once", n)
		}
		r.look()
		r.tool.Close()
		time.Sleep(time.Minute)
		if n := r.screen.Idles(); n != 1 {
			t.Errorf("after Close: %d", n)
		}
	})
}

// silent is a driver whose events cost nothing.
type silent struct{ at input.Point }

func (s *silent) Move(_ context.Context, p input.Point) error           { s.at = p; return nil }
func (s *silent) Button(context.Context, input.Button, bool, int) error { return nil }
func (s *silent) Scroll(context.Context, float64, float64) error        { return nil }
func (s *silent) Key(context.Context, input.Key, bool) error            { return nil }
func (s *silent) Type(_ context.Context, text string) (int, error)      { return len(text), nil }
func (s *silent) Pointer(context.Context) (input.Point, error)          { return s.at, nil }
func (s *silent) Sync(context.Context) error                            { return nil }
func (s *silent) ReleaseStray(context.Context) error                    { return nil }
func (s *silent) Close() error                                          { return nil }

// What the actions of a batch of 25 cost beside their own pauses: own-ms/op.
func BenchmarkBatch(b *testing.B) {
	var args strings.Builder
	args.WriteString(`{"actions":[`)
	for i := range 25 {
		if i > 0 {
			args.WriteByte(',')
		}
		args.WriteString([]string{
			`{"type":"click","x":10,"y":10}`, `{"type":"keypress","keys":["CTRL","C"]}`, `{"type":"type","text":"hello"}`,
			`{"type":"scroll","x":10,"y":10,"scroll_y":100}`, `{"type":"double_click","x":20,"y":20}`,
		}[i%5])
	}
	args.WriteString(`]}`)
	cfg := DefaultConfig()
	journal, err := input.OpenJournal(filepath.Join(b.TempDir(), "journal"))
	if err != nil {
		b.Fatal(err)
	}
	tool := New(Options{
		Desk:   &Desk{Backend: "native", Input: &silent{}, Source: canvas.New(rigDisplay)},
		Config: cfg, Lease: newLease(), Journal: journal,
	})
	defer tool.Close()
	geo := &geometry{display: rigDisplay, width: 80, height: 60}
	own := time.Duration(0)
	for b.Loop() {
		start, paused := time.Now(), tool.hand.Paused()
		parsed, err := decode(json.RawMessage(args.String()), allLimits)
		if err != nil {
			b.Fatal(err)
		}
		r := newRun(tool, &cfg, bridge.Caller{Client: "b"}, parsed, geo, 0)
		if err := r.actions(b.Context()); err != nil || r.stopped != nil {
			b.Fatal(err, r.stopped)
		}
		own += time.Since(start) - (tool.hand.Paused() - paused)
	}
	b.ReportMetric(own.Seconds()*1000/float64(b.N), "own-ms/op")
}

func BenchmarkResult(b *testing.B) {
	r := &run{tool: &Tool{desk: &Desk{}}, cfg: &Config{}, batch: &batch{}, entries: []Entry{}}
	s := shot{geo: &geometry{id: "p", display: rigDisplay, width: 80, height: 60}, mime: "image/png", data: make([]byte, 4<<20)}
	b.ReportAllocs()
	for b.Loop() {
		if a := r.answer(s); len(a.Result) < base64.StdEncoding.EncodedLen(len(s.data)) {
			b.Fatal("short")
		}
	}
}

// TestFullQueue: a batch that may not even wait for the desktop costs no picture.
func TestFullQueue(t *testing.T) {
	r := newRig(t)
	r.look()
	full := gate.NewLease(filepath.Join(t.TempDir(), "lease"), 0)
	release, err := full.Acquire(t.Context(), "somebody", nil)
	if err != nil {
		t.Fatal(err)
	}
	defer release()
	r.tool.lease = full
	for _, actions := range []string{`[{"type":"screenshot"}]`, `[{"type":"move","x":1,"y":1}]`} {
		res := r.call(t.Context(), actions)
		s := res.StructuredContent
		if !res.IsError || s.Stopped == nil || s.Stopped.Reason != stop.Lease || !strings.Contains(s.Stopped.Message, `client "somebody" holds it`) || res.statuses() != "refused" {
			t.Errorf("%s: %s", actions, res.Content[0].Text)
		}
		if s.Picture != nil || len(res.Content) != 1 || !strings.Contains(res.Content[0].Text, "no screenshot: too many batches wait") || s.Display.Pixels != rigDisplay.Pixels {
			t.Errorf("%s: picture %+v of %+v\n%s", actions, s.Picture, s.Display, res.Content[0].Text)
		}
	}
	if len(r.driver.Lines()) != 0 {
		t.Errorf("posted %q", r.driver.Lines())
	}
}
