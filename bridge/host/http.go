package host

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/wire"
)

// Times of the HTTP binding.
const (
	streamWait    = time.Second // before an ended stream is asked for again
	streamWaitMax = time.Minute
	deleteTime    = 2 * time.Second // for the farewell to a session
	maxResumes    = 20              // of one answer's stream, without news between
	maxErrorBody  = 1 << 20
)

// httpPipe speaks Streamable HTTP to a remote server, in either era.
type httpPipe struct {
	url     string
	headers http.Header
	client  *http.Client
	limit   int64

	ctx    context.Context // ends with the pipe
	cancel context.CancelCauseFunc
	in     chan Incoming
	jobs   sync.WaitGroup // requests and streams under way

	mu       sync.Mutex // guards what follows
	revision string     // as agreed; empty before
	session  string     // of the older era; empty for none
	ended    bool       // no further job may start
}

// newHTTPPipe makes the pipe; nothing is sent before the first Send.
func newHTTPPipe(url string, headers http.Header, limit int64) *httpPipe {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.MaxIdleConnsPerHost = 16
	p := &httpPipe{
		url: url, headers: headers, limit: limit,
		client: &http.Client{Transport: t, CheckRedirect: func(r *http.Request, _ []*http.Request) error {
			// Following would hand our headers, and the call, to another address.
			return fmt.Errorf("the server sends us elsewhere, to %s://%s; write that address into the configuration if it is meant", r.URL.Scheme, r.URL.Host)
		}},
		in: make(chan Incoming, 16),
	}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// SetRevision says which protocol revision was agreed.
func (p *httpPipe) SetRevision(r string) {
	p.mu.Lock()
	p.revision = r
	p.mu.Unlock()
}

func (p *httpPipe) Receive() (Incoming, error) {
	select {
	case in := <-p.in:
		return in, nil
	case <-p.ctx.Done():
		return Incoming{}, context.Cause(p.ctx)
	}
}

// start runs a job of the pipe, unless the pipe has ended.
func (p *httpPipe) start(job func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return false
	}
	p.jobs.Add(1)
	go func() {
		defer p.jobs.Done()
		job()
	}()
	return true
}

func (p *httpPipe) Send(ctx context.Context, f Outgoing) error {
	if f.ID == 0 {
		// A notification or an answer: the order matters to the opening, and
		// there is nothing to wait for but the status.
		if err := p.post(ctx, f); err != nil {
			return err
		}
		if f.Method == "notifications/initialized" {
			p.start(p.listenOld)
		}
		return nil
	}
	ok := p.start(func() {
		ctx, stop := p.life(ctx)
		defer stop()
		if err := p.post(ctx, f); err != nil {
			p.deliver(Incoming{ID: f.ID, Err: err})
		}
	})
	if !ok {
		return context.Cause(p.ctx)
	}
	return nil
}

// life is a request's context that ends with the pipe too.
func (p *httpPipe) life(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	stop := context.AfterFunc(p.ctx, func() { cancel(context.Cause(p.ctx)) })
	return ctx, func() { stop(); cancel(nil) }
}

func (p *httpPipe) deliver(in Incoming) {
	select {
	case p.in <- in:
	case <-p.ctx.Done():
	}
}

// request makes a request with the headers that every one carries.
func (p *httpPipe) request(ctx context.Context, method string, f Outgoing) (*http.Request, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.url, bytes.NewReader(f.Frame))
	if err != nil {
		return nil, err
	}
	for k, v := range p.headers {
		r.Header[k] = v
	}
	p.mu.Lock()
	revision, session := p.revision, p.session
	p.mu.Unlock()
	if f.Method == "server/discover" {
		revision = modernVersion
	}
	if revision != "" && f.Method != "initialize" {
		r.Header.Set("Mcp-Protocol-Version", revision)
	}
	if session != "" {
		r.Header.Set("Mcp-Session-Id", session)
	}
	if revision == modernVersion && f.Method != "" {
		r.Header.Set("Mcp-Method", f.Method)
		if f.Name != "" {
			r.Header.Set("Mcp-Name", headerText(f.Name))
		}
		repeat(r.Header, f)
	}
	return r, nil
}

