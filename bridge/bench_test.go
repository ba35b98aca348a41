package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"drawbridge/bridge/audit"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// fileAudit writes one line a record with one write an Append: what the real
// audit costs the kernel, without its redaction and hashing.
type fileAudit struct {
	mu  sync.Mutex // guards f and buf
	f   *os.File
	buf []byte
}

func (a *fileAudit) Append(recs ...audit.Record) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.buf = a.buf[:0]
	for _, r := range recs {
		a.buf = fmt.Appendf(a.buf, `{"phase":%q,"id":%q,"client":%q,"tool":%q,"outcome":%q,"args":%s}`+"\n", r.Phase, r.ID, r.Client, r.Tool, r.Outcome, r.Args)
	}
	_, _ = a.f.Write(a.buf)
}

// dialBench returns a closed-loop exchange over a websocket.
func dialBench(b *testing.B, url, token string) func(id int) {
	d := websocket.Dialer{Subprotocols: []string{"mcp"}}
	c, _, err := d.Dial(url, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return func(id int) {
		if err := c.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"noop","arguments":{"x":%d}}}`, id, id)); err != nil {
			b.Fatal(err)
		}
		if _, _, err := c.ReadMessage(); err != nil {
			b.Fatal(err)
		}
	}
}

func newBenchRig(b *testing.B) *rig {
	f, err := os.Create(filepath.Join(b.TempDir(), "audit"))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = f.Close() })
	return newRig(b, func(o *Options) { o.Audit = &fileAudit{f: f} })
}

func echoServer(b *testing.B) string {
	up := websocket.Upgrader{}
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := up.Upgrade(w, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		for {
			kind, m, err := c.ReadMessage()
			if err != nil || c.WriteMessage(kind, m) != nil {
				return
			}
		}
	}))
	b.Cleanup(srv.Close)
	return "ws" + strings.TrimPrefix(srv.URL, "http")
}

// BenchmarkNoopCallOverEcho takes turns between a no-op call and a bare gorilla
// echo and reports the ratio of the medians.
func BenchmarkNoopCallOverEcho(b *testing.B) {
	r := newBenchRig(b)
	call := dialBench(b, r.wsURL(), r.token)
	echo := dialBench(b, echoServer(b), "")
	var calls, echoes []time.Duration
	id := 0
	for b.Loop() {
		// Blocks, so that each has its caches warm, as in use.
		for range 50 {
			id++
			t := time.Now()
			call(id)
			calls = append(calls, time.Since(t))
		}
		for range 50 {
			id++
			t := time.Now()
			echo(id)
			echoes = append(echoes, time.Since(t))
		}
	}
	slices.Sort(calls)
	slices.Sort(echoes)
	c, e := calls[len(calls)/2], echoes[len(echoes)/2]
	b.ReportMetric(float64(c.Nanoseconds())/1000, "call-p50-µs")
	b.ReportMetric(float64(e.Nanoseconds())/1000, "echo-p50-µs")
	b.ReportMetric(float64(c)/float64(e), "p50-ratio")
}

// sdkCaller is the official SDK, client and server over streamable HTTP with
// JSON responses, as in the published figures.
func sdkCaller(b *testing.B) func() func(int) {
	server := mcp.NewServer(&mcp.Implementation{Name: "b", Version: "0"}, nil)
	server.AddTool(&mcp.Tool{Name: "noop", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil
	})
	srv := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
	b.Cleanup(srv.Close)
	return func() func(int) {
		client := mcp.NewClient(&mcp.Implementation{Name: "c", Version: "0"}, nil)
		session, err := client.Connect(b.Context(), &mcp.StreamableClientTransport{Endpoint: srv.URL, HTTPClient: &http.Client{Transport: &http.Transport{}}}, nil)
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = session.Close() })
		return func(id int) {
			if _, err := session.CallTool(context.Background(), &mcp.CallToolParams{Name: "noop", Arguments: map[string]any{"x": id}}); err != nil {
				b.Error(err)
			}
		}
	}
}

// BenchmarkNoopCallOverSDK takes turns between 8 clients of ours and 8 of the
// official SDK and reports the ratio of the calls a second.
func BenchmarkNoopCallOverSDK(b *testing.B) {
	const clients, each = 8, 100
	r := newBenchRig(b)
	sdk := sdkCaller(b)
	var ours, theirs []func(int)
	for range clients {
		ours = append(ours, dialBench(b, r.wsURL(), r.token))
		theirs = append(theirs, sdk())
	}
	round := func(calls []func(int)) time.Duration {
		began := time.Now()
		var wg sync.WaitGroup
		for _, call := range calls {
			wg.Go(func() {
				for id := range each {
					call(id + 1)
				}
			})
		}
		wg.Wait()
		return time.Since(began)
	}
	var mine, other time.Duration
	n := 0
	for b.Loop() {
		mine += round(ours)
		other += round(theirs)
		n += clients * each
	}
	b.ReportMetric(float64(n)/mine.Seconds(), "calls/s")
	b.ReportMetric(float64(n)/other.Seconds(), "sdk-calls/s")
	b.ReportMetric(other.Seconds()/mine.Seconds(), "ratio")
}

// BenchmarkNoopCall measures calls a second with 1 and with 8 clients.
func BenchmarkNoopCall(b *testing.B) {
	for _, clients := range []int{1, 8} {
		b.Run(fmt.Sprintf("clients=%d", clients), func(b *testing.B) {
			b.ReportAllocs()
			r := newBenchRig(b)
			calls := make([]func(int), clients)
			for i := range calls {
				calls[i] = dialBench(b, r.wsURL(), r.token)
			}
			var wg sync.WaitGroup
			b.ResetTimer()
			for i, call := range calls {
				n := b.N / clients
				if i < b.N%clients {
					n++
				}
				wg.Go(func() {
					for id := range n {
						call(id)
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "calls/s")
		})
	}
}
