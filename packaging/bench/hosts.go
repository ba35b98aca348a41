package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/token"
	"drawbridge/packaging/agent"
	"drawbridge/packaging/endpoint"
)

// Sizes of the measurements with hosts.
const (
	manyHosts    = 50
	toolsPerHost = 200
	bigData      = 48 << 20 // bytes, before base64
	toolsName    = "tools"  // the host's
	bigTool      = "big"
	piecesTool   = "pieces_big" // of a host named pieces
)

// hosts measures calls that go through the agent to a host that has dialled in.
func hosts(ctx context.Context, b *bench) ([]row, error) {
	through, err := hostCalls(ctx, b)
	if err != nil {
		return nil, err
	}
	list, err := hostList(ctx, b)
	if err != nil {
		return nil, err
	}
	big, err := hostBig(ctx, b)
	return append(append(through, list...), big...), err
}

// hostCalls compares a call through the agent with the same call to the host's
// own websocket.
func hostCalls(ctx context.Context, b *bench) (_ []row, err error) {
	e, err := endpoint.Serve(ctx, filepath.Join(b.dir, "hosts"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	h := &hosttest.Server{Call: func(context.Context, *hosttest.Call) (json.RawMessage, json.RawMessage) {
		return json.RawMessage(noopResult), nil
	}}
	h.SetTools(`{"name":"noop","inputSchema":` + noopSchema + `}`)
	session, err := h.Dial(e.HostSocket(), e.HostToken, `{"v":1}`)
	if err != nil {
		return nil, err
	}
	defer session.WS.Close()
	if err := waitTools(ctx, 1, func() int { return len(e.Server.Catalogue(token.DefaultName)) }); err != nil {
		return nil, err
	}
	own := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		up := websocket.Upgrader{Subprotocols: []string{"mcp"}}
		if ws, err := up.Upgrade(w, r, nil); err == nil {
			_ = h.Serve(ws) // until the client is gone
		}
	}))
	defer own.Close()
	direct := "ws" + strings.TrimPrefix(own.URL, "http")
	relay, err := newRelay(direct, filepath.Join(b.dir, "relay"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, relay.close()) }()
	sides := make([]*side, 3)
	for i, at := range []struct{ url, token string }{{e.WebSocket(), e.Token}, {direct, ""}, {relay.url(), ""}} {
		c, closer, err := dialOurServer(ctx, at.url, at.token)
		if err != nil {
			return nil, err
		}
		defer closer.Close()
		sides[i] = &side{clients: []call{c}}
	}
	for range b.rounds {
		for _, s := range sides {
			r, err := loop(s.clients, b.round)
			if err != nil {
				return nil, err
			}
			s.got = append(s.got, r)
		}
	}
	return []row{{
		what: "no-op call through the agent to an attached host, 1 client, p50",
		ours: micros(median(p50(sides[0]))), peer: micros(median(p50(sides[1]))) + ", the same call to that host's own websocket",
		measured: ratios(p50(sides[0]), p50(sides[1])), limit: 2,
	}, {
		what: "the same through a bare relay (frames copied unread, two short lines written to a file), p50: what being in between costs at least",
		ours: micros(median(p50(sides[2]))) + ", the relay", peer: micros(median(p50(sides[1]))) + ", the same call to that host's own websocket",
		measured: ratios(p50(sides[2]), p50(sides[1])),
	}, {
		what: "the call through the agent, against that relay",
		ours: micros(median(p50(sides[0]))), peer: micros(median(p50(sides[2]))) + ", the relay",
		measured: ratios(p50(sides[0]), p50(sides[2])),
	}}, nil
}

func waitTools(ctx context.Context, n int, have func() int) error {
	for end := time.Now().Add(time.Minute); have() < n; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) || ctx.Err() != nil {
			return fmt.Errorf("the hosts' %d tools were not listed; there are %d", n, have())
		}
	}
	return nil
}

