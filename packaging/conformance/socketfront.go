package conformance

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"

	"drawbridge/bridge/wire"
)

const (
	stateless     = "2026-07-28" // the revision without sessions
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
)

// SocketFront stands before the endpoint's websocket and speaks Streamable HTTP,
// which is all that the suite speaks: one websocket for a session of the
// initialize era, and one for each request of the stateless era. The bytes of
// every message stay as they are, both ways. Host and Origin of a request are
// those of its websocket's handshake, and a refused handshake is the response.
//
// What a message says is the endpoint's business. Of the HTTP binding itself the
// front does what the suite cannot do without: sessions, event streams, and the
// status of an error.
type SocketFront struct {
	url, token string

	mu       sync.Mutex // guards what follows
	sessions map[string]*socket
	open     map[*socket]struct{}
}

// NewSocketFront makes a front for the websocket at url, with a client's token.
func NewSocketFront(url, token string) *SocketFront {
	return &SocketFront{url: url, token: token, sessions: map[string]*socket{}, open: map[*socket]struct{}{}}
}

// Close ends all websockets, and with them every open response.
func (f *SocketFront) Close() {
	f.mu.Lock()
	open := f.open
	f.open, f.sessions = nil, nil
	f.mu.Unlock()
	for s := range open {
		s.close()
	}
}

func (f *SocketFront) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch r.Method {
	case http.MethodPost:
		f.post(w, r)
	case http.MethodGet:
		if s := f.session(w, r); s != nil {
			s.relay(w, r, s.listen(), nil)
		}
	case http.MethodDelete:
		if s := f.session(w, r); s != nil {
			f.drop(s)
		}
	default:
		http.Error(w, "/mcp takes POST, GET and DELETE", http.StatusMethodNotAllowed)
	}
}

// request is what the front must know of a message that the suite posts. The
// fields are raw and nil where the message has none.
type request struct {
	id, token, cancels json.RawMessage
	method             string
	stateless          bool
}

// look reads a posted message. One that is no JSON gives a request without
// anything, which the endpoint answers for itself.
func look(r *http.Request, body []byte) request {
	var q request
	q.stateless = r.Header.Get(headerVersion) == stateless
	if !json.Valid(body) {
		q.stateless = true // nothing says which session it belongs to
		return q
	}
	q.id = wire.Get(body, "id")
	_ = json.Unmarshal(wire.Get(body, "method"), &q.method) // none, then
	params := wire.Get(body, "params")
	meta := wire.Get(params, "_meta")
	q.token = wire.Get(meta, "progressToken")
	if q.method == "notifications/cancelled" {
		q.cancels = wire.Get(params, "requestId")
	}
	q.stateless = q.stateless || q.method == "server/discover" || q.method == "subscriptions/listen" ||
		wire.Get(meta, wire.MetaProtocolVersion) != nil || wire.Get(meta, wire.MetaClientCapabilities) != nil
	return q
}

func (f *SocketFront) post(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	q := look(r, body)
	var s *socket
	switch {
	case q.stateless:
		if s = f.dial(w, r); s == nil {
			return
		}
		// A response that is closed early so closes the websocket, which cancels.
		defer f.drop(s)
	case q.method == "initialize":
		if s = f.dial(w, r); s == nil {
			return
		}
		id := rand.Text()
		f.mu.Lock()
		if f.sessions != nil {
			f.sessions[id] = s
		}
		f.mu.Unlock()
		w.Header().Set(headerSession, id)
	default:
		if s = f.session(w, r); s == nil {
			return
		}
	}
	if q.id == nil && q.method != "" {
		if err := s.send(body); err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		s.forget(q.cancels) // gets no answer, so its stream ends
		w.WriteHeader(http.StatusAccepted)
		return
	}
	wait := s.await(&q)
	defer s.leave(wait)
	if err := s.send(body); err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	s.relay(w, r, wait, &q)
}

// session finds the websocket of a request's session, or answers why not.
func (f *SocketFront) session(w http.ResponseWriter, r *http.Request) *socket {
	id := r.Header.Get(headerSession)
	f.mu.Lock()
	s := f.sessions[id]
	f.mu.Unlock()
	switch {
	case id == "":
		http.Error(w, "the header "+headerSession+" is missing", http.StatusBadRequest)
	case s == nil:
		http.Error(w, "there is no such session", http.StatusNotFound)
	}
	return s
}

// dial opens a websocket for a request, or answers as the endpoint did.
func (f *SocketFront) dial(w http.ResponseWriter, r *http.Request) *socket {
	header := http.Header{"Authorization": {"Bearer " + f.token}, "Host": {r.Host}}
	if origin := r.Header.Get("Origin"); origin != "" {
		header.Set("Origin", origin)
	}
	d := websocket.Dialer{Subprotocols: []string{wire.Subprotocol}, HandshakeTimeout: 10 * time.Second}
	ws, res, err := d.DialContext(r.Context(), f.url, header)
	switch {
	case errors.Is(err, websocket.ErrBadHandshake):
		w.WriteHeader(res.StatusCode)
		_, _ = io.Copy(w, res.Body) // what gorilla kept of it; the status says it all
		return nil
	case err != nil:
		http.Error(w, err.Error(), http.StatusBadGateway)
		return nil
	}
	s := &socket{ws: ws, read: make(chan struct{}), waiting: map[*waiter]struct{}{}}
	go s.receive() // until close
	f.mu.Lock()
	closed := f.open == nil
	if !closed {
		f.open[s] = struct{}{}
	}
	f.mu.Unlock()
	if closed {
		s.close()
	}
	return s
}

