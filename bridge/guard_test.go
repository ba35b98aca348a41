package bridge

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/token"

	"github.com/rs/zerolog"
)

// knock sends one request with exactly these headers and returns the status.
func knock(t *testing.T, r *rig, method, path, host string, header http.Header) int {
	t.Helper()
	c, err := net.Dial("tcp", r.http.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n", method, path, host)
	_ = header.WriteSubset(&b, map[string]bool{"Connection": true})
	if up := header.Get("Connection"); up != "" {
		b.Reset()
		fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, host)
		_ = header.Write(&b)
	}
	b.WriteString("\r\n")
	if _, err := c.Write(b.Bytes()); err != nil {
		t.Fatal(err)
	}
	status := make([]byte, 12)
	if _, err := io.ReadFull(c, status); err != nil {
		t.Fatal(err)
	}
	var code int
	if _, err := fmt.Sscanf(string(status), "HTTP/1.1 %d", &code); err != nil {
		t.Fatalf("%q: %v", status, err)
	}
	return code
}

func TestGuard(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.AllowedHosts = []string{"desk.example"}
		o.AllowedOrigins = []string{"https://desk.example"}
		o.HostLLM = func(w http.ResponseWriter, _ *http.Request, client string) { fmt.Fprint(w, client) }
	})
	const us = "127.0.0.1:7317"
	good := "Bearer " + r.token
	for _, c := range []struct {
		name, host string
		header     http.Header
		mcp        int // what MCP routes answer; 0: let in
	}{
		{"good", us, http.Header{"Authorization": {good}}, 0},
		{"localhost, other port", "localhost:9999", http.Header{"Authorization": {good}}, 0},
		{"LOCALHOST", "LOCALHOST", http.Header{"Authorization": {good}}, 0},
		{"IPv6", "[::1]:7317", http.Header{"Authorization": {good}}, 0},
		{"IPv6 without port", "[::1]", http.Header{"Authorization": {good}}, 0},
		{"127.0.0.2", "127.0.0.2", http.Header{"Authorization": {good}}, 0},
		{"configured host", "Desk.example:1", http.Header{"Authorization": {good}}, 0},
		{"bearer", us, http.Header{"Authorization": {"bearer " + r.token}}, 0},
		{"same origin", us, http.Header{"Authorization": {good}, "Origin": {"http://" + us}}, 0},
		{"configured origin", us, http.Header{"Authorization": {good}, "Origin": {"https://desk.example"}}, 0},

		{"rebinding", "evil.example:7317", http.Header{"Authorization": {good}}, 403},
		{"localhost.evil", "localhost.evil.example", http.Header{"Authorization": {good}}, 403},
		{"0.0.0.0", "0.0.0.0:7317", http.Header{"Authorization": {good}}, 403},
		{"LAN", "192.168.1.5:7317", http.Header{"Authorization": {good}}, 403},
		{"short form", "127.1", http.Header{"Authorization": {good}}, 403},
		{"bad port", "localhost:http", http.Header{"Authorization": {good}}, 403},
		{"no host", "", http.Header{"Authorization": {good}}, 403},
		{"open bracket", "[::1:7317", http.Header{"Authorization": {good}}, 403},

		{"page", us, http.Header{"Authorization": {good}, "Origin": {"https://evil.example"}}, 403},
		{"other local page", us, http.Header{"Authorization": {good}, "Origin": {"http://127.0.0.1:3000"}}, 403},
		{"https of ours", us, http.Header{"Authorization": {good}, "Origin": {"https://" + us}}, 403},
		{"file page", us, http.Header{"Authorization": {good}, "Origin": {"null"}}, 403},
		{"empty origin", us, http.Header{"Authorization": {good}, "Origin": {""}}, 403},
		{"two origins", us, http.Header{"Authorization": {good}, "Origin": {"http://" + us, "http://" + us}}, 403},

		{"no token", us, http.Header{}, 401},
		{"wrong token", us, http.Header{"Authorization": {"Bearer " + strings.Repeat("A", 43)}}, 401},
		{"empty token", us, http.Header{"Authorization": {"Bearer "}}, 401},
		{"basic", us, http.Header{"Authorization": {"Basic " + r.token}}, 401},
		{"bare", us, http.Header{"Authorization": {r.token}}, 401},
		{"two tokens", us, http.Header{"Authorization": {good, "Bearer x"}}, 401},

		{"host's token", us, http.Header{"Authorization": {"Bearer " + r.host}}, 403},

		// The first failing check answers.
		{"host before token", "evil.example", http.Header{}, 403},
		{"origin before token", us, http.Header{"Origin": {"https://evil.example"}}, 403},
		{"token before role", us, http.Header{"Authorization": {"Bearer " + r.host + "x"}}, 401},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, route := range []struct {
				name, method, path string
				in                 int
				websocket          bool
			}{
				{"ws", "GET", "/mcp", 101, true},
				{"post", "POST", "/mcp", 415, false},
				{"get", "GET", "/mcp", 405, false},
				{"status", "GET", "/status", 200, false},
				{"host-llm", "GET", "/host-llm", 200, false},
				{"host-llm, change", "POST", "/host-llm", 200, false},
				{"unknown", "GET", "/nowhere", 404, false},
				{"unknown ws", "GET", "/mcp/", 404, true},
				{"dots", "GET", "/status/../mcp", 404, false},
			} {
				header := c.header.Clone()
				if route.websocket {
					header.Set("Connection", "Upgrade")
					header.Set("Upgrade", "websocket")
					header.Set("Sec-WebSocket-Version", "13")
					header.Set("Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")
					header.Set("Sec-WebSocket-Protocol", "mcp")
				}
				want := c.mcp
				if want == 0 || c.name == "host's token" && route.in == 404 {
					want = route.in
				}
				if got := knock(t, r, route.method, route.path, c.host, header); got != want {
					t.Errorf("%s: %d, want %d", route.name, got, want)
				}
			}
		})
	}
}

