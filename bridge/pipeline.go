package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/bridge/wire"
)

// RefusedMeta is the key in a result's _meta under which a refusal by the gate
// is told by one word: denied, nobody, expired, full or paused.
const RefusedMeta = "drawbridge/refused"

// keepAlive is how often a caller with a progress token hears of a call that
// waits for a person.
const keepAlive = 5 * time.Second

// run is one call on its way through the pipeline: one prompt, one execution.
// Identical calls that arrive while it waits for a person share it.
type run struct {
	srv     *Server
	call    Call
	began   time.Time
	ctx     context.Context
	cancel  context.CancelCauseFunc
	done    chan struct{} // closed when answer is there
	answer  Answer
	running atomic.Bool // the gate let it through

	listedHost atomic.Pointer[string] // host, for who looks from outside

	// Of the goroutine that executes it:
	host      string
	unwritten []audit.Record
	space     [3]audit.Record // what unwritten starts in
	asked     bool
	ticking   chan struct{} // ends the keep-alive
	ticked    chan struct{} // the keep-alive has ended

	mu      sync.Mutex // guards callers
	callers []*caller
}

// caller is one client's request that waits for a run's answer.
type caller struct {
	run    *run
	peer   *peer
	out    outlet
	id     json.RawMessage
	token  json.RawMessage // its progress token
	modern bool
	left   chan struct{} // of a caller that joined: closed when it leaves
	gone   bool          // guarded by run.mu
	ticks  int           // of the keep-alive's goroutine
}

// handleCall accepts a call, or answers why not.
func (s *Server) handleCall(p *peer, out outlet, m *wire.Message, modern bool) (work func(), err *wire.Error) {
	if m.Name == "" {
		return nil, wire.Errorf(wire.CodeInvalidParams, "params.name is missing")
	}
	s.refreshTokens(tokenPatience)
	c := &caller{peer: p, out: out, id: m.ID, token: m.Meta.ProgressToken, modern: modern}
	joined := s.join(c, p.token.Name, m)
	if !joined {
		if c.run, err = s.newRun(c, m); err != nil {
			return nil, err
		}
	}
	ok, refusal := p.begin(m.ID, c.leave)
	switch {
	case ok && joined:
		s.opts.Audit.Append(c.run.record(audit.Note, "joined by an identical call"))
		return c.waitFor, nil
	case ok:
		return c.execute, nil
	}
	c.abandon(hungUp)
	if !joined {
		s.forget(c.run)
	}
	switch {
	case refusal == nil:
		out.drop()
	case refusal.Code == wire.CodeRefused:
		// A limit is told to the model, which can wait and try again.
		s.answer(out, m.ID, modern, wire.ErrorResult(refusal.Message, ""))
		refusal = nil
	}
	return nil, refusal
}

func (s *Server) newRun(c *caller, m *wire.Message) (*run, *wire.Error) {
	r := &run{
		srv:   s,
		began: time.Now(),
		done:  make(chan struct{}),
		call: Call{
			ID:            s.run + "-c" + strconv.FormatUint(s.calls.Add(1), 10),
			Caller:        c.peer.caller(imagesOf(m.Meta.Capabilities)),
			Tool:          m.Name,
			Params:        m.Params,
			Arguments:     m.Arguments,
			ProgressToken: m.Meta.ProgressToken,
		},
	}
	r.callers = []*caller{c}
	r.unwritten = r.space[:0]
	r.call.Notify = r.notify
	r.ctx, r.cancel = context.WithCancelCause(s.base)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		r.cancel(nil)
		return nil, wire.Errorf(wire.CodeRefused, "Drawbridge is ending")
	}
	s.runs[r] = struct{}{}
	s.client(r.call.Caller.Client).Calls++
	s.opts.Changed()
	return r, nil
}

// forget takes a run that ended out of the books.
func (s *Server) forget(r *run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.runs, r)
	s.opts.Changed()
	if s.closing && len(s.runs) == 0 {
		closeOnce(s.idle)
	}
}

// execute runs the call on the goroutine of its first caller.
func (c *caller) execute() {
	r := c.run
	r.execute()
	c.deliver()
	r.srv.forget(r)
}

