package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/packaging/endpoint"
)

// many is how many clients the throughput is measured at.
const many = 8

// The tool of both servers: it does nothing and says so.
const (
	noopSchema = `{"type":"object","properties":{"x":{"type":"integer"}},"required":["x"]}`
	noopResult = `{"content":[{"type":"text","text":"ok"}]}`
)

// noop is the tool as a source of ours.
type noop struct{}

func (noop) Name() string { return "bench" }

func (noop) Tools(string) []bridge.Tool {
	return []bridge.Tool{{Name: "noop", Definition: json.RawMessage(`{"name":"noop","inputSchema":` + noopSchema + `}`)}}
}

func (noop) Prepare(context.Context, *bridge.Call) (*bridge.Prepared, *bridge.Answer) {
	return &bridge.Prepared{
		Default: gate.DefaultAllow,
		Run: func(context.Context) bridge.Answer {
			return bridge.Answer{Result: json.RawMessage(noopResult)}
		},
	}, nil
}

// side is one of the things that are compared.
type side struct {
	clients []call
	got     []result
}

// calls measures a tool that does nothing, through the real gate and the real
// audit. Servers and clients all live in this process.
func calls(ctx context.Context, b *bench) (_ []row, err error) {
	ours, err := endpoint.Serve(ctx, filepath.Join(b.dir, "calls"), noop{})
	if err != nil {
		return nil, err
	}
	defer func() {
		if e := ours.Close(); err == nil {
			err = e
		}
	}()
	echo, sdk := httptest.NewServer(http.HandlerFunc(echoServer)), sdkServer()
	defer echo.Close()
	defer sdk.Close()

	var closers []io.Closer
	defer func() {
		for _, c := range closers {
			c.Close()
		}
	}()
	clients := func(n int, dial func(context.Context) (call, io.Closer, error)) (*side, error) {
		s := &side{}
		for range n {
			c, closer, err := dial(ctx)
			if err != nil {
				return nil, err
			}
			closers = append(closers, closer)
			s.clients = append(s.clients, c)
		}
		return s, nil
	}
	dialOurs := func(ctx context.Context) (call, io.Closer, error) {
		return dialOurServer(ctx, ours.WebSocket(), ours.Token)
	}
	dialEcho := func(ctx context.Context) (call, io.Closer, error) {
		return dialEchoServer(ctx, "ws"+strings.TrimPrefix(echo.URL, "http"))
	}
	dialSDK := func(ctx context.Context) (call, io.Closer, error) { return dialSDKClient(ctx, sdk.URL) }
	dialHTTP := func(ctx context.Context) (call, io.Closer, error) { return dialRawHTTP(ctx, sdk.URL) }

	var oursOne, echoOne, oursMany, sdkMany, rawMany *side
	for _, s := range []struct {
		to   **side
		n    int
		dial func(context.Context) (call, io.Closer, error)
	}{
		{&oursOne, 1, dialOurs}, {&echoOne, 1, dialEcho},
		{&oursMany, many, dialOurs}, {&sdkMany, many, dialSDK}, {&rawMany, many, dialHTTP},
	} {
		if *s.to, err = clients(s.n, s.dial); err != nil {
			return nil, err
		}
	}
	for range b.rounds {
		for _, s := range []*side{oursOne, echoOne, oursMany, sdkMany, rawMany} {
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			r, err := loop(s.clients, b.round)
			if err != nil {
				return nil, err
			}
			s.got = append(s.got, r)
		}
	}
	return []row{
		{
			what: "no-op `tools/call` through gate and audit, 1 client over websocket, p50",
			ours: micros(median(p50(oursOne))), peer: micros(median(p50(echoOne))) + ", bare gorilla/websocket echo of the same frame",
			measured: ratios(p50(oursOne), p50(echoOne)), limit: 3,
		},
		{
			what: fmt.Sprintf("the same, calls a second at %d clients (ours: websocket, client of raw frames)", many),
			ours: perSecond(oursMany), peer: perSecond(sdkMany) + ", official Go SDK: streamable HTTP server with JSON answers, its own client",
			measured: ratios(rates(oursMany), rates(sdkMany)), limit: 8, atLeast: true,
		},
		{
			what: "the same, the SDK's server driven by a client of raw HTTP",
			ours: perSecond(oursMany), peer: perSecond(rawMany) + ", official Go SDK server, net/http client with a ready body",
			measured: ratios(rates(oursMany), rates(rawMany)),
		},
	}, nil
}

