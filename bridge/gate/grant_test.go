package gate

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestGrants: what was allowed for a while is listed with how long it lasts, ends
// when it is revoked, and tells of its end.
func TestGrants(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		var changes atomic.Int64
		g := New(Options{Surfaces: []Surface{d}, Changed: func() { changes.Add(1) }})
		if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "careful", Then: ThenAsk}}}); err != nil {
			t.Fatal(err)
		}
		rule := g.force.Load().accepted.Policy.ConfigRules[0].Key()
		began := time.Now()
		allow := func(r *Request, scope Scope) {
			t.Helper()
			c := decide(t.Context(), g, r)
			answer(t, <-d.prompts, Answer{Scope: scope})
			if v := <-c; v.Outcome != Allowed {
				t.Fatalf("%+v", v)
			}
		}
		look, careful := request(), request()
		look.Default, look.Tool, careful.Tool = DefaultAskFirst, "computer", "careful"
		allow(request(), For15m)
		allow(careful, ForConn)
		allow(look, Once)
		want := map[string]GrantKind{
			`client "claude" may look at the screen`:                                        GrantLook,
			`client "claude" may run "bash" of host "omp"`:                                  Grant15m,
			`client "claude" may run "careful" of host "omp", where rule ` + rule + ` asks`: GrantConn,
		}
		for _, x := range g.Grants() {
			if want[x.String()] != x.Kind || (x.Kind == Grant15m) != x.Until.Equal(began.Add(grantTime)) {
				t.Errorf("%s: %+v", x, x)
			}
			delete(want, x.String())
			switch x.Kind {
			case Grant15m: // ends by itself
			default:
				if got, ok := g.RevokeGrant(x.Key); !ok || got != x {
					t.Errorf("%v, %v, want %v", got, ok, x)
				}
				if _, ok := g.RevokeGrant(x.Key); ok {
					t.Errorf("%s was revoked twice", x)
				}
			}
		}
		if len(want) > 0 {
			t.Errorf("not listed: %v", want)
		}
		if g.MayRunUnasked(careful) || g.MayRunUnasked(look) || !g.MayRunUnasked(request()) {
			t.Error("what is revoked holds on, or what is not does not")
		}
		before := changes.Load()
		time.Sleep(grantTime)
		synctest.Wait()
		if got := g.Grants(); len(got) != 0 || changes.Load() == before {
			t.Errorf("after 15 minutes: %v, %d changes were told", got, changes.Load()-before)
		}
	})
}

// TestAnswerHere: a place that may not loosen has what lasts asked on the native
// surfaces, and nothing lasts before they said yes.
func TestAnswerHere(t *testing.T) {
	for _, tt := range []struct {
		name  string
		scope Scope
		ask   string // natively; empty: nothing
		do    func(t *testing.T, g *Gate, p *Pending, leave func())
		err   string
		lasts bool
	}{
		{name: "once", scope: Once},
		{name: "deny", scope: Deny},
		{name: "15 minutes, yes", scope: For15m, ask: `client "claude" may run "bash" of host "omp" unasked for 15 minutes`, do: say(Once), lasts: true},
		{name: "15 minutes, no", scope: For15m, ask: `client "claude" may run "bash" of host "omp" unasked for 15 minutes`, do: say(Deny),
			err: "the call was allowed once, and nothing beyond it: a person said no"},
		{name: "connection, yes", scope: ForConn, ask: `client "claude" may run "bash" of host "omp" unasked while its connection lives`, do: say(Once), lasts: true},
		{name: "connection, closed meanwhile", scope: ForConn, ask: `client "claude" may run "bash" of host "omp" unasked while its connection lives`,
			do:  func(_ *testing.T, g *Gate, _ *Pending, _ func()) { g.ConnClosed("k1") },
			err: "the call was allowed once, and nothing beyond it: "},
		{name: "the page is closed meanwhile", scope: For15m, ask: `client "claude" may run "bash" of host "omp" unasked for 15 minutes`,
			do:  func(_ *testing.T, _ *Gate, _ *Pending, leave func()) { leave() },
			err: "the call was allowed once, and nothing beyond it: "},
		{name: "always, yes", scope: Always, ask: `new rule in the rules file: {tool: "bash", client: "claude", host: "omp", then: allow}`, do: say(Once), lasts: true},
		{name: "always, no", scope: Always, ask: `new rule in the rules file: {tool: "bash", client: "claude", host: "omp", then: allow}`, do: say(Deny),
			err: "the call was allowed once, and nothing beyond it: a person said no"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newDesk("desk")
				g := New(Options{Surfaces: []Surface{d}, Rules: RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}})
				c := decide(t.Context(), g, request())
				p := <-d.prompts
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				done := make(chan error, 1)
				go func() { done <- p.AnswerHere(ctx, Answer{Scope: tt.scope, By: "page"}) }()
				want := Allowed
				if tt.scope == Deny {
					want = Denied
				}
				if v := <-c; v.Outcome != want || v.By != "person at the page" {
					t.Errorf("the call: %+v", v)
				}
				synctest.Wait()
				if g.MayRunUnasked(request()) {
					t.Error("it lasts before the person said so")
				}
				if tt.ask != "" {
					q := <-d.prompts
					if q.Kind != AskLoosen || q.Request.Client != "page" || q.Items[0].Text != tt.ask {
						t.Errorf("asked natively: %+v", q)
					}
					tt.do(t, g, q, leave)
				}
				err := <-done
				if (err == nil) != (tt.err == "") || err != nil && !strings.HasPrefix(err.Error(), tt.err) {
					t.Errorf("%v, want %q", err, tt.err)
				}
				if got := g.MayRunUnasked(request()); got != tt.lasts {
					t.Errorf("it lasts: %v", got)
				}
				if n := len(g.List()) + len(g.conns); n != 0 {
					t.Errorf("%d are left", n)
				}
				g.Close()
			})
		})
	}
}

