package hostllm

import (
	"bufio"
	"crypto/tls"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// login is the header with a host's credentials.
func (r *rig) login() string {
	return "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte(r.host.Host+":"+r.host.password)) + "\r\n"
}

func (r *rig) client() *http.Client {
	return &http.Client{Transport: &http.Transport{
		Proxy: http.ProxyURL(r.proxy()), TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, // the far end is a test's own
	}}
}

// elsewhere is a server that is no model host.
func elsewhere(t *testing.T, secure bool) (*httptest.Server, *int) {
	t.Helper()
	n := 0
	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n++
		if v := r.Header.Get("Proxy-Authorization"); v != "" {
			t.Errorf("the proxy's credentials were passed on: %s", v)
		}
		_, _ = io.Copy(w, r.Body)
		_, _ = io.WriteString(w, "elsewhere "+r.Host+r.RequestURI)
	})
	s := httptest.NewUnstartedServer(h)
	if secure {
		s.StartTLS()
	} else {
		s.Start()
	}
	t.Cleanup(s.Close)
	return s, &n
}

// TestProxyPasses: whatever is no model host passes, at allow and at deny.
func TestProxyPasses(t *testing.T) {
	for _, mode := range []Mode{Allow, Deny} {
		r := newRig(t, mode)
		for _, secure := range []bool{false, true} {
			s, n := elsewhere(t, secure)
			for range 2 {
				res, err := r.client().Post(s.URL+"/a%2Fb?c=d", "text/plain", strings.NewReader("body, "))
				if err != nil {
					t.Fatal(err)
				}
				b, err := io.ReadAll(res.Body)
				res.Body.Close()
				if want := "body, elsewhere " + s.Listener.Addr().String() + "/a%2Fb?c=d"; err != nil || string(b) != want {
					t.Errorf("%q, %v, want %q", b, err, want)
				}
			}
			if *n != 2 {
				t.Errorf("%d requests arrived", *n)
			}
		}
		if len(r.sw.Report().Hosts) != 0 || len(r.notes.all()) != 0 {
			t.Errorf("destinations that are no models were counted: %+v", r.sw.Report().Hosts)
		}
	}
}

