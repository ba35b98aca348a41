package bridge

import (
	"crypto/rand"
	"sync"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/bridge/token"
)

// sessions are the HTTP sessions of the initialize era. A session belongs to
// the token that made it; to any other it does not exist.
type sessions struct {
	mu   sync.Mutex // guards byID, and last and users of each session
	byID map[string]*session
}

type session struct {
	srv   *Server
	id    string // the client's secret; the audit shows peer.conn
	peer  *peer
	ended chan struct{}
	once  sync.Once
	last  time.Time
	users int // requests that are being served
}

// open makes a session. If the client has too many, its longest unused one
// ends, for many clients never say goodbye; nil means that all are in use.
func (s *sessions) open(srv *Server, e token.Entry) *session {
	n := &session{srv: srv, id: rand.Text(), ended: make(chan struct{}), last: time.Now()}
	n.peer = srv.newPeer(e, srv.newConnID(), srv.opts.Limits.ResultBytesHTTP)
	s.mu.Lock()
	var ended []*session
	var oldest *session
	count := 0
	for _, x := range s.byID {
		switch {
		case s.expired(x):
			ended = append(ended, x)
		case x.peer.token.Name == e.Name:
			count++
			if x.users == 0 && !x.peer.busy() && (oldest == nil || x.last.Before(oldest.last)) {
				oldest = x
			}
		}
	}
	full := count >= srv.opts.Limits.SessionsPerClient
	if full && oldest != nil {
		ended, full = append(ended, oldest), false
	}
	for _, x := range ended {
		delete(s.byID, x.id)
	}
	if !full {
		if s.byID == nil {
			s.byID = map[string]*session{}
		}
		s.byID[n.id] = n
	}
	s.mu.Unlock()
	for _, x := range ended {
		x.end("the session expired")
	}
	if full {
		return nil
	}
	return n
}

// expired reports whether nobody has used the session for long. The caller
// holds mu.
func (s *sessions) expired(x *session) bool {
	return x.users == 0 && !x.peer.busy() && time.Since(x.last) > x.srv.opts.Limits.SessionIdle
}

// use returns the session until release is called, or nil.
func (s *sessions) use(srv *Server, id string, e token.Entry) (x *session, release func()) {
	s.mu.Lock()
	x = s.byID[id]
	switch {
	case x == nil || x.peer.token.Hash != e.Hash:
		s.mu.Unlock()
		return nil, nil
	case s.expired(x):
		s.mu.Unlock()
		x.end("the session expired")
		return nil, nil
	}
	x.users++
	x.last = time.Now()
	s.mu.Unlock()
	return x, func() {
		s.mu.Lock()
		x.users--
		x.last = time.Now()
		s.mu.Unlock()
	}
}

// endAll ends the sessions of some tokens.
func (s *sessions) endAll(reason string, which func(token.Entry) bool) {
	s.mu.Lock()
	var ended []*session
	for _, x := range s.byID {
		if which(x.peer.token) {
			ended = append(ended, x)
		}
	}
	s.mu.Unlock()
	for _, x := range ended {
		x.end(reason)
	}
}

// end ends the session and cancels what is in flight on it.
func (x *session) end(reason string) {
	x.once.Do(func() {
		s := &x.srv.sessions
		s.mu.Lock()
		delete(s.byID, x.id)
		s.mu.Unlock()
		close(x.ended)
		x.peer.close(&stop.Error{Reason: stop.Cancelled, Message: reason})
		x.srv.connClosed(x.peer.caller(ImagesUnknown))
	})
}
