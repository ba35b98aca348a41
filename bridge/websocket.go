package bridge

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"

	"github.com/gorilla/websocket"
)

// smallFrame is the size up to which a message is put together before it is
// written: one system call and one websocket frame. Larger ones are written
// from their pieces.
const smallFrame = 64 << 10

// wsConn is one websocket of a client.
type wsConn struct {
	srv   *Server
	ws    *websocket.Conn
	peer  *peer
	heard atomic.Bool    // something came since the last ping
	ended chan struct{}  // closed when the connection has ended
	baton chan struct{}  // who takes it reads
	spare atomic.Bool    // a goroutine waits for the baton
	byes  sync.WaitGroup // of shut
	in    heardReader    // of whoever reads

	mu      sync.Mutex // guards what follows
	queue   []wire.Frame
	queued  int64
	writing bool // somebody is writing; nobody else may
	dead    bool // nothing more is sent

	scratch []byte // of whoever is writing
}

var _ outlet = (*wsConn)(nil)
var _ link = (*wsConn)(nil)

func (s *Server) serveWebsocket(w http.ResponseWriter, r *http.Request) {
	if !slices.Contains(websocket.Subprotocols(r), wire.Subprotocol) {
		httpError(w, http.StatusBadRequest, wire.Errorf(wire.CodeRefused, "offer the websocket subprotocol mcp"))
		return
	}
	c := &wsConn{srv: s, ended: make(chan struct{}), baton: make(chan struct{})}
	c.peer = s.newPeer(entryOf(r), s.newConnID(), s.opts.Limits.ResultBytesWS)
	if err := s.admit(c); err != nil {
		httpError(w, http.StatusServiceUnavailable, err)
		return
	}
	defer s.release(c)
	ws, err := s.upgrader.Upgrade(w, r, nil)
	if err != nil {
		return // the upgrader has answered
	}
	ws.SetPongHandler(func(string) error { c.heard.Store(true); return nil })
	c.mu.Lock()
	c.ws = ws
	early := c.dead // shut before there was a socket
	c.mu.Unlock()
	if early {
		_ = ws.Close()
		return
	}
	go c.ping()
	go c.serve()
	<-c.ended
	s.mu.Lock()
	delete(s.legacy, c)
	s.mu.Unlock()
	c.mu.Lock()
	c.dead = true
	c.queue, c.queued = nil, 0
	c.mu.Unlock()
	c.peer.close(hungUp)
	c.byes.Wait()
	_ = ws.Close()
	s.connClosed(c.peer.caller(ImagesUnknown))
}

// serve reads frames until one is a call. Then another goroutine reads on, and
// this one runs the call: a call never waits for a goroutine to wake, and the
// reading, which can wait, does.
func (c *wsConn) serve() {
	for {
		call := c.read()
		if call == nil {
			close(c.ended)
			return
		}
		select {
		case c.baton <- struct{}{}:
			// Set here, not by who takes it: that one may run only when this call
			// is over, and this goroutine shall then be the next to wait.
			c.spare.Store(false)
		default:
			go c.serve()
		}
		call()
		// One goroutine stays to take over the reading.
		if c.spare.Swap(true) {
			return
		}
		select {
		case <-c.baton:
		case <-c.ended:
			return
		}
	}
}

// read serves frames until one is a call that is to be run, or the connection
// ends: then it returns nil.
func (c *wsConn) read() (call func()) {
	for {
		kind, r, err := c.ws.NextReader()
		if err != nil {
			return nil
		}
		if kind != websocket.TextMessage {
			c.shut(websocket.CloseUnsupportedData, "MCP goes in text frames, one message each")
		}
		if c.over() {
			continue // until the client says goodbye
		}
		c.in = heardReader{r, &c.heard}
		frame, err := wire.ReadMessage(&c.in, c.srv.opts.Limits.FrameBytes)
		var large *wire.ErrTooLarge
		if errors.As(err, &large) {
			c.answer(wire.TooLarge(large.Method(), large.ID(), large.Size(), large.Cap), 0)
			continue
		}
		if err != nil {
			return nil
		}
		m := new(wire.Message)
		if err := wire.Parse(frame, m); err != nil {
			c.answer(wire.ErrorFrame(m.ID, err.Raw()), err.Code)
			continue
		}
		if call := c.srv.handle(c.peer, c, m); call != nil {
			return call
		}
	}
}

