package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// desk is a surface whose person is a test.
type desk struct {
	name string

	mu        sync.Mutex // guards everything below
	away      bool
	broken    error
	shown     []*Pending
	withdrawn map[*Pending]string
	prompts   chan *Pending
	react     func(*Pending) // called by Show, as by a very fast person
}

func newDesk(name string) *desk {
	return &desk{name: name, withdrawn: map[*Pending]string{}, prompts: make(chan *Pending, 10_000)}
}

func (d *desk) Name() string { return d.name }

func (d *desk) Ready() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return !d.away
}

func (d *desk) Show(p *Pending) error {
	d.mu.Lock()
	if d.broken != nil {
		defer d.mu.Unlock()
		return d.broken
	}
	d.shown = append(d.shown, p)
	react := d.react
	d.mu.Unlock()
	if react != nil {
		react(p)
	}
	d.prompts <- p
	return nil
}

func (d *desk) Withdraw(p *Pending, reason string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.withdrawn[p] = reason
}

func (d *desk) whyWithdrawn(p *Pending) string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.withdrawn[p]
}

func (d *desk) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.shown)
}

func (d *desk) set(away bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.away = away
}

func request() *Request {
	return &Request{ID: "c-1", Client: "claude", Conn: "k1", Host: "omp", Tool: "bash", Args: json.RawMessage(`{"command":"ls"}`)}
}

// decide runs Decide beside the test.
func decide(ctx context.Context, g *Gate, r *Request) <-chan Verdict {
	c := make(chan Verdict, 1)
	go func() { c <- g.Decide(ctx, r) }()
	return c
}

func answer(t *testing.T, p *Pending, a Answer) {
	t.Helper()
	if a.By == "" {
		a.By = "desk"
	}
	if err := p.Answer(a); err != nil {
		t.Fatal(err)
	}
}

func glob(t *testing.T, s string) Glob {
	t.Helper()
	g, err := ParseGlob(s)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func TestPrecedence(t *testing.T) {
	rule := func(then Then, tool string) Rule { return Rule{Tool: tool, Then: then} }
	shot := Rule{Tool: "computer", When: map[string]string{"/actions/*/type": "screenshot"}, Then: ThenAllow}
	tests := []struct {
		name        string
		rules, conf []Rule
		allow       []string
		def         Default
		tool, args  string
		want        Outcome // Nobody: it asks, and nobody is there
		by          string
		allowFor    string
	}{
		{name: "nothing asks", tool: "bash", want: Nobody},
		{name: "default allow", tool: "bash", def: DefaultAllow, want: Allowed, by: "default"},
		{name: "first look asks", tool: "bash", def: DefaultAskFirst, want: Nobody},
		{name: "allow", conf: []Rule{rule(ThenAllow, "bash")}, tool: "bash", want: Allowed, by: "rule config:1"},
		{name: "other tool", conf: []Rule{rule(ThenAllow, "bash")}, tool: "read", want: Nobody},
		{name: "deny", conf: []Rule{rule(ThenDeny, "b*")}, tool: "bash", def: DefaultAllow, want: Denied, by: "rule config:1"},
		{name: "ask beats allow", conf: []Rule{rule(ThenAllow, "bash"), rule(ThenAsk, "*")}, tool: "bash", want: Nobody},
		{name: "deny beats ask", conf: []Rule{rule(ThenAsk, "bash"), rule(ThenAllow, "*"), rule(ThenDeny, "*")}, tool: "bash", want: Denied, by: "rule config:3"},
		{name: "ask beats the default", conf: []Rule{rule(ThenAsk, "bash")}, tool: "bash", def: DefaultAllow, want: Nobody},
		{name: "the file before the configuration, looser", rules: []Rule{rule(ThenAllow, "bash")}, conf: []Rule{rule(ThenDeny, "*")}, tool: "bash", want: Allowed, by: "rule rules.yaml:1"},
		{name: "the file before the configuration, stricter", rules: []Rule{rule(ThenDeny, "bash")}, conf: []Rule{rule(ThenAllow, "*")}, tool: "bash", want: Denied, by: "rule rules.yaml:1"},
		{name: "the configuration where the file is silent", rules: []Rule{rule(ThenDeny, "read")}, conf: []Rule{rule(ThenAllow, "*")}, tool: "bash", want: Allowed, by: "rule config:1"},
		{name: "client and host fit", conf: []Rule{{Tool: "*", Client: "cl*", Host: "omp", Then: ThenAllow}}, tool: "bash", want: Allowed, by: "rule config:1"},
		{name: "other client", conf: []Rule{{Tool: "*", Client: "codex", Then: ThenAllow}}, tool: "bash", want: Nobody},
		{name: "other host", conf: []Rule{{Tool: "*", Host: "pi", Then: ThenAllow}}, tool: "bash", want: Nobody},
		{name: "arguments fit", conf: []Rule{shot}, tool: "computer", args: `{"actions":[{"type":"screenshot"}]}`, want: Allowed, by: "rule config:1"},
		{name: "one argument does not fit", conf: []Rule{shot}, tool: "computer", args: `{"actions":[{"type":"screenshot"},{"type":"click"}]}`, want: Nobody},
		{name: "--allow", allow: []string{"comp*"}, tool: "computer", want: Allowed, by: "--allow comp*"},
		{name: "--allow of another", allow: []string{"comp*"}, tool: "bash", want: Nobody},
		{name: "--allow for the host", allow: []string{"*"}, allowFor: "omp", tool: "bash", want: Allowed, by: "--allow *"},
		{name: "--allow for another host", allow: []string{"*"}, allowFor: "drawbridge", tool: "bash", want: Nobody},
		{name: "a deny before --allow", allow: []string{"*"}, conf: []Rule{rule(ThenDeny, "bash")}, tool: "bash", want: Denied, by: "rule config:1"},
		{name: "an ask before --allow", allow: []string{"*"}, conf: []Rule{rule(ThenAsk, "bash")}, tool: "bash", want: Nobody},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			opts := Options{AllowFor: tt.allowFor}
			for _, a := range tt.allow {
				opts.Allow = append(opts.Allow, glob(t, a))
			}
			g := New(opts)
			d := newDesk("desk") // to accept what loosens
			g.AddSurface(d)
			if err := g.SetPolicy(Policy{Rules: tt.rules, ConfigRules: tt.conf}); err != nil {
				t.Fatal(err)
			}
			for _, p := range g.List() {
				answer(t, p, Answer{Scope: Once})
			}
			d.set(true)
			r := request()
			r.Tool, r.Default = tt.tool, tt.def
			if tt.args != "" {
				r.Args = json.RawMessage(tt.args)
			}
			r.Waiting = func() { t.Error("waits though nobody is there") }
			unasked := g.MayRunUnasked(r)
			v := g.Decide(context.Background(), r)
			if v.Outcome != tt.want || tt.by != "" && v.By != tt.by {
				t.Errorf("got %+v, want outcome %d by %q", v, tt.want, tt.by)
			}
			if unasked != (v.Outcome == Allowed) || (v.Message == "") != (v.Outcome == Allowed) {
				t.Errorf("unasked %v, verdict %+v", unasked, v)
			}
		})
	}
}

