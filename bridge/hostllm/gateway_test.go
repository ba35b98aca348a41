package hostllm

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/packaging/mockmodel"
)

// raw sends bytes on a connection of its own and returns the answer's status
// line; what is written after it was answered does not matter.
func (r *rig) raw(text string) (status string, body string) {
	r.t.Helper()
	c, err := net.Dial("tcp", r.gw.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer c.Close()
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		r.t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		r.t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		r.t.Fatalf("%.80q: %v", text, err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		r.t.Fatalf("%.80q: %v", text, err)
	}
	return res.Status, string(b)
}

func post(t testing.TB, url, body string) (*http.Response, string) {
	t.Helper()
	res, err := http.Post(url, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res, string(b)
}

func TestGatewayForwards(t *testing.T) {
	r := newRig(t, Allow)
	for provider, path := range map[string]string{
		"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "google": "/v1beta/models/m:generateContent",
		"openrouter": "/api/v1/chat/completions", "deepseek": "/chat/completions", "custom": "/chat/completions",
	} {
		res, body := post(t, r.base(provider)+path+"?a=%2F&b=1;2", `{"model":"m"}`)
		if res.StatusCode != 200 || !strings.Contains(body, "hi") {
			t.Errorf("%s: %s %s", provider, res.Status, body)
		}
		got := r.model.Requests()
		last := got[len(got)-1]
		want := path + "?a=%2F&b=1;2"
		if provider == "custom" {
			want = "/base" + want
		}
		if last.URI != want || string(last.Body) != `{"model":"m"}` {
			t.Errorf("%s arrived as %s %s %s, want %s", provider, last.Method, last.URI, last.Body, want)
		}
		if c := r.count(LayerGateway, provider); c != "1 attempts, 0 refused, 1 left" {
			t.Errorf("%s: %s", provider, c)
		}
	}
	if n := r.notes.all(); len(n) != 0 {
		t.Errorf("requests that may leave are in the audit: %+v", n)
	}
}

// TestGatewayKeeps: headers go both ways as they are, but for those of one hop.
func TestGatewayKeeps(t *testing.T) {
	var got http.Header
	var gotHost, gotURI string
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, gotHost, gotURI = r.Header.Clone(), r.Host, r.RequestURI
		w.Header().Set("Request-Id", "req_1")
		w.Header()["X-Ratelimit"] = []string{"a", "b"}
		w.Header().Set("Content-Type", "text/plain; charset=x")
		w.WriteHeader(http.StatusTeapot)
		_, _ = io.WriteString(w, "tea")
	}))
	defer far.Close()
	r := newRig(t, Allow)
	r.serve(t.TempDir(), map[string]string{"far": far.URL})
	req, err := http.NewRequestWithContext(t.Context(), "POST", r.base("far")+"/a%2Fb/../c%20d", strings.NewReader("x"))
	if err != nil {
		t.Fatal(err)
	}
	sent := http.Header{
		"Authorization": {"Bearer sk-1"}, "X-Api-Key": {"k"}, "Accept-Encoding": {"br"}, "X-Forwarded-For": {"1.2.3.4"}, "Forwarded": {"for=x"},
		"Anthropic-Beta": {"one", "two"}, "User-Agent": {"ua/1"}, "Cookie": {"a=b"}, "X-Stainless-Retry-Count": {"0"},
	}
	req.Header = sent.Clone()
	res, err := (&http.Transport{DisableCompression: true}).RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	if err != nil || res.StatusCode != http.StatusTeapot || string(body) != "tea" || res.Header.Get("Request-Id") != "req_1" ||
		len(res.Header["X-Ratelimit"]) != 2 || res.Header.Get("Content-Type") != "text/plain; charset=x" {
		t.Errorf("%s %v %q %v", res.Status, res.Header, body, err)
	}
	sent.Set("Content-Length", "1")
	if fmt.Sprint(got) != fmt.Sprint(sent) {
		t.Errorf("arrived with %v, want %v", got, sent)
	}
	if "http://"+gotHost != far.URL || gotURI != "/a%2Fb/../c%20d" {
		t.Errorf("arrived at %s %s", gotHost, gotURI)
	}
}

