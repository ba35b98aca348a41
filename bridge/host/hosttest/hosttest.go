// Package hosttest is an MCP server for tests and benchmarks. It deals in raw
// bytes, so that a test decides every byte that a host sends and sees every byte
// that it gets. It speaks both eras as the specification's revisions 2025-11-25
// and 2026-07-28 say, over stdio, Streamable HTTP, and a websocket that it dials.
package hosttest

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// Eras that a Server speaks.
const (
	Legacy = "2025-11-25"
	Modern = "2026-07-28"
)

// Server is one host. Its fields are set before it serves.
type Server struct {
	Era      string // Legacy or Modern; empty: Legacy
	PageSize int    // tools on a page of tools/list; 0: all
	// Silent makes it give no answer to methods that it does not know, as some
	// programs do.
	Silent bool
	// Fragmented makes a host that dials in cut its messages into frames of 4 KiB,
	// which is gorilla's way. Node, Bun and browsers send one, whatever its size.
	Fragmented bool
	// WillAsk answers drawbridge/willAsk by the raw params; nil: it cannot tell.
	WillAsk func(params json.RawMessage) bool
	// HostLLM answers drawbridge/hostLlm by the raw params with a raw result; nil:
	// it does not know it.
	HostLLM func(params json.RawMessage) string
	// Call runs a tool. Exactly one of result and rpcErr is set; with neither,
	// no answer is sent. nil: Echo.
	Call func(ctx context.Context, c *Call) (result, rpcErr json.RawMessage)

	mu        sync.Mutex // guards what follows
	tools     []json.RawMessage
	lists     int // tools/list requests
	cancelled []string
	peers     map[*Peer]bool
	changes   int // bumped by SetTools
}

// Call is one tools/call as it came.
type Call struct {
	ID     json.RawMessage
	Name   string
	Params json.RawMessage
	Peer   *Peer
	// Raw is for tests that answer out of order: it sends any frame.
	Raw func(frame string)
}

// Peer is one connection, or one HTTP request.
type Peer struct {
	send   func(frame []byte) error
	mu     sync.Mutex // guards what follows
	open   map[string]context.CancelFunc
	listen json.RawMessage // the id of an open subscription
	others sync.WaitGroup
}

// Echo answers with the params as they came.
func Echo(_ context.Context, c *Call) (result, rpcErr json.RawMessage) {
	return json.RawMessage(`{"content":[],"structuredContent":{"params":` + string(c.Params) + `}}`), nil
}

// SetTools sets the raw definitions and tells every peer.
func (s *Server) SetTools(defs ...string) {
	s.mu.Lock()
	s.tools = nil
	for _, d := range defs {
		s.tools = append(s.tools, json.RawMessage(d))
	}
	s.changes++
	s.mu.Unlock()
	s.Changed()
}

