package bridge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/bridge/wire"

	"github.com/gorilla/websocket"
)

func TestFrameCap(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.FrameBytes = 1 << 20 })
	big := strings.Repeat("x", 3<<20)
	c := r.dial()
	for _, e := range []struct{ frame, want string }{
		{`{"jsonrpc":"2.0","id":"first","method":"tools/call","params":{"name":"noop","arguments":{"a":"` + big + `"}}}`, `{"jsonrpc":"2.0","id":"first","result":{"content":[{"type":"text","text":"the message has 31458`},
		{`{"params":{"name":"noop","arguments":{"id":7,"a":"` + big + `"}},"method":"tools/call","jsonrpc":"2.0","id":8}`, `{"jsonrpc":"2.0","id":8,"result":{"content":[`},
		{`{"params":{"a":"` + big + `"},"method":"tools/list","jsonrpc":"2.0","id":9}`, `{"jsonrpc":"2.0","id":9,"error":{"code":-32600,`},
		{`{"id":1,"a":"` + big + `","id":2}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
		{big, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,`},
	} {
		send(t, c, e.frame)
		got := recv(t, c)
		if !strings.HasPrefix(got, e.want) || !strings.Contains(got, "cap of 1048576 bytes") {
			t.Errorf("got %s, want %s…", got, e.want)
		}
	}
	send(t, c, callFrame("1", "noop", `{}`))
	if got := text(t, recv(t, c)); got != "ok" {
		t.Errorf("the connection after it: %s", got)
	}

	for _, e := range []struct {
		body   string
		status int
		want   string
	}{
		{`{"params":{"name":"noop","arguments":{"a":"` + big + `"}},"method":"tools/call","jsonrpc":"2.0","id":8}`, 200, `{"jsonrpc":"2.0","id":8,"result":`},
		{`{"params":{"a":"` + big + `"},"method":"ping","jsonrpc":"2.0","id":8}`, 413, `{"jsonrpc":"2.0","id":8,"error":`},
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", r.http.URL+"/mcp", strings.NewReader(e.body))
		if err != nil {
			t.Fatal(err)
		}
		r.headers(req.Header)
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != e.status || !strings.HasPrefix(string(b), e.want) {
			t.Errorf("HTTP: %d %s, %v", resp.StatusCode, b, err)
		}
	}
}

func TestBrokenFramesLeaveTheConnection(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	for _, frame := range []string{``, `{`, `[]`, "\xff", `{"jsonrpc":"2.0","id":{},"method":"ping"}`, `null`} {
		send(t, c, frame)
		if got := recv(t, c); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":null,"error":{"code":-32`) {
			t.Errorf("%q: %s", frame, got)
		}
	}
	send(t, c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`)
	if got := recv(t, c); got != `{"jsonrpc":"2.0","id":1,"result":{}}` {
		t.Error(got)
	}
}

func TestBinaryFrame(t *testing.T) {
	r := newRig(t, nil)
	d := websocket.Dialer{Subprotocols: []string{wire.Subprotocol, wire.BearerSubprotocol + r.token}}
	ws, _, err := d.DialContext(t.Context(), r.wsURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.Close()
	if ws.Subprotocol() != "mcp" {
		t.Errorf("subprotocol %q", ws.Subprotocol())
	}
	if err := ws.WriteMessage(websocket.BinaryMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if _, b, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseUnsupportedData) {
		t.Errorf("%s, %v; want close 1003", b, err)
	}
}

func TestResultCap(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.ResultBytesWS, o.Limits.ResultBytesHTTP = 1000, 2000 })
	r.source.add("big", func(context.Context, *Call) Answer {
		return Answer{Result: wire.ErrorResult(strings.Repeat("x", 1500), "")}
	})
	c := r.dial()
	send(t, c, callFrame("1", "big", `{}`))
	if got := text(t, recv(t, c)); !strings.Contains(got, "1555 bytes") && !strings.Contains(got, "cap of 1000 bytes") {
		t.Error(got)
	}
	send(t, c, callFrame("2", "noop", `{}`))
	if got := text(t, recv(t, c)); got != "ok" {
		t.Error(got)
	}
	resp, err := r.post(t.Context(), true, "", "big", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if b, err := io.ReadAll(resp.Body); err != nil || !bytes.Contains(b, []byte("xxx")) {
		t.Errorf("under the cap of HTTP: %s, %v", b, err)
	}
}

func TestCallsInFlight(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.CallsPerConnection = 1 })
	started, ended := make(chan struct{}), make(chan error, 1)
	r.source.add("hang", hang(started, ended))
	c := r.dial()
	send(t, c, callFrame("1", "hang", `{}`))
	<-started
	send(t, c, callFrame("2", "noop", `{}`))
	if got := text(t, recv(t, c)); !strings.Contains(got, "1 requests are in flight") {
		t.Error(got)
	}
	send(t, c, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`)
	<-ended
}

