package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
)

// hang runs until its call is stopped, and tells the cause.
func hang(started chan<- struct{}, ended chan<- error) func(context.Context, *Call) Answer {
	return func(ctx context.Context, _ *Call) Answer {
		started <- struct{}{}
		<-ctx.Done()
		ended <- context.Cause(ctx)
		return Answer{Result: json.RawMessage(`{"content":[],"isError":true}`), Outcome: "stopped: " + reasonOf(context.Cause(ctx))}
	}
}

func reasonOf(err error) string {
	var e *stop.Error
	if errors.As(err, &e) {
		return string(e.Reason)
	}
	return err.Error()
}

func wantReason(t *testing.T, err error, want stop.Reason) {
	t.Helper()
	if got := reasonOf(err); got != string(want) {
		t.Errorf("the cause is %q, want %q", got, want)
	}
}

func text(t *testing.T, frame string) string {
	t.Helper()
	var f struct {
		Result struct {
			Content []struct{ Text string }
			IsError bool
		}
	}
	if err := json.Unmarshal([]byte(frame), &f); err != nil || len(f.Result.Content) != 1 {
		t.Fatalf("%v: %s", err, frame)
	}
	return f.Result.Content[0].Text
}

func TestAuditOfACall(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	send(t, c, callFrame("1", "noop", `{"a":1}`))
	recv(t, c)
	r.audit.mu.Lock()
	defer r.audit.mu.Unlock()
	if len(r.audit.appends) != 2 || len(r.audit.appends[0]) != 2 || len(r.audit.appends[1]) != 1 {
		t.Fatalf("writes: %+v; want start and verdict in one, then done", r.audit.appends)
	}
	start, verdict, done := r.audit.appends[0][0], r.audit.appends[0][1], r.audit.appends[1][0]
	if start.Phase != audit.Start || string(start.Args) != `{"a":1}` || start.Client != "tester" || start.Host != "drawbridge" || start.Tool != "noop" || start.Conn == "" || start.ID == "" {
		t.Errorf("start: %+v", start)
	}
	if verdict.Phase != audit.Verdict || verdict.Outcome != "allowed: rule test:1" || verdict.ID != start.ID {
		t.Errorf("verdict: %+v", verdict)
	}
	if done.Phase != audit.Done || done.Outcome != "ok" || done.ID != start.ID || done.In != len(`{"a":1}`) || done.Out != len(`{"content":[{"type":"text","text":"ok"}]}`) || done.MS < 0 {
		t.Errorf("done: %+v", done)
	}
}

// TestStartBeforeRun holds that the start is written before anything runs.
func TestStartBeforeRun(t *testing.T) {
	r := newRig(t, nil)
	r.source.add("look", func(context.Context, *Call) Answer {
		return Answer{Result: wire.ErrorResult(strings.Join(r.audit.phases(), ", "), "")}
	})
	c := r.dial()
	send(t, c, callFrame("1", "look", `{}`))
	if got, want := text(t, recv(t, c)), "start, verdict allowed: rule test:1"; got != want {
		t.Errorf("written before the run: %s, want %s", got, want)
	}
}

func TestNotExposedIsOneAnswer(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Exposed = func(client, source, tool string) bool { return client != "tester" || tool != "hidden" }
	})
	r.source.add("hidden", func(context.Context, *Call) Answer { panic("a hidden tool ran") })
	c := r.dial()
	for _, name := range []string{"hidden", "missing", strings.Repeat("x", 500)} {
		send(t, c, callFrame("1", name, `{}`))
		want := fmt.Sprintf(`{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"tool \"%s\" is not exposed"}],"isError":true}}`, clip(name, 128))
		if got := recv(t, c); got != want {
			t.Errorf("%s", got)
		}
	}
	if got := r.Catalogue("tester"); len(got) != 1 || got[0].Name != "noop" {
		t.Errorf("the catalogue: %+v", got)
	}
	want := []string{"start", "done error", "start", "done error", "start", "done error"}
	if got := r.audit.phases(); !slices.Equal(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
}

