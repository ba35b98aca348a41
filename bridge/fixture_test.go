package bridge

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"os"
	"slices"
	"sync"
	"testing"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"

	"github.com/rs/zerolog"
)

// fixture is a Source with tools made of functions.
type fixture struct {
	name  string
	mu    sync.Mutex // guards what follows
	tools []Tool
	run   map[string]func(ctx context.Context, c *Call) Answer
	ended []Caller
}

var _ Source = (*fixture)(nil)
var _ ConnObserver = (*fixture)(nil)

func newFixture(name string) *fixture {
	return &fixture{name: name, run: map[string]func(context.Context, *Call) Answer{}}
}

func (f *fixture) add(name string, run func(ctx context.Context, c *Call) Answer) {
	f.addRaw(name, `{"name":"`+name+`","inputSchema":{"type":"object"}}`, run)
}

func (f *fixture) addRaw(name, definition string, run func(ctx context.Context, c *Call) Answer) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tools = append(f.tools, Tool{Name: name, Definition: json.RawMessage(definition)})
	f.run[name] = run
}

func (f *fixture) Name() string { return f.name }

func (f *fixture) Tools(string) []Tool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.tools
}

func (f *fixture) Prepare(_ context.Context, c *Call) (*Prepared, *Answer) {
	f.mu.Lock()
	run := f.run[c.SourceTool]
	f.mu.Unlock()
	return &Prepared{Run: func(ctx context.Context) Answer { return run(ctx, c) }}, nil
}

func (f *fixture) ConnClosed(c Caller) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = append(f.ended, c)
}

func (f *fixture) endedConns() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var ids []string
	for _, c := range f.ended {
		ids = append(ids, c.Conn)
	}
	return ids
}

// openGate allows everything at once, as a gate with an allow rule does.
type openGate struct{}

func (openGate) Decide(context.Context, *gate.Request) gate.Verdict {
	return gate.Verdict{Outcome: gate.Allowed, By: "rule test:1"}
}

// personGate waits for the test to answer, as the real gate waits for a person:
// it calls Waiting once, and ends with Gone when the call's context ends.
type personGate struct {
	asked   chan *gate.Request
	answers chan gate.Verdict
}

func newPersonGate() *personGate {
	return &personGate{asked: make(chan *gate.Request, 16), answers: make(chan gate.Verdict)}
}

func (g *personGate) Decide(ctx context.Context, r *gate.Request) gate.Verdict {
	r.Waiting()
	g.asked <- r
	select {
	case v := <-g.answers:
		return v
	case <-ctx.Done():
		return gate.Verdict{Outcome: gate.Gone, By: "withdrawn"}
	}
}

// ledger keeps audit records in memory, one slice element an Append.
type ledger struct {
	mu      sync.Mutex // guards appends
	appends [][]audit.Record
}

func (l *ledger) Append(recs ...audit.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.appends = append(l.appends, slices.Clone(recs))
}

// phases lists "phase outcome" of every record, in order.
func (l *ledger) phases() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var all []string
	for _, recs := range l.appends {
		for _, r := range recs {
			s := string(r.Phase)
			if r.Outcome != "" {
				s += " " + r.Outcome
			}
			all = append(all, s)
		}
	}
	return all
}

// rig is a server with one client token and one host token.
type rig struct {
	*Server
	t      testing.TB
	dir    string
	token  string
	host   string
	audit  *ledger
	source *fixture
	http   *httptest.Server
}

func newRig(t testing.TB, change func(*Options)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), audit: &ledger{}, source: newFixture("drawbridge")}
	if err := os.Chmod(r.dir, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := token.Open(r.dir)
	if err != nil {
		t.Fatal(err)
	}
	if r.token, err = store.Add("tester", token.Client, ""); err != nil {
		t.Fatal(err)
	}
	if r.host, err = store.Add("hoster", token.Host, ""); err != nil {
		t.Fatal(err)
	}
	r.source.add("noop", func(context.Context, *Call) Answer {
		return Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"ok"}]}`)}
	})
	o := Options{Log: zerolog.Nop(), Version: "test", Sources: []Source{r.source}, Gate: openGate{}, Audit: r.audit, Tokens: store}
	if change != nil {
		change(&o)
	}
	r.Server = New(o)
	r.http = httptest.NewServer(r.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), closeGrace)
		defer cancel()
		r.Close(ctx)
		r.http.Close()
	})
	return r
}

func (r *rig) wsURL() string { return "ws" + r.http.URL[len("http"):] + "/mcp" }

// dial opens a websocket as the client.
func (r *rig) dial() *wire.Conn {
	r.t.Helper()
	c, err := wire.Dial(r.t.Context(), r.wsURL(), r.token)
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = c.Close() })
	return c
}

func send(t testing.TB, c *wire.Conn, frame string) {
	t.Helper()
	if err := c.WriteFrame([]byte(frame)); err != nil {
		t.Fatal(err)
	}
}

func recv(t testing.TB, c *wire.Conn) string {
	t.Helper()
	b, err := c.ReadFrame(1 << 30)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func callFrame(id, tool, args string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"` + tool + `","arguments":` + args + `}}`
}