func TestProxyRefusesModels(t *testing.T) {
	r := newRig(t, Deny)
	for _, host := range []string{localModel, "LocalHost", "localhost."} {
		res, err := r.client().Post("http://"+r.modelAt(host)+"/v1/chat/completions", "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		b, _ := io.ReadAll(res.Body)
		res.Body.Close()
		if res.StatusCode != 400 || string(b) != string(refusal("")) {
			t.Errorf("%s: %s %s", host, res.Status, b)
		}
		if _, err := r.client().Get("https://" + r.modelAt(host)); err == nil || !strings.Contains(err.Error(), "Bad Request") {
			t.Errorf("CONNECT to %s: %v", host, err)
		}
	}
	if c := r.count(LayerProxy, localModel); c != "6 attempts, 6 refused, 0 left" {
		t.Errorf("%s", c)
	}
	status, body := r.raw("CONNECT api.anthropic.com:443 HTTP/1.1\r\nHost: x\r\n" + r.login() + "\r\n")
	if status != "400 Bad Request" || body != string(refusal("anthropic")) {
		t.Errorf("%s %s", status, body)
	}
	if n := r.model.Connections(); n != 0 {
		t.Errorf("%d connections to the model host", n)
	}
	for _, n := range r.notes.all() {
		if !strings.HasPrefix(n.Outcome, "refused a model request: host codex, proxy, to ") {
			t.Errorf("%q", n.Outcome)
		}
	}
}

// TestProxyBad: requests that are no good, in every form.
func TestProxyBad(t *testing.T) {
	r := newRig(t, Deny)
	own := r.gw.Addr().String()
	_, port, _ := net.SplitHostPort(own)
	other, err := net.Listen("tcp", "127.0.0.1:0") // stands for the endpoint
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	r.gw.Own(other.Addr())
	_, otherPort, _ := net.SplitHostPort(other.Addr().String())
	wrong := "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("codex:no")) + "\r\n"
	for _, c := range []struct{ name, line, head, want string }{
		{"no credentials", "CONNECT example.com:443", "", "407"},
		{"wrong credentials", "CONNECT example.com:443", wrong, "407"},
		{"other scheme", "CONNECT example.com:443", strings.Replace(r.login(), "Basic", "Bearer", 1), "407"},
		{"no base64", "CONNECT example.com:443", "Proxy-Authorization: Basic ???\r\n", "407"},
		{"two credentials", "CONNECT example.com:443", r.login() + r.login(), "407"},
		{"credentials for the gateway's path", "CONNECT example.com:443", "Proxy-Authorization: Basic " + base64.StdEncoding.EncodeToString([]byte("codex:"+r.host.secret)) + "\r\n", "407"},
		{"plain without credentials", "GET http://example.com/", "", "407"},

		{"our port", "CONNECT " + own, r.login(), "403"},
		{"our port, no name of ours", "CONNECT 127.0.0.1:" + otherPort, r.login(), "403"},
		{"our port mapped", "CONNECT [::ffff:127.0.0.1]:" + port, r.login(), "403"},
		{"our port, any address", "CONNECT 0.0.0.0:" + port, r.login(), "403"},
		{"our port, IPv6", "CONNECT [::1]:" + port, r.login(), "403"},
		{"our port, another of the loopback", "CONNECT 127.1.2.3:" + port, r.login(), "403"},
		{"our port plain", "GET http://" + own + "/x", r.login(), "403"},
		{"the gateway through the proxy", "POST " + r.base("openai") + "/v1", r.login(), "403"},

		{"model as a name", "CONNECT api.openai.com:443", r.login(), "400"},
		{"upper case", "CONNECT API.OPENAI.COM:443", r.login(), "400"},
		{"dot at the end", "CONNECT api.openai.com.:443", r.login(), "400"},
		{"another port", "CONNECT api.openai.com:8443", r.login(), "400"},
		{"absolute form", "POST http://api.openai.com/v1/chat/completions", r.login(), "400"},
		{"absolute form, upper case", "POST HTTP://API.OPENAI.COM./v1", r.login(), "400"},
		{"absolute form, Host of another", "POST http://api.openai.com/v1", "Host: example.com\r\n" + r.login(), "400"},
		{"second Host", "POST http://example.com/", "Host: example.com\r\nHost: api.openai.com\r\n" + r.login(), "400"},
		{"https in absolute form", "POST https://api.openai.com/v1", r.login(), "400"},
		{"ftp", "GET ftp://example.com/x", r.login(), "400"},
		{"no port", "CONNECT example.com", r.login(), "400"},
		{"port 0", "CONNECT example.com:0", r.login(), "400"},
		{"login before the name", "CONNECT a@api.openai.com:443", r.login(), "400"},
		{"another script", "CONNECT \u0430pi.openai.com:443", r.login(), "400"},
		{"fullwidth", "CONNECT api\u3002openai\u3002com:443", r.login(), "400"},
		{"escaped", "CONNECT api%2eopenai.com:443", r.login(), "400"},
		{"origin form", "CONNECT /x", r.login(), "400"},
		{"empty name", "CONNECT :443", r.login(), "400"},
		{"nowhere", "CONNECT nowhere.invalid:443", r.login(), "502"},
	} {
		head := c.head
		if !strings.Contains(head, "Host: ") {
			head = "Host: x\r\n" + head
		}
		got, body := r.raw(c.line + " HTTP/1.1\r\n" + head + "\r\n")
		if !strings.HasPrefix(got, c.want+" ") {
			t.Errorf("%s: %s, want %s\n%s", c.name, got, c.want, body)
		}
	}
	if c := r.count(LayerProxy, "api.openai.com"); c != "7 attempts, 7 refused, 0 left" {
		t.Errorf("%s", c)
	}
}

// TestOursByName: a name that leads to us is found by where it leads.
func TestOursByName(t *testing.T) {
	r := newRig(t, Allow)
	_, port, _ := net.SplitHostPort(r.gw.Addr().String())
	if got, _ := r.raw("CONNECT localhost:" + port + " HTTP/1.1\r\nHost: x\r\n" + r.login() + "\r\n"); got != "403 Forbidden" {
		t.Errorf("%s", got)
	}
	if got, _ := r.raw("GET http://localhost:" + port + "/ HTTP/1.1\r\nHost: x\r\n" + r.login() + "\r\n"); got != "403 Forbidden" {
		t.Errorf("%s", got)
	}
}

// TestTunnelEnds: at deny, tunnels to model hosts end and others go on.
func TestTunnelEnds(t *testing.T) {
	r := newRig(t, Allow)
	open := func(target string) (net.Conn, *bufio.Reader) {
		t.Helper()
		c, err := net.Dial("tcp", r.gw.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { c.Close() })
		// What is sent along with CONNECT must not be lost. Its answer has no body, as that to HEAD.
		if _, err := io.WriteString(c, "CONNECT "+target+" HTTP/1.1\r\nHost: x\r\n"+r.login()+"\r\nGET /_ HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		in := bufio.NewReader(c)
		for _, method := range []string{http.MethodHead, http.MethodGet} {
			res, err := http.ReadResponse(in, &http.Request{Method: method})
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, res.Body); err != nil {
				t.Fatal(err)
			}
		}
		return c, in
	}
	other, n := elsewhere(t, false)
	stays, staysIn := open(other.Listener.Addr().String())
	_, ends := open(r.modelAt(localModel))
	if err := r.sw.Deny("test"); err != nil {
		t.Fatal(err)
	}
	if _, err := ends.ReadByte(); err == nil {
		t.Error("the tunnel to the model host goes on")
	}
	if _, err := io.WriteString(stays, "GET /more HTTP/1.1\r\nHost: x\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	if res, err := http.ReadResponse(staysIn, nil); err != nil || res.StatusCode != 200 || *n != 2 {
		t.Errorf("the other tunnel: %v, %v, %d requests", res, err, *n)
	}
	if c := r.count(LayerProxy, localModel); c != "1 attempts, 0 refused, 1 left" {
		t.Errorf("%s", c)
	}
}

// TestHalfClosed: who has said all hears the rest.
func TestHalfClosed(t *testing.T) {
	r := newRig(t, Allow)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	go func() { // ends with the listener
		c, err := ln.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		b, _ := io.ReadAll(c)
		_, _ = io.WriteString(c, "heard "+string(b))
	}()
	c, err := net.Dial("tcp", r.gw.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	_, err = io.WriteString(c, "CONNECT "+ln.Addr().String()+" HTTP/1.1\r\nHost: x\r\n"+r.login()+"\r\nall")
	if err != nil {
		t.Fatal(err)
	}
	if err := c.(*net.TCPConn).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(c)
	if err != nil || !strings.HasSuffix(string(b), "\r\n\r\nheard all") {
		t.Errorf("%q %v", b, err)
	}
}

// TestRedirectToModel: a server elsewhere that sends the client to a model host
// does not lead it past the proxy.
func TestRedirectToModel(t *testing.T) {
	r := newRig(t, Deny)
	s := httptest.NewServer(http.RedirectHandler("http://"+r.modelAt(localModel)+"/v1/messages", http.StatusTemporaryRedirect))
	defer s.Close()
	res, err := r.client().Post(s.URL, "application/json", strings.NewReader("{}"))
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if res.StatusCode != 400 || r.model.Connections() != 0 {
		t.Errorf("%s, %d connections", res.Status, r.model.Connections())
	}
}

func TestShape(t *testing.T) {
	for dest, want := range map[string]string{
		"api.anthropic.com:443": "anthropic", "generativelanguage.googleapis.com:80": "google", "openrouter.ai:443": "openrouter", "api.groq.com:443": "",
	} {
		if got := (Refusal{Layer: LayerProxy, Provider: "x", Destination: dest}).shape(); got != want {
			t.Errorf("%s: %q, want %q", dest, got, want)
		}
	}
}
