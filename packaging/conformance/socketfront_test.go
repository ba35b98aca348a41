package conformance

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gorilla/websocket"
)

// socketBack is a websocket server that a front stands before. Each connection
// that it takes goes to conns.
func socketBack(t *testing.T) (url string, conns chan *websocket.Conn, shakes chan *http.Request) {
	t.Helper()
	conns, shakes = make(chan *websocket.Conn, 8), make(chan *http.Request, 8)
	up := websocket.Upgrader{Subprotocols: []string{"mcp"}, CheckOrigin: func(*http.Request) bool { return true }}
	back := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shakes <- r
		if r.Host == "evil.example.com" {
			http.Error(w, "not here", http.StatusForbidden)
			return
		}
		if ws, err := up.Upgrade(w, r, nil); err == nil {
			conns <- ws
		}
	}))
	t.Cleanup(back.Close)
	return "ws" + strings.TrimPrefix(back.URL, "http"), conns, shakes
}

func socketFrontOf(t *testing.T, url string) string {
	t.Helper()
	front := NewSocketFront(url, "sesame")
	server := httptest.NewServer(front)
	t.Cleanup(func() { front.Close(); server.Close() })
	return server.URL
}

// do sends one request. The response's body is closed at the test's end.
func do(ctx context.Context, t *testing.T, method, url, body string, header ...string) *http.Response {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { res.Body.Close() })
	return res
}

func bodyOf(t *testing.T, res *http.Response) string {
	t.Helper()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func readFrame(t *testing.T, ws *websocket.Conn) string {
	t.Helper()
	_, b, err := ws.ReadMessage()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// say answers from the back; it runs beside the test, so that it does not end it.
func say(t *testing.T, ws *websocket.Conn, frames ...string) {
	t.Helper()
	for _, f := range frames {
		if err := ws.WriteMessage(websocket.TextMessage, []byte(f)); err != nil {
			t.Error(err)
		}
	}
}

const noted = `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken": "t" ,"progress":1e2}}`

func TestSocketFrontKeepsBytes(t *testing.T) {
	const asked = `{ "jsonrpc":"2.0","id":1.0, "method":"tools/call","params":{"name":"x","arguments":{"n":9007199254740993},"_meta":{"progressToken": "t" ,"io.modelcontextprotocol/protocolVersion":"2026-07-28"}}}`
	const answer = `{"id":1.0,"jsonrpc":"2.0","result":{"n":9007199254740993, "x":1e2}}`
	for _, c := range []struct {
		name     string
		frames   []string
		kind     string
		body     string
		wantCode int
	}{
		{"an answer", []string{answer}, "application/json", answer, 200},
		{"progress before it", []string{noted, answer}, "text/event-stream", "data: " + noted + "\n\ndata: " + answer + "\n\n", 200},
		{"a line break", []string{noted, "{\"id\":1.0,\n\"result\":{}}"}, "text/event-stream", "data: " + noted + "\n\ndata: {\"id\":1.0,\ndata: \"result\":{}}\n\n", 200},
		{"an unknown method", []string{`{"id":1.0,"error":{"code":-32601}}`}, "application/json", `{"id":1.0,"error":{"code":-32601}}`, 404},
		{"an error without id", []string{`{"id":null,"error":{"code":-32700}}`}, "application/json", `{"id":null,"error":{"code":-32700}}`, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			url, conns, _ := socketBack(t)
			front := socketFrontOf(t, url)
			got := make(chan string, 1)
			go func() {
				ws := <-conns
				_, b, err := ws.ReadMessage()
				if err != nil {
					t.Error(err)
				}
				got <- string(b)
				say(t, ws, c.frames...)
			}()
			res := do(t.Context(), t, "POST", front, asked)
			if body := bodyOf(t, res); body != c.body || res.StatusCode != c.wantCode || res.Header.Get("Content-Type") != c.kind {
				t.Errorf("got %d %s %q, want %d %s %q", res.StatusCode, res.Header.Get("Content-Type"), body, c.wantCode, c.kind, c.body)
			}
			if frame := <-got; frame != asked {
				t.Errorf("arrived as %s", frame)
			}
		})
	}
}

func TestSocketFrontKeepsASession(t *testing.T) {
	url, conns, shakes := socketBack(t)
	front := socketFrontOf(t, url)
	opened := make(chan *websocket.Conn, 1)
	go func() {
		ws := <-conns
		say(t, ws, `{"id":0,"result":{}}`)
		opened <- ws
	}()
	res := do(t.Context(), t, "POST", front, `{"id":0,"method":"initialize"}`)
	session, ws := res.Header.Get(headerSession), <-opened
	if session == "" {
		t.Fatal("there is no session")
	}
	if r := <-shakes; r.Header.Get("Authorization") != "Bearer sesame" {
		t.Errorf("the token arrived as %q", r.Header.Get("Authorization"))
	}
	if got := readFrame(t, ws); got != `{"id":0,"method":"initialize"}` {
		t.Errorf("first came %s", got)
	}

	listening := do(t.Context(), t, "GET", front, "", headerSession, session)
	if res := do(t.Context(), t, "POST", front, `{"method":"notifications/initialized"}`, headerSession, session); res.StatusCode != http.StatusAccepted {
		t.Errorf("a notification gives %s", res.Status)
	}
	if got := readFrame(t, ws); got != `{"method":"notifications/initialized"}` {
		t.Errorf("then came %s", got)
	}
	// Two calls are open: each hears of its own, the listener of what is nobody's.
	bodies := make(chan string, 2)
	for i := range 2 {
		go func() {
			r, err := http.NewRequestWithContext(t.Context(), "POST", front, strings.NewReader(fmt.Sprintf(`{"id":%d,"method":"tools/call","params":{"_meta":{"progressToken":%d}}}`, i, i)))
			if err != nil {
				t.Error(err)
			}
			r.Header.Set(headerSession, session)
			res, err := http.DefaultClient.Do(r)
			if err != nil {
				t.Error(err)
				bodies <- ""
				return
			}
			defer res.Body.Close()
			b, err := io.ReadAll(res.Body)
			if err != nil {
				t.Error(err)
			}
			bodies <- string(b)
		}()
	}
	readFrame(t, ws)
	readFrame(t, ws)
	say(t, ws, `{"method":"notifications/tools/list_changed"}`, `{"method":"notifications/progress","params":{"progressToken":1}}`, `{"id":1,"result":1}`)
	if got, want := <-bodies, "data: {\"method\":\"notifications/progress\",\"params\":{\"progressToken\":1}}\n\ndata: {\"id\":1,\"result\":1}\n\n"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	say(t, ws, `{"id":0,"result":0}`)
	if got := <-bodies; got != `{"id":0,"result":0}` {
		t.Errorf("got %q", got)
	}

	if res := do(t.Context(), t, "DELETE", front, "", headerSession, session); res.StatusCode != http.StatusOK {
		t.Errorf("the end of the session gives %s", res.Status)
	}
	if got := bodyOf(t, listening); got != "data: {\"method\":\"notifications/tools/list_changed\"}\n\n" {
		t.Errorf("the listener heard %q", got)
	}
	if _, _, err := ws.ReadMessage(); !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the websocket ended with %v", err)
	}
	if res := do(t.Context(), t, "POST", front, `{"id":1,"method":"ping"}`, headerSession, session); res.StatusCode != http.StatusNotFound {
		t.Errorf("an ended session gives %s", res.Status)
	}
	if res := do(t.Context(), t, "POST", front, `{"id":1,"method":"ping"}`); res.StatusCode != http.StatusBadRequest {
		t.Errorf("no session gives %s", res.Status)
	}
}