// TestScopes holds what each answer covers besides the call itself.
func TestScopes(t *testing.T) {
	other := func(change func(*Request)) func() *Request {
		return func() *Request {
			r := request()
			change(r)
			return r
		}
	}
	later := map[string]func() *Request{
		"same":         request,
		"other args":   other(func(r *Request) { r.Args = json.RawMessage(`{"command":"rm"}`) }),
		"other conn":   other(func(r *Request) { r.Conn = "k2" }),
		"no conn":      other(func(r *Request) { r.Conn = "" }),
		"other tool":   other(func(r *Request) { r.Tool = "read" }),
		"other token":  other(func(r *Request) { r.Token = "t2" }),
		"other client": other(func(r *Request) { r.Client = "codex" }),
		"other host":   other(func(r *Request) { r.Host = "pi" }),
	}
	tests := []struct {
		scope         Scope
		covers        string // names in later, in order
		after15m      string
		afterHangup   string
		outlivesAgent bool
	}{
		{scope: Once},
		{scope: ForConn, covers: "other args,same", after15m: "other args,same"},
		{scope: For15m, covers: "no conn,other args,other conn,same", afterHangup: "no conn,other args,other conn,same"},
		{scope: Always, covers: "no conn,other args,other conn,other token,same", after15m: "no conn,other args,other conn,other token,same",
			afterHangup: "no conn,other args,other conn,other token,same", outlivesAgent: true},
	}
	covered := func(g *Gate) string {
		var names []string
		for _, n := range []string{"no conn", "other args", "other client", "other conn", "other host", "other token", "other tool", "same"} {
			if g.MayRunUnasked(later[n]()) {
				names = append(names, n)
			}
		}
		return strings.Join(names, ",")
	}
	for _, tt := range tests {
		for _, hangup := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				file := RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}
				d := newDesk("desk")
				g := New(Options{Surfaces: []Surface{d}, Rules: file})
				c := decide(t.Context(), g, request())
				p := <-d.prompts
				answer(t, p, Answer{Scope: tt.scope})
				if v := <-c; v.Outcome != Allowed || v.By != "person at the desk" {
					t.Fatalf("%+v", v)
				}
				if got := covered(g); got != tt.covers {
					t.Errorf("scope %d covers %q, want %q", tt.scope, got, tt.covers)
				}
				if hangup {
					g.ConnClosed("k1")
					if got := covered(g); got != tt.afterHangup {
						t.Errorf("scope %d covers %q after the connection ended, want %q", tt.scope, got, tt.afterHangup)
					}
					return
				}
				time.Sleep(grantTime)
				if got := covered(g); got != tt.after15m {
					t.Errorf("scope %d covers %q after 15 minutes, want %q", tt.scope, got, tt.after15m)
				}
				rules, err := file.Load()
				if err != nil || (len(rules) == 1) != tt.outlivesAgent {
					t.Fatalf("rules %v, %v", rules, err)
				}
				if tt.outlivesAgent && !rules[0].Equal(*p.Rule) {
					t.Errorf("stored %v, shown %v", rules[0], p.Rule)
				}
			})
		}
	}
}

// TestForget: what was allowed for a while ends, what is written stays.
func TestForget(t *testing.T) {
	for _, scope := range []Scope{ForConn, For15m, Always} {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}, Rules: RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}})
		c := decide(t.Context(), g, request())
		answer(t, <-d.prompts, Answer{Scope: scope})
		<-c
		if !g.MayRunUnasked(request()) {
			t.Fatalf("scope %d covers nothing", scope)
		}
		g.Forget()
		if got, want := g.MayRunUnasked(request()), scope == Always; got != want {
			t.Errorf("scope %d: runs unasked afterwards: %v, want %v", scope, got, want)
		}
	}
	look := request()
	look.Default = DefaultAskFirst
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	c := decide(t.Context(), g, look)
	answer(t, <-d.prompts, Answer{Scope: Once})
	<-c
	other := *look
	other.Token = "t2"
	if !g.MayRunUnasked(look) || g.MayRunUnasked(&other) {
		t.Error("the first look allows further ones of this token, and of no other")
	}
	g.Forget()
	if g.MayRunUnasked(look) {
		t.Error("looks unasked afterwards")
	}
}

