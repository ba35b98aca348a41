package bridge

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/stop"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"
)

// Auditor takes the records of calls. The records of one Append are written
// together, in order. A failure is the auditor's to tell: it never fails a call.
type Auditor interface {
	Append(...audit.Record)
}

// Options are what a Server is made of.
type Options struct {
	Log     zerolog.Logger
	Version string
	Sources []Source // in the order in which their tools are listed
	Hosts   Hosts    // listed after them; nil: none
	Gate    Gate
	Audit   Auditor
	Tokens  *token.Store
	Limits  Limits // zero fields mean the defaults

	// Exposed says whether a client may see and call a tool, by its listed name;
	// nil exposes all. It is asked at each listing and call.
	Exposed func(client, source, tool string) bool
	// AllowedHosts are names besides loopback that a Host header may carry,
	// AllowedOrigins are pages (scheme://host:port) that may use the endpoint.
	// Admit puts others in their place.
	AllowedHosts   []string
	AllowedOrigins []string
	// TokensChanged, if set, is told when tokens may have been revoked, and which
	// are valid, by their hash as in a Caller.
	TokensChanged func(valid func(hash string) bool)
	// Status, if set, fills in what the server does not know: backend,
	// permissions, paused, pending, hosts, host_llm. It may add warnings.
	Status func(*Status)
	// HostLLM, if set, serves /host-llm for a client, by its token's name. The
	// request's context ends with the server.
	HostLLM func(w http.ResponseWriter, r *http.Request, client string)
	// Count, if set, is told of each request that was refused before it came to a
	// call, by kind: what it was and why it was refused, and what the program said
	// that is no part of the kind. It must not block.
	Count func(what, why, said string)
	// Changed, if set, is called after each change of what Calls and Status show.
	// It must not block, nor call the server.
	Changed func()
	// Ended, if set, is told of each call that ended, with its answer. It must
	// not change the answer, and not block.
	Ended func(CallStatus, Answer)
	// Activity, if set, serves /activity and what is under it, and checks the
	// tokens of its pages itself.
	Activity http.Handler
	// ConnClosed, if set, is told when a caller's connection ended, besides the
	// sources that are ConnObservers.
	ConnClosed func(Caller)
}

// Server is the endpoint: one handler for every route, one pipeline for every
// call. It is safe for use by many goroutines.
type Server struct {
	opts     Options
	info     json.RawMessage // serverInfo
	infoMeta []byte          // it as a member of _meta
	run      string          // tells this process's ids from another's
	calls    atomic.Uint64
	conns    atomic.Uint64
	started  time.Time
	looked   atomic.Int64 // when the tokens were last looked at, since started
	refused  atomic.Int64
	joins    joins
	sessions sessions
	upgrader websocket.Upgrader
	admitted atomic.Pointer[admitted]

	base context.Context // ends with a *stop.Error when the server closes
	end  context.CancelCauseFunc

	mu       sync.Mutex // guards what follows
	closing  bool
	warnings []string
	links    map[link]struct{}
	clients  map[string]*ClientStatus
	runs     map[*run]struct{}
	legacy   map[outlet]struct{} // hear of list changes by plain notification
	subs     map[*subscription]struct{}
	idle     chan struct{} // closed when closing and the last run has ended
	gone     chan struct{} // closed when closing and the last link is gone
}

// closeOnce closes a channel that may be closed. The caller holds mu.
func closeOnce(c chan struct{}) {
	select {
	case <-c:
	default:
		close(c)
	}
}

// link is an open connection: a websocket or an HTTP request.
type link interface {
	entry() token.Entry
	// shut ends the connection soon and tells the client why. It does not wait.
	shut(code int, reason string)
}

// New makes a server. It does nothing until its handler is served.
func New(o Options) *Server {
	o.Limits = o.Limits.withDefaults()
	o.Version = cmp.Or(o.Version, "dev")
	if o.Changed == nil {
		o.Changed = func() {}
	}
	info := []byte(`{"name":"drawbridge","title":"Drawbridge","version":`)
	info = append(wire.AppendString(info, o.Version), '}')
	s := &Server{
		opts:     o,
		info:     info,
		infoMeta: append([]byte(`"`+wire.MetaServerInfo+`":`), info...),
		run:      rand.Text()[:10],
		started:  time.Now(),
		links:    map[link]struct{}{},
		clients:  map[string]*ClientStatus{},
		runs:     map[*run]struct{}{},
		legacy:   map[outlet]struct{}{},
		subs:     map[*subscription]struct{}{},
		idle:     make(chan struct{}),
		gone:     make(chan struct{}),
	}
	s.Admit(o.AllowedHosts, o.AllowedOrigins)
	s.joins = joins{seed: maphash.MakeSeed(), runs: map[uint64][]*run{}}
	s.base, s.end = context.WithCancelCause(context.Background())
	s.upgrader = websocket.Upgrader{
		Subprotocols:    []string{wire.Subprotocol},
		WriteBufferPool: &sync.Pool{},
		WriteBufferSize: 4 << 10,
		// The guard has checked it.
		CheckOrigin: func(*http.Request) bool { return true },
	}
	return s
}

