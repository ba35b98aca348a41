package gate

import "context"

// Loosen puts one thing that widens what programs may do before the person and
// waits for the answer; only Allowed loosens, and AllowedTillEnd does while this
// process lives. No rule, flag or earlier answer
// answers it. client is who asks: its denials cool it down as those of its calls
// do. The same thing is asked once at a time.
func (g *Gate) Loosen(ctx context.Context, client string, item Item) Verdict {
	return g.loosen(ctx, &Request{Client: client}, item)
}

// loosen is Loosen for who asks as in r: its Client, and the Conn with which the
// question ends.
func (g *Gate) loosen(ctx context.Context, r *Request, item Item) Verdict {
	p, refused := g.loosenable(r, item)
	if p == nil {
		return refused
	}
	if !g.show(p) {
		g.settle(p, "it could not be shown", nil)
		return nobodyToLoosen()
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		g.settle(p, "who asked has gone", nil)
		<-p.done
	}
	v := g.outcome(p, r)
	if v.Outcome == Allowed && p.answer.TillEnd {
		v.Outcome = AllowedTillEnd
	}
	if v.Outcome == Denied {
		v.Message = "a person said no"
		if p.answer.Reason != "" {
			v.Message += ": " + p.answer.Reason
		}
	}
	return v
}

// loosenable makes the prompt, or says why there can be none.
func (g *Gate) loosenable(r *Request, item Item) (*Pending, Verdict) {
	if !g.ready() {
		return nil, nobodyToLoosen()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, gone()
	}
	if v := g.crowded(r.Client); v != nil {
		return nil, *v
	}
	for _, p := range g.prompts(AskLoosen) {
		if p.Items[0].Key == item.Key {
			return nil, Verdict{Full, "queue", "a person is being asked this already: wait for that answer"}
		}
	}
	p := g.newPending(AskLoosen, g.opts.Deadline)
	p.Request, p.Items = r, []Item{item}
	return p, Verdict{}
}

func nobodyToLoosen() Verdict {
	return Verdict{Nobody, "nobody to ask", "only a person can allow this, and nobody can be asked here: " +
		"run Drawbridge with its tray or in a terminal's foreground"}
}