// waitFor waits for the answer of a run that this caller joined.
func (c *caller) waitFor() {
	select {
	case <-c.run.done:
	case <-c.left:
	}
	c.deliver()
}

// deliver answers the caller, unless it left.
func (c *caller) deliver() {
	c.peer.end(c.id)
	c.run.mu.Lock()
	gone := c.gone
	c.gone = true
	c.run.mu.Unlock()
	if gone {
		return
	}
	a := c.run.answer
	if a.Error != nil {
		c.out.answer(wire.ErrorFrame(c.id, a.Error), errorCode(a.Error))
		return
	}
	if n := int64(len(a.Result)); n > c.peer.limit {
		a.Result = wire.ErrorResult(fmt.Sprintf("the call ran, but its result has %d bytes, over the cap of %d bytes on this connection; ask for less at a time", n, c.peer.limit), "")
	}
	c.peer.srv.answer(c.out, c.id, c.modern, a.Result)
}

func errorCode(object json.RawMessage) int {
	code, err := strconv.Atoi(string(wire.Get(object, "code")))
	if err != nil {
		return wire.CodeInternal
	}
	return code
}

// leave is the caller's cancel or hang-up. The run ends when all have left.
func (c *caller) leave(cause *stop.Error) {
	if c.abandon(cause) {
		c.out.drop()
	}
}

// abandon takes the caller off its run and reports whether it was on it.
func (c *caller) abandon(cause *stop.Error) bool {
	r := c.run
	r.mu.Lock()
	if c.gone {
		r.mu.Unlock()
		return false
	}
	c.gone = true
	r.callers = slices.DeleteFunc(slices.Clone(r.callers), func(x *caller) bool { return x == c })
	last := len(r.callers) == 0
	r.mu.Unlock()
	if c.left != nil {
		close(c.left)
	}
	if last {
		r.cancel(cause)
	}
	return true
}

func (r *run) execute() {
	r.answer = r.decide()
	outcome := r.answer.Outcome
	if outcome == "" {
		outcome = outcomeOf(r.answer)
	}
	done := r.record(audit.Done, outcome)
	done.MS = float64(time.Since(r.began).Microseconds()) / 1000
	done.In = len(r.call.Arguments)
	done.Out = len(r.answer.Result) + len(r.answer.Error)
	r.note(done)
	r.flush()
	if r.srv.opts.Ended != nil {
		st := r.status()
		st.Outcome, st.MS = outcome, done.MS
		r.srv.opts.Ended(st, r.answer)
	}
	r.cancel(nil)
	close(r.done)
}

func outcomeOf(a Answer) string {
	if a.Error != nil || string(wire.Get(a.Result, "isError")) == "true" {
		return "error"
	}
	return "ok"
}

// decide takes the call from the catalogue to its answer.
func (r *run) decide() Answer {
	listed, ok := r.srv.lookup(r.call.Caller.Client, r.call.Tool)
	r.host = listed.Host
	r.listedHost.Store(&r.host)
	start := r.record(audit.Start, "")
	start.Args = r.call.Arguments
	r.note(start)
	if !ok {
		// One answer for what is hidden, filtered and not there: a refusal must
		// not tell what exists.
		return Answer{Result: wire.ErrorResult(fmt.Sprintf("tool %q is not exposed", clip(r.call.Tool, 128)), "")}
	}
	r.call.SourceTool = listed.tool.Name
	prepared, answer := listed.source.Prepare(r.ctx, &r.call)
	if prepared == nil {
		return r.ended(answer)
	}
	args := r.call.Arguments
	if args == nil {
		args = json.RawMessage(`{}`)
	}
	verdict := r.srv.opts.Gate.Decide(r.ctx, &gate.Request{
		ID:      r.call.ID,
		Client:  r.call.Caller.Client,
		Token:   r.call.Caller.Token,
		Conn:    r.call.Caller.Conn,
		Host:    r.host,
		Tool:    r.call.Tool,
		Args:    args,
		Extra:   extra(r.call.Params),
		Default: prepared.Default,
		Preview: prepared.Preview,
		Closeup: prepared.Closeup,
		Changed: prepared.Changed,
		Waiting: r.wait,
	})
	r.stopWaiting()
	r.note(r.record(audit.Verdict, verdictText(verdict)))
	if cause := r.cause(); cause != nil || verdict.Outcome == gate.Gone {
		return stopped(cause)
	}
	if verdict.Outcome != gate.Allowed {
		return refused(verdict)
	}
	r.running.Store(true)
	r.srv.opts.Changed()
	r.flush() // the start is on file before anything runs
	result := prepared.Run(r.ctx)
	return r.ended(&result)
}

