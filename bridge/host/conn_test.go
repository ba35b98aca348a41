package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/stop"
)

// kinds runs a test against each binding and era of one scripted host.
func kinds(t *testing.T, run func(t *testing.T, f *fixture, s *hosttest.Server), tools ...string) {
	for _, era := range []string{hosttest.Legacy, hosttest.Modern} {
		for _, kind := range []string{KindAttached, KindRemote} {
			t.Run(kind+" "+era, func(t *testing.T) {
				s := &hosttest.Server{Era: era}
				s.SetTools(tools...)
				o := Options{Main: "h"}
				if kind == KindRemote {
					remote := httptest.NewServer(s)
					t.Cleanup(remote.Close)
					o.Hosts = map[string]Config{"h": {URL: remote.URL}}
				}
				f := newFixture(t, o)
				if kind == KindAttached {
					hello := `{"v":1,"session":"s"}`
					if era == hosttest.Modern {
						hello = `{"v":1,"session":"s","protocolVersion":"2026-07-28"}`
					}
					f.dial(s, "h", hello)
				}
				run(t, f, s)
			})
		}
	}
}

func TestCancelReachesHost(t *testing.T) {
	started := make(chan string, 1)
	ended := make(chan error, 1)
	kinds(t, func(t *testing.T, f *fixture, s *hosttest.Server) {
		s.Call = func(ctx context.Context, c *hosttest.Call) (json.RawMessage, json.RawMessage) {
			started <- string(c.ID)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, nil
		}
		f.waitNames("h/hang")
		ctx, cancel := context.WithCancelCause(within(t))
		id := make(chan string, 1)
		go func() {
			id <- <-started
			cancel(&stop.Error{Reason: stop.Cancelled, Message: "the client cancelled the call"})
		}()
		a := f.call(ctx, "hang", `{"name":"hang"}`, nil)
		if a.Outcome != "stopped: cancelled" || !strings.HasPrefix(text(a), "the client cancelled the call; host h was told to stop") {
			t.Errorf("outcome %q, text %q", a.Outcome, text(a))
		}
		<-ended // the host heard
		<-id
	}, tool("hang"))
}

func TestProgressKeepsBothTokens(t *testing.T) {
	kinds(t, func(t *testing.T, f *fixture, s *hosttest.Server) {
		s.Call = func(_ context.Context, c *hosttest.Call) (json.RawMessage, json.RawMessage) {
			var p struct {
				Meta struct {
					Token json.RawMessage `json:"progressToken"`
				} `json:"_meta"`
			}
			if err := json.Unmarshal(c.Params, &p); err != nil {
				return nil, json.RawMessage(`{"code":1,"message":"params"}`)
			}
			if string(p.Meta.Token) != string(c.ID) {
				return nil, json.RawMessage(fmt.Sprintf(`{"code":1,"message":"token %s, id %s"}`, p.Meta.Token, c.ID))
			}
			c.Peer.Notify("notifications/progress", `{"progress":1.0,"progressToken":`+string(p.Meta.Token)+`,"total":1e2,"message":"<half>","x":9007199254740993}`)
			c.Peer.Notify("notifications/progress", `{"progress":2,"progressToken":424242}`) // nobody's
			return json.RawMessage(`{"content":[]}`), nil
		}
		f.waitNames("h/slow")
		var mu sync.Mutex
		var heard []string
		a := f.call(within(t), "slow", `{"name":"slow","_meta":{"progressToken":"tok\u0065n"}}`, func(method string, params json.RawMessage) {
			mu.Lock()
			defer mu.Unlock()
			heard = append(heard, method+" "+string(params))
		})
		if string(a.Result) != `{"content":[]}` {
			t.Fatalf("answer: %s %s", a.Result, a.Error)
		}
		mu.Lock()
		defer mu.Unlock()
		want := `notifications/progress {"progress":1.0,"progressToken":"tok\u0065n","total":1e2,"message":"<half>","x":9007199254740993}`
		if len(heard) != 1 || heard[0] != want {
			t.Errorf("heard %q\nwant  %q", heard, want)
		}
	}, tool("slow"))
}

// TestHostsRequestsAreDeclined has a host ask for everything that a client could
// be asked for, and checks that it is told no, and that ping is answered.
func TestHostsRequestsAreDeclined(t *testing.T) {
	f := newFixture(t, Options{})
	answers := make(chan string, 8)
	raw := rawHost(t, f, "raw", answers)
	for _, c := range []struct{ method, want string }{
		{"sampling/createMessage", `{"jsonrpc":"2.0","id":"x\u0031","error":{"code":-1,"message":"declined: Drawbridge never calls a model"}}`},
		{"elicitation/create", `{"jsonrpc":"2.0","id":"x\u0031","result":{"action":"decline"}}`},
		{"roots/list", `{"jsonrpc":"2.0","id":"x\u0031","error":{"code":-32601,"message":"Drawbridge has no roots"}}`},
		{"tools/list", `{"jsonrpc":"2.0","id":"x\u0031","error":{"code":-32601,"message":"Drawbridge serves no requests of hosts"}}`},
		{"ping", `{"jsonrpc":"2.0","id":"x\u0031","result":{}}`},
	} {
		raw(`{"jsonrpc":"2.0","id":"x\u0031","method":"` + c.method + `","params":{}}`)
		if got := <-answers; got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.method, got, c.want)
		}
	}
}

// TestInputRequired has a stateless host ask in its result. Only a caller of the
// same era can answer that; for another it is declined.
func TestInputRequired(t *testing.T) {
	const asks = `{"resultType":"input_required","inputRequests":{"a":{"method":"sampling/createMessage","params":{}}},"requestState":"s"}`
	f := newFixture(t, Options{Main: "h"})
	s := &hosttest.Server{Era: hosttest.Modern, Call: func(context.Context, *hosttest.Call) (json.RawMessage, json.RawMessage) {
		return json.RawMessage(asks), nil
	}}
	s.SetTools(tool("asks"))
	f.dial(s, "h", `{"v":1,"protocolVersion":"2026-07-28"}`)
	f.waitNames("h/asks")
	if got := text(f.call(within(t), "asks", `{"name":"asks"}`, nil)); !strings.Contains(got, "declines") {
		t.Errorf("text %q", got)
	}
	a := f.call(within(t), "asks", `{"name":"asks","_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`, nil)
	if string(a.Result) != asks {
		t.Errorf("result %s, want %s", a.Result, asks)
	}
}

// pipeOf is a pipe whose frames a test decides.
type pipeOf struct {
	in   chan Incoming
	out  chan Outgoing
	done chan struct{}
	once sync.Once
}

func newPipeOf() *pipeOf {
	return &pipeOf{in: make(chan Incoming, 16), out: make(chan Outgoing, 16), done: make(chan struct{})}
}

func (p *pipeOf) Send(ctx context.Context, f Outgoing) error {
	select {
	case p.out <- f:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.done:
		return errors.New("closed")
	}
}

func (p *pipeOf) Receive() (Incoming, error) {
	select {
	case in := <-p.in:
		return in, nil
	case <-p.done:
		return Incoming{}, errors.New("closed")
	}
}

func (p *pipeOf) Close() error {
	p.once.Do(func() { close(p.done) })
	return nil
}