func TestConnectionLimits(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.ConnectionsPerClient = 1 })
	c := r.dial()
	_, err := wire.Dial(t.Context(), r.wsURL(), r.token)
	if d, ok := err.(*wire.DialError); !ok || d.Status != 503 || !strings.Contains(d.Message, `client "tester"`) {
		t.Errorf("a second connection: %v", err)
	}
	_ = c.Close()
	eventually(t, func() bool {
		c, err := wire.Dial(t.Context(), r.wsURL(), r.token)
		if err != nil {
			return false
		}
		return c.Close() == nil
	})
}

// TestSlowReader: a client that does not read costs a bounded amount of memory
// and holds up nobody else; its connection ends.
func TestSlowReader(t *testing.T) {
	const answer, bound = 1 << 20, 4 << 20
	big := wire.ErrorResult(strings.Repeat("x", answer), "")
	r := newRig(t, func(o *Options) {
		o.Limits.QueueBytes = bound
		o.Limits.CallsPerConnection = 1000
	})
	r.source.add("big", func(context.Context, *Call) Answer { return Answer{Result: big} })
	slow, quick := r.dial(), r.dial()
	for id := range 100 {
		if slow.WriteFrame([]byte(callFrame(string(rune('0'+id%10))+"."+strings.Repeat("1", 1+id/10), "big", `{}`))) != nil {
			break // cut off already
		}
	}
	for range 50 {
		send(t, quick, callFrame("1", "noop", `{}`))
		if got := text(t, recv(t, quick)); got != "ok" {
			t.Fatal(got)
		}
	}
	eventually(t, func() bool { return r.Status().Clients[0].Connections == 1 })
	// Calls that were cut off may be on their way out yet.
	eventually(t, func() bool {
		var m runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&m)
		return m.HeapAlloc <= 64<<20
	})
}

