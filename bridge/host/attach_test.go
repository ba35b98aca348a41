package host

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host/hosttest"
)

// closedWith waits for the end of a session and returns the close code and reason.
func closedWith(t *testing.T, h *hosttest.Session) (int, string) {
	t.Helper()
	select {
	case <-h.Done:
	case <-time.After(patience):
		t.Fatal("the connection was not closed")
	}
	var e *websocket.CloseError
	if !errors.As(h.Err, &e) {
		t.Fatalf("the connection ended without a close frame: %v", h.Err)
	}
	return e.Code, e.Text
}

func TestHelloRefused(t *testing.T) {
	reserved := func(name, token string) bool { return name == "theirs" }
	for name, c := range map[string]struct {
		hello string
		code  int
		want  string
	}{
		"version":           {`{"v":2,"name":"h"}`, websocket.ClosePolicyViolation, "v is 2; this program speaks 1"},
		"wrong type":        {`{"v":"1"}`, websocket.ClosePolicyViolation, "drawbridge/hello"},
		"no object":         {`[1]`, websocket.ClosePolicyViolation, "drawbridge/hello"},
		"bad name":          {`{"v":1,"name":"../x"}`, CloseRefused, "is no name for a host"},
		"our own name":      {`{"v":1,"name":"Drawbridge"}`, CloseRefused, "our own name"},
		"a configured name": {`{"v":1,"name":"files"}`, CloseRefused, "a host in the configuration"},
		"another's token":   {`{"v":1,"name":"theirs"}`, CloseRefused, "that of another host token"},
		"a withheld name":   {`{"v":1,"name":"kept"}`, CloseRefused, "the name kept was accepted for a program or server"},
		"long text":         {`{"v":1,"session":"` + strings.Repeat("s", 300) + `"}`, websocket.ClosePolicyViolation, "more than 256 bytes"},
		"main not wanted":   {`{"v":1,"name":"x","main":true}`, CloseRefused, "main_host in the configuration is files; x cannot be Main"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{Main: "files", Reserved: reserved, Withheld: func(name string) bool { return name == "kept" }, Hosts: map[string]Config{"files": {URL: "http://127.0.0.1:1/"}}})
			code, reason := closedWith(t, f.dial(&hosttest.Server{}, "mine", c.hello))
			if code != c.code || !strings.Contains(reason, c.want) {
				t.Errorf("closed with %d %q, want %d with %q", code, reason, c.code, c.want)
			}
		})
	}
	t.Run("first frame is something else", func(t *testing.T) {
		f := newFixture(t, Options{})
		h := f.dial(&hosttest.Server{}, "mine", "")
		if err := h.Send(`{"jsonrpc":"2.0","id":1,"method":"tools/list"}`); err != nil {
			t.Fatal(err)
		}
		if code, reason := closedWith(t, h); code != websocket.ClosePolicyViolation || !strings.Contains(reason, "must be the notification drawbridge/hello") {
			t.Errorf("closed with %d %q", code, reason)
		}
	})
	t.Run("no subprotocol", func(t *testing.T) {
		f := newFixture(t, Options{})
		_, res, err := websocket.DefaultDialer.Dial(f.url, nil)
		if err == nil || res == nil || res.StatusCode != http.StatusBadRequest {
			t.Errorf("response %v, error %v; want HTTP 400", res, err)
		}
	})
}

func TestSessionTakesItsPlaceAgain(t *testing.T) {
	f := newFixture(t, Options{})
	started := make(chan struct{})
	old := &hosttest.Server{Call: func(ctx context.Context, _ *hosttest.Call) (json.RawMessage, json.RawMessage) {
		close(started)
		<-ctx.Done()
		return nil, nil
	}}
	old.SetTools(tool("read"))
	first := f.dial(old, "omp", `{"v":1,"kind":"omp","session":"s1","main":true}`)
	f.waitNames("omp/read")
	other := &hosttest.Server{}
	other.SetTools(tool("read"))
	f.dial(other, "pi", `{"v":1,"session":"s2"}`)
	f.waitNames("omp/read pi/pi_read")

	answer := make(chan string, 1)
	go func() { answer <- text(f.call(within(t), "read", `{"name":"read"}`, nil)) }()
	<-started
	again := &hosttest.Server{}
	again.SetTools(tool("read"), tool("write"))
	f.dial(again, "omp", `{"v":1,"kind":"omp","session":"s1","main":true}`)
	if code, _ := closedWith(t, first); code != CloseReplaced {
		t.Errorf("the older connection was closed with %d, want %d", code, CloseReplaced)
	}
	if got := <-answer; !strings.Contains(got, "the connection to host omp ended while the call ran") {
		t.Errorf("the call in flight was answered: %q", got)
	}
	f.waitNames("omp/read omp/write pi/pi_read")
}