func TestGatewayRefuses(t *testing.T) {
	r := newRig(t, Deny)
	for provider, path := range map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages", "google": "/v1beta/models/m:generateContent", "custom": "/x"} {
		res, body := post(t, r.base(provider)+path, `{"model":"secret-body"}`)
		if res.StatusCode != 400 || res.Header.Get("X-Should-Retry") != "false" || !bytes.Equal([]byte(body), refusal(provider)) {
			t.Errorf("%s: %s %v %s", provider, res.Status, res.Header, body)
		}
		if c := r.count(LayerGateway, provider); c != "1 attempts, 1 refused, 0 left" {
			t.Errorf("%s: %s", provider, c)
		}
	}
	if n := r.model.Connections(); n != 0 {
		t.Errorf("%d connections to the model host", n)
	}
	all := r.notes.all()
	if len(all) != 4 {
		t.Errorf("%d records, want 4", len(all))
	}
	for _, n := range all {
		text := fmt.Sprintf("%+v", n)
		if n.Host != "codex" || !strings.Contains(n.Outcome, r.model.Addr) || strings.Contains(text, "secret-body") || strings.Contains(text, r.host.secret) {
			t.Errorf("the record %s", text)
		}
	}
}

// TestGatewayBad: what has no business here gets its answer and goes nowhere.
func TestGatewayBad(t *testing.T) {
	for _, mode := range []Mode{Allow, Deny} {
		r := newRig(t, mode)
		us := r.gw.Addr().String()
		other := access(make([]byte, keyLength), "codex").secret
		good := "/" + r.host.secret + "/openai/v1/chat/completions"
		for _, c := range []struct {
			name, text, want string
		}{
			{"wrong secret", "POST /" + other + "/openai/v1 HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"another host's mac", "POST /claude" + strings.TrimPrefix(r.host.secret, "codex") + "/openai/v1 HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"no secret", "POST /openai/v1 HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"nothing", "GET / HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"asterisk", "GET * HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"no provider", "GET /" + r.host.secret + "//host-llm HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"unknown provider", "POST /" + r.host.secret + "/nobody/v1 HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "404 Not Found"},
			{"rebinding", "POST " + good + " HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403 Forbidden"},
			{"a page", "POST " + good + " HTTP/1.1\r\nHost: " + us + "\r\nOrigin: https://evil.example\r\n\r\n", "403 Forbidden"},
			{"our own page", "POST " + good + " HTTP/1.1\r\nHost: " + us + "\r\nOrigin: http://" + us + "\r\n\r\n", "403 Forbidden"},
			{"null origin", "POST " + good + " HTTP/1.1\r\nHost: " + us + "\r\nOrigin: null\r\n\r\n", "403 Forbidden"},
			{"second Host", "POST " + good + " HTTP/1.1\r\nHost: " + us + "\r\nHost: api.openai.com\r\n\r\n", "400 Bad Request"},
			{"no Host", "POST " + good + " HTTP/1.1\r\n\r\n", "400 Bad Request"},
			{"space in Host", "POST " + good + " HTTP/1.1\r\nHost: a b\r\n\r\n", "400 Bad Request"},
			{"two lengths", "POST " + good + " HTTP/1.1\r\nHost: " + us + "\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab", "400 Bad Request"},
			{"own port in absolute form", "POST http://" + us + good + " HTTP/1.1\r\nHost: " + us + "\r\n\r\n", "407 Proxy Authentication Required"},
			{"CONNECT without credentials", "CONNECT api.openai.com:443 HTTP/1.1\r\nHost: api.openai.com:443\r\n\r\n", "407 Proxy Authentication Required"},
		} {
			if got, body := r.raw(c.text); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s, at %s: %s, want %s\n%s", c.name, mode, got, c.want, body)
			}
		}
		if n := r.model.Connections(); n != 0 {
			t.Errorf("at %s: %d connections to the model host", mode, n)
		}
		if n := len(r.notes.all()); n != 0 {
			t.Errorf("at %s: strangers made %d records", mode, n)
		}
	}
}