func TestCatalogueNames(t *testing.T) {
	ok := func(_ context.Context, c *Call) Answer { return Answer{Result: wire.ErrorResult(c.SourceTool, "")} }
	a, b := newFixture("a"), newFixture("b")
	a.addRaw("computer", `{ "description":"x", "name" : "computer" ,"n":1.0}`, ok)
	a.add("read", ok)
	b.add("read", ok)
	b.add("a_computer", ok)
	r := newRig(t, func(o *Options) { o.Sources = append(o.Sources, a, b) })
	var got []string
	for _, l := range r.Catalogue("tester") {
		got = append(got, l.Host+":"+l.Name+":"+string(l.Definition))
	}
	want := []string{
		`drawbridge:noop:{"name":"noop","inputSchema":{"type":"object"}}`,
		`a:a_computer:{ "description":"x", "name" : "a_computer" ,"n":1.0}`,
		`a:read:{"name":"read","inputSchema":{"type":"object"}}`,
		`b:b_read:{"name":"b_read","inputSchema":{"type":"object"}}`,
		`b:b_a_computer:{"name":"b_a_computer","inputSchema":{"type":"object"}}`,
	}
	if !slices.Equal(got, want) {
		t.Errorf("listed\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	c := r.dial()
	send(t, c, callFrame("1", "b_a_computer", `{}`))
	if got := text(t, recv(t, c)); got != "a_computer" {
		t.Errorf("the source was asked for %s", got)
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		verdict     gate.Verdict
		word, says  string
		wantVerdict string
	}{
		{gate.Verdict{Outcome: gate.Denied, By: "rule config:3", Message: "a rule denies it"}, "denied", "a rule denies it", "denied: rule config:3"},
		{gate.Verdict{Outcome: gate.Nobody, Message: "nobody can be asked"}, "nobody", "nobody can be asked", "nobody"},
		{gate.Verdict{Outcome: gate.Expired}, "expired", "refused (expired)", "expired"},
		{gate.Verdict{Outcome: gate.Full}, "full", "refused (full)", "full"},
		{gate.Verdict{Outcome: gate.Paused}, "paused", "refused (paused)", "paused"},
	} {
		g := gateFunc(func(context.Context, *gate.Request) gate.Verdict { return c.verdict })
		r := newRig(t, func(o *Options) { o.Gate = g })
		conn := r.dial()
		send(t, conn, callFrame("1", "noop", `{}`))
		got := recv(t, conn)
		if !strings.Contains(got, `"isError":true,"_meta":{"drawbridge/refused":"`+c.word+`"}`) || !strings.Contains(text(t, got), c.says) {
			t.Errorf("%s: %s", c.word, got)
		}
		want := []string{"start", "verdict " + c.wantVerdict, "done refused: " + c.word}
		if got := r.audit.phases(); !slices.Equal(got, want) {
			t.Errorf("audit %v, want %v", got, want)
		}
	}
}

type gateFunc func(context.Context, *gate.Request) gate.Verdict

func (f gateFunc) Decide(ctx context.Context, r *gate.Request) gate.Verdict { return f(ctx, r) }

// TestPrepareAnswers holds that a call which cannot run asks nobody.
func TestPrepareAnswers(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Sources = []Source{badArguments{newFixture("drawbridge")}}
		o.Gate = gateFunc(func(context.Context, *gate.Request) gate.Verdict { panic("the gate was asked") })
	})
	c := r.dial()
	send(t, c, callFrame("1", "x", `{}`))
	if got := text(t, recv(t, c)); got != "actions is missing" {
		t.Error(got)
	}
	if got, want := r.audit.phases(), []string{"start", "done error"}; !slices.Equal(got, want) {
		t.Errorf("audit %v, want %v", got, want)
	}
}

type badArguments struct{ *fixture }

func (badArguments) Tools(string) []Tool {
	return []Tool{{Name: "x", Definition: json.RawMessage(`{"name":"x"}`)}}
}
func (badArguments) Prepare(context.Context, *Call) (*Prepared, *Answer) {
	return nil, &Answer{Result: wire.ErrorResult("actions is missing", "")}
}

