package gate

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/bridge/seal"
	"drawbridge/bridge/seal/sealtest"
)

// TestUnsaved: what tightens and cannot be saved does not leave the looser state
// before it to the next start, is told of, and is saved once that goes.
func TestUnsaved(t *testing.T) {
	keys := &sealtest.Keys{}
	path := filepath.Join(t.TempDir(), "accepted")
	d := newDesk("desk")
	start := func(p Policy) *Gate {
		t.Helper()
		g := New(Options{Surfaces: []Surface{d}, Accepted: seal.File{Path: path, Seal: seal.New(keys, "accepted")}})
		if err := g.SetPolicy(p); err != nil {
			t.Fatal(err)
		}
		return g
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	warns := func(g *Gate, want ...string) {
		t.Helper()
		w := strings.Join(g.Warnings(), "\n")
		for _, s := range want {
			if !strings.Contains(w, s) {
				t.Errorf("the warnings are %q, want %q", w, s)
			}
		}
		if len(want) == 0 && w != "" {
			t.Errorf("the warnings are %q", w)
		}
	}
	loose := Policy{ConfigRules: []Rule{{Tool: "bash", Then: ThenAllow}}}
	strict := Policy{ConfigRules: []Rule{{Tool: "bash", Then: ThenDeny}}}
	g := start(loose)
	answer(t, <-d.prompts, Answer{Scope: Once})
	warns(g)
	before, err := os.ReadFile(path)
	must(err)

	block := func() {
		must(os.Remove(path))
		must(os.MkdirAll(filepath.Join(path, "x"), 0o700))
	}
	unblock := func(content []byte) {
		must(os.RemoveAll(path))
		if content != nil {
			must(os.WriteFile(path, content, 0o600))
		}
	}
	block()
	must(g.SetPolicy(strict))
	warns(g, "what configuration and rules narrow is in force, but could not be saved", path)
	g.SaveAgain()
	warns(g, "could not be saved")
	unblock(before)
	if g := start(loose); !g.Lost() || g.MayRunUnasked(request()) {
		t.Error("what was looser is back")
	}
	<-d.prompts
	g.SaveAgain()
	warns(g)
	g = start(loose)
	warns(g, "rule removed from the configuration")

	// A yes that cannot be saved.
	block()
	answer(t, <-d.prompts, Answer{Scope: Once})
	warns(g, "what you accepted is in force, but could not be saved")
	if !g.MayRunUnasked(request()) {
		t.Error("it is not in force")
	}
	unblock(nil)
	must(g.SetPolicy(loose)) // another change of the policy saves, too
	warns(g)
	warns(start(loose))
}
