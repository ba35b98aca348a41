// Package host is where tools come from: attached sessions, child processes and
// remote servers. Whatever a host sends goes through byte for byte; only the
// JSON-RPC id and the progress token toward the host are ours.
package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/wire"
)

// Protocol revisions that we speak toward hosts, newest first.
const (
	modernVersion = "2026-07-28"
	legacyVersion = "2025-11-25" // what initialize offers
)

var legacyVersions = []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"}

// Limits of one connection.
const (
	maxInFlight = 1024             // requests open at a host
	noticeEvery = 50               // strange frames are logged at the 1st and every 50th
	notifyTime  = 10 * time.Second // for frames that nobody waits for
)

// ErrGone is wrapped by every error that says that the connection ended.
var ErrGone = errors.New("the host is gone")

// errUnsent tells beside ErrGone that the request never left.
var errUnsent = errors.New("nothing was sent")

// Events are what a connection tells its owner. Each is called from the
// connection's reading goroutine and must return at once; nil means ignored.
type Events struct {
	ListChanged func()
	// Asking tells that the host itself waits for somebody. call is the id that
	// Call was given. Conn.Asking tells what is waited for now.
	Asking func(call, what string)
	// Other gets every other notification.
	Other func(method string, params json.RawMessage)
}

// Conn is the client end of MCP toward one host.
type Conn struct {
	pipe   Pipe
	events Events
	info   string // our clientInfo, a JSON object
	log    zerolog.Logger
	modern bool // the host's era; set by Open, then constant

	closed   chan struct{} // closed when reading has ended
	closeErr error         // why; set before closed is closed

	mu      sync.Mutex // guards what follows
	nextID  uint64
	open    map[uint64]*request
	strange int // frames that belong to nothing

	sends sync.WaitGroup // goroutines that send what nobody waits for
}

// request is one open request toward the host.
type request struct {
	reply    chan reply                   // holds one; the first answer wins
	call     string                       // the call's id; empty for our own requests
	asking   string                       // what the host itself waits for; Conn.mu guards it
	progress func(params json.RawMessage) // nil: nobody wants to hear
}

// reply is how a request ended: with a result, a JSON-RPC error, or neither.
type reply struct {
	result, rpcErr json.RawMessage
	err            error
}

func newConn(p Pipe, ev Events, version string, log zerolog.Logger) *Conn {
	v, _ := json.Marshal(version) // a string always encodes
	return &Conn{
		pipe: p, events: ev, log: log,
		info:   `{"name":"drawbridge","version":` + string(v) + `}`,
		closed: make(chan struct{}),
		open:   map[uint64]*request{},
	}
}

// Closed is closed when the connection has ended; Err then says why.
func (c *Conn) Closed() <-chan struct{} { return c.closed }

// Err returns why the connection ended, or nil while it lives.
func (c *Conn) Err() error {
	select {
	case <-c.closed:
		return c.closeErr
	default:
		return nil
	}
}

// Modern tells whether the host speaks the stateless era.
func (c *Conn) Modern() bool { return c.modern }

// Close ends the connection. Open requests end with ErrGone.
func (c *Conn) Close() error {
	err := c.pipe.Close()
	<-c.closed
	c.sends.Wait()
	return err
}

// read is the connection's one reader; it ends with the pipe.
func (c *Conn) read() {
	var err error
	for {
		var in Incoming
		if in, err = c.pipe.Receive(); err != nil {
			break
		}
		if in.Err != nil {
			if !c.answer(in.ID, reply{err: in.Err}) {
				c.odd("a frame was dropped: " + in.Err.Error())
			}
			continue
		}
		c.frame(in.Frame)
	}
	c.pipe.Close()
	c.mu.Lock()
	open := c.open
	c.open = nil
	c.mu.Unlock()
	c.closeErr = fmt.Errorf("%w: %w", ErrGone, err)
	for _, r := range open {
		r.reply <- reply{err: c.closeErr}
	}
	close(c.closed)
}

// frame takes one frame to where it belongs.
func (c *Conn) frame(raw []byte) {
	e, err := parseEnvelope(raw)
	switch {
	case err != nil:
		var k wire.Skimmer
		_, _ = k.Write(raw)
		if !c.answer(orphan(&k), reply{err: fmt.Errorf("its answer cannot be taken: %w", err)}) {
			c.odd("not a JSON-RPC message: " + err.Error())
		}
	case e.method != "" && e.id != nil:
		c.decline(e)
	case e.method != "":
		c.notification(e)
	default:
		if !c.answer(ownID(e.id), reply{result: e.result, rpcErr: e.rpcErr}) {
			c.odd("an answer to no open request")
		}
	}
}

// answer ends request id. It tells whether the request was open: a second
// answer, or one to a cancelled request, belongs to nothing.
func (c *Conn) answer(id uint64, r reply) bool {
	c.mu.Lock()
	q := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	if q == nil {
		return false
	}
	q.reply <- r
	return true
}

