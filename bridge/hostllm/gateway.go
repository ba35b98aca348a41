package hostllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
)

// builtinProviders are the providers that every gateway knows, by the base
// address under which their own clients' paths begin.
var builtinProviders = map[string]string{
	"anthropic":  "https://api.anthropic.com",
	"openai":     "https://api.openai.com",
	"google":     "https://generativelanguage.googleapis.com",
	"openrouter": "https://openrouter.ai",
	"deepseek":   "https://api.deepseek.com",
}

// GatewayOptions are what a Gateway is made of.
type GatewayOptions struct {
	Dir       string // the state directory
	Listen    string // a loopback address; with port 0, one that is free and then stays the same
	Providers map[string]string
	Switch    *Switch
	Log       zerolog.Logger
}

// Gateway is the model gateway and the proxy: one listener on loopback. Requests
// for a path are for the gateway, those for a whole address and CONNECT for the
// proxy.
type Gateway struct {
	opts      GatewayOptions
	ln        net.Listener
	warning   string
	key       []byte
	providers map[string]*url.URL
	own       sync.Map // ports of ours that nothing is passed on to

	models *httputil.ReverseProxy // to model hosts: ends when they are denied
	others *httputil.ReverseProxy
	dialer net.Dialer
	ctx    context.Context // of the tunnels; ends with Serve
	end    context.CancelFunc
	refuse atomic.Int64 // requests without a valid secret
	wait   sync.WaitGroup
}

// OpenGateway opens the listener. It does nothing until Serve.
func OpenGateway(o GatewayOptions) (*Gateway, error) {
	g := &Gateway{opts: o, providers: map[string]*url.URL{}}
	for _, list := range []map[string]string{builtinProviders, o.Providers} {
		for name, base := range list {
			u, err := ParseProvider(name, base)
			if err != nil {
				return nil, err
			}
			g.providers[name] = u
		}
	}
	f, isNew, err := ensureGateway(o.Dir)
	if err != nil {
		return nil, err
	}
	g.key = f.Key
	addr := o.Listen
	if _, port, err := net.SplitHostPort(addr); err == nil && port == "0" && f.Addr != "" {
		addr = f.Addr
	}
	ln, taken, err := bridge.Listen(addr)
	if err != nil {
		return nil, fmt.Errorf("the model gateway: %w", err)
	}
	g.ln = ln
	if taken != "" {
		g.warning = fmt.Sprintf("another program listens on %s, where the model gateway was; it is on %s instead. Hosts that were started with drawbridge host run before hand their model keys to that program: end them and start them again", addr, ln.Addr())
	}
	if isNew {
		f.Addr = ln.Addr().String()
		if err := f.write(o.Dir); err != nil {
			ln.Close()
			return nil, err
		}
	}
	g.Own(ln.Addr())
	g.dialer = net.Dialer{Timeout: 30 * time.Second, ControlContext: g.notOurs}
	g.models = g.reverseProxy(g.dialModel, http.ProxyFromEnvironment)
	g.others = g.reverseProxy(g.dialer.DialContext, nil)
	g.ctx, g.end = context.WithCancel(context.Background())
	return g, nil
}

// ParseProvider checks the name and the base address of a provider.
func ParseProvider(name, base string) (*url.URL, error) {
	u, err := url.Parse(base)
	if err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("provider %s: %q is no base address such as https://api.example.com/v1", name, base)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	u.RawPath = strings.TrimSuffix(u.RawPath, "/")
	return u, nil
}

// Addr is where it listens.
func (g *Gateway) Addr() net.Addr { return g.ln.Addr() }

// URL is where it listens, for endpoint.json: no secret is in it.
func (g *Gateway) URL() string { return "http://" + g.ln.Addr().String() }

// Warning says that the usual port is taken; empty: it is not.
func (g *Gateway) Warning() string { return g.warning }

// Own names another listener of ours that nothing is passed on to.
func (g *Gateway) Own(addr net.Addr) {
	if a, ok := addr.(*net.TCPAddr); ok {
		g.own.Store(uint16(a.Port), true)
	}
}

// Serve serves until ctx ends, and then ends everything at once.
func (g *Gateway) Serve(ctx context.Context) error {
	h := &http.Server{
		Handler:           g,
		ReadHeaderTimeout: 10 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    256 << 10,
		ErrorLog:          log.New(io.Discard, "", 0), // it would name paths, and a secret is in each
	}
	stop := context.AfterFunc(ctx, func() { h.Close() })
	defer stop()
	err := h.Serve(g.ln)
	g.end()
	g.wait.Wait()
	for _, p := range []*httputil.ReverseProxy{g.models, g.others} {
		p.Transport.(*http.Transport).CloseIdleConnections()
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the model gateway: %w", err)
}

// Close closes the listener of a gateway, also of one that was never served.
func (g *Gateway) Close() error {
	if err := g.ln.Close(); err != nil && !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect:
		g.connect(w, r)
	case r.URL.IsAbs():
		g.forward(w, r)
	default:
		g.model(w, r)
	}
}