// TestGuardCounts: what is refused is told by kind, and what a stranger chose is
// no part of the kind.
func TestGuardCounts(t *testing.T) {
	type kind struct{ what, why, said string }
	var got []kind
	r := newRig(t, func(o *Options) { o.Count = func(what, why, said string) { got = append(got, kind{what, why, said}) } })
	for _, c := range []struct {
		method, path, host, token string
		want                      kind
	}{
		{"POST", "/mcp", "evil.example", r.token, kind{"/mcp", "the Host header is not this machine", "POST"}},
		{"GET", "/status", "localhost", "x", kind{"/status", "it had no valid token", "GET"}},
		{"GET", "/host", "localhost", r.token, kind{"/host", "its token is for another route", "GET"}},
		{"POST", "/status", "localhost", r.token, kind{"/status", "that method is not taken", "POST"}},
		{"BREW", "/approve/a-1", "localhost", r.token, kind{"another path", "there is no such route", "BREW /approve/a-1"}},
	} {
		q := httptest.NewRequest(c.method, c.path, nil)
		q.Host = c.host
		q.Header.Set("Authorization", "Bearer "+c.token)
		got = nil
		r.Handler().ServeHTTP(httptest.NewRecorder(), q)
		if len(got) != 1 || got[0] != c.want {
			t.Errorf("%s %s: %q, want %q", c.method, c.path, got, c.want)
		}
	}
	q := httptest.NewRequest("GET", "/status", nil)
	q.Host = "localhost"
	q.Header.Set("Authorization", "Bearer "+r.token)
	got = nil
	r.Handler().ServeHTTP(httptest.NewRecorder(), q)
	if len(got) != 0 {
		t.Errorf("what was not refused: %q", got)
	}
}

func TestGuardSubprotocolToken(t *testing.T) {
	r := newRig(t, nil)
	for _, c := range []struct {
		name, offered, auth string
		want                int
	}{
		{"token", "mcp, bearer." + r.token, "", 101},
		{"token first", "bearer." + r.token + ", mcp", "", 101},
		{"both the same", "mcp, bearer." + r.token, "Bearer " + r.token, 101},
		{"both, different", "mcp, bearer.x", "Bearer " + r.token, 401},
		{"wrong", "mcp, bearer.x", "", 401},
		{"no mcp", "bearer." + r.token, "", 400},
		{"none", "mcp", "", 401},
	} {
		header := http.Header{
			"Connection": {"Upgrade"}, "Upgrade": {"websocket"}, "Sec-Websocket-Version": {"13"},
			"Sec-Websocket-Key": {"dGhlIHNhbXBsZSBub25jZQ=="}, "Sec-Websocket-Protocol": {c.offered},
		}
		if c.auth != "" {
			header.Set("Authorization", c.auth)
		}
		if got := knock(t, r, "GET", "/mcp", "127.0.0.1", header); got != c.want {
			t.Errorf("%s: %d, want %d", c.name, got, c.want)
		}
	}
	// A plain request may not show its token that way.
	if got := knock(t, r, "GET", "/status", "127.0.0.1", http.Header{"Sec-Websocket-Protocol": {"bearer." + r.token}}); got != 401 {
		t.Errorf("without an upgrade: %d, want 401", got)
	}
}