// repeat puts the arguments that the tool's definition marks into headers, which a
// server of the stateless era holds against the body. Only text, numbers and
// booleans can be marked, and only a header's name can be the mark: anything else
// is left to the server to refuse.
func repeat(h http.Header, f Outgoing) {
	for _, m := range bridge.MarkedArguments(f.Definition, f.Arguments) {
		if len(m.Value) == 0 || m.Value[0] == '{' || m.Value[0] == '[' || !isToken(m.Header) {
			continue
		}
		text := string(m.Value)
		if m.Value[0] == '"' && json.Unmarshal(m.Value, &text) != nil {
			continue
		}
		h.Set(m.Header, headerText(text))
	}
}

// isToken reports whether s can be a header's name (RFC 9110, 5.6.2).
func isToken(s string) bool {
	for i := range len(s) {
		c := s[i]
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || strings.IndexByte("!#$%&'*+-.^_`|~", c) >= 0) {
			return false
		}
	}
	return s != ""
}

// headerText is a name or a text as a header may carry it.
func headerText(s string) string {
	plain := s == strings.TrimSpace(s) && !strings.HasPrefix(s, "=?base64?")
	for i := range len(s) {
		plain = plain && s[i] >= ' ' && s[i] < 0x7f
	}
	if plain {
		return s
	}
	return "=?base64?" + base64.StdEncoding.EncodeToString([]byte(s)) + "?="
}

// post sends one frame and delivers what comes back. An error means that a
// request has no answer.
func (p *httpPipe) post(ctx context.Context, f Outgoing) error {
	r, err := p.request(ctx, http.MethodPost, f)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	res, err := p.client.Do(r)
	if err != nil {
		return p.unreachable(ctx, err)
	}
	defer res.Body.Close()
	if s := res.Header.Get("Mcp-Session-Id"); s != "" && f.Method == "initialize" {
		p.mu.Lock()
		p.session = s
		p.mu.Unlock()
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	switch {
	case res.StatusCode/100 != 2:
		return p.refused(res, kind, f)
	case f.ID == 0:
		return nil // nothing comes back that we wait for
	case kind == "text/event-stream":
		return p.answerStream(ctx, res.Body, f.ID)
	case kind != "application/json":
		return fmt.Errorf("the server answered with %q, not with JSON or an event stream", kind)
	}
	frame, err := wire.ReadMessage(res.Body, p.limit)
	var large *wire.ErrTooLarge
	switch {
	case errors.As(err, &large):
		return large
	case err != nil:
		return fmt.Errorf("the server's answer broke off: %w", err)
	case answers(frame) != f.ID:
		return errors.New("the server's answer is to another request, or no JSON-RPC message")
	}
	p.deliver(Incoming{Frame: frame})
	return nil
}

// answers tells which of our requests a frame answers; 0 for none.
func answers(frame []byte) uint64 {
	e, err := parseEnvelope(frame)
	if err != nil || e.method != "" {
		return 0
	}
	return ownID(e.id)
}

// unreachable words a request that failed. A server that cannot be dialled ends
// the pipe, so that whoever keeps it dials again in its own time.
func (p *httpPipe) unreachable(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		err = fmt.Errorf("the server cannot be reached: %w", op)
		p.cancel(err)
	}
	return err
}

// refused takes an answer with an error status. Such an answer may hold a
// JSON-RPC error, which says more than the status.
func (p *httpPipe) refused(res *http.Response, kind string, f Outgoing) error {
	body, _ := io.ReadAll(io.LimitReader(res.Body, maxErrorBody))
	p.mu.Lock()
	session := p.session
	p.mu.Unlock()
	if res.StatusCode == http.StatusNotFound && session != "" {
		err := errors.New("the server has forgotten our session")
		p.cancel(err)
		return err
	}
	if kind == "application/json" && f.ID != 0 && answers(body) == f.ID {
		p.deliver(Incoming{Frame: body})
		return nil
	}
	switch res.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the server refuses us: HTTP %s; its credentials are the host's headers in the configuration", res.Status)
	}
	return fmt.Errorf("the server answered HTTP %s", res.Status)
}

