package gate

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

var models = Item{Key: "host-llm", Text: "hosts may call their models"}

func loosen(ctx context.Context, g *Gate, client string) <-chan Verdict {
	c := make(chan Verdict, 1)
	go func() { c <- g.Loosen(ctx, client, models) }()
	return c
}

func TestLoosen(t *testing.T) {
	for _, c := range []struct {
		name   string
		answer Answer
		want   Verdict
	}{
		{"yes", Answer{Scope: Once}, Verdict{Allowed, "person at the desk", ""}},
		{"no", Answer{}, Verdict{Denied, "person at the desk", "a person said no"}},
		{"no, and why", Answer{Reason: "not now"}, Verdict{Denied, "person at the desk", "a person said no: not now"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := newDesk("desk")
			// Whatever runs unasked, this does not.
			g := New(Options{Surfaces: []Surface{d}, Allow: []Glob{glob(t, "*")}})
			v := loosen(t.Context(), g, "editor")
			p := <-d.prompts
			if p.Kind != AskLoosen || len(p.Items) != 1 || p.Items[0] != models || p.Request.Client != "editor" {
				t.Errorf("the prompt is %+v", p)
			}
			for _, s := range []Scope{ForConn, For15m, Always} {
				if err := p.Answer(Answer{Scope: s, By: "desk"}); err == nil {
					t.Errorf("the answer %d was taken", s)
				}
			}
			if n, _ := g.Quiet(); n != 1 {
				t.Errorf("%d prompts wait, want 1: input must rest", n)
			}
			answer(t, p, c.answer)
			if got := <-v; got != c.want {
				t.Errorf("%+v, want %+v", got, c.want)
			}
		})
	}
}

func TestLoosenRefused(t *testing.T) {
	d := newDesk("desk")
	g := New(Options{Surfaces: []Surface{d}})
	d.set(true)
	if v := g.Loosen(t.Context(), "editor", models); v.Outcome != Nobody {
		t.Errorf("nobody there: %+v", v)
	}
	d.set(false)

	first := loosen(t.Context(), g, "editor")
	p := <-d.prompts
	if v := g.Loosen(t.Context(), "other", models); v.Outcome != Full || v.By != "queue" {
		t.Errorf("asked twice at a time: %+v", v)
	}
	answer(t, p, Answer{})
	<-first
	if v := g.Loosen(t.Context(), "editor", models); v.Outcome != Full || v.By != "cool-down" {
		t.Errorf("after a denial: %+v", v)
	}

	ctx, cancel := context.WithCancel(t.Context())
	second := loosen(ctx, g, "other")
	p = <-d.prompts
	cancel()
	if v := <-second; v.Outcome != Gone {
		t.Errorf("hung up: %+v", v)
	}
	if d.whyWithdrawn(p) == "" {
		t.Error("the prompt still stands")
	}
	g.Close()
	if v := g.Loosen(t.Context(), "third", models); v.Outcome != Gone {
		t.Errorf("closed: %+v", v)
	}
}

func TestLoosenDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk("desk")
		g := New(Options{Surfaces: []Surface{d}, Deadline: time.Minute})
		if v := g.Loosen(t.Context(), "editor", models); v.Outcome != Expired {
			t.Errorf("%+v, want expired", v)
		}
	})
}