// ended checks what a source answered. A call that was cancelled says so in the
// audit where the source does not say better.
func (r *run) ended(a *Answer) Answer {
	cause := r.cause()
	switch {
	case a == nil || a.Result == nil && a.Error == nil:
		if cause != nil {
			return stopped(cause)
		}
		return Answer{Error: wire.Errorf(wire.CodeInternal, "%s gave no answer", r.host).Raw()}
	case a.Outcome == "" && cause != nil:
		a.Outcome = outcomeOf(*a)
		if cause.Reason == stop.Cancelled {
			a.Outcome = string(stop.Cancelled)
		}
	}
	return *a
}

// cause returns why the run was ended early, or nil.
func (r *run) cause() *stop.Error {
	if r.ctx.Err() == nil {
		return nil
	}
	var e *stop.Error
	if errors.As(context.Cause(r.ctx), &e) {
		return e
	}
	return &stop.Error{Reason: stop.Stopped, Message: "the call was ended"}
}

// stopped answers a call that ended before it ran.
func stopped(cause *stop.Error) Answer {
	if cause == nil {
		cause = &stop.Error{Reason: stop.Cancelled, Message: "the call was withdrawn"}
	}
	a := Answer{
		Result:  wire.ErrorResult(fmt.Sprintf("the call was ended before it ran (%s): %s", cause.Reason, cause.Message), ""),
		Outcome: "stopped: " + string(cause.Reason),
	}
	if cause.Reason == stop.Cancelled {
		a.Outcome = string(stop.Cancelled)
	}
	return a
}

var outcomeWords = map[gate.Outcome]string{
	gate.Denied: "denied", gate.Allowed: "allowed", gate.Nobody: "nobody", gate.Expired: "expired",
	gate.Full: "full", gate.Paused: "paused", gate.Gone: "withdrawn",
}

func verdictText(v gate.Verdict) string {
	word := outcomeWords[v.Outcome]
	if v.By == "" {
		return word
	}
	return word + ": " + v.By
}

// refused answers a call that the gate did not let through.
func refused(v gate.Verdict) Answer {
	word := outcomeWords[v.Outcome]
	text := v.Message
	if text == "" {
		text = "the call was refused (" + word + "); do not try to get the same thing another way"
	}
	return Answer{
		Result:  wire.ErrorResult(text, `{"`+RefusedMeta+`":"`+word+`"}`),
		Outcome: "refused: " + word,
	}
}

func (r *run) record(phase audit.Phase, outcome string) audit.Record {
	return audit.Record{
		Phase: phase, ID: r.call.ID, Client: r.call.Caller.Client, Conn: r.call.Caller.Conn,
		Host: r.host, Tool: clip(r.call.Tool, 128), Outcome: outcome,
	}
}

// note keeps a record for the next flush, so that what happens at once is
// written at once.
func (r *run) note(rec audit.Record) { r.unwritten = append(r.unwritten, rec) }

func (r *run) flush() {
	r.srv.opts.Audit.Append(r.unwritten...)
	r.unwritten = r.space[:0]
}

// wait is what the gate calls when the call begins to wait for a person.
func (r *run) wait() {
	if r.asked {
		return
	}
	r.asked = true
	r.note(r.record(audit.Ask, ""))
	r.flush()
	r.srv.joins.add(r)
	r.ticking, r.ticked = make(chan struct{}), make(chan struct{})
	go r.keepAlive()
}

func (r *run) stopWaiting() {
	if !r.asked {
		return
	}
	r.srv.joins.remove(r)
	close(r.ticking)
	<-r.ticked
}

