package host

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/gorilla/websocket"

	"drawbridge/bridge/host/hosttest"
)

// rawHost attaches a host that answers the opening and hands every frame that is
// no part of it to frames. It returns what sends a frame of the test's own.
func rawHost(t *testing.T, f *fixture, name string, frames chan<- string, tools ...string) func(frame string) {
	t.Helper()
	d := websocket.Dialer{Subprotocols: []string{Subprotocol}}
	ws, _, err := d.Dial(f.url, http.Header{"Authorization": {"Bearer " + name}})
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	send := func(frame string) {
		mu.Lock()
		defer mu.Unlock()
		_ = ws.WriteMessage(websocket.TextMessage, []byte(frame)) // after the test's end it fails
	}
	send(`{"jsonrpc":"2.0","method":"drawbridge/hello","params":{"v":1}}`)
	ready := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			_, b, err := ws.ReadMessage()
			if err != nil {
				return
			}
			var m struct {
				ID     json.RawMessage
				Method string
			}
			_ = json.Unmarshal(b, &m)
			switch m.Method {
			case "initialize":
				send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"raw","version":"0"}}}`)
			case "notifications/initialized":
			case "tools/list":
				send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"tools":[` + strings.Join(tools, ",") + `]}}`)
				close(ready)
			default:
				frames <- string(b)
			}
		}
	}()
	t.Cleanup(func() {
		ws.Close()
		<-ended
	})
	<-ready
	return send
}

// other is a second host beside the one that misbehaves; it must go on working.
func other(t *testing.T, f *fixture) func() {
	t.Helper()
	s := &hosttest.Server{}
	s.SetTools(tool("fine"))
	f.dial(s, "other", `{"v":1,"name":"other"}`)
	eventually(t, "the other host", func() bool { s, _ := f.find("other_fine"); return s != nil })
	return func() {
		t.Helper()
		if a := f.call(within(t), "other_fine", `{"name":"other_fine"}`, nil); !strings.Contains(string(a.Result), `"params"`) {
			t.Errorf("another host's call: %s %s", a.Result, a.Error)
		}
	}
}

