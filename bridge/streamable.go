package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
)

// Headers of the Streamable HTTP binding.
const (
	headerSession = "Mcp-Session-Id"
	headerVersion = "Mcp-Protocol-Version"
	headerMethod  = "Mcp-Method"
	headerName    = "Mcp-Name"
)

// bodyTimeout bounds how long a request's body may take.
const bodyTimeout = time.Minute

// httpRequest is one request while it is served.
type httpRequest struct {
	token token.Entry
	end   context.CancelFunc
}

func (h *httpRequest) entry() token.Entry { return h.token }
func (h *httpRequest) shut(int, string)   { h.end() }

func (s *Server) serveStreamable(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	h := &httpRequest{token: entryOf(r), end: cancel}
	if err := s.admit(h); err != nil {
		w.Header().Set("Retry-After", "1")
		httpError(w, http.StatusServiceUnavailable, err)
		return
	}
	defer s.release(h)
	r = r.WithContext(ctx)
	switch r.Method {
	case http.MethodPost:
		s.servePost(w, r)
	case http.MethodGet:
		s.serveGet(w, r)
	case http.MethodDelete:
		s.serveDelete(w, r)
	default:
		w.Header().Set("Allow", "GET, POST, DELETE")
		httpError(w, http.StatusMethodNotAllowed, wire.Errorf(wire.CodeRefused, "/mcp takes POST, GET and DELETE"))
	}
}

// serveGet opens the stream on which a session hears of list changes.
func (s *Server) serveGet(w http.ResponseWriter, r *http.Request) {
	id := r.Header.Get(headerSession)
	if id == "" || !accepts(r, "text/event-stream") {
		w.Header().Set("Allow", "POST")
		httpError(w, http.StatusMethodNotAllowed, wire.Errorf(wire.CodeRefused, "a stream needs a session (%s) and Accept: text/event-stream; send messages by POST", headerSession))
		return
	}
	session, release := s.sessions.use(s, id, entryOf(r))
	if session == nil {
		noSession(w, nil)
		return
	}
	defer release()
	out := newHTTPOut(s.opts.Limits.QueueBytes)
	s.mu.Lock()
	s.legacy[out] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.legacy, out)
		s.mu.Unlock()
	}()
	stream := &eventStream{w: w, deadline: func() { s.writeDeadline(w) }}
	if stream.start() != nil {
		return
	}
	for {
		select {
		case <-out.wake:
		case <-r.Context().Done():
			return
		case <-session.ended:
			return
		}
		state := out.take()
		for _, f := range state.posted {
			if stream.event(f) != nil {
				return
			}
		}
		if state.ended {
			return
		}
	}
}

func (s *Server) serveDelete(w http.ResponseWriter, r *http.Request) {
	session, release := s.sessions.use(s, r.Header.Get(headerSession), entryOf(r))
	if session == nil {
		noSession(w, nil)
		return
	}
	release()
	session.end("the client ended the session")
	w.WriteHeader(http.StatusOK)
}

func noSession(w http.ResponseWriter, id json.RawMessage) {
	err := wire.Errorf(wire.CodeInvalidRequest, "there is no such session (it ended, or another token made it); initialize again")
	writeJSON(w, http.StatusNotFound, wire.ErrorFrame(id, err.Raw()))
}

// accepts reports whether the client takes a media type.
func accepts(r *http.Request, want string) bool {
	for _, value := range r.Header.Values("Accept") {
		for part := range strings.SplitSeq(value, ",") {
			mt, _, err := mime.ParseMediaType(part)
			if err == nil && (mt == want || mt == "*/*" || strings.HasSuffix(mt, "/*") && strings.HasPrefix(want, strings.TrimSuffix(mt, "*"))) {
				return true
			}
		}
	}
	return false
}