func TestOfferedScopes(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, Rules: RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}})
	if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "conf", Then: ThenAsk}}}); err != nil {
		t.Fatal(err)
	}
	c := decide(t.Context(), g, request())
	p := <-d.prompts
	if got, want := p.Scopes(), []Scope{Deny, Once, ForConn, For15m, Always}; !reflect.DeepEqual(got, want) {
		t.Errorf("offered %v, want %v", got, want)
	}
	answer(t, p, Answer{Scope: Once})
	<-c

	r := request()
	r.Conn = ""
	c = decide(t.Context(), g, r)
	p = <-d.prompts
	if got, want := p.Scopes(), []Scope{Deny, Once, For15m, Always}; !reflect.DeepEqual(got, want) {
		t.Errorf("without a connection: %v, want %v", got, want)
	}
	if err := p.Answer(Answer{Scope: ForConn, By: "desk"}); err == nil {
		t.Error("a connection that is none was granted something")
	}
	answer(t, p, Answer{Scope: Deny})
	if v := <-c; v.Outcome != Denied {
		t.Errorf("%+v", v)
	}
}

// TestAlwaysBesideOwnAsk: a rule beside an ask of the same file would do
// nothing, so it is not offered.
func TestAlwaysBesideOwnAsk(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, Rules: RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}})
	if err := g.SetPolicy(Policy{Rules: []Rule{{Tool: "bash", Then: ThenAsk}}}); err != nil {
		t.Fatal(err)
	}
	answer(t, <-d.prompts, Answer{Scope: Once}) // accept
	c := decide(t.Context(), g, request())
	p := <-d.prompts
	if p.Rule != nil {
		t.Errorf("offers to write %v", p.Rule)
	}
	answer(t, p, Answer{Scope: For15m})
	<-c
	if !g.MayRunUnasked(request()) {
		t.Error("15 minutes do not answer the rule that asked")
	}
}

// TestFloor: what was allowed on another occasion does not answer a rule that
// asks about these arguments.
func TestFloor(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "bash", When: map[string]string{"/command": "rm*"}, Then: ThenAsk}}}); err != nil {
		t.Fatal(err)
	}
	c := decide(t.Context(), g, request())
	answer(t, <-d.prompts, Answer{Scope: For15m})
	<-c
	rm := request()
	rm.Args = json.RawMessage(`{"command":"rm -r x"}`)
	if !g.MayRunUnasked(request()) || g.MayRunUnasked(rm) {
		t.Error("15 minutes of ls must cover ls, and not rm")
	}
}

func TestDenyReasonAndCoolDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}})
		deny := func(reason string) Verdict {
			t.Helper()
			c := decide(t.Context(), g, request())
			answer(t, <-d.prompts, Answer{Reason: reason})
			return <-c
		}
		full := func(want string) {
			t.Helper()
			if v := g.Decide(t.Context(), request()); v.Outcome != Full || !strings.Contains(v.Message, "in "+want) {
				t.Errorf("%+v, want a cool-down of %s", v, want)
			}
		}
		if v := deny("use read instead"); v.Outcome != Denied || v.By != "person at the desk" || v.Message != "a person denied this call: use read instead" {
			t.Errorf("%+v", v)
		}
		full("10s")
		time.Sleep(4 * time.Second)
		full("6s")
		r := request()
		r.Client = "codex" // others may ask
		c := decide(t.Context(), g, r)
		answer(t, <-d.prompts, Answer{Scope: Once})
		<-c
		time.Sleep(6 * time.Second)
		if v := deny(""); v.Message != "a person denied this call" {
			t.Errorf("%+v", v)
		}
		full("20s")
		time.Sleep(20 * time.Second)
		for _, want := range []string{"40s", "1m20s", "2m40s", "5m0s", "5m0s"} {
			deny("")
			full(want)
			d, _ := time.ParseDuration(want)
			time.Sleep(d)
		}
		c = decide(t.Context(), g, request())
		answer(t, <-d.prompts, Answer{Scope: Once})
		if v := <-c; v.Outcome != Allowed {
			t.Errorf("%+v", v)
		}
		deny("")
		full("10s") // a yes begins anew
	})
}

func TestDeadlineAndLateAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}})
		waits := 0
		r := request()
		r.Waiting = func() { waits++ }
		begin := time.Now()
		v := g.Decide(t.Context(), r)
		if v.Outcome != Expired || time.Since(begin) != 2*time.Minute || v.By != "deadline" || waits != 1 {
			t.Errorf("%+v after %s, told to wait %d times", v, time.Since(begin), waits)
		}
		p := <-d.prompts
		if why := d.whyWithdrawn(p); why != "nobody answered in time" {
			t.Errorf("withdrawn: %q", why)
		}
		var late *LateError
		if err := p.Answer(Answer{Scope: For15m, By: "desk"}); !errors.As(err, &late) || !strings.Contains(err.Error(), "nothing was run: nobody answered in time") {
			t.Errorf("%v", err)
		}
		if g.MayRunUnasked(request()) {
			t.Error("a late answer allowed something")
		}
		// An expired prompt is no denial: the next call asks at once.
		c := decide(t.Context(), g, request())
		answer(t, <-d.prompts, Answer{Scope: Once})
		if v := <-c; v.Outcome != Allowed {
			t.Errorf("%+v", v)
		}
	})
}

