package bridge

import (
	"encoding/json"
	"sync"

	"drawbridge/bridge/stop"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
)

// outlet is where the messages to one client go. After the answer or drop,
// nothing more is sent for a request.
type outlet interface {
	// answer sends the one answer to a request; code is that of its JSON-RPC
	// error, 0 for a result. It may wait for this client to read, nobody else.
	answer(f wire.Frame, code int)
	// drop ends a request that gets no answer.
	drop()
	// post sends a notification. It never waits.
	post(f wire.Frame)
}

// peer is one client of the protocol: a websocket, an HTTP session, or one
// stateless HTTP request. It knows what is in flight.
type peer struct {
	srv   *Server
	token token.Entry
	conn  string // Caller.Conn
	limit int64  // bytes of one answer

	mu     sync.Mutex // guards what follows
	images Images     // as the client said at initialize
	closed bool
	open   map[string]func(*stop.Error) // what cancels a request, by id
}

func (s *Server) newPeer(e token.Entry, conn string, limit int64) *peer {
	return &peer{srv: s, token: e, conn: conn, limit: limit, open: map[string]func(*stop.Error){}}
}

// caller says who calls. The token's word about pictures goes before the
// client's own.
func (p *peer) caller(claimed Images) Caller {
	c := Caller{Client: p.token.Name, Token: p.token.Hash, Conn: p.conn, Images: claimed}
	if claimed == ImagesUnknown {
		p.mu.Lock()
		c.Images = p.images
		p.mu.Unlock()
	}
	switch p.token.Images {
	case "yes":
		c.Images = ImagesYes
	case "no":
		c.Images = ImagesNo
	}
	return c
}

// begin enters a request. A request that cannot begin is answered with the
// result or the error that is returned, or with nothing if the peer has ended.
func (p *peer) begin(id json.RawMessage, cancel func(*stop.Error)) (ok bool, refusal *wire.Error) {
	key := wire.IDKey(id)
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.closed:
		return false, nil
	case p.open[key] != nil:
		return false, wire.Errorf(wire.CodeInvalidRequest, "the id is in use by a request that is not answered yet")
	case len(p.open) >= p.srv.opts.Limits.CallsPerConnection:
		return false, wire.Errorf(wire.CodeRefused, "%d requests are in flight on this connection, the most that it may have; wait for one to end", len(p.open))
	}
	p.open[key] = cancel
	return true, nil
}

func (p *peer) end(id json.RawMessage) {
	p.mu.Lock()
	delete(p.open, wire.IDKey(id))
	p.mu.Unlock()
}

// cancel ends one request, if it is in flight.
func (p *peer) cancel(id json.RawMessage, cause *stop.Error) {
	p.mu.Lock()
	cancel := p.open[wire.IDKey(id)]
	p.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// close cancels everything that is in flight and lets nothing new begin.
func (p *peer) close(cause *stop.Error) {
	p.mu.Lock()
	p.closed = true
	var cancels []func(*stop.Error)
	for _, cancel := range p.open {
		cancels = append(cancels, cancel)
	}
	p.mu.Unlock()
	for _, cancel := range cancels {
		cancel(cause)
	}
}

// busy reports whether requests are in flight.
func (p *peer) busy() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.open) > 0
}

var hungUp = &stop.Error{Reason: stop.Cancelled, Message: "the client hung up"}
