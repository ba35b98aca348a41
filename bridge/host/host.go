package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/bridge/wire"
)

// State of a host, as /status shows it.
type State string

const (
	StateConnecting State = "connecting" // being started, dialled or listed
	StateReady      State = "ready"
	StateAsking     State = "asking" // ready, and it waits for somebody itself
	StateDown       State = "down"   // not there; a configured one is tried again
)

// Times of keeping a host.
const (
	openTime    = 2 * time.Minute // to start, agree and list; a first npx may download
	retryMin    = time.Second
	retryMax    = time.Minute
	steady      = time.Minute // a connection that lived so long is no failed try
	listPause   = 200 * time.Millisecond
	maxAskShown = 200 // bytes of what a host says that it asks
)

const noTools = "it says that it has no tools"

// Host is one named place where tools come from, whose connection comes and
// goes. It is a bridge.Source.
type Host struct {
	set        *Set
	name       string
	config     Config
	configured bool
	withheld   bool            // it waits for a person to accept it
	ctx        context.Context // ends when the host is let go
	cancel     context.CancelCauseFunc

	// Set.mu guards what follows.
	kind    string
	state   State
	why     string // why it is down
	conn    *Conn  // nil while it is not ready
	willAsk bool   // conn's host can tell whether it will ask
	tools   []Tool
	notes   []string // what was wrong with its list
	clashes []string // names that others have
	session attachment
	main    bool // an attached session that claimed to be Main

	view atomic.Pointer[view]
}

var _ bridge.Source = (*Host)(nil)

// Name is the host's name.
func (h *Host) Name() string { return h.name }

// Tools lists the host's tools under their listed names.
func (h *Host) Tools(string) []bridge.Tool { return h.view.Load().tools }

func (h *Host) log() *zerolog.Logger {
	l := h.set.opts.Log.With().Str("host", h.name).Logger()
	return &l
}

// Prepare readies a call. Nothing runs before Run; a host whose hints are trusted
// may be asked whether it will ask somebody itself, so that nobody is asked twice.
func (h *Host) Prepare(ctx context.Context, c *bridge.Call) (*bridge.Prepared, *bridge.Answer) {
	tool := h.view.Load().byName[c.SourceTool]
	if tool == nil {
		a := failed(fmt.Sprintf("tool %q is not exposed", c.Tool))
		return nil, &a
	}
	p := &bridge.Prepared{Run: func(ctx context.Context) bridge.Answer { return h.run(ctx, c, tool) }}
	if h.trusted() && (tool.ReadOnly || h.asksItself(ctx, tool, c.Arguments)) {
		p.Default = gate.DefaultAllow
	}
	return p, nil
}

func (h *Host) asksItself(ctx context.Context, tool *Tool, arguments json.RawMessage) bool {
	h.set.mu.Lock()
	conn, can := h.conn, h.willAsk
	h.set.mu.Unlock()
	return conn != nil && can && conn.WillAsk(ctx, tool.Name, arguments)
}

func (h *Host) trusted() bool {
	if h.set.opts.Trusted != nil {
		return h.set.opts.Trusted(h.name)
	}
	return h.config.TrustHints
}

// errTimeout is the cause of a call's end by the host's own time limit.
var errTimeout = errors.New("the host's time limit passed")

func (h *Host) run(ctx context.Context, c *bridge.Call, tool *Tool) bridge.Answer {
	conn, now := h.set.now(h.name, c.SourceTool)
	if conn == nil {
		return failed(fmt.Sprintf("host %s is not connected; nothing was run", h.name))
	}
	if now == nil || now.sum != tool.sum {
		return failed(fmt.Sprintf("host %s changed its tool %q while the call waited; nothing was run: list the tools and call again", h.name, c.Tool))
	}
	if h.config.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, h.config.Timeout, errTimeout)
		defer cancel()
	}
	r := CallRequest{ID: c.ID, Name: tool.Name, Params: c.Params,
		Definition: tool.Definition, Arguments: c.Arguments, Rename: tool.Name != c.Tool}
	if c.Notify != nil {
		r.Progress = func(params json.RawMessage) { c.Notify("notifications/progress", params) }
	}
	result, rpcErr, err := conn.Call(ctx, r)
	switch {
	case err == nil && rpcErr != nil:
		return bridge.Answer{Error: rpcErr}
	case err == nil:
		return bridge.Answer{Result: result}
	}
	return h.explain(err)
}

// explain words a call that has no answer of the host.
func (h *Host) explain(err error) bridge.Answer {
	var stopped *stop.Error
	var large *wire.ErrTooLarge
	switch {
	case errors.As(err, &stopped):
		a := failed(fmt.Sprintf("%s; host %s was told to stop, and what it had done by then is not known", stopped.Message, h.name))
		a.Outcome = "stopped: " + string(stopped.Reason)
		return a
	case errors.Is(err, errTimeout):
		a := failed(fmt.Sprintf("host %s did not answer within its time limit of %s and was told to stop; what it had done by then is not known", h.name, h.config.Timeout))
		a.Outcome = "stopped: " + string(stop.Deadline)
		return a
	case errors.As(err, &large):
		return failed(fmt.Sprintf("the tool ran, but its result has %d bytes and at most %d are taken from a host: ask for less at a time", large.Size(), large.Cap))
	case errors.Is(err, errUnsent):
		return failed(fmt.Sprintf("host %s is not connected; nothing was run", h.name))
	case errors.Is(err, ErrGone):
		return failed(fmt.Sprintf("the connection to host %s ended while the call ran (%v); whether it had its effect is not known: look before you repeat it", h.name, err))
	}
	return failed(fmt.Sprintf("host %s gave no answer: %v", h.name, err))
}