// heardReader notes that the client is alive while a long frame comes in.
type heardReader struct {
	r     io.Reader
	heard *atomic.Bool
}

func (h *heardReader) Read(p []byte) (int, error) {
	h.heard.Store(true)
	return h.r.Read(p)
}

// ping ends the connection when the client was silent for two intervals.
func (c *wsConn) ping() {
	every := c.srv.opts.Limits.PingInterval
	tick := time.NewTicker(every)
	defer tick.Stop()
	silent := 0
	for {
		select {
		case <-c.ended:
			return
		case <-tick.C:
		}
		if silent++; c.heard.Swap(false) {
			silent = 0
		}
		if silent > 1 {
			c.shut(websocket.ClosePolicyViolation, "no answer to pings")
			return
		}
		// An error shows as the end of the reading.
		_ = c.ws.WriteControl(websocket.PingMessage, nil, time.Now().Add(every/2))
	}
}

// initialized marks a client of the initialize era: it hears of list changes.
func (c *wsConn) initialized() {
	c.srv.mu.Lock()
	c.srv.legacy[c] = struct{}{}
	c.srv.mu.Unlock()
}

func (c *wsConn) entry() token.Entry { return c.peer.token }

// answer sends from the caller's goroutine when nothing is under way: that
// spares a hop.
func (c *wsConn) answer(f wire.Frame, _ int) {
	if c.enqueue(f) {
		c.write(f)
		c.drain()
	}
}

// drop has nothing to do: on a websocket, no answer is no message.
func (c *wsConn) drop() {}

func (c *wsConn) post(f wire.Frame) {
	if c.enqueue(f) {
		go func() {
			c.write(f)
			c.drain()
		}()
	}
}

// enqueue reports whether the caller is to write the frame and then drain.
// Otherwise it is queued, or the connection is over.
func (c *wsConn) enqueue(f wire.Frame) bool {
	c.mu.Lock()
	if c.dead {
		c.mu.Unlock()
		return false
	}
	if !c.writing {
		c.writing = true
		c.mu.Unlock()
		return true
	}
	size := int64(f.Len())
	if c.queued > 0 && c.queued+size > c.srv.opts.Limits.QueueBytes {
		c.mu.Unlock()
		c.srv.opts.Log.Warn().Str("client", c.peer.token.Name).Str("conn", c.peer.conn).Msg("closed a connection: the client does not read")
		c.shut(websocket.ClosePolicyViolation, "too many answers wait to be read")
		return false
	}
	c.queue = append(c.queue, f)
	c.queued += size
	c.mu.Unlock()
	return false
}

// drain writes what was queued while its caller was writing.
func (c *wsConn) drain() {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.queue = nil
			c.writing = false
			c.mu.Unlock()
			return
		}
		f := c.queue[0]
		c.queue[0] = nil
		c.queue = c.queue[1:]
		c.queued -= int64(f.Len())
		c.mu.Unlock()
		c.write(f)
	}
}

func (c *wsConn) write(f wire.Frame) {
	// The error of a write shows as the end of the reading, since gorilla closes
	// nothing by itself: a client that does not read in time is cut off here.
	_ = c.ws.SetWriteDeadline(time.Now().Add(c.srv.opts.Limits.WriteTimeout))
	if err := c.writePieces(f); err != nil {
		_ = c.ws.Close()
	}
}

func (c *wsConn) writePieces(f wire.Frame) error {
	if f.Len() <= smallFrame {
		c.scratch = f.AppendTo(c.scratch[:0])
		return c.ws.WriteMessage(websocket.TextMessage, c.scratch)
	}
	w, err := c.ws.NextWriter(websocket.TextMessage)
	if err != nil {
		return err
	}
	for _, piece := range f {
		if _, err := w.Write(piece); err != nil {
			return err
		}
	}
	return w.Close()
}

// shut says why, cancels what is in flight, and closes: when the client has
// said goodbye too, or after a second.
func (c *wsConn) shut(code int, reason string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.dead {
		return
	}
	c.dead = true
	if c.ws == nil {
		return
	}
	c.byes.Go(func() {
		c.peer.close(&stop.Error{Reason: stop.Cancelled, Message: reason})
		_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, reason), time.Now().Add(time.Second))
		patience := time.NewTimer(time.Second)
		defer patience.Stop()
		select {
		case <-c.ended:
		case <-patience.C:
		}
		_ = c.ws.Close()
	})
}

func (c *wsConn) over() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.dead
}
