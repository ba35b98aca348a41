package wire

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// Sizes of the stdio end.
const (
	// MaxLine is the longest line taken from a stdio client; a longer one is
	// answered, not taken.
	MaxLine = 16 << 20
	// MaxAnswer is the longest line written to a stdio client unless told
	// otherwise: TypeScript clients end a connection over a line of 10 MiB.
	MaxAnswer = 9 << 20
)

// Link is a connection to the agent, as the stdio end needs it.
type Link interface {
	ReadFrame(limit int64) ([]byte, error)
	WriteFrame([]byte) error
	Close() error
}

// Stdio copies between a stdio client, one message a line, and the agent, until
// the client's input ends and every request that it sent is answered, the agent
// goes away, or ctx ends. Requests that are open when the agent goes away are
// answered with an error. An answer of more than maxAnswer bytes (0: MaxAnswer)
// is replaced by one that names the size. Stdio closes the link. A read of in
// that is under way when Stdio returns ends with in.
func Stdio(ctx context.Context, in io.Reader, out io.Writer, link Link, maxAnswer int64) error {
	if maxAnswer <= 0 {
		maxAnswer = MaxAnswer
	}
	s := &stdio{out: out, link: link, maxAnswer: maxAnswer, open: map[string]json.RawMessage{}, idle: make(chan struct{}, 1)}
	defer link.Close()

	fromAgent := make(chan error, 1)
	fromClient := make(chan error, 1)
	go func() { fromAgent <- s.answers() }()
	go func() { fromClient <- s.requests(in) }()

	var err error
	inputEnded := false
	for {
		select {
		case err = <-fromAgent:
			if werr := s.abandon(err); werr != nil {
				return werr
			}
			if errors.Is(err, io.EOF) {
				err = errors.New("the agent closed the connection")
			}
			return err
		case err = <-fromClient:
			if err != nil {
				_ = link.Close()
				<-fromAgent
				return err
			}
			fromClient, inputEnded = nil, true
		case <-s.idle:
		case <-ctx.Done():
			_ = link.Close()
			<-fromAgent
			return s.abandon(context.Cause(ctx))
		}
		if inputEnded && s.drained() {
			_ = link.Close()
			<-fromAgent
			return nil
		}
	}
}

type stdio struct {
	out       io.Writer
	link      Link
	maxAnswer int64
	idle      chan struct{} // told when the last open request is answered

	mu   sync.Mutex // guards open, and lines written to out
	open map[string]json.RawMessage
}

func (s *stdio) drained() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.open) == 0
}

// requests copies the client's lines to the agent.
func (s *stdio) requests(in io.Reader) error {
	lines := bufio.NewReaderSize(in, 64<<10)
	for {
		line, err := ReadMessage(&lineReader{r: lines}, MaxLine)
		var large *ErrTooLarge
		switch {
		case errors.As(err, &large):
			if id := large.ID(); id != nil {
				if err := s.line(TooLarge(large.Method(), id, large.Size(), MaxLine).Bytes()); err != nil {
					return err
				}
			}
		case err != nil:
			return fmt.Errorf("reading the client's input: %w", err)
		default:
			if line = bytes.TrimSpace(line); len(line) > 0 {
				if err := s.request(line); err != nil {
					return err
				}
			}
		}
		if _, err := lines.Peek(1); err != nil {
			return nil
		}
	}
}

func (s *stdio) request(line []byte) error {
	var m Message
	// A line that cannot be read goes to the agent too: its answer says why.
	// A subscription is not waited for: it ends with the connection.
	if Parse(line, &m) == nil && m.IsRequest() && m.Method != "subscriptions/listen" {
		s.mu.Lock()
		s.open[IDKey(m.ID)] = bytes.Clone(m.ID)
		s.mu.Unlock()
	}
	if m.IsNotification() && m.Method == "notifications/cancelled" {
		// What was cancelled is not answered.
		s.settle(m.RequestID)
	}
	// A failed write shows as the end of the agent's frames, which is told there.
	_ = s.link.WriteFrame(line)
	return nil
}