func failed(text string) bridge.Answer { return bridge.Answer{Result: wire.ErrorResult(text, "")} }

// now returns a host's present connection, nil where it has none, and the tool
// that it lists under a name. The host may have come again since it was asked.
func (s *Set) now(host, listed string) (*Conn, *Tool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		return nil, nil
	}
	return h.conn, h.view.Load().byName[listed]
}

// keep starts or dials a configured host again and again until it is let go.
func (h *Host) keep() {
	defer h.set.jobs.Done()
	wait, probe := retryMin, true
	for {
		begun := time.Now()
		pipe, err := dial(&h.config, h.set.opts.MaxFrame, *h.log())
		if err == nil {
			err = h.serve(h.ctx, pipe, probe, openTime)
		}
		if h.ctx.Err() != nil {
			return
		}
		if errors.Is(err, errProbeEnded) {
			// It does not survive a question that it does not know.
			probe = false
			continue
		}
		if time.Since(begun) >= steady {
			wait = retryMin
		}
		h.log().Warn().Err(err).Stringer("again_in", wait).Msg("host is down")
		h.down(fmt.Sprintf("%v; it is tried again", err))
		select {
		case <-time.After(wait):
		case <-h.ctx.Done():
		}
		wait = min(2*wait, retryMax)
	}
}

// dial starts the child, or readies the way to the remote server.
func dial(c *Config, limit int64, log zerolog.Logger) (Pipe, error) {
	if c.Kind() == KindRemote {
		headers, err := c.header()
		if err != nil {
			return nil, err
		}
		return newHTTPPipe(c.URL, headers, limit), nil
	}
	return startChild(Command{Path: c.Command, Args: c.Args, Env: c.Env, Dir: c.Cwd}, limit, log)
}

// serve keeps one connection from its opening to its end, and says why it ended.
func (h *Host) serve(ctx context.Context, pipe Pipe, probe bool, limit time.Duration) error {
	h.set.setState(h, StateConnecting)
	changed := make(chan struct{}, 1)
	conn, peer, err := h.open(ctx, pipe, probe, limit, changed)
	if err != nil {
		return err
	}
	defer conn.Close()
	if ws, ok := pipe.(*wsPipe); ok {
		defer func() { ws.bye(farewell(context.Cause(ctx))) }()
	}
	if h.set.opts.Models != nil && h.config.Kind() == KindAttached {
		defer h.followModels(ctx, conn)()
	}
	tools, notes, err := h.list(ctx, conn, peer, limit)
	if err != nil {
		return err
	}
	h.up(conn, peer)
	defer h.down("the connection ended")
	h.set.update(h, tools, notes)
	h.log().Info().Int("tools", len(tools)).Str("revision", peer.Revision).Msg("host is ready")
	for {
		select {
		case <-conn.Closed():
			return conn.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-changed:
		}
		// A storm of changes is one change: what comes until the pause is over and
		// the list is read anew is covered by it.
		select {
		case <-time.After(listPause):
		case <-conn.Closed():
			return conn.Err()
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		select {
		case <-changed:
		default:
		}
		tools, notes, err := h.list(ctx, conn, peer, limit)
		if err != nil {
			h.log().Warn().Err(err).Msg("the host's changed tools cannot be listed; the old list holds")
			continue
		}
		h.set.update(h, tools, notes)
	}
}

// farewell is what a host that dialled in is told at the end.
func farewell(why error) (code int, reason string) {
	switch {
	case why == nil:
		return websocket.CloseGoingAway, "the connection ended"
	case errors.Is(why, errReplaced):
		return CloseReplaced, why.Error()
	}
	return websocket.CloseGoingAway, why.Error()
}

func (h *Host) open(ctx context.Context, pipe Pipe, probe bool, limit time.Duration, changed chan struct{}) (*Conn, Peer, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not answer within %s", limit))
	defer cancel()
	return Open(ctx, pipe, OpenOptions{
		Probe: probe, Version: h.set.opts.Version, Log: *h.log(),
		Events: Events{
			ListChanged: func() {
				select {
				case changed <- struct{}{}:
				default:
				}
			},
			Asking: h.asks,
			Other:  h.other,
		},
	})
}

func (h *Host) list(ctx context.Context, conn *Conn, peer Peer, limit time.Duration) ([]Tool, []string, error) {
	if !peer.Tools {
		return nil, []string{noTools}, nil
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("it did not list its tools within %s", limit))
	defer cancel()
	return conn.List(ctx)
}

// asks notes that the host itself waits for somebody, so that a start without a
// done in the audit is explained.
func (h *Host) asks(call, what string) {
	what = shorten(what)
	h.log().Info().Str("call", call).Msg("host asks somebody itself")
	if h.set.opts.Note != nil {
		h.set.opts.Note(audit.Record{Phase: audit.Note, ID: call, Host: h.name, Outcome: "the host asks: " + what})
	}
}

func shorten(s string) string {
	if len(s) <= maxAskShown {
		return s
	}
	return string([]rune(s[:maxAskShown])) + "…"
}

// up makes conn the host's connection.
func (h *Host) up(conn *Conn, peer Peer) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	h.conn, h.willAsk, h.state, h.why = conn, peer.WillAsk, StateReady, ""
}

// down takes the host's connection away. A configured host's tools stay listed
// while it is started again: a call then says so, which helps more than a tool
// that is gone.
func (h *Host) down(why string) {
	h.set.mu.Lock()
	defer h.set.mu.Unlock()
	h.conn, h.state, h.why = nil, StateDown, why
}

func (s *Set) setState(h *Host, state State) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.state = state
}