// TestNotifyDoesNotWait: a source that reports progress is not held up by a
// client that does not read.
func TestNotifyDoesNotWait(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.QueueBytes = 8 << 20 })
	done := make(chan struct{})
	note := json.RawMessage(`{"progressToken":1,"progress":1,"message":"` + strings.Repeat("x", 1<<20) + `"}`)
	r.source.add("chatty", func(_ context.Context, c *Call) Answer {
		for range 100 {
			c.Notify("notifications/progress", note)
		}
		close(done)
		return Answer{Result: json.RawMessage(`{"content":[]}`)}
	})
	c := r.dial()
	send(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"chatty","_meta":{"progressToken":1}}}`)
	<-done
}

// TestPings: a client that answers stays, one that is silent for two intervals
// does not.
func TestPings(t *testing.T) {
	r := newRig(t, func(o *Options) { o.Limits.PingInterval = time.Second })
	d := websocket.Dialer{Subprotocols: []string{wire.Subprotocol, wire.BearerSubprotocol + r.token}}
	alive, _, err := d.DialContext(t.Context(), r.wsURL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer alive.Close()
	pings := make(chan struct{}, 100)
	pong := alive.PingHandler()
	alive.SetPingHandler(func(data string) error {
		pings <- struct{}{}
		return pong(data)
	})
	answers := make(chan string)
	go func() {
		_, b, err := alive.ReadMessage()
		answers <- fmt.Sprint(string(b), err)
	}()
	for range 4 {
		<-pings
	}
	if err := alive.WriteMessage(websocket.TextMessage, []byte(`{"jsonrpc":"2.0","id":1,"method":"ping"}`)); err != nil {
		t.Fatal(err)
	}
	if got, want := <-answers, `{"jsonrpc":"2.0","id":1,"result":{}}<nil>`; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	// It reads no more, and so answers no more pings.
	eventually(t, func() bool { return r.Status().Clients[0].Connections == 0 })
}

func TestServe(t *testing.T) {
	r := newRig(t, nil)
	ln, _, err := Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- r.Serve(ctx, ln) }()
	c, err := wire.Dial(t.Context(), URL(ln), r.token)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	send(t, c, callFrame("1", "noop", `{}`))
	recv(t, c)
	// The standard library would answer this one by itself, without any check.
	raw, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	fmt.Fprint(raw, "OPTIONS * HTTP/1.1\r\nHost: elsewhere.example\r\nConnection: close\r\n\r\n")
	if res, err := http.ReadResponse(bufio.NewReader(raw), nil); err != nil {
		t.Error(err)
	} else if res.Body.Close(); res.StatusCode != http.StatusForbidden {
		t.Errorf("OPTIONS * for another host: %s, want 403", res.Status)
	}
	cancel()
	if _, err := c.ReadFrame(1 << 20); err != io.EOF {
		t.Errorf("%v; want a regular close", err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if _, err := wire.Dial(t.Context(), URL(ln), r.token); err == nil {
		t.Error("it still listens")
	}
}

// FuzzHandle: whatever a client sends, it is answered at most once, with JSON.
func FuzzHandle(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"drawbridge/images":{"read":false}}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"noop","arguments":{"a":1},"_meta":{"progressToken":1}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"server/discover","params":{"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{"cursor":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{`, `[]`,
	} {
		f.Add([]byte(seed))
	}
	r := newRig(f, nil)
	entry, _ := r.opts.Tokens.Find(r.token)
	f.Fuzz(func(t *testing.T, frame []byte) {
		m := new(wire.Message)
		if wire.Parse(frame, m) != nil {
			return
		}
		p := r.newPeer(entry, "", 1<<20)
		box := newPostbox()
		if work := r.handle(p, box, m); work != nil {
			work()
		}
		p.close(hungUp) // ends a subscription
		for _, got := range []string{<-box.answers, drainOne(box.posted)} {
			if got != "" && !json.Valid([]byte(got)) {
				t.Errorf("the server said %q", got)
			}
		}
		if more := drainOne(box.answers); more != "" {
			t.Errorf("a second answer: %s", more)
		}
	})
}

func drainOne(c chan string) string {
	select {
	case s := <-c:
		return s
	default:
		return ""
	}
}

func TestConnObserver(t *testing.T) {
	r := newRig(t, nil)
	seen := make(chan string, 3)
	r.source.add("who", func(_ context.Context, c *Call) Answer {
		seen <- c.Caller.Conn
		return Answer{Result: json.RawMessage(`{}`)}
	})
	c := r.dial()
	send(t, c, callFrame("1", "who", `{}`))
	recv(t, c)
	ws := <-seen
	_ = c.Close()
	eventually(t, func() bool { return slices.Contains(r.source.endedConns(), ws) })

	session := r.session(t, false)
	resp, err := r.post(t.Context(), false, session, "who", `{}`)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	conn := <-seen
	if conn == "" || conn == session {
		t.Errorf("the session's connection is %q", conn)
	}
	req, _ := http.NewRequestWithContext(t.Context(), "DELETE", r.http.URL+"/mcp", nil)
	r.headers(req.Header)
	req.Header.Set(headerSession, session)
	if resp, err = http.DefaultClient.Do(req); err != nil || resp.StatusCode != 200 {
		t.Fatal(resp, err)
	}
	_ = resp.Body.Close()
	eventually(t, func() bool { return slices.Contains(r.source.endedConns(), conn) })

	if resp, err = r.post(t.Context(), true, "", "who", `{}`); err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if conn := <-seen; conn != "" {
		t.Errorf("a stateless request has the connection %q", conn)
	}
}

