package bridge

import (
	"context"
	"errors"
	"net/http"
	"slices"

	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
)

// Hosts are the sources that come and go while the server runs. The names of
// their tools are their own business: no two are alike, and none is ours.
type Hosts interface {
	// Sources returns them in the order in which their tools are listed. It is
	// not changed after it was returned.
	Sources() []Source
	// Find returns the source that lists a tool under this name, and the tool.
	Find(name string) (Source, Tool, bool)
	// Attach serves a host that dials in, until it goes or the request's context
	// ends; the context's cause is told to the host. token is its token's name.
	Attach(w http.ResponseWriter, r *http.Request, token string)
}

// sources returns our own sources and the hosts.
func (s *Server) sources() []Source {
	if s.opts.Hosts == nil {
		return s.opts.Sources
	}
	return slices.Concat(s.opts.Sources, s.opts.Hosts.Sources())
}

// hostLink is the connection of a host that has dialled in.
type hostLink struct {
	token token.Entry
	end   context.CancelCauseFunc
}

var _ link = (*hostLink)(nil)

func (l *hostLink) entry() token.Entry        { return l.token }
func (l *hostLink) shut(_ int, reason string) { l.end(errors.New(reason)) }

func (s *Server) serveHost(w http.ResponseWriter, r *http.Request) {
	if s.opts.Hosts == nil {
		httpError(w, http.StatusNotFound, wire.Errorf(wire.CodeRefused, "this agent takes no hosts"))
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	l := &hostLink{token: entryOf(r), end: cancel}
	if err := s.admit(l); err != nil {
		httpError(w, http.StatusServiceUnavailable, err)
		return
	}
	defer s.release(l)
	s.opts.Hosts.Attach(w, r.WithContext(ctx), l.token.Name)
}
