package gate

import (
	"context"
	"errors"
	"fmt"
	"time"
)

var (
	errNobody    = errors.New("nobody can be asked here: run Drawbridge with its tray or in a terminal's foreground")
	errUnshown   = errors.New("the prompt could not be shown anywhere")
	errPageAsked = errors.New("another page asks the person already: answer that first")
)

// Pause holds every call that is not decided yet, until a person resumes. by
// says who wanted it.
func (g *Gate) Pause(by string) {
	g.mu.Lock()
	if g.resumed == nil {
		g.resumed = make(chan struct{})
		g.pausedBy = by
	}
	g.opts.Changed()
	g.mu.Unlock()
	g.offerStanding()
}

// Paused tells whether everything is paused, and by whom.
func (g *Gate) Paused() (by string, paused bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pausedBy, g.resumed != nil
}

// OfferResume asks the person again whether to go on, after that prompt was
// answered with no. Only the person's answer resumes.
func (g *Gate) OfferResume() error {
	if _, paused := g.Paused(); !paused {
		return fmt.Errorf("nothing is paused")
	}
	return g.offer(AskResume, nil)
}

const howToResumeAlone = "nobody can be asked here to go on; a person can end Drawbridge (drawbridge stop --quit) and start it again with its tray or in a terminal's foreground"

// HowToResume tells a person how a pause ends.
func (g *Gate) HowToResume() string {
	if !g.ready() {
		return howToResumeAlone
	}
	return "to go on, answer the question at the tray or in the terminal that runs Drawbridge"
}

// resume is called with the person's yes.
func (g *Gate) resume() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.resumed != nil {
		close(g.resumed)
		g.resumed, g.pausedBy = nil, ""
		g.opts.Changed()
	}
}

// awaitResume waits for the end of a pause.
func (g *Gate) awaitResume(ctx context.Context, resumed <-chan struct{}, waiting func()) (Verdict, bool) {
	if !g.ready() {
		return Verdict{Paused, "pause", "everything is paused: " + howToResumeAlone}, false
	}
	g.offerStanding() // if it could not be shown when the pause began
	waiting()
	timer := time.NewTimer(g.opts.Deadline)
	defer timer.Stop()
	select {
	case <-resumed:
		return Verdict{}, true
	case <-ctx.Done():
		return gone(), false
	case <-timer.C:
		return Verdict{Paused, "pause", fmt.Sprintf("everything is paused, and nobody resumed within %s", g.opts.Deadline)}, false
	}
}

// offer puts up a prompt of a kind of which there is at most one.
func (g *Gate) offer(kind Kind, items []Item) error {
	if !g.ready() {
		return errNobody
	}
	deadline := g.opts.Deadline
	if kind == AskResume {
		deadline = 0 // it stands while the pause does; nothing is injected then anyway
	}
	g.mu.Lock()
	for p := range g.pending {
		if p.Kind == kind {
			g.mu.Unlock()
			return nil
		}
	}
	if g.closed || kind == AskResume && g.resumed == nil {
		g.mu.Unlock()
		return nil
	}
	if kind == AskAccept {
		if err := g.mayOffer(items); err != nil {
			g.mu.Unlock()
			return err
		}
		g.offered = append(g.offered, time.Now())
	}
	p := g.newPending(kind, deadline)
	p.Items = items
	g.mu.Unlock()
	if !g.show(p) {
		g.settle(p, "it could not be shown", nil)
		return errUnshown
	}
	return nil
}

// offerStanding puts up the prompt that stands while everything is paused.
func (g *Gate) offerStanding() {
	if _, paused := g.Paused(); !paused {
		return
	}
	if err := g.offer(AskResume, nil); err != nil {
		g.opts.Log.Warn().Err(err).Msg("everything is paused, and nobody can be asked to go on")
	}
}