func TestCancelWithdraws(t *testing.T) {
	a, b := newDesk("a"), newDesk("b")
	g := New(Options{Surfaces: []Surface{a, b}})
	ctx, cancel := context.WithCancel(t.Context())
	c := decide(ctx, g, request())
	p := <-a.prompts
	<-b.prompts
	cancel()
	if v := <-c; v.Outcome != Gone {
		t.Errorf("%+v", v)
	}
	for _, d := range []*desk{a, b} {
		if why := d.whyWithdrawn(p); why != "the call was cancelled" {
			t.Errorf("%s: withdrawn: %q", d.name, why)
		}
	}
	if err := p.Answer(Answer{Scope: Once, By: "a"}); err == nil || !strings.Contains(err.Error(), "the call was cancelled") {
		t.Errorf("late: %v", err)
	}
	if n, _ := g.Quiet(); n != 0 {
		t.Errorf("%d pending", n)
	}
	if v := g.Decide(ctx, request()); v.Outcome != Gone {
		t.Errorf("a call that is over: %+v", v)
	}
}

func TestFirstAnswerWins(t *testing.T) {
	for range 50 {
		a, b := newDesk("a"), newDesk("b")
		g := New(Options{Surfaces: []Surface{a, b}})
		c := decide(t.Context(), g, request())
		p := <-a.prompts
		<-b.prompts
		var won atomic.Value
		var late atomic.Int32
		var wg sync.WaitGroup
		for _, d := range []*desk{a, b} {
			wg.Go(func() {
				if err := p.Answer(Answer{Scope: Once, By: d.name}); err == nil {
					won.Store(d.name)
				} else {
					late.Add(1)
				}
			})
		}
		wg.Wait()
		v := <-c
		if late.Load() != 1 || v.By != "person at the "+won.Load().(string) {
			t.Fatalf("%d late, verdict %+v, won by %v", late.Load(), v, won.Load())
		}
		for _, d := range []*desk{a, b} {
			if got := d.whyWithdrawn(p) != ""; got == (d.name == won.Load()) {
				t.Fatalf("%s won; %s withdrawn: %v", won.Load(), d.name, got)
			}
		}
	}
}

func TestSurfaces(t *testing.T) {
	away, broken, good := newDesk("away"), newDesk("broken"), newDesk("good")
	away.away = true
	broken.broken = errors.New("no notification daemon")
	g := New(Options{Surfaces: []Surface{away, broken}})
	waited := false
	r := request()
	r.Waiting = func() { waited = true }
	if v := g.Decide(t.Context(), r); v.Outcome != Nobody || waited {
		t.Errorf("a prompt that cannot be shown: %+v", v)
	}
	g.AddSurface(good)
	good.react = func(p *Pending) { _ = p.Answer(Answer{Scope: Once, By: "good"}) } // before Show returns
	if v := g.Decide(t.Context(), request()); v.Outcome != Allowed {
		t.Errorf("%+v", v)
	}
	if away.count() != 0 || good.whyWithdrawn(<-good.prompts) != "" {
		t.Error("shown where nobody is, or withdrawn where it was answered")
	}
	good.react = nil
	c := decide(t.Context(), g, request())
	p := <-good.prompts
	late := newDesk("late")
	g.AddSurface(late)
	if <-late.prompts != p {
		t.Error("a new surface does not show what waits")
	}
	g.Close()
	if v := <-c; v.Outcome != Gone || late.whyWithdrawn(p) == "" {
		t.Errorf("at the end: %+v", v)
	}
	if v := g.Decide(t.Context(), request()); v.Outcome != Gone {
		t.Errorf("after the end: %+v", v)
	}
}

func TestCapPerClient(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, PerClient: 2})
	ctx, cancel := context.WithCancel(t.Context())
	var waiting []<-chan Verdict
	for range 2 {
		waiting = append(waiting, decide(ctx, g, request()))
		<-d.prompts
	}
	if v := g.Decide(ctx, request()); v.Outcome != Full || !strings.HasPrefix(v.Message, "2 calls of this client wait") {
		t.Errorf("%+v", v)
	}
	other := request()
	other.Client = "codex"
	waiting = append(waiting, decide(ctx, g, other))
	<-d.prompts
	cancel()
	for _, c := range waiting {
		if v := <-c; v.Outcome != Gone {
			t.Errorf("%+v", v)
		}
	}
}

func TestChangedPicture(t *testing.T) {
	for _, tt := range []struct {
		changed []bool
		fail    error
		want    Outcome
		shown   int
	}{
		{changed: []bool{false}, want: Allowed, shown: 1},
		{changed: []bool{true, false}, want: Allowed, shown: 2},
		{changed: []bool{true, true}, want: Denied, shown: 2},
		{changed: []bool{false, false}, fail: errors.New("no picture"), want: Denied, shown: 2},
	} {
		d := newDesk("desk")
		d.react = func(p *Pending) {
			if p.Again != (d.count() == 2) {
				t.Errorf("shown %d times, again %v", d.count(), p.Again)
			}
			_ = p.Answer(Answer{Scope: For15m, By: "desk"})
		}
		g := New(Options{Surfaces: []Surface{d}, PerClient: 1})
		r := request()
		looks := 0
		r.Changed = func(context.Context) (bool, error) { looks++; return tt.changed[looks-1], tt.fail }
		v := g.Decide(t.Context(), r)
		if v.Outcome != tt.want || d.count() != tt.shown || looks != tt.shown {
			t.Errorf("%v: %+v, shown %d, looked %d", tt.changed, v, d.count(), looks)
		}
		if g.MayRunUnasked(request()) != (tt.want == Allowed) {
			t.Errorf("%v: an approval that was not spent granted something", tt.changed)
		}
	}
}