// drop ends a websocket and its session.
func (f *SocketFront) drop(s *socket) {
	f.mu.Lock()
	delete(f.open, s)
	for id, x := range f.sessions {
		if x == s {
			delete(f.sessions, id)
		}
	}
	f.mu.Unlock()
	s.close()
}

// socket is one websocket to the endpoint.
type socket struct {
	ws   *websocket.Conn
	read chan struct{} // closed when reading has ended

	writing sync.Mutex // serialises writes

	mu      sync.Mutex // guards what follows
	waiting map[*waiter]struct{}
	ended   bool
}

// waiter is a response that is open. It gets the answer to its request, the
// notifications that belong to it, and, where it takes all, all the others.
type waiter struct {
	id, token string // raw; empty for none
	all       bool
	frames    chan []byte   // closed when nothing more comes
	left      chan struct{} // closed when nobody takes frames any more
}

func (s *socket) add(w *waiter) *waiter {
	w.frames, w.left = make(chan []byte, 16), make(chan struct{})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.ended {
		close(w.frames)
		return w
	}
	s.waiting[w] = struct{}{}
	return w
}

// await opens the wait for an answer. A request of the stateless era has its
// websocket to itself.
func (s *socket) await(q *request) *waiter {
	return s.add(&waiter{id: string(q.id), token: string(q.token), all: q.stateless})
}

// listen opens the wait for what belongs to no request.
func (s *socket) listen() *waiter { return s.add(&waiter{all: true}) }

// leave ends a wait from the waiter's side.
func (s *socket) leave(w *waiter) {
	close(w.left)
	s.mu.Lock()
	delete(s.waiting, w)
	s.mu.Unlock()
}

// forget ends the wait for the answer to a request from the other side.
func (s *socket) forget(id json.RawMessage) {
	if id == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		if w.id == string(id) {
			delete(s.waiting, w)
			close(w.frames)
		}
	}
}

func (s *socket) send(body []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	return s.ws.WriteMessage(websocket.TextMessage, body)
}

// receive hands out what the endpoint sends. Nobody else closes frames while it
// runs but forget, which takes the waiter away first.
func (s *socket) receive() {
	defer close(s.read)
	for {
		_, frame, err := s.ws.ReadMessage()
		if err != nil {
			break
		}
		s.hand(frame)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	for w := range s.waiting {
		close(w.frames)
	}
	clear(s.waiting)
}

// hand gives one frame to whom it belongs. The lock is held all the while, so
// that nobody closes a channel that is written to; who does not read holds up
// this one session.
func (s *socket) hand(frame []byte) {
	id, token := string(wire.Get(frame, "id")), ""
	answer := wire.Get(frame, "method") == nil
	if !answer {
		token = string(wire.Get(wire.Get(frame, "params"), "progressToken"))
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for w := range s.waiting {
		switch {
		case answer && w.id != id && id != "null",
			!answer && token != "" && w.token != token,
			!answer && token == "" && !w.all:
			continue
		}
		select {
		case w.frames <- frame:
		case <-w.left:
		}
	}
}

func (s *socket) close() {
	_ = s.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(websocket.CloseNormalClosure, ""), time.Now().Add(time.Second))
	_ = s.ws.Close()
	<-s.read
}

// relay writes a response: one JSON body where the answer comes first, else an
// event stream that ends with it. Without a request there is no answer.
func (s *socket) relay(w http.ResponseWriter, r *http.Request, wait *waiter, q *request) {
	started := false
	start := func() {
		if !started {
			started = true
			w.Header().Set("Content-Type", "text/event-stream")
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush() // a client that has gone ends r's context
		}
	}
	if q == nil {
		defer s.leave(wait)
		start()
	}
	for {
		var frame []byte
		select {
		case frame = <-wait.frames:
		case <-r.Context().Done():
			return
		}
		if frame == nil { // closed: no answer comes
			start()
			return
		}
		last := q != nil && wire.Get(frame, "method") == nil
		if last && !started {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(status(frame, q))
			_, _ = w.Write(frame)
			return
		}
		start()
		_, _ = w.Write(append(append([]byte("data: "), bytes.ReplaceAll(frame, []byte("\n"), []byte("\ndata: "))...), "\n\n"...))
		_ = http.NewResponseController(w).Flush()
		if last {
			return
		}
	}
}

// status is that of an answer: in the stateless era the specification gives
// errors one, and a message that is none has one in both.
func status(answer []byte, q *request) int {
	code := string(wire.Get(wire.Get(answer, "error"), "code"))
	if code == "" || !q.stateless && q.id != nil {
		return http.StatusOK
	}
	switch code {
	case "-32601":
		return http.StatusNotFound
	case "-32700", "-32600", "-32602", "-32020", "-32021", "-32022":
		return http.StatusBadRequest
	}
	return http.StatusOK
}