// TestGarbage sends frames that mean nothing; the connection, its calls and
// other hosts live on.
func TestGarbage(t *testing.T) {
	garbage := map[string]string{
		"no JSON":             `hello`,
		"half":                `{"jsonrpc":"2.0","id":1,`,
		"empty":               ``,
		"array":               `[{"jsonrpc":"2.0","id":1,"result":{}}]`,
		"number":              `1`,
		"no version":          `{"id":1,"result":{}}`,
		"nothing":             `{"jsonrpc":"2.0"}`,
		"unknown id":          `{"jsonrpc":"2.0","id":424242,"result":{}}`,
		"id of another kind":  `{"jsonrpc":"2.0","id":{"a":1},"result":{}}`,
		"negative id":         `{"jsonrpc":"2.0","id":-1,"result":{}}`,
		"null id":             `{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"Parse error"}}`,
		"method of a number":  `{"jsonrpc":"2.0","method":1}`,
		"not UTF-8":           "{\"jsonrpc\":\"2.0\",\"method\":\"\xff\xfe\"}",
		"deep":                `{"jsonrpc":"2.0","method":"x","params":` + strings.Repeat("[", 100_000) + strings.Repeat("]", 100_000) + `}`,
		"progress":            `{"jsonrpc":"2.0","method":"notifications/progress","params":[1]}`,
		"progress of nothing": `{"jsonrpc":"2.0","method":"notifications/progress"}`,
		"asking nonsense":     `{"jsonrpc":"2.0","method":"drawbridge/asking","params":{"requestId":"x"}}`,
		"asking of nothing":   `{"jsonrpc":"2.0","method":"drawbridge/asking"}`,
		"unknown method":      `{"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}`,
	}
	for name, frame := range garbage {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{})
			stillFine := other(t, f)
			frames := make(chan string, 1)
			send := rawHost(t, f, "h", frames, tool("a"))
			f.waitNames("other/other_fine h/h_a")
			go func() {
				var m struct{ ID json.RawMessage }
				_ = json.Unmarshal([]byte(<-frames), &m)
				send(frame)
				send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[]}}`)
				// A second answer to the same request belongs to nothing.
				send(`{"jsonrpc":"2.0","id":` + string(m.ID) + `,"result":{"content":[1]}}`)
			}()
			if a := f.call(within(t), "h_a", `{"name":"h_a"}`, nil); string(a.Result) != `{"content":[]}` {
				t.Errorf("answer: %s %s", a.Result, a.Error)
			}
			stillFine()
		})
	}
}

// TestBadAnswer gives answers that cannot be taken; the call ends and says so.
func TestBadAnswer(t *testing.T) {
	for name, c := range map[string]struct{ frame, want string }{
		"two readings":   {`{"jsonrpc":"2.0","id":%s,"result":{"isError":true,"isError":false}}`, "twice"},
		"too deep":       {`{"jsonrpc":"2.0","id":%s,"result":` + strings.Repeat("[", 500) + strings.Repeat("]", 500) + `}`, "deep"},
		"neither":        {`{"jsonrpc":"2.0","id":%s}`, "neither a call nor an answer"},
		"older protocol": {`{"jsonrpc":"1.0","id":%s,"result":{}}`, "2.0"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{})
			frames := make(chan string, 1)
			send := rawHost(t, f, "h", frames, tool("a"))
			f.waitNames("h/h_a")
			go func() {
				var m struct{ ID json.RawMessage }
				_ = json.Unmarshal([]byte(<-frames), &m)
				send(fmt.Sprintf(c.frame, m.ID))
			}()
			if got := text(f.call(within(t), "h_a", `{"name":"h_a"}`, nil)); !strings.Contains(got, c.want) {
				t.Errorf("text %q, want something about %q", got, c.want)
			}
		})
	}
}

// TestFrameOverLimit sends a frame over the limit, with the id first and last.
// Only the limit is small; a frame of 1 GB takes the same way.
func TestFrameOverLimit(t *testing.T) {
	pad := strings.Repeat("x", 300<<10)
	for name, frame := range map[string]string{
		"id first": `{"jsonrpc":"2.0","id":%[1]s,"result":{"content":[{"type":"text","text":"%[2]s"}]}}`,
		"id last":  `{"result":{"content":[{"type":"text","text":"%[2]s"}]},"jsonrpc":"2.0","id":%[1]s}`,
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{MaxFrame: 64 << 10})
			frames := make(chan string, 2)
			send := rawHost(t, f, "h", frames, tool("a"))
			f.waitNames("h/h_a")
			id := func() string {
				var m struct{ ID json.RawMessage }
				_ = json.Unmarshal([]byte(<-frames), &m)
				return string(m.ID)
			}
			go func() { send(fmt.Sprintf(frame, id(), pad)) }()
			got := text(f.call(within(t), "h_a", `{"name":"h_a"}`, nil))
			if !strings.Contains(got, "the tool ran, but its result has 3072") || !strings.Contains(got, "at most 65536") {
				t.Errorf("text %q", got)
			}
			go func() { send(`{"jsonrpc":"2.0","id":` + id() + `,"result":{"content":[]}}`) }()
			if a := f.call(within(t), "h_a", `{"name":"h_a"}`, nil); string(a.Result) != `{"content":[]}` {
				t.Errorf("the connection did not go on: %s %s", a.Result, a.Error)
			}
		})
	}
}

func TestToolList(t *testing.T) {
	t.Run("what cannot be listed is left out and told", func(t *testing.T) {
		f := newFixture(t, Options{})
		s := &hosttest.Server{}
		s.SetTools(`{"inputSchema":{}}`, `{"name":7}`, `{"name":""}`, `"text"`, tool("ok"), tool("ok"), tool(strings.Repeat("n", 300)))
		f.dial(s, "h", `{"v":1}`)
		f.waitNames("h/h_ok")
		got := strings.Join(f.Warnings(), "\n")
		for _, want := range []string{"has no name", "not a text", `"ok" is listed twice`, "at most 256"} {
			if !strings.Contains(got, want) {
				t.Errorf("warnings say nothing about %q:\n%s", want, got)
			}
		}
	})
	t.Run("10,000 tools are listed, the next is not", func(t *testing.T) {
		f := newFixture(t, Options{})
		s := &hosttest.Server{PageSize: 1000}
		var defs []string
		for i := range 10_001 {
			defs = append(defs, tool(fmt.Sprint("t", i)))
		}
		s.SetTools(defs...)
		f.dial(s, "h", `{"v":1}`)
		eventually(t, "the tools", func() bool { return len(f.Sources()) == 1 && len(f.Sources()[0].Tools("c")) == 10_000 })
		if got := strings.Join(f.Warnings(), "\n"); !strings.Contains(got, "cut after 10000 tools") {
			t.Errorf("warnings: %s", got)
		}
	})
	t.Run("a list that goes in a circle ends", func(t *testing.T) {
		p := newPipeOf()
		c := newConn(p, Events{}, "test", testLog(t))
		go c.read()
		defer c.Close()
		go func() {
			for f := range p.out {
				if f.Method == "tools/list" {
					p.in <- Incoming{Frame: []byte(fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{"tools":[%s],"nextCursor":"again"}}`, f.ID, tool(fmt.Sprint("t", f.ID))))}
				}
			}
		}()
		defer close(p.out)
		tools, notes, err := c.List(within(t))
		if err != nil || len(tools) != 2 || len(notes) != 1 || !strings.Contains(notes[0], "circle") {
			t.Errorf("%d tools, notes %q, error %v", len(tools), notes, err)
		}
	})
}