// Handler serves all routes behind the one guard.
func (s *Server) Handler() http.Handler {
	return s.guard(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case isActivity(r):
			s.opts.Activity.ServeHTTP(w, r)
		case r.URL.Path == "/status":
			s.serveStatus(w, r)
		case r.URL.Path == "/host":
			s.serveHost(w, r)
		case r.URL.Path == "/host-llm":
			s.serveHostLLM(w, r)
		case websocket.IsWebSocketUpgrade(r):
			s.serveWebsocket(w, r)
		default:
			s.serveStreamable(w, r)
		}
	}))
}

// closeGrace is how long Serve waits for calls and connections to end. A batch that
// is stopped takes a picture first.
const closeGrace = 5 * time.Second

// Serve serves the listener until ctx ends, then stops all calls, answers them,
// and closes every connection. It closes the listener.
func (s *Server) Serve(ctx context.Context, ln net.Listener) error {
	h := &http.Server{
		Handler:           s.Handler(),
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		// OPTIONS * passes the same checks as everything else.
		DisableGeneralOptionsHandler: true,
		// A stranger's broken request is no news.
		ErrorLog: log.New(s.opts.Log.Level(zerolog.Disabled), "", 0),
	}
	failed := make(chan error, 1)
	go func() { failed <- h.Serve(ln) }()
	var err error
	select {
	case err = <-failed:
	case <-ctx.Done():
	}
	grace, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeGrace)
	defer cancel()
	s.Close(grace)
	_ = h.Shutdown(grace)
	_ = h.Close()
	if err == nil {
		err = <-failed
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving %s: %w", ln.Addr(), err)
}

// Close stops all calls, lets them be answered until ctx ends, and closes every
// connection. New calls are refused from then on.
func (s *Server) Close(ctx context.Context) {
	s.mu.Lock()
	s.closing = true
	if len(s.runs) == 0 {
		closeOnce(s.idle)
	}
	if len(s.links) == 0 {
		closeOnce(s.gone)
	}
	s.mu.Unlock()
	s.end(&stop.Error{Reason: stop.Stopped, Message: "Drawbridge is ending"})
	select {
	case <-s.idle:
	case <-ctx.Done():
	}
	s.shut(websocket.CloseGoingAway, "Drawbridge is ending", func(token.Entry) bool { return true })
	select {
	case <-s.gone:
	case <-ctx.Done():
	}
}

// Stop ends every open call, also those that wait for a person, with this
// cause. It returns how many there were.
func (s *Server) Stop(cause *stop.Error) int {
	return s.stop(cause, func(*run) bool { return true })
}

// StopRunning ends the calls that the gate has let through; those that wait for
// a person go on waiting.
func (s *Server) StopRunning(cause *stop.Error) int {
	return s.stop(cause, func(r *run) bool { return r.running.Load() })
}

func (s *Server) stop(cause *stop.Error, which func(*run) bool) int {
	s.mu.Lock()
	var runs []*run
	for r := range s.runs {
		if which(r) && r.ctx.Err() == nil { // else it has just ended, or is being stopped
			runs = append(runs, r)
		}
	}
	s.mu.Unlock()
	for _, r := range runs {
		r.cancel(cause)
	}
	return len(runs)
}

// Warn adds a line to /status.warnings, once.
func (s *Server) Warn(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.warnings, text) {
		s.warnings = append(s.warnings, text)
	}
}

// ReloadTokens reads the tokens again and drops the connections of those that
// were revoked. Where the file cannot be read, that is all of them.
func (s *Server) ReloadTokens() error {
	_, err := s.opts.Tokens.Refresh()
	s.dropRevoked()
	return err
}

// tokenPatience is how long a call may rely on the last look at the tokens. A
// revoked token is dropped at once by ReloadTokens; this is for when nobody
// told.
const tokenPatience = 100 * time.Millisecond

// refreshTokens looks whether the tokens changed, unless that was done less than
// patience ago.
func (s *Server) refreshTokens(patience time.Duration) {
	now := time.Since(s.started)
	if now-time.Duration(s.looked.Load()) < patience {
		return
	}
	s.looked.Store(int64(now))
	changed, err := s.opts.Tokens.Refresh()
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("the tokens cannot be read; nobody can connect until they can")
	}
	if changed || err != nil {
		s.dropRevoked()
	}
}