// A call that is cancelled gets no answer: its response must end all the same.
func TestSocketFrontEndsACancelledCall(t *testing.T) {
	url, conns, _ := socketBack(t)
	front := socketFrontOf(t, url)
	opened := make(chan *websocket.Conn, 1)
	go func() {
		ws := <-conns
		say(t, ws, `{"id":0,"result":{}}`)
		opened <- ws
	}()
	session := do(t.Context(), t, "POST", front, `{"id":0,"method":"initialize"}`).Header.Get(headerSession)
	ws := <-opened
	go func() {
		for range 2 { // initialize, and the call
			if _, _, err := ws.ReadMessage(); err != nil {
				t.Error(err)
			}
		}
		say(t, ws, `{"method":"notifications/progress","params":{"progressToken":7}}`)
	}()
	call := do(t.Context(), t, "POST", front, `{"id":"c","method":"tools/call","params":{"_meta":{"progressToken":7}}}`, headerSession, session)
	do(t.Context(), t, "POST", front, `{"method":"notifications/cancelled","params":{"requestId":"c"}}`, headerSession, session)
	if got := bodyOf(t, call); strings.Count(got, "data: ") != 1 {
		t.Errorf("got %q", got)
	}
}

func TestSocketFrontHangsUpWithItsClient(t *testing.T) {
	url, conns, _ := socketBack(t)
	front := socketFrontOf(t, url)
	ended := make(chan error, 1)
	go func() {
		ws := <-conns
		say(t, ws, `{"method":"notifications/subscriptions/acknowledged"}`)
		for {
			if _, _, err := ws.ReadMessage(); err != nil {
				ended <- err
				return
			}
		}
	}()
	ctx, hangUp := context.WithCancel(t.Context())
	do(ctx, t, "POST", front, `{"id":1,"method":"subscriptions/listen"}`)
	hangUp()
	if err := <-ended; !websocket.IsCloseError(err, websocket.CloseNormalClosure) {
		t.Errorf("the websocket ended with %v", err)
	}
}

func TestSocketFrontPassesARefusalOn(t *testing.T) {
	url, _, shakes := socketBack(t)
	front := socketFrontOf(t, url)
	res := do(t.Context(), t, "POST", front, `{"id":1,"method":"initialize"}`, "Host", "evil.example.com", "Origin", "http://evil.example.com")
	if res.StatusCode != http.StatusForbidden {
		t.Errorf("got %s", res.Status)
	}
	if r := <-shakes; r.Host != "evil.example.com" || r.Header.Get("Origin") != "http://evil.example.com" {
		t.Errorf("the handshake said host %q, origin %q", r.Host, r.Header.Get("Origin"))
	}
}