func TestRefusalsAreLoggedSparselyAndNotAudited(t *testing.T) {
	var logged bytes.Buffer
	r := newRig(t, func(o *Options) { o.Log = zerolog.New(&logged) })
	for range 100 {
		req, err := http.NewRequestWithContext(t.Context(), "GET", r.http.URL+"/status", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer secret-guess")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
	}
	var counts []float64
	for line := range strings.Lines(logged.String()) {
		var l struct{ Refused float64 }
		if err := json.Unmarshal([]byte(line), &l); err != nil {
			t.Fatal(err)
		}
		counts = append(counts, l.Refused)
	}
	if fmt.Sprint(counts) != "[1 50 100]" {
		t.Errorf("logged at %v, want 1, 50 and 100", counts)
	}
	if strings.Contains(logged.String(), "secret-guess") {
		t.Error("a token is in the log")
	}
	if got := r.audit.phases(); len(got) != 0 {
		t.Errorf("audited: %v", got)
	}
}

func TestStatus(t *testing.T) {
	r := newRig(t, func(o *Options) {
		o.Status = func(s *Status) {
			s.Backend, s.Permissions["accessibility"], s.Pending = "simulated", "granted", 2
			s.Warnings = append(s.Warnings, "b")
		}
	})
	r.Warn("a")
	r.Warn("a")
	c := r.dial()
	send(t, c, callFrame("1", "noop", "{}"))
	recv(t, c)
	req, err := http.NewRequestWithContext(t.Context(), "GET", r.http.URL+"/status", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.token)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var got map[string]any
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil {
		t.Fatal(err)
	}
	for k, want := range map[string]string{
		"v": "1", "version": "test", "backend": "simulated", "pending": "2", "paused": "false",
		"hosts": "[]", "warnings": "[a b]", "permissions": "map[accessibility:granted]",
	} {
		if fmt.Sprint(got[k]) != want {
			t.Errorf("%s: %v, want %s", k, got[k], want)
		}
	}
	clients, _ := got["clients"].([]any)
	if len(clients) != 1 {
		t.Fatalf("clients: %v", clients)
	}
	if c := clients[0].(map[string]any); c["name"] != "tester" || c["connections"] != 1.0 || c["calls"] != 1.0 {
		t.Errorf("client: %v", c)
	}
}

func TestRevokeDropsAtOnce(t *testing.T) {
	r := newRig(t, nil)
	started := make(chan struct{})
	ended := make(chan error, 1)
	r.source.add("hang", hang(started, ended))
	c := r.dial()
	send(t, c, callFrame("1", "hang", "{}"))
	<-started
	if err := r.opts.Tokens.Revoke("tester", token.Client); err != nil {
		t.Fatal(err)
	}
	if err := r.ReloadTokens(); err != nil {
		t.Fatal(err)
	}
	if b, err := c.ReadFrame(1 << 20); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("got %s, %v; want the connection closed, naming the revocation", b, err)
	}
	if err := <-ended; err == nil {
		t.Error("the call ran on")
	}
	if got := knock(t, r, "GET", "/status", "localhost", http.Header{"Authorization": {"Bearer " + r.token}}); got != 401 {
		t.Errorf("a new request: %d, want 401", got)
	}
}

// TestRevokeIsNoticed: without a word to the server, the next call finds out.
func TestRevokeIsNoticed(t *testing.T) {
	r := newRig(t, nil)
	c := r.dial()
	send(t, c, callFrame("1", "noop", "{}"))
	recv(t, c)
	if err := r.opts.Tokens.Revoke("hoster", token.Host); err != nil {
		t.Fatal(err)
	}
	other, err := token.Open(r.dir) // as another process
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Revoke("tester", token.Client); err != nil {
		t.Fatal(err)
	}
	time.Sleep(tokenPatience)
	send(t, c, callFrame("2", "noop", "{}"))
	if b, err := c.ReadFrame(1 << 20); err == nil {
		t.Errorf("answered %s", b)
	}
}

// TestAdmit: names and pages may be let in, and kept out again, while it serves.
func TestAdmit(t *testing.T) {
	r := newRig(t, nil)
	asks := func(host, origin string) int {
		q := httptest.NewRequest("GET", "/status", nil)
		q.Host = host
		q.Header.Set("Authorization", "Bearer "+r.token)
		if origin != "" {
			q.Header.Set("Origin", origin)
		}
		w := httptest.NewRecorder()
		r.Handler().ServeHTTP(w, q)
		return w.Code
	}
	const us, host, page = "127.0.0.1:7317", "desk.example", "https://desk.example"
	for _, c := range []struct {
		hosts, origins []string
		host, page     int
	}{
		{nil, nil, 403, 403},
		{[]string{host}, nil, 200, 403},
		{[]string{"other"}, []string{page}, 403, 200},
		{nil, nil, 403, 403},
	} {
		r.Admit(c.hosts, c.origins)
		if h, p := asks(host, ""), asks(us, page); h != c.host || p != c.page {
			t.Errorf("with %q and %q the name gets %d and the page %d", c.hosts, c.origins, h, p)
		}
	}
}