// say answers a prompt natively.
func say(s Scope) func(*testing.T, *Gate, *Pending, func()) {
	return func(t *testing.T, _ *Gate, p *Pending, _ func()) { answer(t, p, Answer{Scope: s}) }
}

// TestGrantOfClosedConn: a yes for a connection that closed while the picture was
// looked at again allows nothing.
func TestGrantOfClosedConn(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	r := request()
	r.Changed = func(context.Context) (bool, error) { g.ConnClosed(r.Conn); return false, nil }
	c := decide(t.Context(), g, r)
	answer(t, <-d.prompts, Answer{Scope: ForConn})
	<-c
	if got := g.Grants(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestKeepTokens: what a client whose token was revoked had been allowed for a
// while is gone at once, and is not listed.
func TestKeepTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}})
		allow := func(r *Request, scope Scope) {
			t.Helper()
			c := decide(t.Context(), g, r)
			answer(t, <-d.prompts, Answer{Scope: scope})
			if v := <-c; v.Outcome != Allowed {
				t.Fatalf("%+v", v)
			}
		}
		for _, token := range []string{"old", "new"} {
			r, look, conn := request(), request(), request()
			look.Default, look.Tool, conn.Tool = DefaultAskFirst, "computer", "edit"
			r.Token, look.Token, conn.Token = token, token, token
			allow(r, For15m)
			allow(look, Once)
			allow(conn, ForConn)
		}
		if got := g.Grants(); len(got) != 6 {
			t.Fatalf("%v", got)
		}
		g.KeepTokens(func(token string) bool { return token == "new" })
		if got := g.Grants(); len(got) != 3 {
			t.Errorf("%v", got)
		}
		r := request()
		if r.Token = "new"; !g.MayRunUnasked(r) {
			t.Error("another token's went too")
		}
		if r.Token = "old"; g.MayRunUnasked(r) {
			t.Error("it holds on")
		}
		g.KeepTokens(func(string) bool { return false })
		if got := g.Grants(); len(got) != 0 {
			t.Errorf("%v", got)
		}
	})
}

// TestAnswered: what a person answers beside calls is told.
func TestAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		var told []string
		g := New(Options{Surfaces: []Surface{d}, Answered: func(what string) { told = append(told, what) }})
		g.Pause("command line")
		answer(t, <-d.prompts, Answer{Scope: Deny})
		if err := g.OfferResume(); err != nil {
			t.Fatal(err)
		}
		answer(t, <-d.prompts, Answer{Scope: Once})
		if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: "a", Then: ThenAllow}}}); err != nil {
			t.Fatal(err)
		}
		answer(t, <-d.prompts, Answer{Scope: Once})
		c := decide(t.Context(), g, request())
		answer(t, <-d.prompts, Answer{Scope: Once}) // a call's own records tell
		<-c
		want := []string{
			"a person said no at the desk: go on after the pause",
			"a person said yes at the desk: go on after the pause",
			`a person said yes at the desk: allow more: new rule in the configuration: {tool: "a", then: allow}`,
		}
		if !slices.Equal(told, want) {
			t.Errorf("told %q, want %q", told, want)
		}
	})
}