// model serves /SECRET/PROVIDER/….
func (g *Gateway) model(w http.ResponseWriter, r *http.Request) {
	if !bridge.LoopbackHost(r.Host) {
		g.stranger(w, r, http.StatusForbidden, "the Host header names no loopback address; the gateway is for this machine only")
		return
	}
	if len(r.Header.Values("Origin")) > 0 {
		g.stranger(w, r, http.StatusForbidden, "web pages may not use the model gateway")
		return
	}
	secret, rest, _ := strings.Cut(strings.TrimPrefix(r.RequestURI, "/"), "/")
	host, ok := hostOfSecret(g.key, secret)
	if !ok {
		g.stranger(w, r, http.StatusNotFound, "this path has no valid secret; drawbridge host run gives hosts one")
		return
	}
	name, rest := cutPath(rest)
	if name == "" && rest == "" {
		g.hello(w, host)
		return
	}
	base := g.providers[name]
	if base == nil {
		writeFailure(w, http.StatusNotFound, fmt.Sprintf("the gateway knows no provider of that name; it knows %s", strings.Join(g.names(), ", ")))
		return
	}
	target, err := join(base, rest)
	if err != nil {
		writeFailure(w, http.StatusBadRequest, "the path after the provider cannot be read")
		return
	}
	g.pass(w, r, Refusal{Host: host, Layer: LayerGateway, Provider: name, Destination: base.Host}, target)
}

// cutPath cuts the first part off the rest of a request's address, which keeps
// its slash, or the ? of its query.
func cutPath(s string) (first, rest string) {
	i := strings.IndexAny(s, "/?")
	if i < 0 {
		return s, ""
	}
	return s[:i], s[i:]
}

// join puts what came after the provider behind its base, as it came.
func join(base *url.URL, rest string) (*url.URL, error) {
	u, err := url.ParseRequestURI(base.Scheme + "://" + base.Host + base.EscapedPath() + rest)
	if err != nil || u.Host != base.Host {
		return nil, errors.New("no path")
	}
	return u, nil
}

// hello tells a starting host's launcher that the gateway knows it.
func (g *Gateway) hello(w http.ResponseWriter, host string) {
	g.opts.Switch.Launched(host)
	b, err := json.Marshal(map[string]any{"host": host, "providers": g.names()})
	if err != nil {
		panic(err) // texts only
	}
	writeBody(w, http.StatusOK, b)
}

func (g *Gateway) names() []string { return slices.Sorted(maps.Keys(g.providers)) }

// stranger answers who may not be here. They are counted and logged sparsely,
// and never audited.
func (g *Gateway) stranger(w http.ResponseWriter, r *http.Request, status int, message string) {
	if n := g.refuse.Add(1); n == 1 || n%50 == 0 {
		g.opts.Log.Warn().Int64("refused", n).Int("status", status).Str("remote", r.RemoteAddr).
			Msg("refused a request at the model gateway (told at the first and every 50th)")
	}
	writeFailure(w, status, message)
}

// passage is a request on its way to a model host.
type passage struct {
	Refusal
	target *url.URL
	leave  *permission // nil: its destination is no model host
}

type passageKey struct{}

// pass sends a request on to a model host, or refuses it.
func (g *Gateway) pass(w http.ResponseWriter, r *http.Request, what Refusal, target *url.URL) {
	left := g.opts.Switch.attempt(what)
	leave := g.opts.Switch.permission()
	if leave.denied() {
		g.deny(w, r, what)
		return
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	defer leave.whenDenied(func() { cancel(errDenied) })()
	ctx = context.WithValue(ctx, passageKey{}, &passage{what, target, leave})
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: sync.OnceFunc(left)})
	send(g.models, w, r.WithContext(ctx))
}

// send sends a request on and its answer back, also while the request's body is
// still coming. Without being told, the server closes that body at the answer's
// first byte, which ends what is sent on, now and then in the middle.
func send(p *httputil.ReverseProxy, w http.ResponseWriter, r *http.Request) {
	if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
		writeFailure(w, http.StatusInternalServerError, "the connection cannot be passed on")
		return
	}
	p.ServeHTTP(w, r)
}

// deny refuses a model request that was counted as an attempt. The body is read
// first: a client that is still sending would see its connection break, and try
// again.
func (g *Gateway) deny(w http.ResponseWriter, r *http.Request, what Refusal) {
	if !drain(w, r) {
		w.Header().Set("Connection", "close")
	}
	g.opts.Switch.refused(what)
	writeRefusal(w, what.shape())
}