func TestSecondMainIsRefusedByName(t *testing.T) {
	f := newFixture(t, Options{})
	s := &hosttest.Server{}
	s.SetTools(tool("read"))
	first := f.dial(s, "omp", `{"v":1,"session":"a","main":true}`)
	f.waitNames("omp/read")
	code, reason := closedWith(t, f.dial(s, "pi", `{"v":1,"session":"b","main":true}`))
	if want := "omp is Main already; pi cannot be Main beside it"; code != CloseRefused || reason != want {
		t.Errorf("closed with %d %q, want %d %q", code, reason, CloseRefused, want)
	}
	// The same name in another session is another claimant too.
	code, reason = closedWith(t, f.dial(s, "omp", `{"v":1,"session":"c","main":true}`))
	if want := "omp is Main already; omp-2 cannot be Main beside it"; code != CloseRefused || reason != want {
		t.Errorf("closed with %d %q, want %d %q", code, reason, CloseRefused, want)
	}
	f.waitNames("omp/read")
	first.WS.Close()
	f.waitNames("")
	f.dial(s, "pi", `{"v":1,"session":"b","main":true}`)
	f.waitNames("pi/read")
}

// TestSecondSessionTakesNoWithheldName: nor does a session come to one as the second
// of its own name.
func TestSecondSessionTakesNoWithheldName(t *testing.T) {
	f := newFixture(t, Options{Withheld: func(name string) bool { return name == "omp-2" }})
	s := &hosttest.Server{}
	s.SetTools(tool("read"))
	f.dial(s, "omp", `{"v":1,"session":"a"}`)
	f.dial(s, "omp", `{"v":1,"session":"b"}`)
	f.waitNames("omp/omp_read omp-3/omp-3_read")
}

func TestSameNameTwice(t *testing.T) {
	f := newFixture(t, Options{})
	s := &hosttest.Server{}
	s.SetTools(tool("read"))
	first := f.dial(s, "omp", `{"v":1,"session":"a"}`)
	f.waitNames("omp/omp_read")
	f.dial(s, "omp", `{"v":1,"session":"b"}`)
	f.waitNames("omp/omp_read omp-2/omp-2_read")
	first.WS.Close()
	f.waitNames("omp-2/omp-2_read")
	f.dial(s, "omp", `{"v":1,"session":"a"}`)
	f.waitNames("omp/omp_read omp-2/omp-2_read")
}

func TestConfiguredAttachedHost(t *testing.T) {
	empty := ""
	f := newFixture(t, Options{Hosts: map[string]Config{"omp": {Attached: true, Prefix: &empty, TrustHints: true}}})
	if st := f.Status(); len(st) != 1 || st[0].State != "down" || st[0].Kind != "attached" {
		t.Errorf("before it came: %+v", st)
	}
	s := &hosttest.Server{}
	s.SetTools(`{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}}`)
	h := f.dial(s, "omp", `{"v":1,"kind":"omp","session":"a"}`)
	f.waitNames("omp/look")
	if st := f.Status(); len(st) != 1 || st[0].State != "ready" || st[0].Kind != "omp" || st[0].Tools != 1 {
		t.Errorf("while it is there: %+v", st)
	}
	h.WS.Close()
	f.waitNames("")
	eventually(t, "its entry to wait again", func() bool {
		st := f.Status()
		return len(st) == 1 && st[0].State == "down" && st[0].Kind == "attached"
	})
}

func TestAsking(t *testing.T) {
	f := newFixture(t, Options{Main: "h"})
	asked, go_ := make(chan struct{}), make(chan struct{})
	s := &hosttest.Server{Call: func(_ context.Context, c *hosttest.Call) (json.RawMessage, json.RawMessage) {
		c.Peer.Notify("drawbridge/asking", `{"requestId":`+string(c.ID)+`,"what":"bash: rm -r build"}`)
		close(asked)
		<-go_
		return json.RawMessage(`{"content":[]}`), nil
	}}
	s.SetTools(tool("bash"))
	f.dial(s, "h", `{"v":1}`)
	f.waitNames("h/bash")
	done := make(chan string, 1)
	go func() { done <- string(f.call(within(t), "bash", `{"name":"bash"}`, nil).Result) }()
	<-asked
	eventually(t, "/status to say so", func() bool {
		st := f.Status()[0]
		return st.State == "asking" && st.Asking["call-1"] == "bash: rm -r build"
	})
	eventually(t, "the audit to say so", func() bool { return len(f.noted()) == 1 })
	if n := f.noted()[0]; n.ID != "call-1" || n.Host != "h" || n.Outcome != "the host asks: bash: rm -r build" {
		t.Errorf("noted %+v", n)
	}
	close(go_)
	<-done
	if st := f.Status()[0]; st.State != "ready" || st.Asking != nil {
		t.Errorf("after the call: %+v", st)
	}
}