func TestCancelAndPing(t *testing.T) {
	r := newRig(t, nil)
	started, ended := make(chan struct{}), make(chan error, 1)
	r.source.add("hang", hang(started, ended))
	c := r.dial()
	send(t, c, callFrame(`"x"`, "hang", `{}`))
	<-started
	send(t, c, callFrame(`"x"`, "noop", `{}`))
	if got := recv(t, c); !strings.Contains(got, `"error":{"code":-32600`) {
		t.Errorf("an id in use: %s", got)
	}
	send(t, c, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	if got := recv(t, c); got != `{"jsonrpc":"2.0","id":2,"result":{}}` {
		t.Errorf("ping while a call hangs: %s", got)
	}
	send(t, c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"\u0078","reason":"r"}}`)
	wantReason(t, <-ended, stop.Cancelled)
	// No answer comes for what was cancelled; the id is free again.
	send(t, c, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if got := recv(t, c); got != `{"jsonrpc":"2.0","id":3,"result":{}}` {
		t.Errorf("after the cancel: %s", got)
	}
}

func TestVanishingClient(t *testing.T) {
	r := newRig(t, nil)
	started, ended := make(chan struct{}), make(chan error, 1)
	r.source.add("hang", hang(started, ended))

	c := r.dial()
	send(t, c, callFrame("1", "hang", `{}`))
	<-started
	_ = c.Close()
	wantReason(t, <-ended, stop.Cancelled)

	for _, modern := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			_, _ = r.post(ctx, modern, r.session(t, modern), "hang", `{}`)
		}()
		<-started
		cancel()
		wantReason(t, <-ended, stop.Cancelled)
		<-done
	}
}

// session initializes over HTTP; the stateless era has none.
func (r *rig) session(t *testing.T, modern bool) string {
	if modern {
		return ""
	}
	req, _ := http.NewRequestWithContext(r.t.Context(), "POST", r.http.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`))
	r.headers(req.Header)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	_ = resp.Body.Close()
	return resp.Header.Get(headerSession)
}

func (r *rig) headers(h http.Header) {
	h.Set("Authorization", "Bearer "+r.token)
	h.Set("Content-Type", "application/json")
	h.Set("Accept", "application/json, text/event-stream")
}

func (r *rig) post(ctx context.Context, modern bool, session, tool, args string) (*http.Response, error) {
	body := callFrame("5", tool, args)
	if modern {
		body = `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `,"_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":{}}}}`
	}
	req, err := http.NewRequestWithContext(ctx, "POST", r.http.URL+"/mcp", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.headers(req.Header)
	if modern {
		req.Header.Set(headerVersion, modernVersion)
		req.Header.Set(headerMethod, "tools/call")
		req.Header.Set(headerName, tool)
	} else {
		req.Header.Set(headerSession, session)
	}
	return http.DefaultClient.Do(req)
}

func TestHTTPCancelByNotification(t *testing.T) {
	r := newRig(t, nil)
	started, ended := make(chan struct{}), make(chan error, 1)
	r.source.add("hang", hang(started, ended))
	session := r.session(t, false)
	answered := make(chan string, 1)
	go func() {
		resp, err := r.post(t.Context(), false, session, "hang", `{}`)
		if err != nil {
			answered <- err.Error()
			return
		}
		defer resp.Body.Close()
		answered <- fmt.Sprint(resp.StatusCode, " ", resp.ContentLength)
	}()
	<-started
	req, _ := http.NewRequestWithContext(t.Context(), "POST", r.http.URL+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":5}}`))
	r.headers(req.Header)
	req.Header.Set(headerSession, session)
	resp, err := http.DefaultClient.Do(req)
	if err != nil || resp.StatusCode != 202 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	wantReason(t, <-ended, stop.Cancelled)
	if got := <-answered; !strings.HasPrefix(got, "200") {
		t.Errorf("the cancelled request's stream: %s", got)
	}
}

