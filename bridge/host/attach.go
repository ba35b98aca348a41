package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/gorilla/websocket"
)

// Subprotocol is the websocket subprotocol of a host that dials in.
const Subprotocol = "mcp-host"

// Close codes that a host gets, beside the protocol's own.
const (
	CloseRefused  = 4003 // the hello is refused; the reason says why; do not dial again as you are
	CloseReplaced = 4009 // a newer connection of the same session has taken this one's place
)

// Times of an attachment.
const (
	helloTime  = 10 * time.Second
	attachTime = 30 * time.Second // to agree and list
)

const maxHelloText = 256 // bytes of each text in a hello

// Hello is the params of drawbridge/hello, the first frame of a host.
type Hello struct {
	V       int    `json:"v"`
	Name    string `json:"name"`    // empty: the token's name
	Kind    string `json:"kind"`    // what program it is, such as omp
	PID     int    `json:"pid"`     // optional
	Cwd     string `json:"cwd"`     // optional
	Mode    string `json:"mode"`    // optional: the host's own word
	Session string `json:"session"` // stays the same when the session dials again
	Main    bool   `json:"main"`    // claims to be Main
	// ProtocolVersion, when it is 2026-07-28, says that the host speaks the
	// stateless era. Without it the connection opens with initialize.
	ProtocolVersion string `json:"protocolVersion"`
}

// attachment is what an attached session said of itself, and with which token.
type attachment struct {
	token string
	hello Hello
}

// Attach serves one host that dials in, until it goes. The caller has checked
// the token and gives its name.
func (s *Set) Attach(w http.ResponseWriter, r *http.Request, token string) {
	if !slices.Contains(websocket.Subprotocols(r), Subprotocol) {
		http.Error(w, "a host dials in as a websocket with the subprotocol "+Subprotocol, http.StatusBadRequest)
		return
	}
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		http.Error(w, errEnding.Error(), http.StatusServiceUnavailable)
		return
	}
	s.jobs.Add(1)
	s.mu.Unlock()
	defer s.jobs.Done()

	up := websocket.Upgrader{
		Subprotocols: []string{Subprotocol}, ReadBufferSize: 64 << 10, WriteBufferSize: 16 << 10,
		CheckOrigin: func(*http.Request) bool { return true }, // checked before, for every route
	}
	ws, err := up.Upgrade(w, r, nil)
	if err != nil {
		return // Upgrade has answered
	}
	pipe := newWSPipe(ws, s.opts.MaxFrame)
	defer pipe.Close()
	hello, err := s.hello(pipe)
	if err != nil {
		pipe.refuse(websocket.ClosePolicyViolation, err.Error())
		s.opts.Log.Warn().Err(err).Str("token", token).Msg("refused a host")
		return
	}
	h, err := s.admit(attachment{token, hello})
	if err != nil {
		pipe.refuse(CloseRefused, err.Error())
		s.opts.Log.Warn().Err(err).Str("token", token).Msg("refused a host")
		return
	}
	// The endpoint ends it, for a revoked token or its own end.
	stop := context.AfterFunc(r.Context(), func() { h.cancel(context.Cause(r.Context())) })
	defer stop()
	err = h.serve(h.ctx, pipe, hello.ProtocolVersion == modernVersion, attachTime)
	h.log().Info().Err(err).Msg("host is gone")
	s.detach(h)
}

// hello reads the first frame.
func (s *Set) hello(pipe *wsPipe) (Hello, error) {
	var hello Hello
	timer := time.AfterFunc(helloTime, func() { pipe.bye(websocket.ClosePolicyViolation, "no drawbridge/hello came in time") })
	stop := context.AfterFunc(s.ctx, func() { pipe.Close() })
	in, err := pipe.Receive()
	timer.Stop()
	stop()
	if err != nil {
		return hello, fmt.Errorf("before drawbridge/hello: %w", err)
	}
	if in.Err != nil {
		return hello, fmt.Errorf("the first frame must be drawbridge/hello: %w", in.Err)
	}
	e, err := parseEnvelope(in.Frame)
	if err != nil {
		return hello, fmt.Errorf("the first frame must be drawbridge/hello: %w", err)
	}
	if e.method != "drawbridge/hello" || e.id != nil {
		return hello, errors.New("the first frame must be the notification drawbridge/hello")
	}
	if err := json.Unmarshal(e.params, &hello); err != nil {
		return hello, fmt.Errorf("drawbridge/hello: %w", err)
	}
	if hello.V != 1 {
		return hello, fmt.Errorf("drawbridge/hello: v is %d; this program speaks 1", hello.V)
	}
	for _, t := range []string{hello.Kind, hello.Mode, hello.Session} {
		if len(t) > maxHelloText {
			return hello, fmt.Errorf("drawbridge/hello: a text has more than %d bytes", maxHelloText)
		}
	}
	return hello, nil
}

// errReplaced is the cause of the end of a connection whose session came back on
// another one.
var errReplaced = errors.New("a newer connection of the same session has taken this one's place")

// admit gives a session its host. The same session of the same token takes its
// own place again; another one of the same name is called NAME-2 and so on.
func (s *Set) admit(a attachment) (*Host, error) {
	base := a.hello.Name
	if base == "" {
		base = a.token
	}
	if err := CheckName(base); err != nil {
		return nil, err
	}
	if base != a.token && s.opts.Reserved != nil && s.opts.Reserved(base, a.token) {
		return nil, fmt.Errorf("the name %s is that of another host token", base)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errEnding
	}
	if s.withheld(base) {
		return nil, fmt.Errorf("the name %s was accepted for a program or server; no session may take it before a person accepted that it is no longer", base)
	}
	if h := s.hosts[base]; h != nil && h.config.Kind() != KindAttached {
		return nil, fmt.Errorf("the name %s is that of a host in the configuration", base)
	}
	name, old := s.place(base, a)
	if a.hello.Main {
		if s.main != "" && name != s.main {
			return nil, fmt.Errorf("main_host in the configuration is %s; %s cannot be Main", s.main, name)
		}
		for _, h := range s.hosts {
			if h.main && h != old {
				return nil, fmt.Errorf("%s is Main already; %s cannot be Main beside it", h.name, name)
			}
		}
	}
	config := Config{Attached: true}
	configured := false
	if b := s.hosts[base]; b != nil {
		config = b.config
		configured = b.configured && name == base
	}
	if old != nil {
		old.cancel(errReplaced)
	}
	h := s.add(name, config)
	h.configured, h.session, h.main = configured, a, a.hello.Main
	if a.hello.Kind != "" {
		h.kind = a.hello.Kind
	}
	return h, nil
}

// place finds the name for a session, and whom it takes the place of; s.mu is
// held.
func (s *Set) place(base string, a attachment) (string, *Host) {
	name := base
	for n := 2; ; n++ {
		h := s.hosts[name]
		switch {
		case s.withheld(name):
		case h == nil:
			return name, nil
		case h.config.Kind() == KindAttached && h.session.token == "":
			return name, h // an entry of the configuration that nobody fills
		case a.hello.Session != "" && h.session.token == a.token && h.session.hello.Session == a.hello.Session:
			return name, h
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
}

// detach takes a session's host away, with its tools.
func (s *Set) detach(h *Host) {
	s.change(func() {
		if s.hosts[h.name] != h {
			return // replaced
		}
		s.end(h, errors.New("the session is gone"))
		if h.configured && !s.closed {
			s.add(h.name, h.config).configured = true
		}
	})
}
