package hostllm

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

// login returns the host whose credentials a proxy request shows, or answers it.
func (g *Gateway) login(w http.ResponseWriter, r *http.Request) (host string, ok bool) {
	if values := r.Header.Values("Proxy-Authorization"); len(values) == 1 {
		scheme, text, _ := strings.Cut(values[0], " ")
		if b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(text)); err == nil && strings.EqualFold(scheme, "Basic") {
			user, password, _ := strings.Cut(string(b), ":")
			if host, ok := hostOfLogin(g.key, user, password); ok {
				return host, true
			}
		}
	}
	w.Header().Set("Proxy-Authenticate", `Basic realm="drawbridge"`)
	w.Header().Set("Connection", "close")
	g.stranger(w, r, http.StatusProxyAuthRequired, "the proxy needs the credentials that drawbridge host run gives hosts")
	return "", false
}

// shape names the provider whose errors a refusal looks like.
func (r Refusal) shape() string {
	if r.Layer == LayerGateway {
		return r.Provider
	}
	host, _, _ := net.SplitHostPort(r.Destination)
	for name, base := range builtinProviders {
		if base == "https://"+host {
			return name
		}
	}
	return ""
}

// judge reads where a proxy request goes, and whether that is a model host.
func (g *Gateway) judge(host, hostport string) (d destination, what Refusal, model bool, err error) {
	d, err = parseDestination(hostport)
	if err != nil {
		return d, what, false, err
	}
	pattern, model := g.opts.Switch.match.match(d)
	return d, Refusal{Host: host, Layer: LayerProxy, Provider: pattern, Destination: d.String()}, model, nil
}

// forward serves a request for a whole address.
func (g *Gateway) forward(w http.ResponseWriter, r *http.Request) {
	host, ok := g.login(w, r)
	if !ok {
		return
	}
	if r.URL.Scheme != "http" {
		writeFailure(w, http.StatusBadRequest, "the proxy takes http:// addresses; for others use CONNECT")
		return
	}
	hostport := r.URL.Host
	if r.URL.Port() == "" {
		hostport = strings.TrimSuffix(hostport, ":") + ":80"
	}
	_, what, model, err := g.judge(host, hostport)
	if err != nil {
		writeFailure(w, http.StatusBadRequest, err.Error())
		return
	}
	if model {
		g.pass(w, r, what, r.URL)
		return
	}
	ctx := context.WithValue(r.Context(), passageKey{}, &passage{Refusal: what, target: r.URL})
	send(g.others, w, r.WithContext(ctx))
}

// connect serves CONNECT.
func (g *Gateway) connect(w http.ResponseWriter, r *http.Request) {
	host, ok := g.login(w, r)
	if !ok {
		return
	}
	// Not the parsed URL: it has lost what stood before an @.
	d, what, model, err := g.judge(host, r.RequestURI)
	if err != nil {
		writeFailure(w, http.StatusBadRequest, err.Error())
		return
	}
	var leave *permission // a tunnel to another host stays
	left := func() {}
	dial := g.dialer.DialContext
	if model {
		left = g.opts.Switch.attempt(what)
		if leave = g.opts.Switch.permission(); leave.denied() {
			g.deny(w, r, what)
			return
		}
		dial = g.dialModel
	}
	// Not with the request's context: it ends when the client has said all.
	up, err := dial(g.ctx, "tcp", d.String())
	switch {
	case err == nil:
		left()
		defer up.Close()
		g.tunnel(w, up, leave)
	case leave.denied():
		g.deny(w, r, what)
	case errors.Is(err, errOurs):
		writeFailure(w, http.StatusForbidden, toOurs)
	default:
		writeFailure(w, http.StatusBadGateway, d.String()+" cannot be reached: "+reason(err).Error())
	}
}

// tunnel copies both ways until both ends are done, leave or the gateway ends.
func (g *Gateway) tunnel(w http.ResponseWriter, up net.Conn, leave *permission) {
	down, buffered, err := http.NewResponseController(w).Hijack()
	if err != nil {
		writeFailure(w, http.StatusInternalServerError, "the connection cannot become a tunnel")
		return
	}
	defer down.Close()
	g.wait.Add(1)
	defer g.wait.Done()
	if l, ok := up.(*leashed); ok {
		up = l.Conn // the kernel copies between plain connections; the leash still holds
	}
	cut := func() { up.Close(); down.Close() }
	defer leave.whenDenied(cut)()
	defer context.AfterFunc(g.ctx, cut)()
	if err := down.SetDeadline(time.Time{}); err != nil {
		return
	}
	if _, err := io.WriteString(down, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	// What the client sent along with its CONNECT is in the server's buffer.
	early := io.LimitReader(buffered, int64(buffered.Reader.Buffered()))
	sent := make(chan struct{})
	go func() { // ends when either end is closed
		defer close(sent)
		if _, err := io.Copy(up, early); err == nil {
			_, err = io.Copy(up, down)
			if err == nil {
				halfClose(up)
				return
			}
		}
		cut()
	}()
	if _, err := io.Copy(down, up); err == nil {
		halfClose(down)
	} else {
		cut()
	}
	<-sent
}

// halfClose says that no more comes, and leaves the other way open.
func halfClose(c net.Conn) {
	if t, ok := c.(*net.TCPConn); ok {
		_ = t.CloseWrite()
	}
}