func (s *Server) servePost(w http.ResponseWriter, r *http.Request) {
	if mt, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || mt != "application/json" {
		httpError(w, http.StatusUnsupportedMediaType, wire.Errorf(wire.CodeInvalidRequest, "send Content-Type: application/json"))
		return
	}
	if !accepts(r, "application/json") || !accepts(r, "text/event-stream") {
		httpError(w, http.StatusNotAcceptable, wire.Errorf(wire.CodeInvalidRequest, "send Accept: application/json, text/event-stream"))
		return
	}
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	body, err := wire.ReadMessage(r.Body, s.opts.Limits.FrameBytes)
	_ = control.SetReadDeadline(time.Time{})
	var large *wire.ErrTooLarge
	switch {
	case errors.As(err, &large):
		status := http.StatusRequestEntityTooLarge
		if large.Method() == "tools/call" && large.ID() != nil {
			status = http.StatusOK
		}
		writeJSON(w, status, wire.TooLarge(large.Method(), large.ID(), large.Size(), large.Cap))
		return
	case err != nil:
		httpError(w, http.StatusBadRequest, wire.Errorf(wire.CodeInvalidRequest, "the body ended early"))
		return
	}
	m := new(wire.Message)
	fail := func(status int, e *wire.Error) { writeJSON(w, status, wire.ErrorFrame(m.ID, e.Raw())) }
	if err := wire.Parse(body, m); err != nil {
		fail(http.StatusBadRequest, err)
		return
	}
	modern := isModern(m) || r.Header.Get(headerVersion) == modernVersion
	if err := checkHeaders(r.Header, m, modern); err != nil {
		fail(http.StatusBadRequest, err)
		return
	}
	if modern && m.Method == "tools/call" {
		if tool, ok := s.lookup(entryOf(r).Name, m.Name); ok {
			if err := checkParamHeaders(r.Header, tool.tool.Definition, m.Arguments); err != nil {
				fail(http.StatusBadRequest, wire.Errorf(wire.CodeHeaderMismatch, "%s", err))
				return
			}
		}
	}
	p := (*peer)(nil)
	switch {
	case modern:
		p = s.newPeer(entryOf(r), "", s.opts.Limits.ResultBytesHTTP)
		defer p.close(hungUp)
	case m.Method == "initialize" && m.IsRequest():
		session := s.sessions.open(s, entryOf(r))
		if session == nil {
			fail(http.StatusServiceUnavailable, wire.Errorf(wire.CodeRefused, "all %d sessions of this client are in use; end one", s.opts.Limits.SessionsPerClient))
			return
		}
		w.Header().Set(headerSession, session.id)
		p = session.peer
	default:
		id := r.Header.Get(headerSession)
		if id == "" {
			fail(http.StatusBadRequest, wire.Errorf(wire.CodeInvalidRequest, "the header %s is missing; initialize first, or send the fields of the stateless revision in params._meta", headerSession))
			return
		}
		session, release := s.sessions.use(s, id, entryOf(r))
		if session == nil {
			noSession(w, m.ID)
			return
		}
		defer release()
		p = session.peer
	}
	out := newHTTPOut(s.opts.Limits.QueueBytes)
	if work := s.handle(p, out, m); work != nil {
		go work()
	}
	s.respond(w, r, p, out, m, modern)
}

// checkHeaders holds the headers against the body, so that whatever routes by
// the one sees the same request as who reads the other.
func checkHeaders(h http.Header, m *wire.Message, modern bool) *wire.Error {
	version := h.Get(headerVersion)
	if version != "" && !slices.Contains(versions, version) {
		return unsupported(version)
	}
	if !modern {
		return nil
	}
	switch {
	case m.Meta.ProtocolVersion != "" && version != m.Meta.ProtocolVersion:
		return wire.Errorf(wire.CodeHeaderMismatch, "the header %s does not say what params._meta says", headerVersion)
	case m.IsRequest() && h.Get(headerMethod) != m.Method:
		return wire.Errorf(wire.CodeHeaderMismatch, "the header %s does not name the body's method", headerMethod)
	case m.Method == "tools/call" && !headerSays(h.Get(headerName), m.Name):
		return wire.Errorf(wire.CodeHeaderMismatch, "the header %s does not name the body's tool", headerName)
	case m.IsRequest() && m.Meta.ProtocolVersion == "":
		return wire.Errorf(wire.CodeInvalidParams, "params._meta must hold %q and %q", wire.MetaProtocolVersion, wire.MetaClientCapabilities)
	}
	return nil
}

// respond writes what the outlet hears: one JSON body where the answer comes
// first, else an event stream that ends with it.
func (s *Server) respond(w http.ResponseWriter, r *http.Request, p *peer, out *httpOut, m *wire.Message, modern bool) {
	stream := &eventStream{w: w, deadline: func() { s.writeDeadline(w) }}
	for {
		select {
		case <-out.wake:
		case <-r.Context().Done():
			if m.IsRequest() {
				p.cancel(m.ID, hungUp)
			}
			return
		}
		state := out.take()
		for _, f := range state.posted {
			if stream.event(f) != nil {
				if m.IsRequest() {
					p.cancel(m.ID, hungUp)
				}
				return
			}
		}
		if !state.ended {
			continue
		}
		switch {
		case state.final == nil && m.IsRequest():
			// Cancelled, or not read: the stream ends without an answer.
			p.cancel(m.ID, hungUp)
			_ = stream.start()
		case state.final == nil:
			w.WriteHeader(http.StatusAccepted)
		case stream.started:
			_ = stream.event(state.final)
		default:
			s.writeDeadline(w)
			writeJSON(w, statusOf(state.code, m, modern), state.final)
		}
		return
	}
}