// odd logs a frame that belongs to nothing, without its content.
func (c *Conn) odd(what string) {
	c.mu.Lock()
	c.strange++
	n := c.strange
	c.mu.Unlock()
	if n == 1 || n%noticeEvery == 0 {
		c.log.Warn().Int("count", n).Msg("ignored from host: " + what)
	}
}

// decline answers a request that the host sends us. We have no tools, call no
// model and ask nobody on a host's behalf; only ping has another answer.
func (c *Conn) decline(e envelope) {
	var key, body string
	switch e.method {
	case "ping":
		key, body = "result", `{}`
	case "elicitation/create":
		key, body = "result", `{"action":"decline"}`
	case "sampling/createMessage":
		key, body = "error", `{"code":-1,"message":"declined: Drawbridge never calls a model"}`
	case "roots/list":
		key, body = "error", `{"code":-32601,"message":"Drawbridge has no roots"}`
	default:
		key, body = "error", `{"code":-32601,"message":"Drawbridge serves no requests of hosts"}`
	}
	b := make([]byte, 0, len(e.id)+len(body)+40)
	b = append(b, `{"jsonrpc":"2.0","id":`...)
	b = append(b, e.id...)
	b = append(b, `,"`+key+`":`...)
	b = append(b, body...)
	c.sendAside(Outgoing{Frame: append(b, '}')})
}

func (c *Conn) notification(e envelope) {
	switch e.method {
	case "notifications/tools/list_changed":
		if c.events.ListChanged != nil {
			c.events.ListChanged()
		}
	case "notifications/progress":
		c.progress(e.params)
	case "drawbridge/asking":
		c.asking(e.params)
	default:
		if c.events.Other != nil {
			c.events.Other(e.method, e.params)
		}
	}
}

// progress hands a progress notification to the caller, with the caller's own
// token in the place of ours.
func (c *Conn) progress(params json.RawMessage) {
	id := ownID(wire.Get(params, "progressToken"))
	c.mu.Lock()
	q := c.open[id]
	c.mu.Unlock()
	if q == nil {
		c.odd("progress of no open request")
		return
	}
	if q.progress != nil {
		q.progress(params)
	}
}

func (c *Conn) asking(params json.RawMessage) {
	var p struct {
		RequestID uint64 `json:"requestId"`
		What      string `json:"what"`
	}
	if err := json.Unmarshal(params, &p); err != nil {
		c.odd("drawbridge/asking: " + err.Error())
		return
	}
	c.mu.Lock()
	q := c.open[p.RequestID]
	if q != nil {
		q.asking = p.What
	}
	c.mu.Unlock()
	if q == nil || q.call == "" {
		c.odd("drawbridge/asking about no open call")
		return
	}
	if p.What != "" && c.events.Asking != nil {
		c.events.Asking(q.call, p.What)
	}
}

// Asking tells what the host itself waits for now, by the call's id.
func (c *Conn) Asking() map[string]string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var asking map[string]string
	for _, q := range c.open {
		if q.asking != "" && q.call != "" {
			if asking == nil {
				asking = map[string]string{}
			}
			asking[q.call] = q.asking
		}
	}
	return asking
}

// sendAside sends a frame that nobody waits for, without holding up the caller.
func (c *Conn) sendAside(f Outgoing) {
	c.mu.Lock()
	if c.open == nil { // ended: Close may already wait for sends
		c.mu.Unlock()
		return
	}
	c.sends.Add(1)
	c.mu.Unlock()
	go func() {
		defer c.sends.Done()
		ctx, cancel := context.WithTimeout(context.Background(), notifyTime)
		defer cancel()
		if err := c.pipe.Send(ctx, f); err != nil {
			c.log.Debug().Err(err).Str("method", f.Method).Msg("not sent to host")
		}
	}()
}

