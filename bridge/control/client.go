package control

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"time"
)

// Client asks the agent of one state directory.
type Client struct{ stateDir string }

// Dial returns a client when an agent listens in stateDir, else ErrNoAgent.
func Dial(ctx context.Context, stateDir string) (*Client, error) {
	c := &Client{stateDir}
	conn, err := c.dial(ctx)
	if err != nil {
		return nil, err
	}
	conn.Close()
	return c, nil
}

func (c *Client) dial(ctx context.Context) (*net.UnixConn, error) {
	noAgent := fmt.Errorf("%w for the state directory %s", ErrNoAgent, c.stateDir)
	dir, err := os.Open(c.stateDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, noAgent
	}
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	// Somebody else's directory could hold a socket that only pretends.
	if err := ownedDir(dir); err != nil {
		return nil, err
	}
	addr, err := address(dir, Path(c.stateDir))
	if err != nil {
		return nil, err
	}
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, "unix", addr)
	if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED) {
		return nil, noAgent
	}
	if err != nil {
		return nil, fmt.Errorf("control socket in %s: %w", c.stateDir, err)
	}
	return conn.(*net.UnixConn), nil
}

// Do asks verb with args, which may be nil, and decodes the result into out,
// which may be nil or a *json.RawMessage. progress, if set, is called with each
// line of progress. When ctx ends the request is cancelled and ctx's cause
// returned; what the agent refuses comes back as an *[Error].
func (c *Client) Do(ctx context.Context, verb string, args, out any, progress func(json.RawMessage)) error {
	conn, err := c.dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	failed := func(err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return fmt.Errorf("asking the agent for %s: %w", verb, err)
	}

	req := request{Verb: verb}
	if args != nil {
		if req.Args, err = json.Marshal(args); err != nil {
			return failed(err)
		}
	}
	b, err := json.Marshal(req)
	if err != nil {
		return failed(err)
	}
	if _, err := conn.Write(append(b, '\n')); err != nil {
		return failed(err)
	}
	r := bufio.NewReader(conn)
	for {
		raw, err := readLine(r, maxAnswer)
		if err != nil {
			return failed(err)
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			return failed(fmt.Errorf("the answer is not JSON: %w", err))
		}
		switch {
		case l.OK == nil:
			if progress != nil && l.Progress != nil {
				progress(l.Progress)
			}
		case !*l.OK:
			return &Error{Code: l.Code, Message: l.Error}
		case out == nil:
			return nil
		default:
			if err := json.Unmarshal(l.Result, out); err != nil {
				return failed(fmt.Errorf("the result has another shape than expected: %w", err))
			}
			return nil
		}
	}
}

// readLine reads up to the next newline, of at most limit bytes. The end of the
// stream before it is an error: the agent ended without an answer.
func readLine(r *bufio.Reader, limit int) ([]byte, error) {
	var whole bytes.Buffer
	for {
		part, err := r.ReadSlice('\n')
		whole.Write(part)
		switch {
		case whole.Len() > limit:
			return nil, fmt.Errorf("the answer is longer than %d bytes", limit)
		case err == nil:
			return whole.Bytes(), nil
		case errors.Is(err, io.EOF):
			return nil, errors.New("the agent ended before it answered")
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}
