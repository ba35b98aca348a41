package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/wire"
)

// The test binary is its own child host: with this variable set it serves over
// stdio instead of running tests.
const childEnv = "DRAWBRIDGE_TEST_CHILD"

func TestMain(m *testing.M) {
	if mode := os.Getenv(childEnv); mode != "" {
		os.Exit(childMain(mode))
	}
	os.Exit(m.Run())
}

// patience bounds waits for what must come; it is no measure of speed.
const patience = time.Minute

// fixture is a set with what it noted.
type fixture struct {
	*Set
	t     *testing.T
	url   string // of the attach route
	http  *httptest.Server
	mu    sync.Mutex
	notes []audit.Record
	bell  chan struct{} // rung at each change of the tools
}

func newFixture(t *testing.T, o Options) *fixture {
	t.Helper()
	f := &fixture{t: t, bell: make(chan struct{}, 1)}
	o.Log, o.Version = zerolog.New(zerolog.NewTestWriter(t)), "test"
	o.Note = func(r audit.Record) {
		f.mu.Lock()
		f.notes = append(f.notes, r)
		f.mu.Unlock()
	}
	o.Changed = func() {
		select {
		case f.bell <- struct{}{}:
		default:
		}
	}
	set, err := NewSet(o)
	if err != nil {
		t.Fatal(err)
	}
	f.Set = set
	set.Start()
	f.http = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		set.Attach(w, r, strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer "))
	}))
	f.url = "ws" + strings.TrimPrefix(f.http.URL, "http")
	t.Cleanup(func() {
		set.Close()
		f.http.Close()
	})
	return f
}

func (f *fixture) noted() []audit.Record {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]audit.Record(nil), f.notes...)
}

// eventually waits until ok holds. It looks again at each change and now and then.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(2 * time.Millisecond)
	}
}

// names lists what is listed, in order, as host/tool.
func (f *fixture) names() string {
	var all []string
	for _, s := range f.Sources() {
		for _, tool := range s.Tools("c") {
			all = append(all, s.Name()+"/"+tool.Name)
		}
	}
	return strings.Join(all, " ")
}

func (f *fixture) waitNames(want string) {
	f.t.Helper()
	eventually(f.t, "tools "+want, func() bool { return f.names() == want })
}

// find returns the source that lists a tool, and its definition.
func (f *fixture) find(tool string) (bridge.Source, json.RawMessage) {
	for _, s := range f.Sources() {
		for _, t := range s.Tools("c") {
			if t.Name == tool {
				return s, t.Definition
			}
		}
	}
	return nil, nil
}

// call runs a tool with raw params whose name member is the listed name.
func (f *fixture) call(ctx context.Context, tool, params string, notify func(string, json.RawMessage)) bridge.Answer {
	f.t.Helper()
	source, _ := f.find(tool)
	if source == nil {
		f.t.Fatalf("no host lists %q; there are: %s", tool, f.names())
	}
	p, a := source.Prepare(ctx, &bridge.Call{ID: "call-1", Tool: tool, SourceTool: tool, Params: json.RawMessage(params),
		Arguments: wire.Get(json.RawMessage(params), "arguments"), Notify: notify})
	if a != nil {
		return *a
	}
	return p.Run(ctx)
}

func (f *fixture) dial(s *hosttest.Server, token, hello string) *hosttest.Session {
	f.t.Helper()
	h, err := s.Dial(f.url, token, hello)
	if err != nil {
		f.t.Fatal(err)
	}
	f.t.Cleanup(func() {
		h.WS.Close()
		<-h.Done
	})
	return h
}

func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}

// text returns an answer's first text, for messages.
func text(a bridge.Answer) string {
	var r struct {
		IsError bool                    `json:"isError"`
		Content []struct{ Text string } `json:"content"`
	}
	if json.Unmarshal(a.Result, &r) != nil || len(r.Content) == 0 || !r.IsError {
		return fmt.Sprintf("not an isError with a text: %.200s %.200s", a.Result, a.Error)
	}
	return r.Content[0].Text
}

func tool(name string) string {
	return `{"name":"` + name + `","inputSchema":{"type":"object"}}`
}

func testLog(t *testing.T) zerolog.Logger { return zerolog.New(zerolog.NewTestWriter(t)) }

// lockedBuffer is a log that a test reads while it is written.
type lockedBuffer struct {
	mu sync.Mutex
	b  []byte
}

func (l *lockedBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.b = append(l.b, p...)
	return len(p), nil
}

func (l *lockedBuffer) Len() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.b)
}

// difference shows where two texts begin to differ.
func difference(got, want string) string {
	i := 0
	for i < min(len(got), len(want)) && got[i] == want[i] {
		i++
	}
	around := func(s string) string { return s[max(0, i-40):min(len(s), i+120)] }
	return fmt.Sprintf("at byte %d\n got …%s\nwant …%s", i, around(got), around(want))
}

// TestLogMessagesEndHere has a host that logs while it runs a call: a caller hears
// of progress alone.
func TestLogMessagesEndHere(t *testing.T) {
	s := &hosttest.Server{Call: func(_ context.Context, c *hosttest.Call) (json.RawMessage, json.RawMessage) {
		token := string(wire.Get(wire.Get(c.Params, "_meta"), "progressToken"))
		c.Peer.Notify("notifications/message", `{"level":"info","data":"of whom?"}`)
		c.Peer.Notify("notifications/progress", `{"progressToken":`+token+`,"progress":1}`)
		return json.RawMessage(`{"content":[]}`), nil
	}}
	s.SetTools(tool("a"))
	f := newFixture(t, Options{Main: "omp"})
	f.dial(s, "omp", `{"v":1}`)
	f.waitNames("omp/a")
	var heard []string
	answer := f.call(within(t), "a", `{"name":"a","_meta":{"progressToken":"p"}}`, func(method string, params json.RawMessage) {
		heard = append(heard, method+" "+string(params))
	})
	if string(answer.Result) != `{"content":[]}` {
		t.Errorf("answer %s %s", answer.Result, answer.Error)
	}
	if want := `notifications/progress {"progressToken":"p","progress":1}`; len(heard) != 1 || heard[0] != want {
		t.Errorf("heard %q, want %s", heard, want)
	}
}