// TestStormOfChanges shows that many notices of change lead to few lists.
func TestStormOfChanges(t *testing.T) {
	f := newFixture(t, Options{Main: "h"})
	s := &hosttest.Server{}
	s.SetTools(tool("a"))
	f.dial(s, "h", `{"v":1}`)
	f.waitNames("h/a")
	for range 5000 {
		s.Changed()
	}
	s.SetTools(tool("a"), tool("b"))
	f.waitNames("h/a h/b")
	// One list at the start, and one for each pause that the storm lasted.
	if n := s.Lists(); n > 500 {
		t.Errorf("5001 notices led to %d lists", n)
	}
}

// TestHang lets a host never answer: its own time limit ends the call, where it
// has one, and others' calls are not held up.
func TestHang(t *testing.T) {
	f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": {Attached: true, Timeout: 50_000_000}}})
	s := &hosttest.Server{Call: func(ctx context.Context, _ *hosttest.Call) (json.RawMessage, json.RawMessage) {
		<-ctx.Done()
		return nil, nil
	}}
	s.SetTools(tool("hang"))
	f.dial(s, "h", `{"v":1}`)
	stillFine := other(t, f)
	f.waitNames("h/hang other/other_fine")
	a := f.call(within(t), "hang", `{"name":"hang"}`, nil)
	if a.Outcome != "stopped: deadline" || !strings.Contains(text(a), "its time limit of 50ms") {
		t.Errorf("outcome %q, text %q", a.Outcome, text(a))
	}
	eventually(t, "the host to hear of it", func() bool { return len(s.Cancelled()) == 1 })
	stillFine()
}

// TestHostDoesNotRead lets a host read nothing while calls with much to say go
// to it. Each can be cancelled, and other hosts are not held up.
func TestHostDoesNotRead(t *testing.T) {
	f := newFixture(t, Options{})
	stillFine := other(t, f)
	block := make(chan string) // nobody receives: the raw host stops reading
	rawHost(t, f, "h", block, tool("a"))
	t.Cleanup(func() { // lets it end
		go func() {
			for range block {
			}
		}()
	})
	f.waitNames("other/other_fine h/h_a")
	params := `{"name":"h_a","arguments":{"x":"` + strings.Repeat("y", 1<<20) + `"}}`
	ctx, cancel := context.WithCancel(within(t))
	const calls = 40
	done := make(chan string, calls)
	for range calls {
		go func() { done <- text(f.call(ctx, "h_a", params, nil)) }()
	}
	stillFine()
	cancel()
	for range calls {
		if got := <-done; !strings.Contains(got, "context canceled") {
			t.Errorf("text %q", got)
		}
	}
	stillFine()
}