func TestStop(t *testing.T) {
	g := newPersonGate()
	r := newRig(t, func(o *Options) {
		o.Gate = gateFunc(func(ctx context.Context, req *gate.Request) gate.Verdict {
			if req.Tool == "noop" {
				return g.Decide(ctx, req)
			}
			return gate.Verdict{Outcome: gate.Allowed}
		})
	})
	started, ended := make(chan struct{}), make(chan error, 1)
	r.source.add("hang", hang(started, ended))
	c := r.dial()
	send(t, c, callFrame("1", "hang", `{}`))
	<-started
	send(t, c, callFrame("2", "noop", `{}`))
	<-g.asked
	if n := r.StopRunning(&stop.Error{Reason: stop.Paused, Message: "paused at the tray"}); n != 1 {
		t.Errorf("%d calls were stopped, want the one that ran", n)
	}
	wantReason(t, <-ended, stop.Paused)
	if got := recv(t, c); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":`) {
		t.Errorf("the stopped call answered %s", got)
	}
	if n := r.Stop(&stop.Error{Reason: stop.Stopped, Message: "stopped at the tray"}); n != 1 {
		t.Errorf("%d calls were stopped, want the one that waited", n)
	}
	if got := text(t, recv(t, c)); !strings.Contains(got, "stopped at the tray") {
		t.Errorf("the waiting call answered %s", got)
	}
	want := "done stopped: stopped"
	if got := r.audit.phases(); got[len(got)-1] != want {
		t.Errorf("audit %v, want it to end with %s", got, want)
	}
}