func p50(s *side) []time.Duration {
	var v []time.Duration
	for _, r := range s.got {
		v = append(v, r.p50)
	}
	return v
}

func rates(s *side) []float64 {
	var v []float64
	for _, r := range s.got {
		v = append(v, r.perSecond)
	}
	return v
}

func perSecond(s *side) string { return fmt.Sprintf("%.0f/s", median(rates(s))) }

const noopCall = `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"noop","arguments":{"x":%d}}}`

func dialOurServer(ctx context.Context, url, token string) (call, io.Closer, error) {
	c, err := dial(ctx, url, token)
	if err != nil {
		return nil, nil, err
	}
	return func() error {
		c.id++
		answer, err := c.trip(fmt.Appendf(nil, noopCall, c.id, c.id))
		if err != nil {
			return err
		}
		return checkAnswer(answer)
	}, c, nil
}

func checkAnswer(answer []byte) error {
	if !bytes.Contains(answer, []byte(`"text":"ok"`)) {
		return fmt.Errorf("not the tool's answer: %.200s", answer)
	}
	return nil
}

func echoServer(w http.ResponseWriter, r *http.Request) {
	up := websocket.Upgrader{}
	conn, err := up.Upgrade(w, r, nil)
	if err != nil {
		return
	}
	defer conn.Close()
	for {
		kind, frame, err := conn.ReadMessage()
		if err != nil || conn.WriteMessage(kind, frame) != nil {
			return
		}
	}
}

func dialEchoServer(ctx context.Context, url string) (call, io.Closer, error) {
	conn, _, err := websocket.DefaultDialer.DialContext(ctx, url, nil)
	if err != nil {
		return nil, nil, err
	}
	id := 0
	return func() error {
		id++
		if err := conn.WriteMessage(websocket.TextMessage, fmt.Appendf(nil, noopCall, id, id)); err != nil {
			return err
		}
		_, _, err := conn.ReadMessage()
		return err
	}, conn, nil
}

// sdkServer serves the same tool with the official Go SDK, in its fastest way of
// streamable HTTP: a session, and answers as plain JSON.
func sdkServer() *httptest.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
	tool := &mcp.Tool{Name: "noop", InputSchema: json.RawMessage(noopSchema)}
	s.AddTool(tool, func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "ok"}}}, nil
	})
	return httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s },
		&mcp.StreamableHTTPOptions{JSONResponse: true}))
}

func dialSDKClient(ctx context.Context, url string) (call, io.Closer, error) {
	c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
	session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: url, HTTPClient: keepAlive()},
		&mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		return nil, nil, err
	}
	x := 0
	return func() error {
		x++
		res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "noop", Arguments: map[string]any{"x": x}})
		if err != nil {
			return err
		}
		if text, ok := res.Content[0].(*mcp.TextContent); !ok || text.Text != "ok" {
			return fmt.Errorf("not the tool's answer: %+v", res)
		}
		return nil
	}, session, nil
}

// dialRawHTTP calls the SDK's server with bodies that are put together by hand.
func dialRawHTTP(ctx context.Context, url string) (call, io.Closer, error) {
	client := keepAlive()
	session := ""
	post := func(body []byte) ([]byte, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewReader(body))
		if err != nil {
			return nil, err
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "application/json, text/event-stream")
		if session != "" {
			r.Header.Set("Mcp-Session-Id", session)
			r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
		}
		res, err := client.Do(r)
		if err != nil {
			return nil, err
		}
		defer res.Body.Close()
		if s := res.Header.Get("Mcp-Session-Id"); s != "" {
			session = s
		}
		return io.ReadAll(res.Body)
	}
	for _, body := range []string{initialize, initialized} {
		if _, err := post([]byte(body)); err != nil {
			return nil, nil, err
		}
	}
	id := 0
	return func() error {
		id++
		answer, err := post(fmt.Appendf(nil, noopCall, id, id))
		if err != nil {
			return err
		}
		return checkAnswer(answer)
	}, closerFunc(client.CloseIdleConnections), nil
}

// keepAlive is a client with connections of its own, which it keeps.
func keepAlive() *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = many
	return &http.Client{Transport: t}
}

type closerFunc func()

func (f closerFunc) Close() error { f(); return nil }