func (s *Server) dropRevoked() {
	if s.opts.TokensChanged != nil {
		valid := map[string]bool{}
		all, _ := s.opts.Tokens.List() // none is valid where they cannot be read
		for _, e := range all {
			valid[e.Hash] = true
		}
		s.opts.TokensChanged(func(hash string) bool { return valid[hash] })
	}
	s.shut(websocket.ClosePolicyViolation, "the token was revoked", func(e token.Entry) bool { return !s.opts.Tokens.Valid(e) })
}

// shut ends the connections and sessions of some tokens.
func (s *Server) shut(code int, reason string, which func(token.Entry) bool) {
	s.sessions.endAll(reason, which)
	s.mu.Lock()
	var links []link
	for l := range s.links {
		if which(l.entry()) {
			links = append(links, l)
		}
	}
	s.mu.Unlock()
	for _, l := range links {
		l.shut(code, reason)
	}
}

// admit counts a connection in, or says which limit is reached.
func (s *Server) admit(l link) *wire.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := l.entry().Name
	c := &ClientStatus{} // a host is no client, and has a name of its own kind
	if l.entry().Role != token.Host {
		c = s.client(name)
	}
	switch {
	case s.closing:
		return wire.Errorf(wire.CodeRefused, "Drawbridge is ending")
	case len(s.links) >= s.opts.Limits.Connections:
		return wire.Errorf(wire.CodeRefused, "%d connections are open, the most that the agent takes; close one", len(s.links))
	case c.Connections >= s.opts.Limits.ConnectionsPerClient:
		return wire.Errorf(wire.CodeRefused, "%d connections of the client %q are open, the most that one client may have; close one", c.Connections, name)
	}
	s.links[l] = struct{}{}
	c.Connections++
	s.opts.Changed()
	return nil
}

func (s *Server) release(l link) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, ok := s.links[l]; ok {
		delete(s.links, l)
		if l.entry().Role != token.Host {
			s.client(l.entry().Name).Connections--
		}
		s.opts.Changed()
	}
	if s.closing && len(s.links) == 0 {
		closeOnce(s.gone)
	}
}

// client returns a client's counts. The caller holds mu.
func (s *Server) client(name string) *ClientStatus {
	c := s.clients[name]
	if c == nil {
		c = &ClientStatus{Name: name, Since: time.Now().UTC()}
		s.clients[name] = c
	}
	return c
}

func (s *Server) newConnID() string {
	return s.run + "-" + strconv.FormatUint(s.conns.Add(1), 10)
}

func (s *Server) connClosed(c Caller) {
	for _, source := range s.sources() {
		if o, ok := source.(ConnObserver); ok {
			o.ConnClosed(c)
		}
	}
	if s.opts.ConnClosed != nil {
		s.opts.ConnClosed(c)
	}
}

// Status returns what /status shows.
func (s *Server) Status() Status {
	st := Status{
		V: 1, PID: os.Getpid(), Version: s.opts.Version,
		Permissions: map[string]string{}, Clients: []ClientStatus{}, Hosts: []HostStatus{}, Warnings: []string{},
	}
	s.mu.Lock()
	for _, c := range s.clients {
		st.Clients = append(st.Clients, *c)
	}
	st.Warnings = append(st.Warnings, s.warnings...)
	s.mu.Unlock()
	slices.SortFunc(st.Clients, func(a, b ClientStatus) int { return cmp.Compare(a.Name, b.Name) })
	if s.opts.Status != nil {
		s.opts.Status(&st)
	}
	return st
}

func (s *Server) serveStatus(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		s.count(r, "that method is not taken")
		httpError(w, http.StatusMethodNotAllowed, wire.Errorf(wire.CodeRefused, "/status takes GET"))
		return
	}
	b, err := json.Marshal(s.Status())
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("the status cannot be written")
		httpError(w, http.StatusInternalServerError, wire.Errorf(wire.CodeInternal, "the status cannot be written"))
		return
	}
	writeJSON(w, http.StatusOK, wire.Frame{b})
}

func (s *Server) serveHostLLM(w http.ResponseWriter, r *http.Request) {
	if s.opts.HostLLM == nil {
		httpError(w, http.StatusNotFound, wire.Errorf(wire.CodeRefused, "this agent has no model switch"))
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer context.AfterFunc(s.base, func() { cancel(context.Cause(s.base)) })()
	s.opts.HostLLM(w, r.WithContext(ctx), entryOf(r).Name)
}
