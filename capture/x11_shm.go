//go:build linux

package capture

import (
	"context"
	"errors"
	"fmt"

	"github.com/jezek/xgb/shm"
	"github.com/jezek/xgb/xproto"
	"golang.org/x/sys/unix"

	"drawbridge/internal/x11"
)

// keepSegments is how many segments wait for the next grab: comparing two looks
// needs two.
const keepSegments = 2

// segment is memory that we share with the X server.
type segment struct {
	id  shm.Seg
	mem []byte
	gen int // of the source when it was made
}

// segment lends shared memory of at least n bytes, or nil where pictures come
// through the socket. Every segment holds the whole screen, so that one kind
// serves all grabs; pages that nothing was written to cost nothing.
func (s *x11Source) segment(ctx context.Context, n int) (*segment, error) {
	s.mu.Lock()
	gen := s.gen
	if !s.shared {
		s.mu.Unlock()
		return nil, nil
	}
	for len(s.free) > 0 {
		seg := s.free[len(s.free)-1]
		s.free = s.free[:len(s.free)-1]
		if len(seg.mem) >= n {
			s.mu.Unlock()
			return seg, nil
		}
		// The screen grew.
		defer s.drop(seg)
	}
	s.mu.Unlock()
	seg, err := s.newSegment(ctx, gen)
	if err == nil && len(seg.mem) >= n {
		return seg, nil
	}
	if err == nil {
		s.drop(seg)
		return nil, ErrDisplayChanged
	}
	if errors.Is(err, errNoShare) {
		// Another machine's server behind a local socket, or no memory to share:
		// the socket works everywhere.
		s.mu.Lock()
		s.shared = false
		s.mu.Unlock()
		return nil, nil
	}
	return nil, err
}

var errNoShare = errors.New("memory cannot be shared with the X server")

func (s *x11Source) newSegment(ctx context.Context, gen int) (*segment, error) {
	g, err := x11.Await(ctx, s.conn, func() (*xproto.GetGeometryReply, error) {
		return xproto.GetGeometry(s.conn.Conn, xproto.Drawable(s.conn.Root)).Reply()
	})
	if err != nil {
		return nil, err
	}
	key, err := unix.SysvShmGet(unix.IPC_PRIVATE, int(g.Width)*int(g.Height)*4, unix.IPC_CREAT|0600)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoShare, err)
	}
	// Marked for removal at once where we fail, and after the server has attached
	// where we do not: then it goes with its last user, however that one ends.
	defer unix.SysvShmCtl(key, unix.IPC_RMID, nil)
	mem, err := unix.SysvShmAttach(key, 0, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoShare, err)
	}
	id, err := x11.Await(ctx, s.conn, func() (shm.Seg, error) {
		id, err := shm.NewSegId(s.conn.Conn)
		if err != nil {
			return 0, err
		}
		return id, shm.AttachChecked(s.conn.Conn, id, uint32(key), false).Check()
	})
	if err != nil {
		unix.SysvShmDetach(mem)
		var refused x11Error
		if errors.As(err, &refused) {
			err = fmt.Errorf("%w: %w", errNoShare, err)
		}
		return nil, err
	}
	return &segment{id: id, mem: mem, gen: gen}, nil
}

// x11Error is what every error that the server sends has: it looked at the
// request and said no.
type x11Error interface {
	error
	SequenceId() uint16
	BadId() uint32
}

// putBack keeps a segment for the next grab, unless there are enough or Idle was
// called meanwhile.
func (s *x11Source) putBack(seg *segment) {
	s.mu.Lock()
	keep := !s.closed && seg.gen == s.gen && len(s.free) < keepSegments
	if keep {
		s.free = append(s.free, seg)
	}
	s.mu.Unlock()
	if !keep {
		s.drop(seg)
	}
}

// drop gives a segment's memory back on both sides. The server handles requests
// in order, so a picture that it still owes is written before it lets go.
func (s *x11Source) drop(seg *segment) {
	// A request blocks when the server stopped reading; nobody waits for this one.
	go shm.Detach(s.conn.Conn, seg.id)
	unix.SysvShmDetach(seg.mem)
}