// statusOf maps a JSON-RPC error to HTTP. In the initialize era an answered
// request is a 200 whatever the answer.
func statusOf(code int, m *wire.Message, modern bool) int {
	if m.IsRequest() && !modern {
		return http.StatusOK
	}
	switch code {
	case wire.CodeMethodNotFound:
		return http.StatusNotFound
	case wire.CodeParse, wire.CodeInvalidRequest, wire.CodeInvalidParams, wire.CodeHeaderMismatch,
		wire.CodeMissingCapability, wire.CodeUnsupportedVersion:
		return http.StatusBadRequest
	}
	return http.StatusOK // a result, or a host's own error
}

// writeDeadline gives the client time to read what is written next. The HTTP
// server takes it off again after the response.
func (s *Server) writeDeadline(w http.ResponseWriter) {
	// A writer without deadlines is a test's recorder.
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(s.opts.Limits.WriteTimeout))
}

// eventStream writes server-sent events.
type eventStream struct {
	w        http.ResponseWriter
	deadline func() // moves it on before each write
	started  bool
}

func (e *eventStream) start() error {
	if e.started {
		return nil
	}
	e.started = true
	e.deadline()
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	h.Set("X-Content-Type-Options", "nosniff")
	e.w.WriteHeader(http.StatusOK)
	return http.NewResponseController(e.w).Flush()
}

func (e *eventStream) event(f wire.Frame) error {
	if err := e.start(); err != nil {
		return err
	}
	e.deadline()
	write := func(b []byte) error { _, err := e.w.Write(b); return err }
	if err := write([]byte("event: message\ndata: ")); err != nil {
		return err
	}
	for _, piece := range f {
		// A line break in JSON is white space, but would end the data line.
		for {
			i := lineBreak(piece)
			if i < 0 {
				break
			}
			if err := write(piece[:i]); err != nil {
				return err
			}
			if err := write([]byte("\ndata: ")); err != nil {
				return err
			}
			piece = piece[i+1:]
		}
		if err := write(piece); err != nil {
			return err
		}
	}
	if err := write([]byte("\n\n")); err != nil {
		return err
	}
	return http.NewResponseController(e.w).Flush()
}

// lineBreak returns where the first CR or LF is, or -1. A large result has none,
// and is searched fast.
func lineBreak(b []byte) int {
	i := bytes.IndexByte(b, '\n')
	if i < 0 {
		return bytes.IndexByte(b, '\r')
	}
	if j := bytes.IndexByte(b[:i], '\r'); j >= 0 {
		return j
	}
	return i
}

// httpOut collects what is to be said in one HTTP response; its handler writes
// it, so that a slow reader holds up nobody else.
type httpOut struct {
	limit int64
	wake  chan struct{} // there is something to take

	mu     sync.Mutex // guards state and queued
	state  httpState
	queued int64
}

type httpState struct {
	posted []wire.Frame
	final  wire.Frame
	code   int
	ended  bool
}

var _ outlet = (*httpOut)(nil)

func newHTTPOut(limit int64) *httpOut {
	return &httpOut{limit: limit, wake: make(chan struct{}, 1)}
}

func (o *httpOut) change(f func(*httpState)) {
	o.mu.Lock()
	if !o.state.ended {
		f(&o.state)
	}
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default:
	}
}

func (o *httpOut) answer(f wire.Frame, code int) {
	o.change(func(s *httpState) { s.final, s.code, s.ended = f, code, true })
}

func (o *httpOut) drop() { o.change(func(s *httpState) { s.ended = true }) }

func (o *httpOut) post(f wire.Frame) {
	o.change(func(s *httpState) {
		size := int64(f.Len())
		if o.queued > 0 && o.queued+size > o.limit {
			// The client does not read: its stream ends without an answer.
			s.posted, s.ended = nil, true
			return
		}
		s.posted = append(s.posted, f)
		o.queued += size
	})
}

// take returns what came since the last time.
func (o *httpOut) take() httpState {
	o.mu.Lock()
	defer o.mu.Unlock()
	state := o.state
	o.state.posted = nil
	o.queued = 0
	return state
}
