package bridge

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"

	"github.com/gorilla/websocket"
)

// routes names the role that each route is for. A path that is not here does
// not exist, which only a valid token gets to know.
var routes = map[string]token.Role{
	"/mcp":      token.Client,
	"/host":     token.Host,
	"/host-llm": token.Client,
	"/status":   token.Client,
}

type entryKey struct{}

// guard holds every request, to whatever path and for whatever protocol,
// against the same checks in the same order: Host, Origin, token, role.
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !s.hostAllowed(r.Host) {
			s.refuse(w, r, http.StatusForbidden, "host", "the Host header names no loopback address; reach the agent as 127.0.0.1 or localhost, or add the name to allowed_hosts")
			return
		}
		if !s.originAllowed(r) {
			s.refuse(w, r, http.StatusForbidden, "origin", "web pages may not use the agent; a page of yours can be let in with allowed_origins")
			return
		}
		if s.opts.Activity != nil && isActivity(r) {
			next.ServeHTTP(w, r) // its tokens are those of pages, which it knows
			return
		}
		entry, ok := s.authenticate(r)
		if !ok {
			w.Header().Set("WWW-Authenticate", "Bearer")
			s.refuse(w, r, http.StatusUnauthorized, "token", "no valid token; send Authorization: Bearer TOKEN, or offer the websocket subprotocol bearer.TOKEN; drawbridge client add NAME makes one")
			return
		}
		role, known := routes[r.URL.Path]
		if known && entry.Role != role {
			s.refuse(w, r, http.StatusForbidden, "role", fmt.Sprintf("this is a %s token, and %s is for %ss", entry.Role, r.URL.Path, role))
			return
		}
		if !known {
			s.count(r, "there is no such route")
			httpError(w, http.StatusNotFound, wire.Errorf(wire.CodeRefused, "there is nothing here; MCP is at /mcp"))
			return
		}
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), entryKey{}, entry)))
	})
}

// isActivity tells whether a request is for the activity page.
func isActivity(r *http.Request) bool {
	return r.URL.Path == "/activity" || strings.HasPrefix(r.URL.Path, "/activity/")
}

// entryOf returns the token's entry that the guard found.
func entryOf(r *http.Request) token.Entry {
	e, _ := r.Context().Value(entryKey{}).(token.Entry)
	return e
}

// admitted are the names and pages besides our own that requests may come by.
type admitted struct{ hosts, origins []string }

// Admit puts others in the place of Options.AllowedHosts and AllowedOrigins, for
// requests from now on.
func (s *Server) Admit(hosts, origins []string) {
	s.admitted.Store(&admitted{slices.Clone(hosts), slices.Clone(origins)})
}

// hostAllowed takes loopback names and addresses with any port, because SSH
// forwards change it, and names from the configuration.
func (s *Server) hostAllowed(hostport string) bool {
	host, ok := hostOf(hostport)
	return ok && (isLoopback(host) || slices.ContainsFunc(s.admitted.Load().hosts, func(a string) bool { return strings.EqualFold(a, host) }))
}

// LoopbackHost reports whether a Host header names this machine by a loopback
// name or address, with any port. A page that reached a loopback port by a name
// of its own does not.
func LoopbackHost(hostport string) bool {
	host, ok := hostOf(hostport)
	return ok && isLoopback(host)
}

// hostOf takes the port and the brackets off a Host header.
func hostOf(hostport string) (host string, ok bool) {
	host = hostport
	if !strings.HasSuffix(hostport, "]") && strings.Contains(hostport, ":") {
		var port string
		var err error
		if host, port, err = net.SplitHostPort(hostport); err != nil {
			return "", false
		}
		if _, err := strconv.ParseUint(port, 10, 16); err != nil {
			return "", false
		}
	}
	if inner, ok := strings.CutPrefix(host, "["); ok {
		return strings.CutSuffix(inner, "]")
	}
	return host, true
}

func isLoopback(host string) bool {
	if strings.EqualFold(host, "localhost") {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// originAllowed takes requests that come from no page, from our own origin (the
// Host was checked before), or from one in the configuration.
func (s *Server) originAllowed(r *http.Request) bool {
	values := r.Header.Values("Origin")
	if len(values) == 0 {
		return true
	}
	if len(values) > 1 {
		return false
	}
	origin := values[0]
	return strings.EqualFold(origin, "http://"+r.Host) || slices.Contains(s.admitted.Load().origins, origin)
}

// authenticate finds the token's entry. A request that shows two different
// tokens has none.
func (s *Server) authenticate(r *http.Request) (token.Entry, bool) {
	var shown []string
	for _, v := range r.Header.Values("Authorization") {
		scheme, t, ok := strings.Cut(v, " ")
		if !ok || !strings.EqualFold(scheme, "Bearer") {
			return token.Entry{}, false
		}
		shown = append(shown, strings.TrimSpace(t))
	}
	if websocket.IsWebSocketUpgrade(r) {
		for _, p := range websocket.Subprotocols(r) {
			if t, ok := strings.CutPrefix(p, wire.BearerSubprotocol); ok {
				shown = append(shown, t)
			}
		}
	}
	shown = slices.Compact(shown)
	if len(shown) != 1 {
		return token.Entry{}, false
	}
	s.refreshTokens(0)
	return s.opts.Tokens.Find(shown[0])
}

// refuse answers a request that failed a check. Refusals are counted, logged
// sparsely and never audited: a stranger must not be able to fill either.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, check, message string) {
	if n := s.refused.Add(1); n == 1 || n%50 == 0 {
		s.opts.Log.Warn().Int64("refused", n).Str("check", check).Int("status", status).Str("remote", r.RemoteAddr).
			Msg("refused a connection (told at the first and every 50th)")
	}
	s.count(r, refusals[check])
	httpError(w, status, wire.Errorf(wire.CodeRefused, "%s", message))
}

// refusals say to the person what the guard's checks found.
var refusals = map[string]string{
	"host": "the Host header is not this machine", "origin": "it came from a web page", "token": "it had no valid token", "role": "its token is for another route",
}

// count tells of a refused request, by kind: what a stranger can choose freely is
// no part of the kind.
func (s *Server) count(r *http.Request, why string) {
	if s.opts.Count == nil {
		return
	}
	what, said := r.URL.Path, r.Method
	if isActivity(r) {
		what, said = "/activity", said+" "+what
	} else if _, known := routes[what]; !known {
		what, said = "another path", said+" "+what
	}
	s.opts.Count(what, why, said)
}

// httpError answers a request that is no JSON-RPC exchange, or has no id yet.
func httpError(w http.ResponseWriter, status int, e *wire.Error) {
	writeJSON(w, status, wire.ErrorFrame(nil, e.Raw()))
}

func writeJSON(w http.ResponseWriter, status int, f wire.Frame) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.Header().Set("Content-Length", strconv.Itoa(f.Len()))
	w.WriteHeader(status)
	for _, p := range f {
		if _, err := w.Write(p); err != nil {
			return // the client is gone
		}
	}
}