func TestBoundToTheCall(t *testing.T) {
	a, b := request(), request()
	b.ID, b.Conn = "c-2", "k2"
	if a.Hash() != b.Hash() {
		t.Error("the same call has two hashes")
	}
	for _, change := range []func(*Request){
		func(r *Request) { r.Client = "x" }, func(r *Request) { r.Host = "x" }, func(r *Request) { r.Tool = "x" },
		func(r *Request) { r.Args = json.RawMessage(`{"command": "ls"}`) },
		func(r *Request) { r.Client, r.Host = r.Client+r.Host[:1], r.Host[1:] },
		func(r *Request) { r.Extra = json.RawMessage(`{"inputResponses":{}}`) },
	} {
		r := request()
		change(r)
		if r.Hash() == a.Hash() {
			t.Errorf("%+v has the same hash", r)
		}
	}
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	c := decide(t.Context(), g, a)
	p := <-d.prompts
	copy(a.Args, `{"command":"rm"}`) // a frame buffer used again
	answer(t, p, Answer{Scope: Once})
	if v := <-c; v.Outcome != Denied {
		t.Errorf("another call ran on the approval: %+v", v)
	}
}

func TestAskFirst(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	look := func(client string) *Request {
		r := request()
		r.Client, r.Default = client, DefaultAskFirst
		return r
	}
	c := decide(t.Context(), g, look("a"))
	answer(t, <-d.prompts, Answer{Scope: Once})
	<-c
	if v := g.Decide(t.Context(), look("a")); v.Outcome != Allowed || v.By != "default" {
		t.Errorf("the second look: %+v", v)
	}
	if g.MayRunUnasked(look("b")) {
		t.Error("another client looks on the first one's leave")
	}
	r := look("a")
	r.Default = DefaultAsk
	if g.MayRunUnasked(r) {
		t.Error("to look is not to act")
	}
}

func TestQuiet(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	n, changed := g.Quiet()
	if n != 0 {
		t.Fatalf("%d pending", n)
	}
	c := decide(t.Context(), g, request())
	<-changed
	n, changed = g.Quiet()
	if n != 1 || len(g.List()) != 1 || g.List()[0].Request.Tool != "bash" {
		t.Errorf("%d pending", n)
	}
	answer(t, <-d.prompts, Answer{Scope: Once})
	<-changed
	<-c
	if n, _ := g.Quiet(); n != 0 {
		t.Errorf("%d pending", n)
	}
}

func TestPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}, Allow: []Glob{glob(t, "*")}})
		g.Pause("command line")
		p := <-d.prompts
		if by, paused := g.Paused(); !paused || by != "command line" || p.Kind != AskResume || !p.Deadline.IsZero() {
			t.Errorf("paused %v by %q, prompt %+v", paused, by, p)
		}
		if g.MayRunUnasked(request()) {
			t.Error("may run while paused")
		}
		waits := 0
		r := request()
		r.Waiting = func() { waits++ }
		if v := g.Decide(t.Context(), r); v.Outcome != Paused || waits != 1 {
			t.Errorf("%+v, told %d times", v, waits)
		}
		c := decide(t.Context(), g, request())
		synctest.Wait()
		answer(t, p, Answer{Scope: Once})
		if v := <-c; v.Outcome != Allowed {
			t.Errorf("after resume: %+v", v)
		}
		if _, paused := g.Paused(); paused {
			t.Error("still paused")
		}

		// No is an answer too, and the question can be put again.
		g.Pause("tray")
		answer(t, <-d.prompts, Answer{Scope: Deny})
		if _, paused := g.Paused(); !paused {
			t.Error("a no resumed")
		}
		if err := g.OfferResume(); err != nil {
			t.Fatal(err)
		}
		answer(t, <-d.prompts, Answer{Scope: Once})
		if err := g.OfferResume(); err == nil {
			t.Error("offers to resume what is not paused")
		}

		// A deny rule does not wait, and where nobody can be asked nothing does.
		g.Pause("tray")
		<-d.prompts
		if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "bash", Then: ThenDeny}}}); err != nil {
			t.Fatal(err)
		}
		if v := g.Decide(t.Context(), request()); v.Outcome != Denied {
			t.Errorf("%+v", v)
		}
		d.set(true)
		r = request()
		r.Tool = "read"
		if v := g.Decide(t.Context(), r); v.Outcome != Paused {
			t.Errorf("%+v", v)
		}
	})
}

// TestPauseWhileAsked: an approval given during a pause runs after it.
func TestPauseWhileAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}})
		c := decide(t.Context(), g, request())
		p := <-d.prompts
		g.Pause("tray")
		resume := <-d.prompts
		answer(t, p, Answer{Scope: Once})
		synctest.Wait()
		select {
		case v := <-c:
			t.Fatalf("ran while paused: %+v", v)
		default:
		}
		answer(t, resume, Answer{Scope: Once})
		if v := <-c; v.Outcome != Allowed || v.By != "person at the desk" {
			t.Errorf("%+v", v)
		}
		if d.count() != 2 {
			t.Errorf("%d prompts, want 2", d.count())
		}
	})
}

// wants are settings of which each name loosens.
type wants []string

