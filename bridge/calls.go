package bridge

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"drawbridge/bridge/stop"
)

// CallStatus is one call for people to look at.
type CallStatus struct {
	ID      string
	Client  string
	Conn    string
	Host    string // empty before it was looked up
	Tool    string
	Args    json.RawMessage // exactly as received; must not be changed
	Began   time.Time
	Running bool    // the gate let it through
	Outcome string  // of a call that ended, as in the audit
	MS      float64 // of a call that ended: how long it took
}

func (r *run) status() CallStatus {
	c := &r.call
	st := CallStatus{
		ID: c.ID, Client: c.Caller.Client, Conn: c.Caller.Conn, Tool: c.Tool, Args: c.Arguments,
		Began: r.began, Running: r.running.Load(),
	}
	if host := r.listedHost.Load(); host != nil {
		st.Host = *host
	}
	return st
}

// Calls lists the open calls, the oldest first.
func (s *Server) Calls() []CallStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]CallStatus, 0, len(s.runs))
	for r := range s.runs {
		all = append(all, r.status())
	}
	slices.SortFunc(all, func(a, b CallStatus) int {
		return cmp.Or(a.Began.Compare(b.Began), cmp.Compare(a.ID, b.ID))
	})
	return all
}

// StopCall ends one open call with this cause, and tells whether there was such
// a call.
func (s *Server) StopCall(id string, cause *stop.Error) bool {
	return s.stop(cause, func(r *run) bool { return r.call.ID == id }) > 0
}
