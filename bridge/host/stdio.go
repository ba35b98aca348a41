package host

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"sync"

	"drawbridge/bridge/wire"
)

// stdioPipe carries one frame a line over a child's stdin and stdout.
type stdioPipe struct {
	in    io.WriteCloser
	out   io.ReadCloser
	lines *bufio.Reader
	limit int64
	send  *sender

	mu  sync.Mutex // guards err
	err error      // why writing ended, if it ended first

	once sync.Once
}

// newStdioPipe carries frames over the child's stdin (in) and stdout (out).
func newStdioPipe(in io.WriteCloser, out io.ReadCloser, limit int64) *stdioPipe {
	p := &stdioPipe{in: in, out: out, lines: bufio.NewReaderSize(out, 64<<10), limit: limit}
	p.send = newSender(func(frame []byte) error {
		_, err := in.Write(frame)
		return err
	}, func(err error) {
		// The child may still say why: its stdout and its exit tell more than a
		// broken pipe. Only its input is given up.
		p.mu.Lock()
		p.err = err
		p.mu.Unlock()
		in.Close()
	})
	return p
}

func (p *stdioPipe) Send(ctx context.Context, f Outgoing) error {
	line := make([]byte, 0, len(f.Frame)+1)
	// A newline ends the frame. JSON has none but between tokens, where a space
	// says the same.
	for _, c := range f.Frame {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		line = append(line, c)
	}
	return p.send.send(ctx, append(line, '\n'))
}

func (p *stdioPipe) Receive() (Incoming, error) {
	for {
		line, err := wire.ReadLine(p.lines, p.limit)
		var large *wire.ErrTooLarge
		if errors.As(err, &large) {
			return Incoming{ID: orphan(&large.Skimmer), Err: large}, nil
		}
		if err != nil {
			p.mu.Lock()
			defer p.mu.Unlock()
			if p.err != nil {
				err = p.err
			}
			return Incoming{}, err
		}
		if line = bytes.TrimSpace(line); len(line) > 0 { // an empty line is nothing
			return Incoming{Frame: line}, nil
		}
	}
}

func (p *stdioPipe) Close() error {
	p.once.Do(func() {
		p.send.close()
		p.in.Close()
		p.out.Close()
		<-p.send.done
	})
	return nil
}
