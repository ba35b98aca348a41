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
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Handler answers one verb. ctx ends when the asking side hangs up or the server
// closes. emit sends progress; it fails when nobody listens any more. The result
// is sent as JSON.
type Handler func(ctx context.Context, args json.RawMessage, emit func(v any) error) (any, error)

const (
	maxConns     = 32
	readTimeout  = 5 * time.Second  // for a request to arrive
	writeTimeout = 10 * time.Second // for a line to be taken
)

// Server answers on the control socket of one state directory.
type Server struct {
	verbs map[string]Handler
	count func(what, why, said string)
	log   zerolog.Logger
	dir   *os.File // keeps the directory's inode, for taking the socket away
	l     *net.UnixListener
	mine  os.FileInfo // our socket file, to remove no other's

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup // accept and what it started
}

// Listen opens the socket in stateDir, which must be ours alone, and answers on
// it until Close. A socket that a
// dead agent left is replaced; where a live one answers, it fails with ErrInUse.
// count, if not nil, is told of each request, by kind: what it was, why it was
// refused, if it was, and what was said that is no part of the kind.
func Listen(stateDir string, verbs map[string]Handler, count func(what, why, said string), log zerolog.Logger) (*Server, error) {
	dir, err := os.Open(stateDir)
	if err != nil {
		return nil, err
	}
	if count == nil {
		count = func(_, _, _ string) {}
	}
	s := &Server{verbs: verbs, count: count, log: log, dir: dir}
	if err := s.listen(stateDir); err != nil {
		dir.Close()
		return nil, fmt.Errorf("control socket in %s: %w", stateDir, err)
	}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	s.wg.Go(s.accept)
	return s, nil
}

func (s *Server) listen(stateDir string) error {
	if err := ownedDir(s.dir); err != nil {
		return err
	}
	path := Path(stateDir)
	addr, err := address(s.dir, path)
	if err != nil {
		return err
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, os.ErrNotExist):
	case err != nil:
		return err
	case info.Mode().Type() != os.ModeSocket:
		return fmt.Errorf("%s is there and is no socket; move it away", Name)
	default:
		if c, err := net.DialTimeout("unix", addr, time.Second); err == nil {
			c.Close()
			return ErrInUse
		}
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: addr, Net: "unix"})
	if err != nil {
		return err
	}
	l.SetUnlinkOnClose(false) // Close does it, and only if it is still ours
	if err = os.Chmod(path, 0o600); err == nil {
		s.mine, err = os.Lstat(path)
	}
	if err != nil {
		l.Close()
		os.Remove(path)
		return err
	}
	s.l = l
	return nil
}

func (s *Server) accept() {
	slots := make(chan struct{}, maxConns)
	for {
		c, err := s.l.AcceptUnix()
		if err != nil {
			if s.ctx.Err() != nil {
				return
			}
			// Out of file descriptors, most likely: it passes.
			s.log.Error().Err(err).Msg("control: cannot accept")
			select {
			case <-time.After(time.Second):
			case <-s.ctx.Done():
				return
			}
			continue
		}
		select {
		case slots <- struct{}{}:
		default:
			s.wg.Go(func() {
				defer c.Close()
				refuse(c, "busy", fmt.Sprintf("%d requests are open already; try again", maxConns))
			})
			continue
		}
		s.wg.Go(func() {
			defer func() { <-slots }()
			s.serve(c)
		})
	}
}

// Close ends all requests, removes the socket if it is still ours, and returns
// when all handlers have.
func (s *Server) Close() error {
	s.cancel()
	err := s.l.Close()
	s.wg.Wait()
	path := Path(s.dir.Name())
	if info, statErr := os.Lstat(path); statErr == nil && os.SameFile(info, s.mine) {
		os.Remove(path)
	}
	s.dir.Close()
	return err
}

func (s *Server) serve(c *net.UnixConn) {
	defer c.Close()
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, func() { c.SetReadDeadline(time.Unix(1, 0)) })()

	uid, err := peerUID(c)
	if err != nil || uid != os.Geteuid() {
		s.log.Warn().Err(err).Int("uid", uid).Msg("control: refused another user")
		s.count("the control socket", "it came from another user", "")
		refuse(c, "forbidden", "the control socket serves only the user that runs the agent")
		return
	}
	c.SetReadDeadline(time.Now().Add(readTimeout))
	r := bufio.NewReaderSize(io.LimitReader(c, maxLine+1), 4096)
	raw, err := r.ReadBytes('\n')
	if err != nil {
		if len(raw) > maxLine {
			refuse(c, "bad_request", fmt.Sprintf("the request is longer than %d bytes", maxLine))
		}
		return
	}
	var req request
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(&req); err != nil {
		fail(c, &Error{"bad_request", "the request is no JSON object with verb and args: " + err.Error()})
		return
	}
	h, ok := s.verbs[req.Verb]
	if !ok {
		known := make([]string, 0, len(s.verbs))
		for v := range s.verbs {
			known = append(known, v)
		}
		slices.Sort(known)
		s.count("another verb on the control socket", "there is no such verb", req.Verb)
		fail(c, &Error{"unknown_verb", fmt.Sprintf("the agent knows no verb %q; it knows %s", req.Verb, strings.Join(known, ", "))})
		return
	}

	s.count(req.Verb+" on the control socket", "", "")
	// The asking side sends nothing more, so the end of its stream is a hang-up.
	c.SetReadDeadline(time.Time{})
	if s.ctx.Err() != nil {
		return
	}
	gone := make(chan struct{})
	s.wg.Go(func() {
		defer close(gone)
		io.Copy(io.Discard, c)
		cancel()
	})
	var mu sync.Mutex // guards writes to c
	emit := func(v any) error {
		p, err := json.Marshal(v)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		return send(c, line{Progress: p})
	}
	result, err := h(ctx, req.Args, emit)
	var p json.RawMessage
	if err == nil {
		p, err = json.Marshal(result)
	}
	mu.Lock()
	if err != nil {
		fail(c, err)
	} else {
		ok := true
		send(c, line{OK: &ok, Result: p})
	}
	mu.Unlock()
	c.CloseWrite()
	c.SetReadDeadline(time.Unix(1, 0)) // ends the copier
	<-gone
}

// refuse answers a request that was not read to its end. What is left of it is
// taken, within bounds: closing on unread bytes would reset the connection before
// the answer is read.
func refuse(c *net.UnixConn, code, message string) {
	fail(c, &Error{code, message})
	c.CloseWrite()
	c.SetReadDeadline(time.Now().Add(time.Second))
	io.CopyN(io.Discard, c, maxLine)
}

func send(c net.Conn, l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	c.SetWriteDeadline(time.Now().Add(writeTimeout))
	_, err = c.Write(append(b, '\n'))
	return err
}

func fail(c net.Conn, err error) {
	var e *Error
	if !errors.As(err, &e) {
		e = &Error{Message: err.Error()}
	}
	ok := false
	send(c, line{OK: &ok, Error: err.Error(), Code: e.Code})
}
