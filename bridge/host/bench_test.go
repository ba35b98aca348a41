package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/wire"
)

// direct serves the same host as a plain websocket server, to be called without
// an agent between.
func direct(b *testing.B, s *hosttest.Server) string {
	up := websocket.Upgrader{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		ws, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		s.Serve(ws)
	}))
	b.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http")
}

// BenchmarkThroughOverDirect takes turns between a call that goes through the
// agent to an attached host and the same call to that host's own websocket, and
// reports the ratio of the medians.
func BenchmarkThroughOverDirect(b *testing.B) {
	s := &hosttest.Server{Call: func(context.Context, *hosttest.Call) (json.RawMessage, json.RawMessage) {
		return json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`), nil
	}}
	s.SetTools(tool("noop"))
	a := newAgent(b, Options{Main: "hoster"}, zerolog.Nop())
	h, err := s.Dial(a.url+"/host", a.host, `{"v":1}`)
	if err != nil {
		b.Fatal(err)
	}
	defer h.WS.Close()
	a.waitTools(b, 1)
	loop := func(url string, header http.Header) func(id int) time.Duration {
		d := websocket.Dialer{Subprotocols: []string{"mcp"}}
		c, _, err := d.Dial(url, header)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { c.Close() })
		return func(id int) time.Duration {
			t := time.Now()
			if err := c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"noop","arguments":{"x":%d}}}`, id, id)); err != nil {
				b.Fatal(err)
			}
			if _, _, err := c.ReadMessage(); err != nil {
				b.Fatal(err)
			}
			return time.Since(t)
		}
	}
	through := loop(a.url+"/mcp", http.Header{"Authorization": {"Bearer " + a.client}})
	straight := loop(direct(b, s), nil)
	var t, d []time.Duration
	id := 0
	for b.Loop() {
		for range 50 { // in blocks, so that each has its caches warm, as in use
			id++
			t = append(t, through(id))
		}
		for range 50 {
			id++
			d = append(d, straight(id))
		}
	}
	slices.Sort(t)
	slices.Sort(d)
	p, q := t[len(t)/2], d[len(d)/2]
	b.ReportMetric(float64(p.Nanoseconds())/1000, "through-p50-µs")
	b.ReportMetric(float64(q.Nanoseconds())/1000, "direct-p50-µs")
	b.ReportMetric(float64(p)/float64(q), "p50-ratio")
}

// BenchmarkList lists 10,000 tools of 50 hosts for a client.
func BenchmarkList(b *testing.B) {
	a := newAgent(b, Options{}, zerolog.Nop())
	for i := range 50 {
		s := &hosttest.Server{}
		var defs []string
		for j := range 200 {
			defs = append(defs, fmt.Sprintf(`{"name":"tool_%d","description":"does what tool %d of host %d does, and says so in a sentence of usual length","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"]}}`, j, j, i))
		}
		s.SetTools(defs...)
		h, err := s.Dial(a.url+"/host", a.host, fmt.Sprintf(`{"v":1,"name":"host%d"}`, i))
		if err != nil {
			b.Fatal(err)
		}
		defer h.WS.Close()
	}
	a.waitTools(b, 10_000)
	c, err := wire.Dial(context.Background(), a.url+"/mcp", a.client)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	var size int
	for b.Loop() {
		if err := c.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)); err != nil {
			b.Fatal(err)
		}
		frame, err := c.ReadFrame(1 << 30)
		if err != nil {
			b.Fatal(err)
		}
		size = len(frame)
	}
	b.ReportMetric(float64(size)/(1<<20), "MiB")
}

// BenchmarkBigResult passes a result of 48 MiB of data (64 MiB of base64) from an
// attached host to a client.
func BenchmarkBigResult(b *testing.B) {
	big := bigResult()
	s := &hosttest.Server{Call: func(context.Context, *hosttest.Call) (json.RawMessage, json.RawMessage) { return big, nil }}
	s.SetTools(tool("big"))
	a := newAgent(b, Options{Main: "hoster"}, zerolog.Nop())
	h, err := s.Dial(a.url+"/host", a.host, `{"v":1}`)
	if err != nil {
		b.Fatal(err)
	}
	defer h.WS.Close()
	a.waitTools(b, 1)
	c, err := wire.Dial(context.Background(), a.url+"/mcp", a.client)
	if err != nil {
		b.Fatal(err)
	}
	defer c.Close()
	b.SetBytes(int64(len(big)))
	for b.Loop() {
		if err := c.WriteFrame([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"big"}}`)); err != nil {
			b.Fatal(err)
		}
		if _, err := c.ReadFrame(1 << 30); err != nil {
			b.Fatal(err)
		}
	}
}
