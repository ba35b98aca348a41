package host

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"

	"drawbridge/bridge/host/hosttest"
)

// TestRemoteForgetsSession has a server that loses its session; the host is
// opened anew.
func TestRemoteForgetsSession(t *testing.T) {
	s := &hosttest.Server{}
	s.SetTools(tool("a"))
	var forgotten atomic.Bool
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Session-Id") == "" { // a new opening
			forgotten.Store(false)
		}
		if forgotten.Load() {
			w.WriteHeader(http.StatusNotFound)
			return
		}
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(remote.Close)
	f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": {URL: remote.URL}}})
	f.waitNames("h/a")
	forgotten.Store(true)
	if got := text(f.call(within(t), "a", `{"name":"a"}`, nil)); !strings.Contains(got, "forgotten our session") {
		t.Errorf("text %q", got)
	}
	eventually(t, "a new session", func() bool {
		return strings.Contains(string(f.call(within(t), "a", `{"name":"a"}`, nil).Result), `"params"`)
	})
}

// TestRemoteStreamBreaks has a server that ends the answer's stream early, with
// an event id, and gives the answer when it is asked from there.
func TestRemoteStreamBreaks(t *testing.T) {
	s := &hosttest.Server{}
	s.SetTools(tool("a"))
	id := make(chan string, 1)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if last := r.Header.Get("Last-Event-ID"); last != "" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"id\":%s,\r\ndata: \"result\":{\"after\":%q}}\r\n\r\n", <-id, last)
			return
		}
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
		}
		_ = json.Unmarshal(body, &m)
		if m.Method == "tools/call" {
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, ": a comment\nid: event-7\nretry: 10\ndata:\n\n")
			id <- string(m.ID)
			return
		}
		r.Body = io.NopCloser(strings.NewReader(string(body)))
		s.ServeHTTP(w, r)
	}))
	t.Cleanup(remote.Close)
	f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": {URL: remote.URL}}})
	f.waitNames("h/a")
	if a := f.call(within(t), "a", `{"name":"a"}`, nil); string(a.Result) != `{"after":"event-7"}` {
		t.Errorf("answer %s %s", a.Result, a.Error)
	}
}

// TestRemoteRefuses says what is wrong with a remote host, in /status.
func TestRemoteRefuses(t *testing.T) {
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "http://" + free.Addr().String()
	free.Close()
	for name, c := range map[string]struct {
		serve http.HandlerFunc
		want  string
	}{
		"nobody":       {nil, "cannot be reached"},
		"unauthorized": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }, "its credentials are the host's headers"},
		"a web page":   {func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "<html>hello</html>") }, `answered with "text/html"`},
		"an error":     {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }, "502 Bad Gateway"},
		"a redirect": {func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://elsewhere.invalid/", http.StatusTemporaryRedirect)
		}, "sends us elsewhere, to http://elsewhere.invalid"},
		"another's id":  {jsonAnswer(`{"jsonrpc":"2.0","id":99,"result":{}}`), "to another request"},
		"an odd answer": {jsonAnswer(`{"jsonrpc":"2.0"`), "no JSON-RPC message"},
	} {
		t.Run(name, func(t *testing.T) {
			url := nobody
			if c.serve != nil {
				remote := httptest.NewServer(c.serve)
				t.Cleanup(remote.Close)
				url = remote.URL
			}
			f := newFixture(t, Options{Hosts: map[string]Config{"h": {URL: url}}})
			eventually(t, "a warning that says why", func() bool { return strings.Contains(strings.Join(f.Warnings(), "\n"), c.want) })
		})
	}
}

func jsonAnswer(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, body)
	}
}