// How much and how long of a refused request is read.
const (
	drainBytes    = 512 << 20
	drainPatience = 10 * time.Second // between two pieces
)

// drain reads a request's body to its end, and tells whether it came to it.
func drain(w http.ResponseWriter, r *http.Request) bool {
	if r.Body == http.NoBody {
		return true
	}
	if r.Header.Get("Expect") != "" {
		return false // it waits to be told before it sends
	}
	rc := http.NewResponseController(w)
	defer func() { _ = rc.SetReadDeadline(time.Time{}) }()
	buf := buffers.Get()
	defer buffers.Put(buf)
	for total := 0; total < drainBytes; {
		if err := rc.SetReadDeadline(time.Now().Add(drainPatience)); err != nil {
			return false
		}
		n, err := r.Body.Read(buf)
		total += n
		if err != nil {
			return err == io.EOF
		}
	}
	return false
}

// reverseProxy makes one that changes nothing but what belongs to one hop.
// upstream says which proxy, if any, is between us and the destination.
func (g *Gateway) reverseProxy(dial func(context.Context, string, string) (net.Conn, error), upstream func(*http.Request) (*url.URL, error)) *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			target := p.Out.Context().Value(passageKey{}).(*passage).target
			p.Out.URL, p.Out.Host = target, target.Host
			// Rewrite takes these out, since most do not trust them.
			for _, name := range []string{"Forwarded", "X-Forwarded-For", "X-Forwarded-Host", "X-Forwarded-Proto"} {
				if v, ok := p.In.Header[name]; ok {
					p.Out.Header[name] = v
				}
			}
		},
		Transport: &http.Transport{
			Proxy:                 upstream,
			DialContext:           dial,
			ForceAttemptHTTP2:     true,
			DisableCompression:    true, // what the host asked for is what it gets
			MaxIdleConnsPerHost:   16,
			IdleConnTimeout:       90 * time.Second,
			TLSHandshakeTimeout:   15 * time.Second,
			ExpectContinueTimeout: time.Second,
		},
		FlushInterval: -1,
		BufferPool:    &buffers,
		ErrorHandler:  g.failed,
		ErrorLog:      log.New(io.Discard, "", 0), // it would name addresses with queries, and keys are in some
	}
}

// errOurs tells that somebody wanted to be passed on to ourselves.
var errOurs = errors.New("this is a port of Drawbridge itself")

const toOurs = "nothing is passed on to Drawbridge's own ports"

// notOurs runs before each connection is made, with the address that the name
// had become.
func (g *Gateway) notOurs(_ context.Context, _, address string, _ syscall.RawConn) error {
	ap, err := netip.ParseAddrPort(address)
	if err != nil {
		return err
	}
	if _, ours := g.own.Load(ap.Port()); !ours {
		return nil
	}
	addr := ap.Addr().WithZone("").Unmap()
	if addr.IsLoopback() || addr.IsUnspecified() || onThisMachine(addr) {
		return errOurs
	}
	return nil
}

func onThisMachine(addr netip.Addr) bool {
	all, err := net.InterfaceAddrs()
	if err != nil {
		return true // cannot be told apart
	}
	return slices.ContainsFunc(all, func(a net.Addr) bool {
		p, err := netip.ParsePrefix(a.String())
		return err == nil && p.Addr().Unmap() == addr
	})
}

// dialModel connects to a model host. The connection does not outlive the
// permission to leave, whatever it is used for.
func (g *Gateway) dialModel(ctx context.Context, network, address string) (net.Conn, error) {
	leave := g.opts.Switch.permission()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer leave.whenDenied(cancel)()
	c, err := g.dialer.DialContext(ctx, network, address)
	if leave.denied() {
		if err == nil {
			c.Close()
		}
		return nil, errDenied
	}
	if err != nil {
		return nil, err
	}
	return &leashed{c, leave.whenDenied(func() { c.Close() })}, nil
}

// leashed is a connection that is closed when models are denied.
type leashed struct {
	net.Conn
	stop func()
}

func (l *leashed) Close() error {
	l.stop()
	return l.Conn.Close()
}

// failed answers a request that could not be sent on.
func (g *Gateway) failed(w http.ResponseWriter, r *http.Request, err error) {
	p := r.Context().Value(passageKey{}).(*passage)
	switch {
	case p.leave.denied():
		g.deny(w, r, p.Refusal)
	case errors.Is(err, errOurs):
		writeFailure(w, http.StatusForbidden, toOurs)
	default:
		writeFailure(w, http.StatusBadGateway, fmt.Sprintf("%s cannot be reached: %v", p.target.Host, reason(err)))
	}
}

// reason is an error without the address that http puts before it.
func reason(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}