func TestChangedDefinition(t *testing.T) {
	f := newFixture(t, Options{Main: "h"})
	s := &hosttest.Server{}
	s.SetTools(tool("a"), tool("b"))
	h := f.dial(s, "h", `{"v":1,"session":"1"}`)
	f.waitNames("h/a h/b")
	s.SetTools(tool("a"), tool("b"), tool("c")) // a new tool is no change of a known one
	f.waitNames("h/a h/b h/c")
	if n := f.noted(); len(n) != 0 {
		t.Errorf("noted %+v", n)
	}
	// It is told also when the host comes again with it.
	h.WS.Close()
	f.waitNames("")
	s.SetTools(`{"name":"a","description":"now sends your files away","inputSchema":{}}`, tool("b"))
	f.dial(s, "h", `{"v":1,"session":"1"}`)
	f.waitNames("h/a h/b")
	if n := f.noted(); len(n) != 1 || n[0].Tool != "a" || n[0].Host != "h" || n[0].Outcome != "definition changed" {
		t.Errorf("noted %+v", n)
	}
	if w := strings.Join(f.Warnings(), "\n"); !strings.Contains(w, `host h changed the definition of its tool "a"`) {
		t.Errorf("warnings: %s", w)
	}
}

func TestNames(t *testing.T) {
	empty, x := "", "x-"
	f := newFixture(t, Options{Hosts: map[string]Config{
		"b": {Attached: true, Prefix: &empty},
		"c": {Attached: true, Prefix: &empty},
		"d": {Attached: true, Prefix: &x},
	}})
	host := func(name string, hello string, tools ...string) *hosttest.Session {
		s := &hosttest.Server{}
		var defs []string
		for _, n := range tools {
			defs = append(defs, tool(n))
		}
		s.SetTools(defs...)
		return f.dial(s, name, hello)
	}
	host("c", `{"v":1}`, "read", "only")
	f.waitNames("c/read c/only")
	// The order is that of the configuration, the name is its that came first.
	b := host("b", `{"v":1}`, "read", "write", "computer")
	f.waitNames("b/b_read b/write b/b_computer c/read c/only")
	host("d", `{"v":1}`, "read")
	f.waitNames("b/b_read b/write b/b_computer c/read c/only d/x-read")
	// Main comes first, and takes no name that is taken.
	host("m", `{"v":1,"main":true}`, "read", "find", "computer")
	f.waitNames("m/m_read m/find m/m_computer b/b_read b/write b/b_computer c/read c/only d/x-read")
	got := strings.Join(f.Warnings(), "\n")
	for _, want := range []string{
		`host m: tool "read" is listed as "m_read": the name "read" is taken by c`,
		`host m: tool "computer" is listed as "m_computer": the name "computer" is taken by drawbridge`,
		`host b: tool "read" is listed as "b_read": the name "read" is taken by c`,
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no warning %q in:\n%s", want, got)
		}
	}
	b.WS.Close()
	f.waitNames("m/m_read m/find m/m_computer c/read c/only d/x-read")
}

// TestDefaults shows what runs unasked: of a trusted host, what it says is
// read-only and what it says it will ask about; of any other, nothing.
func TestDefaults(t *testing.T) {
	for _, trusted := range []bool{true, false} {
		f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": {Attached: true, TrustHints: trusted}}})
		var asked []string
		s := &hosttest.Server{WillAsk: func(params json.RawMessage) bool {
			asked = append(asked, string(params))
			return strings.Contains(string(params), "rm")
		}}
		s.SetTools(`{"name":"look","inputSchema":{},"annotations":{"readOnlyHint":true}}`, `{"name":"odd","inputSchema":{},"annotations":{"readOnlyHint":"true"}}`, tool("bash"))
		f.dial(s, "h", `{"v":1}`)
		f.waitNames("h/look h/odd h/bash")
		for _, c := range []struct {
			tool, args string
			want       gate.Default
		}{
			{"look", `{}`, gate.DefaultAllow},
			{"odd", `{}`, gate.DefaultAsk},
			{"bash", `{"command":"rm 1.0"}`, gate.DefaultAllow},
			{"bash", `{"command":"ls"}`, gate.DefaultAsk},
		} {
			if !trusted {
				c.want = gate.DefaultAsk
			}
			source, _ := f.find(c.tool)
			p, a := source.Prepare(within(t), &bridge.Call{Tool: c.tool, SourceTool: c.tool, Arguments: json.RawMessage(c.args)})
			if a != nil || p.Default != c.want {
				t.Errorf("trusted %t, %s %s: default %v, answer %v; want default %v", trusted, c.tool, c.args, p.Default, a, c.want)
			}
		}
		if trusted && (len(asked) != 3 || asked[1] != `{"name":"bash","arguments":{"command":"rm 1.0"}}`) || !trusted && len(asked) != 0 {
			t.Errorf("trusted %t: the host was asked %q", trusted, asked)
		}
	}
}