func (w wants) Over(kept json.RawMessage) (json.RawMessage, []Item, error) {
	var accepted wants
	if kept != nil {
		if err := json.Unmarshal(kept, &accepted); err != nil {
			return nil, nil, err
		}
	}
	both, wider := wants{}, []Item(nil)
	for _, name := range w {
		if slices.Contains(accepted, name) {
			both = append(both, name)
		} else {
			wider = append(wider, Item{name, "somebody wants " + name})
		}
	}
	return both.Keep(), wider, nil
}

func (w wants) Keep() json.RawMessage {
	b, err := json.Marshal(w)
	if err != nil { // texts always marshal
		panic(err)
	}
	return b
}

// TestSettings: what loosens in settings waits for a person, what was accepted of
// them outlives the process, and what was kept by others is not taken.
func TestSettings(t *testing.T) {
	store := &safe{}
	d := newDesk("desk")
	told := make(chan string, 1)
	var g *Gate
	begin := func() {
		g = New(Options{Surfaces: []Surface{d}, Accepted: store, OnAccept: func() { told <- string(g.InForce().Kept) }})
	}
	begin()
	set := func(w wants) {
		t.Helper()
		if err := g.SetPolicy(Policy{Settings: w}); err != nil {
			t.Fatal(err)
		}
	}
	set(wants{"a"})
	answer(t, <-d.prompts, Answer{Scope: Once})
	if got := <-told; got != `["a"]` {
		t.Errorf("accepted, and in force is %s", got)
	}
	begin()
	set(wants{"a"})
	if d.count() != 1 || string(g.InForce().Kept) != `["a"]` {
		t.Errorf("asked %d times, in force %s", d.count(), g.InForce().Kept)
	}
	// What goes is gone at once, and asked about when it comes back.
	set(wants{"b"})
	p := <-d.prompts
	if !slices.Equal(p.Items, []Item{{"b", "somebody wants b"}}) || string(g.InForce().Kept) != `[]` {
		t.Errorf("asked about %v, in force %s", p.Items, g.InForce().Kept)
	}
	answer(t, p, Answer{Scope: Deny})
	set(wants{"a"})
	if p = <-d.prompts; p.Items[0].Key != "a" {
		t.Errorf("asked about %v", p.Items)
	}
	answer(t, p, Answer{Scope: Deny})
	select {
	case got := <-told:
		t.Errorf("a no put %s in force", got)
	default:
	}
	// An older agent kept none, and its own kind of others.
	store.b = []byte(`{"trust_hints":["omp"],"loosening":[{"key":"k","text":"t"}]}`)
	begin()
	if err := g.SetPolicy(Policy{TrustHints: []string{"omp"}, Settings: wants{"a"}}); err != nil {
		t.Fatal(err)
	}
	if p = <-d.prompts; len(p.Items) != 1 || p.Items[0].Key != "a" || !g.TrustHint("omp") {
		t.Errorf("asked about %v", p.Items)
	}
	// A newer one kept what this one cannot read.
	store.b = []byte(`{"settings":{"a":true}}`)
	begin()
	set(wants{"a"})
	p = <-d.prompts
	if len(p.Items) != 2 || p.Items[0].Key != "unknown" || p.Items[1].Key != "a" {
		t.Errorf("asked about %v", p.Items)
	}
	r := request()
	r.Default = DefaultAllow
	if v := g.Decide(t.Context(), r); v.Outcome != Denied || !g.Lost() {
		t.Errorf("%+v", v)
	}
	answer(t, p, Answer{Scope: Once})
	if got := <-told; got != `["a"]` || g.Lost() || !g.MayRunUnasked(r) || len(g.Warnings()) != 0 {
		t.Errorf("in force %s, warnings %q", got, g.Warnings())
	}
}