// TestRefusedBodies: a client that still sends its body must not see a broken
// connection, which it would take for a reason to try again.
func TestRefusedBodies(t *testing.T) {
	r := newRig(t, Deny)
	url := r.base("openai") + "/v1/chat/completions"
	for name, body := range map[string]io.Reader{
		"huge":            bytes.NewReader(make([]byte, 24<<20)),
		"huge in chunks":  io.LimitReader(zeros{}, 24<<20),
		"empty in chunks": io.MultiReader(),
	} {
		req, err := http.NewRequestWithContext(t.Context(), "POST", url, body)
		if err != nil {
			t.Fatal(err)
		}
		res, err := http.DefaultTransport.RoundTrip(req)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if b, err := io.ReadAll(res.Body); err != nil || res.StatusCode != 400 || !bytes.Equal(b, refusal("openai")) {
			t.Errorf("%s: %s %s %v", name, res.Status, b, err)
		}
		res.Body.Close()
	}
	// One that wants to be told first is told at once, and sends nothing.
	status, _ := r.raw("POST " + strings.TrimPrefix(url, r.gw.URL()) + " HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\nContent-Length: 1000000\r\n\r\n")
	if status != "400 Bad Request" {
		t.Errorf("with Expect: %s", status)
	}
	// HEAD has no body in its answer.
	res, err := http.Head(url)
	if err != nil || res.StatusCode != 400 {
		t.Errorf("HEAD: %v %v", res, err)
	}
	if n := r.model.Connections(); n != 0 {
		t.Errorf("%d connections to the model host", n)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// hold begins an answer that streams and does not end by itself.
func (r *rig) hold(client *http.Client, url string) *http.Response {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), "POST", url, strings.NewReader(`{"stream":true}`))
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set(mockmodel.HoldHeader, "1")
	res, err := client.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	line, err := bufio.NewReaderSize(res.Body, 16).ReadString('\n')
	if err != nil || !strings.HasPrefix(line, "data: ") || res.StatusCode != 200 {
		r.t.Fatalf("%s: %q, %v", res.Status, line, err)
	}
	return res
}

// TestDenyEndsWhatRuns: streams that are under way end, through gateway and
// proxy, and nothing more leaves; after allow it works again.
func TestDenyEndsWhatRuns(t *testing.T) {
	r := newRig(t, Allow)
	viaProxy := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(r.proxy())}}
	url := r.base("openai") + "/v1/chat/completions"
	byProxy := "http://" + r.modelAt(localModel) + "/v1/chat/completions"
	var streams []*http.Response
	for range 5 {
		streams = append(streams, r.hold(http.DefaultClient, url), r.hold(viaProxy, byProxy))
	}
	if err := r.sw.Deny("test"); err != nil {
		t.Fatal(err)
	}
	for _, s := range streams {
		if _, err := io.Copy(io.Discard, s.Body); err == nil {
			t.Error("a stream came to a good end")
		}
		s.Body.Close()
	}
	before := len(r.model.Requests())
	for range 3 {
		if res, _ := post(t, url, `{}`); res.StatusCode != 400 {
			t.Errorf("after deny: %s", res.Status)
		}
	}
	if after := len(r.model.Requests()); after != before {
		t.Errorf("%d requests arrived after deny", after-before)
	}
	if err := r.sw.Allow(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	if res, _ := post(t, url, `{}`); res.StatusCode != 200 {
		t.Errorf("after allow: %s", res.Status)
	}
	if c := r.count(LayerGateway, "openai"); c != "9 attempts, 3 refused, 6 left" {
		t.Errorf("%s", c)
	}
}

// TestDenyWhileConnecting: a request that has not reached the model host when
// models are denied is refused like one that comes later.
func TestDenyWhileConnecting(t *testing.T) {
	// A listener whose queue nobody serves: the request arrives, no answer comes.
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	arrived := make(chan net.Conn, 1)
	go func() { // ends with the listener
		if c, err := ln.Accept(); err == nil {
			arrived <- c
		}
	}()
	r := newRig(t, Allow)
	r.serve(t.TempDir(), map[string]string{"openai": "http://" + ln.Addr().String()})
	type answer struct {
		status int
		body   string
	}
	got := make(chan answer, 1)
	go func() {
		res, body := post(t, r.base("openai")+"/v1", `{}`)
		got <- answer{res.StatusCode, body}
	}()
	c := <-arrived
	defer c.Close()
	if err := r.sw.Deny("test"); err != nil {
		t.Fatal(err)
	}
	if a := <-got; a.status != 400 || a.body != string(refusal("openai")) {
		t.Errorf("%+v", a)
	}
}

// TestRedirect: where the model host sends the client elsewhere, the client is
// told, and we do not go there.
func TestRedirect(t *testing.T) {
	trap := mockmodel.Start()
	defer trap.Close()
	far := httptest.NewServer(http.RedirectHandler(trap.URL+"/v1/messages", http.StatusTemporaryRedirect))
	defer far.Close()
	r := newRig(t, Allow)
	r.serve(t.TempDir(), map[string]string{"far": far.URL})
	req, _ := http.NewRequestWithContext(t.Context(), "POST", r.base("far")+"/v1/messages", strings.NewReader("{}"))
	res, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != http.StatusTemporaryRedirect || res.Header.Get("Location") != trap.URL+"/v1/messages" {
		t.Errorf("%s to %s", res.Status, res.Header.Get("Location"))
	}
	if n := trap.Connections(); n != 0 {
		t.Errorf("%d connections to where it leads", n)
	}
}