// keepAlive tells callers with a progress token that the call still waits.
func (r *run) keepAlive() {
	defer close(r.ticked)
	tick := time.NewTicker(keepAlive)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-r.ticking:
			return
		}
		r.mu.Lock()
		callers := r.callers
		r.mu.Unlock()
		for _, c := range callers {
			if c.token == nil {
				continue
			}
			c.ticks++
			// Thousandths, so that the tool's own progress still rises after it.
			b := append([]byte(`{"progressToken":`), c.token...)
			b = append(b, `,"progress":`...)
			b = strconv.AppendFloat(b, float64(c.ticks)/1000, 'f', 3, 64)
			b = append(b, `,"message":"waiting for the person to approve the call"}`...)
			c.out.post(wire.NotificationFrame("notifications/progress", b))
		}
	}
}

// notify passes a notification of the source on to all callers, progress under
// the token of each.
func (r *run) notify(method string, params json.RawMessage) {
	r.mu.Lock()
	callers := r.callers
	r.mu.Unlock()
	for _, c := range callers {
		mine := params
		if method == "notifications/progress" && !bytes.Equal(c.token, r.call.ProgressToken) {
			if c.token == nil {
				continue
			}
			mine = wire.Replace(params, "progressToken", c.token)
		}
		c.out.post(wire.NotificationFrame(method, mine))
	}
}

// extra returns what a call carries beside its name, its arguments and its
// _meta, as an object, or nil: a retry with answers to a host's questions has
// the same arguments and is another call.
func extra(params json.RawMessage) json.RawMessage {
	var out json.RawMessage
	wire.Members(params, func(m wire.Member) bool {
		switch m.Name {
		case "name", "arguments", "_meta":
			return true
		}
		sep := byte(',')
		if out == nil {
			sep = '{'
		}
		out = append(out, sep)
		out = wire.AppendString(out, m.Name)
		out = append(out, ':')
		out = append(out, params[m.Start:m.End]...)
		return true
	})
	if out != nil {
		out = append(out, '}')
	}
	return out
}

// joins finds the run that an identical call can share: one of the same client,
// tool and argument bytes that waits for a person.
type joins struct {
	seed    maphash.Seed
	waiting atomic.Int64 // spares the lock when nothing waits

	mu   sync.Mutex // guards runs; taken before run.mu
	runs map[uint64][]*run
}

func (j *joins) key(client, tool string, args []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(j.seed)
	h.WriteString(client)
	h.WriteByte(0)
	h.WriteString(tool)
	h.WriteByte(0)
	h.Write(args)
	return h.Sum64()
}

func (j *joins) keyOf(r *run) uint64 {
	return j.key(r.call.Caller.Client, r.call.Tool, r.call.Arguments)
}

func (j *joins) add(r *run) {
	key := j.keyOf(r)
	j.mu.Lock()
	defer j.mu.Unlock()
	j.runs[key] = append(j.runs[key], r)
	j.waiting.Add(1)
}

func (j *joins) remove(r *run) {
	key := j.keyOf(r)
	j.mu.Lock()
	defer j.mu.Unlock()
	rest := slices.DeleteFunc(j.runs[key], func(x *run) bool { return x == r })
	if len(rest) == 0 {
		delete(j.runs, key)
	} else {
		j.runs[key] = rest
	}
	j.waiting.Add(-1)
}

// join puts the caller on a waiting run of an identical call.
func (s *Server) join(c *caller, client string, m *wire.Message) bool {
	j := &s.joins
	if j.waiting.Load() == 0 {
		return false
	}
	key := j.key(client, m.Name, m.Arguments)
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, r := range j.runs[key] {
		same := r.call.Caller.Client == client && r.call.Tool == m.Name &&
			bytes.Equal(r.call.Arguments, m.Arguments) && bytes.Equal(extra(r.call.Params), extra(m.Params))
		if !same || r.ctx.Err() != nil {
			continue
		}
		r.mu.Lock()
		ok := len(r.callers) > 0
		if ok {
			c.run, c.left = r, make(chan struct{})
			r.callers = append(slices.Clone(r.callers), c)
		}
		r.mu.Unlock()
		if ok {
			return true
		}
	}
	return false
}