// hostList measures tools/list with many hosts attached.
func hostList(ctx context.Context, b *bench) (_ []row, err error) {
	e, err := endpoint.Serve(ctx, filepath.Join(b.dir, "list"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	for i := range manyHosts {
		h := &hosttest.Server{}
		var defs []string
		for j := range toolsPerHost {
			defs = append(defs, fmt.Sprintf(`{"name":"tool_%d","description":"does what tool %d of host %d does, and says so in a sentence of usual length","inputSchema":{"type":"object","properties":{"path":{"type":"string"},"n":{"type":"integer"}},"required":["path"]}}`, j, j, i))
		}
		h.SetTools(defs...)
		session, err := h.Dial(e.HostSocket(), e.HostToken, fmt.Sprintf(`{"v":1,"name":"host%d"}`, i))
		if err != nil {
			return nil, err
		}
		defer session.WS.Close()
	}
	if err := waitTools(ctx, manyHosts*toolsPerHost, func() int { return len(e.Server.Catalogue(token.DefaultName)) }); err != nil {
		return nil, err
	}
	c, err := dial(ctx, e.WebSocket(), e.Token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var took []time.Duration
	size := 0
	for range 4 * b.rounds {
		begin := time.Now()
		answer, err := c.trip([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`))
		if err != nil {
			return nil, err
		}
		took = append(took, time.Since(begin))
		size = len(answer)
	}
	return []row{{
		what:     fmt.Sprintf("`tools/list` with %d hosts of %d tools (%.1f MiB), received", manyHosts, toolsPerHost, float64(size)/(1<<20)),
		ours:     millis(median(took)),
		measured: float64(median(took)) / float64(time.Millisecond), unit: "ms", limit: 20,
	}}, nil
}

// hostBig passes a large result from a host to a client: through the built agent,
// whose memory is watched, and through a gateway made of the official SDK.
func hostBig(ctx context.Context, b *bench) (_ []row, err error) {
	dir := filepath.Join(b.dir, "big")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	if err := os.WriteFile(config, []byte("main_host: "+toolsName+"\n"), 0o600); err != nil {
		return nil, err
	}
	state := filepath.Join(dir, "state")
	a, err := agent.Start(ctx, agent.Options{Bin: b.bin, State: state,
		Args: []string{"--config", config, "--backend", "simulated", "--allow", "*"}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, a.Stop()) }()
	tokens, err := token.Open(state)
	if err != nil {
		return nil, err
	}
	secret, err := tokens.Add(toolsName, token.Host, "")
	if err != nil {
		return nil, err
	}
	data := bytes.Repeat([]byte("QUJD"), bigData/3)
	big := append(append([]byte(`{"content":[{"type":"image","mimeType":"image/png","data":"`), data...), `"}]}`...)
	h := &hosttest.Server{Call: func(context.Context, *hosttest.Call) (json.RawMessage, json.RawMessage) { return big, nil }}
	h.SetTools(`{"name":"` + bigTool + `","inputSchema":{"type":"object"}}`)
	// The same tool once more in a host that cuts its messages into small frames.
	pieces := &hosttest.Server{Call: h.Call, Fragmented: true}
	pieces.SetTools(`{"name":"` + bigTool + `","inputSchema":{"type":"object"}}`)
	for _, x := range []struct {
		host  *hosttest.Server
		hello string
	}{{h, `{"v":1}`}, {pieces, `{"v":1,"name":"pieces"}`}} {
		session, err := x.host.Dial("ws://"+a.Host+"/host", secret, x.hello)
		if err != nil {
			return nil, err
		}
		defer session.WS.Close()
	}
	c, err := dial(ctx, a.WebSocket(), a.Token)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	ours := func(tool string) (time.Duration, error) {
		begin := time.Now()
		answer, err := c.callTool(tool, `{}`)
		if err == nil && !bytes.Contains(answer, big) {
			err = fmt.Errorf("the result did not come through: %.200s", answer)
		}
		return time.Since(begin), err
	}
	if err := waitTools(ctx, 3, func() int {
		list, err := c.trip([]byte(`{"jsonrpc":"2.0","id":"list","method":"tools/list"}`))
		if err != nil {
			return 0
		}
		return bytes.Count(list, []byte(`"inputSchema"`)) // and computer
	}); err != nil {
		return nil, err
	}
	peer, stop, err := sdkGateway(ctx, big)
	if err != nil {
		return nil, err
	}
	defer stop()
	var our, their []time.Duration
	for range max(2, b.rounds/3) {
		t, err := ours(bigTool)
		if err != nil {
			return nil, err
		}
		u, err := peer()
		if err != nil {
			return nil, err
		}
		our, their = append(our, t), append(their, u)
	}
	rows := []row{{
		what: fmt.Sprintf("result of %d MiB (%d MiB as base64) from a host to a client", bigData>>20, len(big)>>20),
		ours: millis(median(our)), peer: millis(median(their)) + ", a gateway of the official Go SDK on both sides, its client and server",
		measured: ratios(their, our), limit: 10, atLeast: true,
	}}
	peak := func(what string) row {
		what = "peak memory of the agent over " + what + ", against the message"
		kib, err := statusField(fmt.Sprintf("/proc/%d/status", a.PID), "VmHWM")
		if err != nil {
			return row{what: what, missing: oneLine(err.Error())}
		}
		peak := int64(kib) << 10
		return row{
			what: what,
			ours: fmt.Sprintf("%d MiB", peak>>20), peer: fmt.Sprintf("%d MiB, the message", len(big)>>20),
			measured: float64(peak) / float64(len(big)), limit: 2,
		}
	}
	rows = append(rows, peak("that"))
	for range len(our) {
		if _, err := ours(piecesTool); err != nil {
			return nil, err
		}
	}
	return append(rows, peak("the same in frames of 4 KiB")), nil
}

// sdkGateway is a host, a gateway and a client, all made with the official SDK
// over streamable HTTP. It returns one timed call, and what ends it all.
func sdkGateway(ctx context.Context, result json.RawMessage) (func() (time.Duration, error), func(), error) {
	var m mcp.CallToolResult
	if err := json.Unmarshal(result, &m); err != nil {
		return nil, nil, err
	}
	var closers []io.Closer
	stop := func() {
		for _, c := range closers {
			_ = c.Close() // the measurement is over
		}
	}
	// serve makes a server of one tool, and a client of it.
	serve := func(run mcp.ToolHandler) (*mcp.ClientSession, error) {
		s := mcp.NewServer(&mcp.Implementation{Name: "peer", Version: "1"}, nil)
		s.AddTool(&mcp.Tool{Name: "big", InputSchema: json.RawMessage(`{"type":"object"}`)}, run)
		web := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return s }, &mcp.StreamableHTTPOptions{JSONResponse: true}))
		closers = append(closers, closerFunc(web.Close))
		c := mcp.NewClient(&mcp.Implementation{Name: "bench", Version: "1"}, nil)
		session, err := c.Connect(ctx, &mcp.StreamableClientTransport{Endpoint: web.URL, HTTPClient: keepAlive()}, &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
		if err == nil {
			closers = append([]io.Closer{session}, closers...)
		}
		return session, err
	}
	toHost, err := serve(func(context.Context, *mcp.CallToolRequest) (*mcp.CallToolResult, error) { return &m, nil })
	if err != nil {
		stop()
		return nil, nil, err
	}
	toGateway, err := serve(func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		return toHost.CallTool(ctx, &mcp.CallToolParams{Name: r.Params.Name, Arguments: r.Params.Arguments})
	})
	if err != nil {
		stop()
		return nil, nil, err
	}
	return func() (time.Duration, error) {
		begin := time.Now()
		res, err := toGateway.CallTool(ctx, &mcp.CallToolParams{Name: "big", Arguments: map[string]any{}})
		if err == nil && (len(res.Content) != 1 || res.IsError) {
			err = fmt.Errorf("the result did not come through the gateway: %d blocks", len(res.Content))
		}
		return time.Since(begin), err
	}, stop, nil
}
