package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestConfirmPage: only the number that the page shows confirms it, and only
// once somebody picked it.
func TestConfirmPage(t *testing.T) {
	choices := []string{"17", "42", "80"}
	for _, tt := range []struct {
		name   string
		answer Answer
		want   bool
	}{
		{"the right one", Answer{Scope: Once, Choice: "42"}, true},
		{"a wrong one", Answer{Scope: Once, Choice: "80"}, false},
		{"none", Answer{}, false},
		{"none, with a choice", Answer{Choice: "42"}, false},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := newDesk("desk")
			g := New(Options{Surfaces: []Surface{d}})
			got := make(chan bool, 1)
			go func() {
				ok, err := g.ConfirmPage(t.Context(), choices, "42")
				if err != nil {
					t.Error(err)
				}
				got <- ok
			}()
			p := <-d.prompts
			if n, _ := g.Quiet(); n != 1 || p.Kind != AskPage {
				t.Errorf("%s: %d prompts, kind %d", tt.name, n, p.Kind)
			}
			for _, bad := range []Answer{{Scope: Once, By: "desk"}, {Scope: Once, Choice: "43", By: "desk"}, {Scope: For15m, Choice: "42", By: "desk"}} {
				if err := p.Answer(bad); err == nil {
					t.Errorf("%s: %+v was taken", tt.name, bad)
				}
			}
			if _, err := g.ConfirmPage(t.Context(), choices, "42"); err == nil {
				t.Errorf("%s: a second page could ask", tt.name)
			}
			answer(t, p, tt.answer)
			if ok := <-got; ok != tt.want {
				t.Errorf("%s: %v", tt.name, ok)
			}
		})
	}
}

func TestConfirmPageEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if ok, err := New(Options{}).ConfirmPage(t.Context(), []string{"1"}, "1"); ok || err == nil {
			t.Error("confirmed with nobody to ask")
		}
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}})
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if ok, err := g.ConfirmPage(ctx, []string{"1"}, "1"); ok || err != nil {
			t.Error(ok, err)
		}
		if why := d.whyWithdrawn(<-d.prompts); why != "the page was closed" {
			t.Errorf("withdrawn because %q", why)
		}
		if ok, err := g.ConfirmPage(t.Context(), []string{"1"}, "1"); ok || err != nil { // nobody answers
			t.Error(ok, err)
		}
	})
}