// answerStream delivers the events of the stream that answers request id. In the
// older era a stream that ends early may be taken up again.
func (p *httpPipe) answerStream(ctx context.Context, body io.Reader, id uint64) error {
	s := stream{wait: streamWait}
	for tries := 0; ; tries++ {
		last := s.lastID
		done, err := p.events(&s, body, id)
		if done {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		p.mu.Lock()
		modern := p.revision == modernVersion
		p.mu.Unlock()
		if s.lastID == "" || modern {
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return fmt.Errorf("the server's answer broke off: %w", err)
		}
		if s.lastID != last {
			tries = 0
		}
		if tries == maxResumes {
			return fmt.Errorf("the server's answer broke off and did not come in %d further streams", maxResumes)
		}
		next, err := p.stream(ctx, &s)
		if err != nil {
			return fmt.Errorf("the server's answer broke off: %w", err)
		}
		defer next.Close()
		body = next
	}
}

// stream opens a stream of the older era after the wait that the server asked
// for, from where the last one ended.
func (p *httpPipe) stream(ctx context.Context, s *stream) (io.ReadCloser, error) {
	select {
	case <-time.After(s.wait):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	r, err := p.request(ctx, http.MethodGet, Outgoing{})
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	if s.lastID != "" {
		r.Header.Set("Last-Event-ID", s.lastID)
	}
	res, err := p.client.Do(r)
	if err != nil {
		return nil, err
	}
	kind, _, _ := mime.ParseMediaType(res.Header.Get("Content-Type"))
	if res.StatusCode != http.StatusOK || kind != "text/event-stream" {
		res.Body.Close()
		return nil, &statusError{res.StatusCode, res.Status}
	}
	return res.Body, nil
}

type statusError struct {
	code   int
	status string
}

func (e *statusError) Error() string { return "the server answered HTTP " + e.status }

// listenOld keeps the older era's stream open, on which the server says that its
// tools have changed. A server without one answers 405 and is left alone.
func (p *httpPipe) listenOld() {
	s := stream{}
	for back := streamWait; ; back = min(2*back, streamWaitMax) {
		body, err := p.stream(p.ctx, &s)
		var status *statusError
		if errors.As(err, &status) && status.code/100 == 4 {
			return
		}
		if err == nil {
			stop := context.AfterFunc(p.ctx, func() { body.Close() })
			p.events(&s, body, 0)
			stop()
			body.Close()
			back = streamWait
		}
		if p.ctx.Err() != nil {
			return
		}
		s.wait = max(s.wait, back)
	}
}

// stream is what must be known to take up an event stream again.
type stream struct {
	lastID string
	wait   time.Duration
}

// events delivers the events of one stream until it has ended or, for an id
// that is not 0, until that request is answered.
func (p *httpPipe) events(s *stream, body io.Reader, id uint64) (answered bool, err error) {
	r := bufio.NewReaderSize(body, 64<<10)
	var data []byte
	have := false
	for {
		line, err := wire.ReadLine(r, p.limit)
		var large *wire.ErrTooLarge
		switch {
		case err == io.EOF:
			return false, nil
		case errors.As(err, &large):
			// No id was found in it, since the line begins with a field's name;
			// on this stream there is one answer to come.
			p.deliver(Incoming{ID: id, Err: large})
			if id != 0 {
				return true, nil
			}
			continue
		case err != nil:
			return false, err
		}
		line = bytes.TrimSuffix(line, []byte("\r"))
		if len(line) == 0 {
			if have && len(data) > 0 {
				p.deliver(Incoming{Frame: data})
				if id != 0 && answers(data) == id {
					return true, nil
				}
			}
			data, have = nil, false
			continue
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "data":
			if have {
				data = append(append(data, '\n'), value...)
			} else {
				data, have = value, true
			}
			if int64(len(data)) > p.limit {
				return false, fmt.Errorf("an event has more than %d bytes", p.limit)
			}
		case "id":
			s.lastID = string(value)
		case "retry":
			if ms, err := strconv.ParseUint(string(value), 10, 31); err == nil {
				s.wait = min(time.Duration(ms)*time.Millisecond, streamWaitMax)
			}
		}
	}
}

// Close ends the pipe, says farewell to a session, and waits for what is under
// way to have ended.
func (p *httpPipe) Close() error {
	p.mu.Lock()
	first := !p.ended
	p.ended = true
	session := p.session
	p.mu.Unlock()
	p.cancel(errors.New("closed"))
	if first && session != "" {
		ctx, cancel := context.WithTimeout(context.Background(), deleteTime)
		defer cancel()
		if r, err := p.request(ctx, http.MethodDelete, Outgoing{}); err == nil {
			if res, err := p.client.Do(r); err == nil {
				res.Body.Close()
			}
		}
	}
	p.jobs.Wait()
	p.client.CloseIdleConnections()
	return nil
}