// TestWebsocket: a socket to a model passes, and ends with deny.
func TestWebsocket(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, buf, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		_, _ = io.WriteString(c, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
		_, _ = io.Copy(c, buf)
	}))
	defer far.Close()
	r := newRig(t, Allow)
	r.serve(t.TempDir(), map[string]string{"far": far.URL})
	c, err := net.Dial("tcp", r.gw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	ask := "GET /" + r.host.secret + "/far/v1/realtime HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"
	if _, err := io.WriteString(c, ask); err != nil {
		t.Fatal(err)
	}
	in := bufio.NewReader(c)
	res, err := http.ReadResponse(in, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols {
		t.Fatalf("%v %v", res, err)
	}
	if _, err := io.WriteString(c, "ping\n"); err != nil {
		t.Fatal(err)
	}
	if line, err := in.ReadString('\n'); err != nil || line != "ping\n" {
		t.Fatalf("%q %v", line, err)
	}
	if err := r.sw.Deny("test"); err != nil {
		t.Fatal(err)
	}
	if b, _ := io.ReadAll(in); len(b) != 0 {
		t.Errorf("after deny came %q", b)
	}
	if status, body := r.raw(ask); status != "400 Bad Request" || body != string(refusal("far")) {
		t.Errorf("at deny: %s %s", status, body)
	}
}

// TestUnreachable: an error that says what is wrong, and no secret.
func TestUnreachable(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := ln.Addr().String()
	ln.Close()
	r := newRig(t, Allow)
	r.serve(t.TempDir(), map[string]string{"gone": "http://" + addr})
	res, body := post(t, r.base("gone")+"/v1?key=sk-secret", `{}`)
	if res.StatusCode != http.StatusBadGateway || !strings.Contains(body, addr) || strings.Contains(body, "sk-secret") {
		t.Errorf("%s %s", res.Status, body)
	}
	if c := r.count(LayerGateway, "gone"); c != "1 attempts, 0 refused, 0 left" {
		t.Errorf("%s", c)
	}
}

// TestSlowClients: one that sends its headers a byte at a time holds nobody else
// up, nor does one that stops in the middle of its body.
func TestSlowClients(t *testing.T) {
	r := newRig(t, Deny)
	for _, begun := range []string{"POST /", "POST /" + r.host.secret + "/openai/v1 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\nabc"} {
		for range 50 {
			c, err := net.Dial("tcp", r.gw.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			if _, err := io.WriteString(c, begun); err != nil {
				t.Fatal(err)
			}
		}
	}
	if res, _ := post(t, r.base("openai")+"/v1", `{}`); res.StatusCode != 400 {
		t.Errorf("%s", res.Status)
	}
}

func TestHello(t *testing.T) {
	r := newRig(t, Deny)
	for _, path := range []string{"", "/"} {
		res, err := http.Get(r.gw.URL() + "/" + r.host.secret + path)
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		res.Body.Close()
		if err != nil || res.StatusCode != 200 || string(b) != `{"host":"codex","providers":["anthropic","custom","deepseek","google","openai","openrouter"]}` {
			t.Errorf("%s %s %v", res.Status, b, err)
		}
	}
	if h := r.sw.Report().Hosts; len(h) != 1 || h[0].ID != "codex" || len(h[0].Layers) != 2 || h[0].Attempts != 0 {
		t.Errorf("%+v", h)
	}
}

// TestSamePlace: the port and the secrets stay over restarts; where somebody else
// has the port, it says so and comes back later.
func TestSamePlace(t *testing.T) {
	dir := t.TempDir()
	sw := openSwitch(t, Options{Dir: dir})
	open := func() *Gateway {
		t.Helper()
		g, err := OpenGateway(GatewayOptions{Dir: dir, Listen: "127.0.0.1:0", Switch: sw, Log: zerolog.Nop()})
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	if _, err := AccessFor(dir, "codex"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("before the first start: %v", err)
	}
	first := open()
	addr, secret := first.URL(), access(first.key, "codex").secret
	if first.Warning() != "" {
		t.Errorf("warning %q", first.Warning())
	}
	// A second one while the first has the port stands for a stranger on it.
	second := open()
	if second.URL() == addr || !strings.Contains(second.Warning(), "another program listens on") {
		t.Errorf("%s with the warning %q", second.URL(), second.Warning())
	}
	first.Close()
	second.Close()
	third := open()
	defer third.Close()
	if third.URL() != addr || third.Warning() != "" || access(third.key, "codex").secret != secret {
		t.Errorf("%s, was %s; warning %q", third.URL(), addr, third.Warning())
	}
	if st, err := os.Stat(filepath.Join(dir, GatewayFile)); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", st, err)
	}
}

func TestOpenGatewayBad(t *testing.T) {
	sw := openSwitch(t, Options{})
	for name, o := range map[string]GatewayOptions{
		"not loopback":  {Listen: "0.0.0.0:0"},
		"no port":       {Listen: "127.0.0.1"},
		"no base":       {Listen: "127.0.0.1:0", Providers: map[string]string{"x": "api.example"}},
		"another world": {Listen: "127.0.0.1:0", Providers: map[string]string{"x": "ftp://api.example"}},
		"with a login":  {Listen: "127.0.0.1:0", Providers: map[string]string{"x": "https://a:b@api.example"}},
		"with a query":  {Listen: "127.0.0.1:0", Providers: map[string]string{"x": "https://api.example/?key=1"}},
	} {
		o.Dir, o.Switch = t.TempDir(), sw
		if g, err := OpenGateway(o); err == nil {
			g.Close()
			t.Errorf("%s: it opened", name)
		}
	}
	for name, text := range map[string]string{"empty": "", "no key": `{"v":1,"addr":"127.0.0.1:1","key":""}`, "version": `{"v":9}`, "unknown": `{"v":1,"x":1}`} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, GatewayFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenGateway(GatewayOptions{Dir: dir, Listen: "127.0.0.1:0", Switch: sw}); err == nil || !strings.Contains(err.Error(), "move it away") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestStreamsEndWell: an answer that streams comes whole, and its connection can
// be used again.
func TestStreamsEndWell(t *testing.T) {
	r := newRig(t, Allow)
	var wg sync.WaitGroup
	for _, provider := range []string{"openai", "anthropic"} {
		path := map[string]string{"openai": "/v1/chat/completions", "anthropic": "/v1/messages"}[provider]
		direct, want := post(t, r.model.URL+path, `{"stream":true}`)
		for range 4 {
			wg.Go(func() {
				for range 100 {
					res, body := post(t, r.base(provider)+path, `{"stream":true}`)
					if body != want || res.Header.Get("Content-Type") != direct.Header.Get("Content-Type") {
						t.Errorf("%s: %s\n%s", provider, res.Status, body)
					}
				}
			})
		}
	}
	wg.Wait()
}

// TestAnswerBeforeBody: an answer may begin while the request still comes; neither
// cuts the other off.
func TestAnswerBeforeBody(t *testing.T) {
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		buf := make([]byte, 100)
		for {
			n, err := r.Body.Read(buf)
			_, _ = w.Write(buf[:n])
			_ = rc.Flush()
			if err != nil {
				return
			}
		}
	}))
	defer far.Close()
	r := newRig(t, Allow)
	r.serve(t.TempDir(), map[string]string{"far": far.URL})
	c, err := net.Dial("tcp", r.gw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	say := func(text string) {
		t.Helper()
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	say("POST /" + r.host.secret + "/far/ HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\none")
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	buf := make([]byte, 3)
	for _, want := range []string{"one", "two", "end"} {
		if want != "one" {
			say(want)
		}
		if _, err := io.ReadFull(res.Body, buf); err != nil || string(buf) != want {
			t.Fatalf("%q, %v; want %s", buf, err, want)
		}
	}
	if rest, err := io.ReadAll(res.Body); err != nil || len(rest) != 0 {
		t.Errorf("then %q, %v", rest, err)
	}
}

// TestManyAtOnce: deny comes down on a crowd; nothing arrives that was sent after
// it was answered.
func TestManyAtOnce(t *testing.T) {
	r := newRig(t, Allow)
	url := r.base("openai") + "/v1/chat/completions"
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	for range 16 {
		wg.Go(func() {
			for ctx.Err() == nil {
				res, err := client.Post(url, "application/json", strings.NewReader(`{"phase":"before"}`))
				if err == nil {
					_, _ = io.Copy(io.Discard, res.Body)
					res.Body.Close()
				}
			}
		})
	}
	for len(r.model.Requests()) < 100 {
		time.Sleep(time.Millisecond)
	}
	if err := r.sw.Deny("test"); err != nil {
		t.Fatal(err)
	}
	for range 16 {
		wg.Go(func() {
			for range 20 {
				if res, _ := post(t, url, `{"phase":"after"}`); res.StatusCode != 400 {
					t.Errorf("%s", res.Status)
				}
			}
		})
	}
	stop()
	wg.Wait()
	for _, q := range r.model.Requests() {
		if bytes.Contains(q.Body, []byte("after")) {
			t.Fatal("a request that was sent after deny arrived")
		}
	}
}
