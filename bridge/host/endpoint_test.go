package host

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
)

// openGate allows everything at once, as a gate with an allow rule does.
type openGate struct{}

func (openGate) Decide(context.Context, *gate.Request) gate.Verdict {
	return gate.Verdict{Outcome: gate.Allowed, By: "rule test:1"}
}

// nowhere is an audit that keeps nothing.
type nowhere struct{}

func (nowhere) Append(...audit.Record) {}

// agent is the real endpoint with a set of hosts behind it.
type agent struct {
	*Set
	server *bridge.Server
	store  *token.Store
	client string // a client's token
	host   string // the token of a host named hoster
	url    string // ws://…
}

func newAgent(t testing.TB, o Options, log zerolog.Logger) *agent {
	t.Helper()
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	a := &agent{}
	var err error
	if a.store, err = token.Open(dir); err != nil {
		t.Fatal(err)
	}
	if a.client, err = a.store.Add("tester", token.Client, ""); err != nil {
		t.Fatal(err)
	}
	if a.host, err = a.store.Add("hoster", token.Host, ""); err != nil {
		t.Fatal(err)
	}
	o.Log, o.Version = log, "test"
	o.Changed = func() { a.server.ToolsChanged() }
	if a.Set, err = NewSet(o); err != nil {
		t.Fatal(err)
	}
	a.server = bridge.New(bridge.Options{Log: log, Version: "test", Hosts: a.Set, Gate: openGate{}, Audit: nowhere{}, Tokens: a.store})
	a.Start()
	srv := httptest.NewServer(a.server.Handler())
	a.url = "ws" + strings.TrimPrefix(srv.URL, "http")
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		a.server.Close(ctx)
		a.Close()
		srv.Close()
	})
	return a
}