// answers copies the agent's frames to the client until the agent is gone.
func (s *stdio) answers() error {
	for {
		frame, err := s.link.ReadFrame(s.maxAnswer)
		var large *ErrTooLarge
		switch {
		case errors.As(err, &large):
			id := large.ID()
			if id == nil || large.Method() != "" {
				continue // a notification that does not fit
			}
			frame = TooLarge("tools/call", id, large.Size(), s.maxAnswer).Bytes()
		case err != nil:
			return err
		}
		if err := s.line(frame); err != nil {
			return err
		}
		if id := FindID(frame); id != nil {
			s.settle(id)
		}
	}
}

// settle forgets an open request and tells when it was the last.
func (s *stdio) settle(id json.RawMessage) {
	s.mu.Lock()
	delete(s.open, IDKey(id))
	last := len(s.open) == 0
	s.mu.Unlock()
	if last {
		select {
		case s.idle <- struct{}{}:
		default:
		}
	}
}

// abandon answers every open request with an error.
func (s *stdio) abandon(cause error) error {
	s.mu.Lock()
	var ids []json.RawMessage
	for key, id := range s.open {
		ids = append(ids, id)
		delete(s.open, key)
	}
	s.mu.Unlock()
	why := Errorf(CodeRefused, "the connection to Drawbridge ended before the answer (%v); whether the call ran is not known: look before you repeat it", cause)
	for _, id := range ids {
		if err := s.line(ErrorFrame(id, why.Raw()).Bytes()); err != nil {
			return err
		}
	}
	return nil
}

// line writes one message as one line. Line breaks in valid JSON are white
// space, so a blank can stand for each.
func (s *stdio) line(frame []byte) error {
	for i, c := range frame {
		if c == '\n' || c == '\r' {
			frame[i] = ' '
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, err := s.out.Write(append(frame, '\n')); err != nil {
		return fmt.Errorf("writing to the client: %w", err)
	}
	return nil
}

// lineReader reads up to the end of a line.
type lineReader struct {
	r    *bufio.Reader
	done bool
}

func (l *lineReader) Read(p []byte) (int, error) {
	if l.done {
		return 0, io.EOF
	}
	n := 0
	for n < len(p) {
		// What is buffered is there for the taking; wait only for the first byte.
		if n > 0 && l.r.Buffered() == 0 {
			break
		}
		if _, err := l.r.Peek(1); err != nil {
			if n > 0 && err == io.EOF {
				l.done = true
				return n, nil
			}
			return n, err
		}
		ready, _ := l.r.Peek(min(l.r.Buffered(), len(p)-n))
		if end := bytes.IndexByte(ready, '\n'); end >= 0 {
			l.done = true
			n += copy(p[n:], ready[:end])
			_, _ = l.r.Discard(end + 1)
			if n == 0 {
				return 0, io.EOF
			}
			return n, nil
		}
		copied := copy(p[n:], ready)
		_, _ = l.r.Discard(copied)
		n += copied
	}
	return n, nil
}

// TooLarge answers a message that is over a cap: a tool's result for a call, so
// that the model reads it, else an error.
func TooLarge(method string, id json.RawMessage, size, limit int64) Frame {
	text := fmt.Sprintf("the message has %d bytes, over the cap of %d bytes on this connection; it was not taken: send or ask for less at a time", size, limit)
	if method == "tools/call" && id != nil {
		return ResultFrame(id, ErrorResult(text, ""))
	}
	return ErrorFrame(id, Errorf(CodeInvalidRequest, "%s", text).Raw())
}

// ErrorResult is a tool's result that says what went wrong. meta, if not empty,
// is the JSON text of its _meta object.
func ErrorResult(text, meta string) json.RawMessage {
	b := []byte(`{"content":[{"type":"text","text":`)
	b = AppendString(b, text)
	b = append(b, `}],"isError":true`...)
	if meta != "" {
		b = append(b, `,"_meta":`...)
		b = append(b, meta...)
	}
	return append(b, '}')
}