// TestRemoteOverLimit has a result over the limit, as JSON and as an event.
func TestRemoteOverLimit(t *testing.T) {
	for _, kind := range []string{"application/json", "text/event-stream"} {
		t.Run(kind, func(t *testing.T) {
			s := &hosttest.Server{}
			s.SetTools(tool("a"))
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				var m struct {
					ID     json.RawMessage
					Method string
				}
				_ = json.Unmarshal(body, &m)
				if m.Method != "tools/call" {
					r.Body = io.NopCloser(strings.NewReader(string(body)))
					s.ServeHTTP(w, r)
					return
				}
				frame := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"x":"%s"}}`, m.ID, strings.Repeat("y", 200<<10))
				w.Header().Set("Content-Type", kind)
				if kind == "text/event-stream" {
					frame = "data: " + frame + "\n\n"
				}
				fmt.Fprint(w, frame)
			}))
			t.Cleanup(remote.Close)
			f := newFixture(t, Options{Main: "h", MaxFrame: 64 << 10, Hosts: map[string]Config{"h": {URL: remote.URL}}})
			f.waitNames("h/a")
			if got := text(f.call(within(t), "a", `{"name":"a"}`, nil)); !strings.Contains(got, "the tool ran, but its result has 2048") {
				t.Errorf("text %q", got)
			}
		})
	}
}

func TestRemoteHeaders(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("from-file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DRAWBRIDGE_TEST_HEADER", "from-env")
	seen := make(chan http.Header, 1)
	remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case seen <- r.Header:
		default:
		}
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(remote.Close)
	newFixture(t, Options{Hosts: map[string]Config{"h": {URL: remote.URL, Headers: map[string]Secret{
		"Authorization": {Env: "DRAWBRIDGE_TEST_HEADER", Prefix: "Bearer "},
		"X-Key":         {File: file},
	}}}})
	h := <-seen
	if h.Get("Authorization") != "Bearer from-env" || h.Get("X-Key") != "from-file" {
		t.Errorf("headers %v", h)
	}
	pipe := filepath.Join(t.TempDir(), "pipe")
	if err := unix.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	for want, s := range map[string]Secret{
		"DRAWBRIDGE_TEST_UNSET is not set": {Env: "DRAWBRIDGE_TEST_UNSET"},
		"no such file":                     {File: file + "-not"},
		"is no regular file":               {File: pipe},
	} {
		f := newFixture(t, Options{Hosts: map[string]Config{"h": {URL: remote.URL, Headers: map[string]Secret{"X-Key": s}}}})
		eventually(t, "a warning about "+want, func() bool { return strings.Contains(strings.Join(f.Warnings(), "\n"), want) })
	}
}

// TestRemoteParamHeaders has a server of the stateless era whose tool marks some
// of its arguments: they must be repeated in headers. In the older era they are not.
func TestRemoteParamHeaders(t *testing.T) {
	const definition = `{"name":"t","inputSchema":{"type":"object","properties":{` +
		`"region":{"type":"string","x-mcp-header":"Region"},` +
		`"n":{"type":"integer","x-mcp-header":"N"},` +
		`"on":{"type":"boolean","x-mcp-header":"On"},` +
		`"deep":{"type":"object","properties":{"id":{"type":"string","x-mcp-header":"Deep-Id"}}},` +
		`"odd":{"type":"string","x-mcp-header":"no name\r\nX: y"},` +
		`"free":{"type":"string"}}}}`
	for _, c := range []struct {
		name, era, args string
		want            map[string]string
	}{
		{"all kinds", hosttest.Modern, `{"region":"e\u0075","n":9007199254740993,"on":true,"deep":{"id":"a"},"free":"x"}`,
			map[string]string{"Region": "eu", "N": "9007199254740993", "On": "true", "Deep-Id": "a"}},
		{"wrapped", hosttest.Modern, `{"region":"Hällo","deep":{"id":" a"}}`,
			map[string]string{"Region": "=?base64?SMOkbGxv?=", "Deep-Id": "=?base64?IGE=?="}},
		{"a line break cannot leave its header", hosttest.Modern, `{"region":"eu\r\nX-Key: y"}`, map[string]string{"Region": "=?base64?ZXUNClgtS2V5OiB5?="}},
		{"a number as it was written", hosttest.Modern, `{"n":1e2}`, map[string]string{"N": "1e2"}},
		{"absent and null", hosttest.Modern, `{"region":null}`, nil},
		{"what cannot be marked", hosttest.Modern, `{"region":{},"n":[1],"odd":"x"}`, nil},
		{"the older era", hosttest.Legacy, `{"region":"eu"}`, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &hosttest.Server{Era: c.era}
			s.SetTools(definition)
			seen := make(chan http.Header, 1)
			remote := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body, err := io.ReadAll(r.Body)
				if err != nil {
					return
				}
				if strings.Contains(string(body), `"tools/call"`) {
					seen <- r.Header
				}
				r.Body = io.NopCloser(strings.NewReader(string(body)))
				s.ServeHTTP(w, r)
			}))
			t.Cleanup(remote.Close)
			f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": {URL: remote.URL}}})
			f.waitNames("h/t")
			answer := f.call(within(t), "t", `{"name":"t","arguments":`+c.args+`}`, nil)
			if !strings.Contains(string(answer.Result), c.args) {
				t.Errorf("the arguments did not go through: %s", answer.Result)
			}
			got := map[string]string{}
			for name, values := range <-seen {
				if mark, ok := strings.CutPrefix(name, "Mcp-Param-"); ok {
					got[mark] = strings.Join(values, "|")
				}
			}
			if len(got) != len(c.want) {
				t.Errorf("headers %q, want %q", got, c.want)
			}
			for mark, want := range c.want {
				if got[mark] != want {
					t.Errorf("Mcp-Param-%s is %q, want %q", mark, got[mark], want)
				}
			}
		})
	}
}

// sdkServer is a host made with the official SDK.
func sdkServer() *mcp.Server {
	s := mcp.NewServer(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	s.AddTool(&mcp.Tool{Name: "greet", InputSchema: json.RawMessage(`{"type":"object"}`)}, func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			if err := r.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: 0.5, Message: "half"}); err != nil {
				return nil, err
			}
		}
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: "hello " + string(r.Params.Arguments)}}}, nil
	})
	return s
}

// TestSDKHosts has servers made with the official SDK as hosts: over stdio and
// HTTP, with and without sessions, in both eras.
func TestSDKHosts(t *testing.T) {
	handler := func(o *mcp.StreamableHTTPOptions) func(t *testing.T) Config {
		return func(t *testing.T) Config {
			remote := httptest.NewServer(mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return sdkServer() }, o))
			t.Cleanup(remote.Close)
			return Config{URL: remote.URL}
		}
	}
	for name, config := range map[string]func(t *testing.T) Config{
		"stdio":          func(*testing.T) Config { return childConfig("sdk") },
		"http sessions":  handler(nil),
		"http stateless": handler(&mcp.StreamableHTTPOptions{Stateless: true}),
		"http json":      handler(&mcp.StreamableHTTPOptions{Stateless: true, JSONResponse: true}),
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": config(t)}})
			f.waitNames("h/greet")
			heard := make(chan string, 1)
			meta := `,"_meta":{"progressToken":"t"}`
			if name == "http json" {
				meta = "" // this kind of server has no way to report progress
			}
			a := f.call(within(t), "greet", `{"name":"greet","arguments":{"who":1.0}`+meta+`}`, func(method string, params json.RawMessage) {
				heard <- method + " " + string(params)
			})
			if !strings.Contains(string(a.Result), `hello {\"who\":1.0}`) {
				t.Fatalf("answer %s %s", a.Result, a.Error)
			}
			if meta == "" {
				return
			}
			if got := <-heard; !strings.HasPrefix(got, "notifications/progress ") || !strings.Contains(got, `"progressToken":"t"`) || !strings.Contains(got, `"half"`) {
				t.Errorf("heard %s", got)
			}
		})
	}
}