func TestLoosening(t *testing.T) {
	allow, deny := Rule{Tool: "bash", Then: ThenAllow}, Rule{Tool: "read", Then: ThenDeny}
	next := Policy{
		ConfigRules:    []Rule{allow, deny},
		AllowedActions: map[string][]string{"": {"click", "type"}, "narrow": {"click"}},
		TrustHints:     []string{"omp"},
		Settings:       wants{"listen"},
	}
	read := request()
	read.Tool = "read"

	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	if err := g.SetPolicy(next); err != nil {
		t.Fatal(err)
	}
	p := <-d.prompts
	if p.Kind != AskAccept || len(p.Items) != 3 || len(p.Scopes()) != 2 {
		t.Errorf("prompt %+v", p)
	}
	// Tightening holds at once, loosening not yet.
	if g.MayRunUnasked(request()) || g.TrustHint("omp") || string(g.InForce().Kept) != `[]` {
		t.Error("what loosens is in force before it was accepted")
	}
	if v := g.Decide(t.Context(), read); v.Outcome != Denied {
		t.Errorf("a new deny: %+v", v)
	}
	if got := g.AllowedActions("x"); !reflect.DeepEqual(got, []string{"click", "type"}) {
		t.Errorf("actions %v", got)
	}
	if w := g.Warnings(); len(w) != 3 || w[2] != NotInForce+"somebody wants listen" {
		t.Errorf("warnings %q", w)
	}
	answer(t, p, Answer{Scope: Once})
	if !g.MayRunUnasked(request()) || !g.TrustHint("omp") || g.TrustHint("pi") || string(g.InForce().Kept) != `["listen"]` || len(g.Warnings()) != 0 {
		t.Errorf("accepted and not in force: %q", g.Warnings())
	}
	if got := g.AllowedActions("narrow"); !reflect.DeepEqual(got, []string{"click"}) {
		t.Errorf("actions %v", got)
	}

	// Widening and the end of a deny loosen; a no leaves things as they are.
	wide := Policy{AllowedActions: map[string][]string{"": {"click", "type", "drag"}}}
	if err := g.SetPolicy(wide); err != nil {
		t.Fatal(err)
	}
	p = <-d.prompts
	texts := fmt.Sprint(p.Items)
	if len(p.Items) != 3 || !strings.Contains(texts, "every client may use more actions of the computer tool: drag") ||
		!strings.Contains(texts, "client narrow may use more") || !strings.Contains(texts, `rule removed from the configuration: {tool: "read", then: deny}`) {
		t.Errorf("items %v", p.Items)
	}
	answer(t, p, Answer{Scope: Deny})
	if v := g.Decide(t.Context(), read); v.Outcome != Denied || g.MayRunUnasked(request()) || g.TrustHint("omp") {
		t.Errorf("the stricter of both does not hold: %+v", v)
	}
	if got := g.AllowedActions("narrow"); !reflect.DeepEqual(got, []string{"click"}) {
		t.Errorf("actions %v", got)
	}

	// A prompt for a proposal that is no more accepts nothing, not even when its
	// yes crosses the change. (The same would not be asked again so soon.)
	wide.TrustHints = []string{"other"}
	if err := g.SetPolicy(wide); err != nil {
		t.Fatal(err)
	}
	old := <-d.prompts
	g.accept(&Pending{Items: old.Items[:1]})
	if !slices.Equal(g.List()[0].Items, old.Items) || len(g.Warnings()) == 0 {
		t.Error("accepted by a yes to something else")
	}
	if err := g.SetPolicy(Policy{ConfigRules: []Rule{deny}, AllowedActions: next.AllowedActions}); err != nil {
		t.Fatal(err)
	}
	if err := old.Answer(Answer{Scope: Once, By: "desk"}); err == nil {
		t.Error("an old prompt was accepted")
	}
	if n, _ := g.Quiet(); n != 0 || len(g.Warnings()) != 0 {
		t.Errorf("%d prompts, warnings %q", n, g.Warnings())
	}
	if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "["}}}); err == nil || !strings.Contains(err.Error(), "rule config:1") {
		t.Errorf("a broken policy: %v", err)
	}
}

// TestLooseningWithNobody: it stays inert, says so, and blocks nothing.
func TestLooseningWithNobody(t *testing.T) {
	g := New(Options{})
	if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "*", Then: ThenAllow}}}); err != nil {
		t.Fatal(err)
	}
	if v := g.Decide(t.Context(), request()); v.Outcome != Nobody {
		t.Errorf("%+v", v)
	}
	if w := g.Warnings(); len(w) != 2 || !strings.HasPrefix(w[0], NotInForce) || !strings.Contains(w[1], "nobody can be asked here") {
		t.Errorf("warnings %q", w)
	}
	if n, _ := g.Quiet(); n != 0 {
		t.Error("input is held for a prompt that nobody sees")
	}
	d := newDesk("desk")
	g.AddSurface(d)
	answer(t, <-d.prompts, Answer{Scope: Once})
	if !g.MayRunUnasked(request()) {
		t.Error("accepted later, and not in force")
	}
}

// safe is a store in memory.
type safe struct {
	b   []byte
	err error
}

func (s *safe) Load() ([]byte, error) { return s.b, s.err }
func (s *safe) Save(b []byte) error   { s.b = b; return nil }

func TestAcceptedOutlivesTheProcess(t *testing.T) {
	store := &safe{}
	policy := Policy{ConfigRules: []Rule{{Tool: "bash", Then: ThenAllow}, {Tool: "read", Then: ThenDeny}}}
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, Accepted: store})
	g.SetPolicy(policy)
	answer(t, <-d.prompts, Answer{Scope: Once})

	g = New(Options{Accepted: store})
	g.SetPolicy(policy)
	if !g.MayRunUnasked(request()) || len(g.Warnings()) != 0 {
		t.Errorf("asks again: %q", g.Warnings())
	}
	// The deny was taken out while nothing ran.
	g = New(Options{Accepted: store})
	g.SetPolicy(Policy{ConfigRules: policy.ConfigRules[:1]})
	r := request()
	r.Tool = "read"
	if v := g.Decide(t.Context(), r); v.Outcome != Denied {
		t.Errorf("%+v", v)
	}

	// The store was forged, and a deny and a narrowing that were accepted may be
	// gone from the configuration. Nothing runs, at the next start neither, until
	// the person says so.
	store.err = errors.New("its seal is broken")
	kept := string(store.b)
	for range 2 {
		for _, next := range []Policy{policy, {}, {AllowedActions: map[string][]string{"": {"wait"}}}} {
			g = New(Options{Accepted: store, Allow: []Glob{glob(t, "*")}})
			g.SetPolicy(next)
			r := request()
			r.Default = DefaultAllow
			if v := g.Decide(t.Context(), r); v.Outcome != Denied || g.MayRunUnasked(r) || g.TrustHint("h") {
				t.Errorf("a forged store was believed: %+v", v)
			}
			if w := fmt.Sprint(g.Warnings()); !strings.Contains(w, "its seal is broken") || !strings.Contains(w, "outside of Drawbridge") {
				t.Errorf("warnings %s", w)
			}
		}
	}
	if string(store.b) != kept {
		t.Error("what nobody accepted was kept")
	}
	g = New(Options{Surfaces: []Surface{d}, Accepted: store})
	g.SetPolicy(policy)
	p := <-d.prompts
	if p.Kind != AskAccept || p.Items[0].Key != "unknown" || len(p.Items) != 2 {
		t.Errorf("asked is %+v", p.Items)
	}
	answer(t, p, Answer{Scope: Once})
	store.err = nil
	for _, g := range []*Gate{g, New(Options{Accepted: store})} {
		g.SetPolicy(policy)
		if !g.MayRunUnasked(request()) || len(g.Warnings()) != 0 {
			t.Errorf("accepted, and it is not in force: %q", g.Warnings())
		}
	}
}