func TestJoin(t *testing.T) {
	g := newPersonGate()
	r := newRig(t, func(o *Options) { o.Gate = g })
	var mu sync.Mutex
	runs := 0
	r.source.add("count", func(_ context.Context, c *Call) Answer {
		mu.Lock()
		defer mu.Unlock()
		runs++
		if c.ProgressToken != nil {
			c.Notify("notifications/progress", json.RawMessage(`{"progressToken":`+string(c.ProgressToken)+`,"progress":1}`))
		}
		return Answer{Result: wire.ErrorResult(fmt.Sprint("run ", runs), "")}
	})
	one, two := r.dial(), r.dial()
	call := func(id, args, tok string) string {
		return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"count","arguments":` + args + `,"_meta":{"progressToken":` + tok + `}}}`
	}
	send(t, one, call("1", `{"a":1}`, `"t1"`))
	<-g.asked
	send(t, two, call(`"x"`, `{"a":1}`, `"t2"`))
	eventually(t, func() bool { return strings.Contains(strings.Join(r.audit.phases(), ","), "joined") })
	// Other bytes are another call.
	send(t, two, call(`"y"`, `{"a": 1}`, `"t3"`))
	<-g.asked
	// So is a retry that carries answers beside the same arguments.
	send(t, two, `{"jsonrpc":"2.0","id":"z","method":"tools/call","params":{"name":"count","arguments":{"a":1},"inputResponses":{"q":true},"_meta":{"progressToken":"t4"}}}`)
	if q := <-g.asked; string(q.Extra) != `{"inputResponses":{"q":true}}` {
		t.Errorf("the gate was shown %s beside the arguments", q.Extra)
	}
	// The first caller leaves; the one that joined still waits.
	send(t, one, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	send(t, one, `{"jsonrpc":"2.0","id":9,"method":"ping"}`)
	if got := recv(t, one); !strings.Contains(got, `"id":9`) {
		t.Errorf("the caller that left got %s", got)
	}
	for range 3 {
		g.answers <- gate.Verdict{Outcome: gate.Allowed, By: "person"}
	}
	var got []string
	for range 6 {
		got = append(got, recv(t, two))
	}
	slices.Sort(got)
	all := strings.Join(got, "\n")
	for _, want := range []string{`"id":"x","result"`, `"id":"y","result"`, `"id":"z","result"`, `{"progressToken":"t4","progress":1}`, `{"progressToken":"t2","progress":1}`, `{"progressToken":"t3","progress":1}`} {
		if !strings.Contains(all, want) {
			t.Errorf("no %s in\n%s", want, all)
		}
	}
	if runs != 3 {
		t.Errorf("%d runs for three different calls", runs)
	}
}

// eventually waits for what another goroutine is about to do.
func eventually(t *testing.T, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !ok(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
	}
}

func TestAllLeaveWithdraws(t *testing.T) {
	g := newPersonGate()
	r := newRig(t, func(o *Options) { o.Gate = g })
	one, two := r.dial(), r.dial()
	send(t, one, callFrame("1", "noop", `{}`))
	<-g.asked
	send(t, two, callFrame("1", "noop", `{}`))
	eventually(t, func() bool { return strings.Contains(strings.Join(r.audit.phases(), ","), "joined") })
	_ = one.Close()
	send(t, two, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	eventually(t, func() bool {
		return slices.Contains(r.audit.phases(), "verdict withdrawn: withdrawn") && slices.Contains(r.audit.phases(), "done cancelled")
	})
	// A later identical call asks again.
	send(t, two, callFrame("2", "noop", `{}`))
	<-g.asked
	g.answers <- gate.Verdict{Outcome: gate.Allowed}
	if got := text(t, recv(t, two)); got != "ok" {
		t.Error(got)
	}
}

// postbox is an outlet that keeps what is sent to it.
type postbox struct{ posted, answers chan string }

func newPostbox() *postbox { return &postbox{make(chan string, 64), make(chan string, 4)} }

func (p *postbox) answer(f wire.Frame, _ int) { p.answers <- string(f.Bytes()) }
func (p *postbox) drop()                      { p.answers <- "" }
func (p *postbox) post(f wire.Frame)          { p.posted <- string(f.Bytes()) }

func TestKeepAlive(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := newPersonGate()
		dir := t.TempDir()
		store, err := token.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Add("c", token.Client, ""); err != nil {
			t.Fatal(err)
		}
		list, err := store.List()
		if err != nil {
			t.Fatal(err)
		}
		source := newFixture("drawbridge")
		source.add("noop", func(context.Context, *Call) Answer { return Answer{Result: json.RawMessage(`{}`)} })
		s := New(Options{Sources: []Source{source}, Gate: g, Audit: &ledger{}, Tokens: store})
		defer s.Close(t.Context())
		p := s.newPeer(list[0], "x", 1<<20)
		start := func(frame string) *postbox {
			m := new(wire.Message)
			if err := wire.Parse([]byte(frame), m); err != nil {
				t.Fatal(err)
			}
			box := newPostbox()
			go s.handle(p, box, m)()
			return box
		}
		began := time.Now()
		first := start(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop","_meta":{"progressToken":7}}}`)
		<-g.asked
		quiet := start(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"noop"}}`)
		joined := start(`{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"noop","_meta":{"progressToken":"j"}}}`)
		for i := 1; i <= 3; i++ {
			want := fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.00%d,"message":"waiting for the person to approve the call"}}`, i)
			if got := <-first.posted; got != want {
				t.Errorf("heard %s, want %s", got, want)
			}
			if got := time.Since(began); got != time.Duration(i)*5*time.Second {
				t.Errorf("heard number %d after %v", i, got)
			}
			if got := <-joined.posted; !strings.Contains(got, fmt.Sprintf(`"progressToken":"j","progress":0.00%d`, i)) {
				t.Errorf("who joined heard %s", got)
			}
		}
		g.answers <- gate.Verdict{Outcome: gate.Allowed}
		for _, box := range []*postbox{first, quiet, joined} {
			if got := <-box.answers; !strings.Contains(got, `"result":{}`) {
				t.Errorf("answer %s", got)
			}
		}
		time.Sleep(time.Minute) // of the bubble: nothing may tick on
		if len(first.posted)+len(quiet.posted)+len(joined.posted) != 0 {
			t.Error("something was sent after the answer, or without a token")
		}
	})
}