func (a *agent) waitTools(t testing.TB, n int) {
	t.Helper()
	end := time.Now().Add(patience)
	for len(a.server.Catalogue("tester")) != n {
		if time.Now().After(end) {
			t.Fatalf("waited %s for %d tools; there are %d", patience, n, len(a.server.Catalogue("tester")))
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// exchange sends one frame as the client and returns the answer to it.
func exchange(t testing.TB, c *wire.Conn, frame string) string {
	t.Helper()
	if err := c.WriteFrame([]byte(frame)); err != nil {
		t.Fatal(err)
	}
	for {
		b, err := c.ReadFrame(256 << 20)
		if err != nil {
			t.Fatal(err)
		}
		var m wire.Message
		if e := wire.Parse(b, &m); e != nil {
			t.Fatalf("%s: %v", b, e)
		}
		if m.IsResponse() {
			return string(b)
		}
	}
}

// TestThroughTheEndpoint follows raw bytes from a client's websocket through the
// endpoint to an attached host and back: every era on either side, odd ids.
func TestThroughTheEndpoint(t *testing.T) {
	const clientMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"com.example/t":1.0}`
	const hostMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"drawbridge","version":"test"}}`
	for _, hostEra := range []string{hosttest.Legacy, hosttest.Modern} {
		for _, clientEra := range []string{hosttest.Legacy, hosttest.Modern} {
			t.Run("client "+clientEra+" host "+hostEra, func(t *testing.T) {
				a := newAgent(t, Options{Main: "hoster"}, testLog(t))
				hello := `{"v":1}`
				if hostEra == hosttest.Modern {
					hello = `{"v":1,"protocolVersion":"2026-07-28"}`
				}
				h, err := oddHost(hostEra).Dial(a.url+"/host", a.host, hello)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { h.WS.Close(); <-h.Done }()
				a.waitTools(t, len(oddTools))
				c, err := wire.Dial(t.Context(), a.url+"/mcp", a.client)
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()

				meta, closing := ``, `}`
				if clientEra == hosttest.Modern {
					meta = `,` + clientMeta
					closing = `,"ttlMs":0,"cacheScope":"private","resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"drawbridge","title":"Drawbridge","version":"test"}}}`
				} else {
					exchange(t, c, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
					if err := c.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
						t.Fatal(err)
					}
				}
				list := exchange(t, c, `{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{`+strings.TrimPrefix(meta, ",")+`}}`)
				if want := `{"jsonrpc":"2.0","id":1,"result":{"tools":[` + strings.Join(oddTools, ",") + `]` + closing + `}`; list != want {
					t.Errorf("list: %s", difference(list, want))
				}
				for _, id := range []string{`"s-\u0031"`, `9007199254740993`, `1.50`, `-0`, `""`} {
					// A modern client gets added what its era asks for: resultType, and
					// who answers before the host's own metadata.
					want := oddResult
					if clientEra == hosttest.Modern {
						want = strings.Replace(oddResult[:len(oddResult)-1], `{"io.example/x"`, `{"io.modelcontextprotocol/serverInfo":{"name":"drawbridge","title":"Drawbridge","version":"test"},"io.example/x"`, 1) + `,"resultType":"complete"}`
					}
					got := exchange(t, c, `{"jsonrpc":"2.0","id":`+id+`,"method":"tools/call","params":{"name":"odd","arguments":`+oddArgs+meta+`}}`)
					if want = `{"jsonrpc":"2.0","id":` + id + `,"result":` + want + `}`; got != want {
						t.Errorf("result to id %s: %s", id, difference(got, want))
					}
				}
				got := exchange(t, c, `{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"fails","arguments":{}`+meta+`}}`)
				if want := `{"jsonrpc":"2.0","id":3,"error":` + oddError + `}`; got != want {
					t.Errorf("error: %s", difference(got, want))
				}
				// The params that the host saw.
				sent := `{"arguments":` + oddArgs + `,"name":"zeta"` + meta + `}`
				seen := sent
				if hostEra == hosttest.Modern {
					seen = `{"arguments":` + oddArgs + `,"name":"zeta",` + hostMeta + `}`
					if clientEra == hosttest.Modern {
						seen = sent[:len(sent)-2] + `,"io.modelcontextprotocol/clientInfo":{"name":"drawbridge","version":"test"}}}`
					}
				}
				got = exchange(t, c, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":`+sent+`}`)
				if want := `"structuredContent":{"params":` + seen + `}`; !strings.Contains(got, want) {
					t.Errorf("params that the host saw:\n got %s\nwant %s", got, want)
				}
			})
		}
	}
}

// TestHostRoute checks who may dial in, and that a revoked token ends it.
func TestHostRoute(t *testing.T) {
	a := newAgent(t, Options{}, testLog(t))
	d := websocket.Dialer{Subprotocols: []string{Subprotocol}}
	for name, c := range map[string]struct {
		token  string
		status int
	}{"no token": {"", 401}, "a wrong token": {"x", 401}, "a client's token": {a.client, 403}} {
		header := map[string][]string{}
		if c.token != "" {
			header["Authorization"] = []string{"Bearer " + c.token}
		}
		if _, res, err := d.Dial(a.url+"/host", header); err == nil || res == nil || res.StatusCode != c.status {
			t.Errorf("%s: response %v, error %v; want HTTP %d", name, res, err, c.status)
		}
	}
	s := &hosttest.Server{}
	s.SetTools(tool("a"))
	h, err := s.Dial(a.url+"/host", a.host, `{"v":1}`)
	if err != nil {
		t.Fatal(err)
	}
	a.waitTools(t, 1)
	if st := a.server.Status(); len(st.Clients) != 0 {
		t.Errorf("a host counts as a client: %+v", st.Clients)
	}
	if err := a.store.Revoke("hoster", token.Host); err != nil {
		t.Fatal(err)
	}
	if err := a.server.ReloadTokens(); err != nil {
		t.Fatal(err)
	}
	if _, reason := closedWith(t, h); reason != "the token was revoked" {
		t.Errorf("closed with %q", reason)
	}
	a.waitTools(t, 0)
}

// TestChangeIsRelayed shows that a host's new tool is told to a client.
func TestChangeIsRelayed(t *testing.T) {
	a := newAgent(t, Options{Main: "hoster"}, testLog(t))
	s := &hosttest.Server{}
	s.SetTools(tool("a"))
	h, err := s.Dial(a.url+"/host", a.host, `{"v":1}`)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { h.WS.Close(); <-h.Done }()
	a.waitTools(t, 1)
	c, err := wire.Dial(t.Context(), a.url+"/mcp", a.client)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	exchange(t, c, `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"c","version":"0"}}}`)
	if err := c.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`)); err != nil {
		t.Fatal(err)
	}
	exchange(t, c, `{"jsonrpc":"2.0","id":1,"method":"ping"}`) // it is heard by now
	s.SetTools(tool("a"), tool("b"))
	b, err := c.ReadFrame(1 << 20)
	if err != nil || string(b) != `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` {
		t.Errorf("heard %s, %v", b, err)
	}
	var m struct {
		Result struct{ Tools []struct{ Name string } }
	}
	if err := json.Unmarshal([]byte(exchange(t, c, `{"jsonrpc":"2.0","id":2,"method":"tools/list"}`)), &m); err != nil || len(m.Result.Tools) != 2 {
		t.Errorf("%+v, %v", m, err)
	}
}