func TestAlwaysAndRevoke(t *testing.T) {
	file := RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}
	os.WriteFile(file.Path, []byte("- tool: read\n  then: deny\n"), 0o600)
	rules, err := file.Load()
	if err != nil {
		t.Fatal(err)
	}
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, Rules: file})
	g.SetPolicy(Policy{Rules: rules})
	// Somebody else writes into the file before the person says always.
	os.WriteFile(file.Path, []byte("- tool: read\n  then: deny\n- tool: write\n  then: allow\n"), 0o600)
	c := decide(t.Context(), g, request())
	p := <-d.prompts
	answer(t, p, Answer{Scope: Always})
	<-c
	if !g.MayRunUnasked(request()) {
		t.Error("always does not hold")
	}
	write := request()
	write.Tool = "write"
	if g.MayRunUnasked(write) {
		t.Error("a rule that nobody was shown came in with the one that was")
	}
	accept := <-d.prompts
	if accept.Kind != AskAccept || len(accept.Items) != 1 || !strings.Contains(accept.Items[0].Text, `"write"`) {
		t.Errorf("%+v", accept.Items)
	}
	answer(t, accept, Answer{Scope: Deny})

	if len(g.Rules()) != 3 {
		t.Fatalf("%v", g.Rules())
	}
	if gone, err := g.RevokeRule(p.Rule.Key()); err != nil || !gone.Equal(*p.Rule) {
		t.Errorf("%v, %v", gone, err)
	}
	if n := len(d.prompts); n != 0 {
		t.Errorf("%d prompts: the write rule, which a person just said no to, is asked again", n)
	}
	if g.MayRunUnasked(request()) {
		t.Error("a revoked allow still holds")
	}
	read := request()
	read.Tool = "read"
	if _, err := g.RevokeRule("1"); err != nil {
		t.Fatal(err)
	}
	accept = <-d.prompts
	if v := g.Decide(t.Context(), read); v.Outcome != Denied {
		t.Errorf("a revoked deny ended before it was accepted: %+v", v)
	}
	answer(t, accept, Answer{Scope: Once})
	c = decide(t.Context(), g, read)
	answer(t, <-d.prompts, Answer{Scope: Once})
	if v := <-c; v.Outcome != Allowed {
		t.Errorf("%+v", v)
	}
}

// TestManyPendings lets a thousand calls be answered, cancelled and forgotten
// at once, and nothing is left.
func TestManyPendings(t *testing.T) {
	a, b := newDesk("a"), newDesk("b")
	g := New(Options{Surfaces: []Surface{a, b}, PerClient: 10_000, Deadline: 30 * time.Millisecond, CoolDown: 1, CoolDownMax: 1})
	stop := make(chan struct{})
	var people, calls sync.WaitGroup
	for _, d := range []*desk{a, b} {
		people.Go(func() {
			for {
				select {
				case p := <-d.prompts:
					switch rand.IntN(4) {
					case 0:
						_ = p.Answer(Answer{Scope: Once, By: d.name})
					case 1:
						_ = p.Answer(Answer{Scope: Deny, By: d.name})
					}
				case <-stop:
					return
				}
			}
		})
	}
	var outcomes [Gone + 1]atomic.Int32
	for i := range 1000 {
		calls.Go(func() {
			ctx, cancel := context.WithTimeout(t.Context(), time.Duration(rand.IntN(60))*time.Millisecond)
			defer cancel()
			r := request()
			r.Client, r.Conn = fmt.Sprint("c", i), ""
			outcomes[g.Decide(ctx, r).Outcome].Add(1)
		})
	}
	calls.Wait()
	close(stop)
	people.Wait()
	sum := int32(0)
	for o := range outcomes {
		sum += outcomes[o].Load()
	}
	if n, _ := g.Quiet(); n != 0 || sum != 1000 || len(g.List()) != 0 {
		t.Errorf("%d pending, %d outcomes", n, sum)
	}
	if outcomes[Nobody].Load()+outcomes[Full].Load()+outcomes[Paused].Load() != 0 {
		t.Errorf("outcomes that cannot be: %v %v %v", outcomes[Nobody].Load(), outcomes[Full].Load(), outcomes[Paused].Load())
	}
	for _, d := range []*desk{a, b} {
		for _, p := range d.shown {
			select {
			case <-p.Done():
			default:
				t.Fatal("a prompt is still open")
			}
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	g := New(Options{})
	rules := make([]Rule, 20)
	for i := range rules {
		rules[i] = Rule{Tool: fmt.Sprintf("host%d_*", i), Then: ThenDeny}
	}
	if err := g.SetPolicy(Policy{ConfigRules: rules}); err != nil {
		b.Fatal(err)
	}
	r := request()
	r.Default = DefaultAllow
	b.ReportAllocs()
	for b.Loop() {
		if v := g.Decide(context.Background(), r); v.Outcome != Allowed {
			b.Fatal(v)
		}
	}
}