func TestSessions(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Limits.SessionsPerClient = 2
		o.Limits.SessionIdle = time.Hour
	})
	entry, _ := r.opts.Tokens.Find(r.token)
	hostEntry, _ := r.opts.Tokens.Find(r.host)
	a := r.sessions.open(r.Server, entry)
	if x, _ := r.sessions.use(r.Server, a.id, hostEntry); x != nil {
		t.Error("another token's session was found")
	}
	b := r.sessions.open(r.Server, entry)
	_, release := r.sessions.use(r.Server, a.id, entry)
	c := r.sessions.open(r.Server, entry) // b is the only unused one
	if x, _ := r.sessions.use(r.Server, b.id, entry); x != nil || c == nil {
		t.Error("the unused session did not give way")
	}
	_, releaseC := r.sessions.use(r.Server, c.id, entry)
	if d := r.sessions.open(r.Server, entry); d != nil {
		t.Error("a third session though both are in use")
	}
	release()
	releaseC()
	r.sessions.mu.Lock()
	a.last = a.last.Add(-2 * time.Hour)
	r.sessions.mu.Unlock()
	if x, _ := r.sessions.use(r.Server, a.id, entry); x != nil {
		t.Error("an expired session was found")
	}
}

func TestImages(t *testing.T) {
	r := newRig(t, nil)
	seen := make(chan Images, 1)
	r.source.add("who", func(_ context.Context, c *Call) Answer {
		seen <- c.Caller.Images
		return Answer{Result: json.RawMessage(`{}`)}
	})
	c := r.dial()
	ask := func(frame string) Images { send(t, c, frame); got := <-seen; recv(t, c); return got }
	modern := func(caps string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"who","_meta":{"` + wire.MetaProtocolVersion + `":"2026-07-28","` + wire.MetaClientCapabilities + `":` + caps + `}}}`
	}
	if got := ask(callFrame("1", "who", `{}`)); got != ImagesUnknown {
		t.Errorf("nothing said: %d", got)
	}
	if got := ask(modern(`{"experimental":{"drawbridge/images":{"read":false}}}`)); got != ImagesNo {
		t.Errorf("read false: %d", got)
	}
	send(t, c, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{"experimental":{"drawbridge/images":{"read":true}}}}}`)
	recv(t, c)
	if got := ask(callFrame("1", "who", `{}`)); got != ImagesYes {
		t.Errorf("read true at initialize: %d", got)
	}
	entry, _ := r.opts.Tokens.Find(r.token)
	entry.Images = "no"
	if got := r.newPeer(entry, "", 0).caller(ImagesYes).Images; got != ImagesNo {
		t.Errorf("the token's word does not count: %d", got)
	}
}

func TestToolsChanged(t *testing.T) {
	r := newRig(t, nil)
	legacy, modern, quiet := r.dial(), r.dial(), r.dial()
	send(t, legacy, `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{}}}`)
	recv(t, legacy)
	send(t, legacy, `{"jsonrpc":"2.0","id":2,"method":"ping"}`) // it is registered when this is answered
	recv(t, legacy)
	send(t, modern, `{"jsonrpc":"2.0","id":"s","method":"subscriptions/listen","params":{"notifications":{"toolsListChanged":true},"_meta":{"`+wire.MetaProtocolVersion+`":"2026-07-28","`+wire.MetaClientCapabilities+`":{}}}}`)
	recv(t, modern)
	send(t, modern, `{"jsonrpc":"2.0","id":2,"method":"ping"}`)
	recv(t, modern)
	r.ToolsChanged()
	if got := recv(t, legacy); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Error(got)
	}
	if got := recv(t, modern); got != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":"s"}}}` {
		t.Error(got)
	}
	send(t, quiet, `{"jsonrpc":"2.0","id":3,"method":"ping"}`)
	if got := recv(t, quiet); got != `{"jsonrpc":"2.0","id":3,"result":{}}` {
		t.Errorf("a client that did not ask heard %s", got)
	}
}

func TestClose(t *testing.T) {
	r := newRig(t, nil)
	started, ended := make(chan struct{}), make(chan error, 1)
	r.source.add("hang", hang(started, ended))
	c := r.dial()
	send(t, c, callFrame("1", "hang", `{}`))
	<-started
	r.Close(t.Context())
	wantReason(t, <-ended, stop.Stopped)
	if got := recv(t, c); !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":1,"result":`) {
		t.Errorf("the open call got %s", got)
	}
	if b, err := c.ReadFrame(1 << 20); err != io.EOF {
		t.Errorf("%s, %v; want a regular close", b, err)
	}
	if _, err := wire.Dial(t.Context(), r.wsURL(), r.token); err == nil {
		t.Error("a connection after the end")
	}
}