// roundTrip sends one request and waits for its answer. frame is given the id
// and returns the whole frame, which completes f. When ctx ends first, the host is told.
func (c *Conn) roundTrip(ctx context.Context, q *request, f Outgoing, frame func(id uint64) []byte) reply {
	q.reply = make(chan reply, 1)
	c.mu.Lock()
	if c.open == nil {
		c.mu.Unlock()
		<-c.closed
		return reply{err: fmt.Errorf("%w: %w", errUnsent, c.closeErr)}
	}
	if len(c.open) >= maxInFlight {
		c.mu.Unlock()
		return reply{err: fmt.Errorf("%d requests are open at the host already; wait for one to end", maxInFlight)}
	}
	c.nextID++
	id := c.nextID
	c.open[id] = q
	c.mu.Unlock()

	f.ID, f.Frame = id, frame(id)
	if err := c.pipe.Send(ctx, f); err != nil {
		if c.drop(id) {
			if errors.Is(err, ErrGone) {
				err = fmt.Errorf("%w: %w", errUnsent, err)
			}
			return reply{err: fmt.Errorf("send %s: %w", f.Method, err)}
		}
		return <-q.reply // it ended meanwhile, and that says more
	}
	select {
	case r := <-q.reply:
		return r
	case <-ctx.Done():
	}
	if !c.drop(id) {
		return <-q.reply // the answer came first
	}
	if f.Method != "initialize" { // the protocol forbids to cancel it
		params := fmt.Sprintf(`{"requestId":%d,"reason":"the caller ended it"}`, id)
		if c.modern {
			params = fmt.Sprintf(`{"requestId":%d,"reason":"the caller ended it","_meta":%s}`, id, c.meta())
		}
		c.sendAside(Outgoing{Method: "notifications/cancelled",
			Frame: []byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":` + params + `}`)})
	}
	return reply{err: context.Cause(ctx)}
}

// drop forgets request id and tells whether it was still open.
func (c *Conn) drop(id uint64) bool {
	c.mu.Lock()
	q := c.open[id]
	delete(c.open, id)
	c.mu.Unlock()
	return q != nil
}

// request sends a request of our own; params is a JSON object without _meta.
func (c *Conn) request(ctx context.Context, method string, params string) reply {
	return c.roundTrip(ctx, &request{}, Outgoing{Method: method}, func(id uint64) []byte {
		if c.modern {
			params = params[:len(params)-1] + comma(params) + `"_meta":` + c.meta() + `}`
		}
		return []byte(`{"jsonrpc":"2.0","id":` + strconv.FormatUint(id, 10) + `,"method":"` + method + `","params":` + params + `}`)
	})
}

// comma returns the comma that a further member of the object needs.
func comma(object string) string {
	if object == "{}" {
		return ""
	}
	return ","
}

// meta is the _meta of a modern request of our own.
func (c *Conn) meta() string {
	return `{` + metaVersion + `,` + metaCaps + `,` + metaInfoKey + c.info + `}`
}

// CallRequest is one tools/call toward a host.
type CallRequest struct {
	ID     string // the call's id in the audit; comes back with Asking
	Name   string // the tool, as the host names it
	Params json.RawMessage
	// Definition is the tool's, Arguments are those in Params: a binding may have
	// to repeat some of them.
	Definition, Arguments json.RawMessage
	// Rename is set when Params names the tool otherwise.
	Rename bool
	// Progress is told what the host reports, with the caller's own token in it.
	// It is called only when Params has a progress token, and must not block. It
	// may still be called once while Call returns.
	Progress func(params json.RawMessage)
}

// Call runs one tool. Exactly one of result, rpcErr and err is set; result and
// rpcErr are the host's own bytes. err is the context's cause when ctx ended,
// wraps ErrGone when the connection did, and is a *wire.ErrTooLarge when the
// answer was longer than we keep.
func (c *Conn) Call(ctx context.Context, r CallRequest) (result, rpcErr json.RawMessage, err error) {
	edits := c.planParams(r)
	q := &request{call: r.ID}
	if r.Progress != nil && edits.token != nil {
		q.progress = func(params json.RawMessage) {
			r.Progress(wire.Replace(params, "progressToken", edits.token))
		}
	}
	f := Outgoing{Method: "tools/call", Name: r.Name, Definition: r.Definition, Arguments: r.Arguments}
	got := c.roundTrip(ctx, q, f, func(id uint64) []byte {
		b := make([]byte, 0, len(r.Params)+edits.extra+128)
		b = append(b, `{"jsonrpc":"2.0","id":`...)
		b = strconv.AppendUint(b, id, 10)
		b = append(b, `,"method":"tools/call","params":`...)
		b = edits.apply(b, r.Params, id)
		return append(b, '}')
	})
	if c.modern && !edits.modern && got.result != nil && string(wire.Get(got.result, "resultType")) == `"input_required"` {
		return nil, nil, errInput
	}
	return got.result, got.rpcErr, got.err
}

// willAskTime is how long a host may think about whether it will ask.
const willAskTime = 5 * time.Second

// WillAsk asks the host whether it will itself ask somebody before it runs this
// call. No answer in time, or none that is understood, is a no.
func (c *Conn) WillAsk(ctx context.Context, tool string, arguments json.RawMessage) bool {
	if arguments == nil {
		arguments = json.RawMessage(`{}`)
	}
	ctx, cancel := context.WithTimeout(ctx, willAskTime)
	defer cancel()
	r := c.request(ctx, "drawbridge/willAsk", `{"name":`+string(wire.AppendString(nil, tool))+`,"arguments":`+string(arguments)+`}`)
	return string(wire.Get(r.result, "asks")) == "true"
}

// errInput declines for a caller of the older era, which could not answer. In the
// stateless era a host asks in its result, and a caller of that era answers it by
// itself, with another call.
var errInput = errors.New("the host asked for sampling, elicitation or roots in the place of an answer, which Drawbridge declines")
