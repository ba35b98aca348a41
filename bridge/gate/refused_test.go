package gate

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestRefusedIsNotAskedAgain: a no stands for a minute against the same question,
// whatever configuration says about cool-downs.
func TestRefusedIsNotAskedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}, CoolDown: time.Nanosecond, CoolDownMax: time.Nanosecond})
		allow := func(tool string) Policy {
			return Policy{ConfigRules: []Rule{{Tool: tool, Then: ThenAllow}}}
		}
		set := func(p Policy) {
			t.Helper()
			if err := g.SetPolicy(p); err != nil {
				t.Fatal(err)
			}
		}
		waits := func(want int) {
			t.Helper()
			if n := len(d.prompts); n != want {
				t.Fatalf("%d prompts, want %d", n, want)
			}
		}
		// Reloads while it waits change nothing.
		for range 50 {
			set(allow("bash"))
		}
		waits(1)
		answer(t, <-d.prompts, Answer{})
		for range 50 {
			set(allow("bash"))
			g.OfferAccept()
		}
		waits(0)
		if w := strings.Join(g.Warnings(), "\n"); !strings.Contains(w, "not in force") || !strings.Contains(w, "a person said no to it; a reload asks again after 1m0s") {
			t.Errorf("the warnings are %q", w)
		}
		// Another question is asked, and the first again when it comes back.
		set(allow("read"))
		waits(1)
		answer(t, <-d.prompts, Answer{})
		set(allow("bash"))
		waits(0)
		time.Sleep(time.Minute - time.Millisecond)
		set(allow("bash"))
		waits(0)
		time.Sleep(time.Millisecond)
		set(allow("bash"))
		waits(1)
		answer(t, <-d.prompts, Answer{Scope: Once})
		if !g.MayRunUnasked(request()) {
			t.Error("accepted, and not in force")
		}
	})
}

// TestOffersAreCounted: questions that differ are not without end either, answered
// or not.
func TestOffersAreCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}})
		asked := 0
		set := func(i int) {
			if err := g.SetPolicy(Policy{ConfigRules: []Rule{{Tool: fmt.Sprintf("t%d", i), Then: ThenAllow}}}); err != nil {
				t.Fatal(err)
			}
			for len(d.prompts) > 0 {
				if p := <-d.prompts; i%2 == 0 {
					answer(t, p, Answer{})
				}
				asked++
			}
		}
		for i := range 100 {
			set(i)
		}
		if asked != 10 || len(g.List()) != 0 {
			t.Errorf("asked %d times in no time, and %d wait", asked, len(g.List()))
		}
		if w := strings.Join(g.Warnings(), "\n"); !strings.Contains(w, "asked 10 times within a minute") {
			t.Errorf("the warnings are %q", w)
		}
		time.Sleep(time.Minute)
		if set(101); asked != 11 {
			t.Errorf("asked %d times after a minute", asked)
		}
		g.Close()
	})
}
