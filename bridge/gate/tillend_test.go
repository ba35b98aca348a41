package gate

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
)

// TestTillEnd: what is accepted where another program can answer too is in force,
// and is not kept. What tightens meanwhile is.
func TestTillEnd(t *testing.T) {
	store := &safe{}
	loose := Policy{ConfigRules: []Rule{{Tool: "bash", Then: ThenAllow}}}
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, Accepted: store})
	start := func() *Gate { return New(Options{Accepted: store}) }
	set := func(g *Gate, p Policy) {
		t.Helper()
		if err := g.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
	}
	waits := func(g *Gate, what string) {
		t.Helper()
		if w := strings.Join(g.Warnings(), "\n"); !strings.Contains(w, "not in force until a person accepts it: ") || !strings.Contains(w, what) || g.MayRunUnasked(request()) {
			t.Errorf("the next start warns %q, and runs the call unasked: %v", w, g.MayRunUnasked(request()))
		}
	}
	set(g, loose)
	answer(t, <-d.prompts, Answer{Scope: Once, TillEnd: true})
	if !g.MayRunUnasked(request()) || !strings.Contains(strings.Join(g.Warnings(), "\n"), "until the agent ends") {
		t.Errorf("it is not in force, or the status does not say for how long: %q", g.Warnings())
	}
	next := start()
	set(next, loose)
	waits(next, "new rule in the configuration")

	// A deny that comes on top lasts; so does what a person accepts who saw all of it.
	denied := Policy{ConfigRules: append([]Rule{{Tool: "read", Then: ThenDeny}}, loose.ConfigRules...)}
	set(g, denied)
	if !g.MayRunUnasked(request()) {
		t.Error("a deny of another tool ended it")
	}
	next = start()
	set(next, loose)
	waits(next, "rule removed from the configuration")

	more := denied
	more.TrustHints = []string{"h"}
	set(g, more)
	answer(t, <-d.prompts, Answer{Scope: Once}) // who saw only the hint
	if !g.TrustHint("h") || !g.MayRunUnasked(request()) {
		t.Error("what was accepted is not in force")
	}
	next = start()
	set(next, more)
	waits(next, "new rule in the configuration")

	// All of it, natively.
	next = New(Options{Accepted: store, Surfaces: []Surface{d}})
	set(next, more)
	answer(t, <-d.prompts, Answer{Scope: Once})
	next = start()
	set(next, more)
	if w := next.Warnings(); len(w) != 0 || !next.MayRunUnasked(request()) {
		t.Errorf("accepted, and the next start warns %q", w)
	}
}

// TestTillEndOfLost: a lost record stays lost.
func TestTillEndOfLost(t *testing.T) {
	store := &safe{err: errors.New("its seal is broken")}
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}, Accepted: store})
	if err := g.SetPolicy(Policy{}); err != nil {
		t.Fatal(err)
	}
	answer(t, <-d.prompts, Answer{Scope: Once, TillEnd: true})
	if g.Lost() || store.b != nil {
		t.Errorf("lost: %v, kept: %q", g.Lost(), store.b)
	}
	if g = New(Options{Accepted: store}); !g.Lost() {
		t.Error("the next start takes it for accepted")
	}
}

// TestTillEndAlways: so it is with a rule that Always writes.
func TestTillEndAlways(t *testing.T) {
	for _, tillEnd := range []bool{true, false} {
		store := &safe{}
		file := RulesFile{Path: filepath.Join(t.TempDir(), "rules.yaml")}
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}, Accepted: store, Rules: file})
		v := decide(t.Context(), g, request())
		answer(t, <-d.prompts, Answer{Scope: Always, TillEnd: tillEnd})
		if got := <-v; got.Outcome != Allowed || !g.MayRunUnasked(request()) {
			t.Errorf("%+v, and the next is asked", got)
		}
		rules, err := file.Load()
		if err != nil || len(rules) != 1 {
			t.Fatalf("%v, %v", rules, err)
		}
		g = New(Options{Accepted: store, Rules: file})
		if err := g.SetPolicy(Policy{Rules: rules}); err != nil {
			t.Fatal(err)
		}
		if g.MayRunUnasked(request()) == tillEnd {
			t.Errorf("till the end %v: the next start runs the call unasked: %v", tillEnd, !tillEnd)
		}
	}
}

// TestTillEndLoosen tells who asks.
func TestTillEndLoosen(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	v := loosen(t.Context(), g, "editor")
	answer(t, <-d.prompts, Answer{Scope: Once, TillEnd: true})
	if got := <-v; got.Outcome != AllowedTillEnd {
		t.Errorf("%+v", got)
	}
}
