package gate

import "context"

// ConfirmPage asks the person which of choices the activity page shows that they
// opened, and reports whether the answer is shown. A page that somebody else
// opened shows its number to somebody else, so the person cannot pick it.
// There is one such prompt at a time.
func (g *Gate) ConfirmPage(ctx context.Context, choices []string, shown string) (bool, error) {
	if !g.ready() {
		return false, errNobody
	}
	g.mu.Lock()
	if g.closed || len(g.prompts(AskPage)) > 0 {
		g.mu.Unlock()
		return false, errPageAsked
	}
	p := g.newPending(AskPage, g.opts.Deadline)
	p.Choices = choices
	g.mu.Unlock()
	if !g.show(p) {
		g.settle(p, "it could not be shown", nil)
		return false, errUnshown
	}
	select {
	case <-p.done:
	case <-ctx.Done():
		g.settle(p, "the page was closed", nil)
		<-p.done
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return p.answer.Scope == Once && p.answer.Choice == shown, nil
}