// Changed tells every peer that the tools have changed.
func (s *Server) Changed() {
	s.mu.Lock()
	peers := make([]*Peer, 0, len(s.peers))
	for p := range s.peers {
		peers = append(peers, p)
	}
	s.mu.Unlock()
	for _, p := range peers {
		p.mu.Lock()
		id := p.listen
		p.mu.Unlock()
		switch {
		case s.Era != Modern:
			p.Notify("notifications/tools/list_changed", `{}`)
		case id != nil:
			p.Notify("notifications/tools/list_changed", `{"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(id)+`}}`)
		}
	}
}

// Lists returns how often the tools were asked for.
func (s *Server) Lists() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lists
}

// Cancelled returns the ids that were cancelled, raw, in order.
func (s *Server) Cancelled() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.cancelled...)
}

// Notify sends a notification.
func (p *Peer) Notify(method, params string) {
	_ = p.send([]byte(`{"jsonrpc":"2.0","method":"` + method + `","params":` + params + `}`))
}

// Send sends any frame.
func (p *Peer) Send(frame string) error { return p.send([]byte(frame)) }

func (s *Server) peer(send func([]byte) error) *Peer {
	p := &Peer{send: send, open: map[string]context.CancelFunc{}}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.peers == nil {
		s.peers = map[*Peer]bool{}
	}
	s.peers[p] = true
	return p
}

// drop ends what a peer has open and waits for it.
func (s *Server) drop(p *Peer) {
	s.mu.Lock()
	delete(s.peers, p)
	s.mu.Unlock()
	p.mu.Lock()
	for _, cancel := range p.open {
		cancel()
	}
	p.mu.Unlock()
	p.others.Wait()
}

type message struct {
	ID     json.RawMessage `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
}

// handle takes one frame. It returns at once; calls run beside it.
func (s *Server) handle(p *Peer, frame []byte) {
	var m message
	if json.Unmarshal(frame, &m) != nil || m.Method == "" {
		return
	}
	reply := func(key, raw string) {
		_ = p.send([]byte(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"` + key + `":` + raw + `}`))
	}
	switch {
	case m.Method == "initialize" && s.Era != Modern:
		more := ""
		if s.WillAsk != nil {
			more = `,"experimental":{"drawbridge/willAsk":{}}`
		}
		reply("result", `{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true}`+more+`},"serverInfo":{"name":"hosttest","version":"1"}}`)
	case m.Method == "server/discover" && s.Era == Modern:
		reply("result", `{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{"tools":{"listChanged":true}},"ttlMs":0,"cacheScope":"private","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"hosttest","version":"1"}}}`)
	case m.Method == "ping" && s.Era != Modern:
		reply("result", `{}`)
	case m.Method == "tools/list":
		reply("result", s.page(m.Params))
	case m.Method == "tools/call":
		s.call(p, m, reply)
	case m.Method == "drawbridge/willAsk" && s.WillAsk != nil:
		reply("result", fmt.Sprintf(`{"asks":%t}`, s.WillAsk(m.Params)))
	case m.Method == "drawbridge/hostLlm" && s.HostLLM != nil:
		reply("result", s.HostLLM(m.Params))
	case m.Method == "subscriptions/listen" && s.Era == Modern:
		p.mu.Lock()
		p.listen = m.ID
		p.mu.Unlock()
		p.Notify("notifications/subscriptions/acknowledged", `{"notifications":{"toolsListChanged":true},"_meta":{"io.modelcontextprotocol/subscriptionId":`+string(m.ID)+`}}`)
	case m.Method == "notifications/cancelled":
		var c struct {
			ID json.RawMessage `json:"requestId"`
		}
		_ = json.Unmarshal(m.Params, &c)
		s.mu.Lock()
		s.cancelled = append(s.cancelled, string(c.ID))
		s.mu.Unlock()
		p.mu.Lock()
		if cancel := p.open[string(c.ID)]; cancel != nil {
			cancel()
		}
		p.mu.Unlock()
	case m.ID != nil && !s.Silent:
		reply("error", `{"code":-32601,"message":"Method not found"}`)
	}
}

func (s *Server) call(p *Peer, m message, reply func(key, raw string)) {
	var c struct {
		Name string `json:"name"`
	}
	_ = json.Unmarshal(m.Params, &c)
	run := s.Call
	if run == nil {
		run = Echo
	}
	ctx, cancel := context.WithCancel(context.Background())
	p.mu.Lock()
	p.open[string(m.ID)] = cancel
	p.mu.Unlock()
	p.others.Add(1)
	go func() {
		defer p.others.Done()
		defer cancel()
		result, rpcErr := run(ctx, &Call{ID: m.ID, Name: c.Name, Params: m.Params, Peer: p, Raw: func(f string) { _ = p.Send(f) }})
		p.mu.Lock()
		delete(p.open, string(m.ID))
		p.mu.Unlock()
		switch {
		case ctx.Err() != nil: // cancelled requests are not answered
		case rpcErr != nil:
			reply("error", string(rpcErr))
		case result != nil:
			reply("result", string(result))
		}
	}()
}

func (s *Server) page(params json.RawMessage) string {
	var q struct {
		Cursor string `json:"cursor"`
	}
	_ = json.Unmarshal(params, &q)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lists++
	from, _ := strconv.Atoi(q.Cursor)
	from = min(from, len(s.tools))
	to, next := len(s.tools), ""
	if s.PageSize > 0 && from+s.PageSize < to {
		to = from + s.PageSize
		next = fmt.Sprintf(`,"nextCursor":"%d"`, to)
	}
	more := ""
	if s.Era == Modern {
		more = `,"resultType":"complete","ttlMs":0,"cacheScope":"private"`
	}
	return `{"tools":[` + string(bytes.Join(rawBytes(s.tools[from:to]), []byte(","))) + `]` + next + more + `}`
}

func rawBytes(raw []json.RawMessage) [][]byte {
	out := make([][]byte, len(raw))
	for i, r := range raw {
		out[i] = r
	}
	return out
}

// ServeStdio serves until in ends.
func (s *Server) ServeStdio(in io.Reader, out io.Writer) error {
	var mu sync.Mutex
	p := s.peer(func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := out.Write(b); err != nil {
			return err
		}
		_, err := out.Write([]byte("\n"))
		return err
	})
	defer s.drop(p)
	r := bufio.NewReader(in)
	for {
		line, err := r.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			s.handle(p, line)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// Session is a host that has dialled in.
type Session struct {
	*Peer
	WS   *websocket.Conn
	Done chan struct{} // closed when the connection has ended
	Err  error         // why; set before Done is closed
}

// Dial attaches to url as a host: it says hello (the params of drawbridge/hello)
// and serves until the connection ends.
func (s *Server) Dial(url, token, hello string) (*Session, error) {
	d := websocket.Dialer{Subprotocols: []string{"mcp-host"}, HandshakeTimeout: 5 * time.Second}
	ws, _, err := d.Dial(url, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		return nil, err
	}
	p := s.socket(ws, true)
	if hello != "" {
		if err := p.Send(`{"jsonrpc":"2.0","method":"drawbridge/hello","params":` + hello + `}`); err != nil {
			ws.Close()
			return nil, err
		}
	}
	h := &Session{Peer: p, WS: ws, Done: make(chan struct{})}
	go func() {
		defer close(h.Done)
		h.Err = s.read(ws, p)
	}()
	return h, nil
}

// Serve serves a websocket that a client has dialled, without a hello.
func (s *Server) Serve(ws *websocket.Conn) error { return s.read(ws, s.socket(ws, false)) }

func (s *Server) socket(ws *websocket.Conn, dialled bool) *Peer {
	var mu sync.Mutex
	return s.peer(func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if dialled && !s.Fragmented && len(b) >= oneFrame {
			return writeWhole(ws, b)
		}
		return ws.WriteMessage(websocket.TextMessage, b)
	})
}

// oneFrame is the size from which gorilla would cut a message into many frames.
// Node, Bun and browsers send one, whatever its size, and so does this.
const oneFrame = 64 << 10

// writeWhole writes a message as one frame of a client. Its mask is zero, which
// leaves the message as it is.
func writeWhole(ws *websocket.Conn, b []byte) error {
	head := binary.BigEndian.AppendUint64([]byte{0x81, 0x80 | 127}, uint64(len(b)))
	whole := net.Buffers{append(head, 0, 0, 0, 0), b}
	_, err := whole.WriteTo(ws.NetConn())
	return err
}

// read serves frames until the connection ends, and says why it did.
func (s *Server) read(ws *websocket.Conn, p *Peer) error {
	defer ws.Close()
	defer s.drop(p)
	for {
		_, b, err := ws.ReadMessage()
		if err != nil {
			return err
		}
		s.handle(p, b)
	}
}

// ServeHTTP serves Streamable HTTP: every answer to a call is an event stream,
// every other one JSON. In the older era it keeps one session.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	const session = "hosttest-session"
	old := s.Era != Modern
	switch {
	case r.Method == http.MethodDelete && old:
		return
	case r.Method == http.MethodGet && old && r.Header.Get("Mcp-Session-Id") == session:
		s.stream(w, r, nil)
		return
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	body, err := io.ReadAll(r.Body)
	var m message
	if err != nil || json.Unmarshal(body, &m) != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if !old && m.ID != nil {
		var c struct {
			Name string `json:"name"`
		}
		_ = json.Unmarshal(m.Params, &c)
		if r.Header.Get("Mcp-Protocol-Version") != Modern || r.Header.Get("Mcp-Method") != m.Method || (m.Method == "tools/call" && r.Header.Get("Mcp-Name") != c.Name) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,"error":{"code":-32020,"message":"a header does not match the body"}}`, m.ID)
			return
		}
	}
	if old && m.Method != "initialize" && r.Header.Get("Mcp-Session-Id") != session {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if m.Method == "initialize" {
		w.Header().Set("Mcp-Session-Id", session)
	}
	switch {
	case m.ID == nil || m.Method == "":
		s.handle(&Peer{send: func([]byte) error { return nil }}, body)
		w.WriteHeader(http.StatusAccepted)
	case m.Method == "tools/call" || m.Method == "subscriptions/listen":
		s.stream(w, r, body)
	default:
		s.handle(&Peer{send: func(b []byte) error {
			w.Header().Set("Content-Type", "application/json")
			_, err := w.Write(b)
			return err
		}}, body)
	}
}

// stream answers a request with an event stream that ends with the answer, or
// serves the older era's stream of notifications when there is no request.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, request []byte) {
	w.Header().Set("Content-Type", "text/event-stream")
	w.WriteHeader(http.StatusOK)
	flush := func() { _ = http.NewResponseController(w).Flush() }
	flush()
	var mu sync.Mutex
	answered := make(chan struct{}, 1)
	p := s.peer(func(b []byte) error {
		mu.Lock()
		defer mu.Unlock()
		if _, err := fmt.Fprintf(w, "event: message\ndata: %s\n\n", b); err != nil {
			return err
		}
		flush()
		var m message
		if json.Unmarshal(b, &m) == nil && m.Method == "" {
			select {
			case answered <- struct{}{}:
			default:
			}
		}
		return nil
	})
	defer s.drop(p)
	if request != nil {
		s.handle(p, request)
	}
	select {
	case <-answered:
	case <-r.Context().Done():
	}
}
