package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"time"
)

// SetPolicy tells what configuration and rules say now. What tightens is in
// force when it returns. What loosens is put before the person in one prompt and
// is inert until accepted; meanwhile the stricter of both holds. It does not
// wait. With an error nothing has changed.
func (g *Gate) SetPolicy(next Policy) error {
	g.policy.Lock()
	defer g.policy.Unlock()
	return g.setPolicy(next)
}

// setPolicy is called with policy held.
func (g *Gate) setPolicy(next Policy) error {
	if next.Settings != nil {
		next.Kept = next.Settings.Keep()
	}
	set, err := compilePolicy(next)
	if err != nil {
		return err
	}
	g.mu.Lock()
	held, items, err := g.over(g.force.Load().accepted.Policy, &next)
	var kept *ruleset
	if err == nil {
		kept, err = compilePolicy(held) // made of rules that were compiled before
	}
	lasting := g.lasting
	if err == nil && lasting != nil {
		// What was accepted while this process lives only is held apart from it.
		var l Policy
		var more []Item
		if l, more, err = g.over(*lasting, &next); len(more) > 0 {
			lasting = &l
		} else {
			lasting = nil
		}
	}
	if err != nil {
		g.mu.Unlock()
		return err
	}
	g.lasting = lasting
	// A prompt that shows another difference must not be answered any more.
	var stale []*Pending
	if !g.proposes(set, items) {
		stale = g.prompts(AskAccept)
	}
	if len(items) == 0 {
		g.inForce(&inForce{accepted: set}, nil)
	} else {
		g.inForce(&inForce{accepted: kept, proposed: set}, items)
	}
	g.mu.Unlock()
	for _, p := range stale {
		g.settle(p, "configuration or rules changed meanwhile", nil)
	}
	if len(items) > 0 {
		g.OfferAccept()
	}
	return nil
}

// over holds next against what was accepted: what is still accepted then, which is
// the stricter of both, and what next loosens. It is called with mu held.
func (g *Gate) over(accepted Policy, next *Policy) (held Policy, items []Item, err error) {
	stricter, wider, err := next.over(accepted.Kept)
	if err != nil {
		accepted = g.lost(err)
		if stricter, wider, err = next.over(nil); err != nil {
			return held, nil, err
		}
	}
	held = tightened(&accepted, next)
	held.Kept = stricter
	return held, append(loosening(&accepted, next), wider...), nil
}

// inForce takes over a policy. It is called with mu held.
func (g *Gate) inForce(f *inForce, items []Item) {
	g.force.Store(f)
	g.items = items
	g.opts.Changed()
	g.save()
}

// save keeps what outlives the process. It is called with mu held.
func (g *Gate) save() {
	lasting := g.force.Load().accepted.Policy
	if g.lasting != nil {
		lasting = *g.lasting
	}
	if g.opts.Accepted == nil || lasting.Unknown {
		return
	}
	b, err := json.Marshal(lasting)
	if err == nil {
		err = g.opts.Accepted.Save(b)
	}
	if err != nil && g.unsaved == nil {
		g.opts.Log.Error().Err(err).Msg("what is in force could not be saved; it is tried again")
	} else if err == nil && g.unsaved != nil {
		g.opts.Log.Info().Msg("what is in force is saved now")
	}
	g.unsaved, g.unsavedYes = err, g.unsavedYes && err != nil
	if err != nil && g.opts.Unsaved != nil {
		g.opts.Unsaved()
	}
}

// SaveAgain saves what could not be saved before, if there is something.
func (g *Gate) SaveAgain() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.unsaved == nil {
		return
	}
	if g.save(); g.unsaved == nil {
		g.opts.Changed()
	}
}

// proposes tells whether a policy is the one that waits to be accepted, for the same
// items. It is called with mu held.
func (g *Gate) proposes(set *ruleset, items []Item) bool {
	f := g.force.Load()
	if f.proposed == nil || !slices.Equal(items, g.items) {
		return false
	}
	before, err := json.Marshal(f.proposed.Policy)
	now, err2 := json.Marshal(set.Policy)
	return err == nil && err2 == nil && bytes.Equal(before, now)
}

// Whoever can write the configuration and reload it can have the person asked again
// and again. Configuration changes nothing of these.
const (
	refusedFor  = time.Minute // what a person said no to is not asked again by itself
	offerWithin = time.Minute // no more than mostOffers are made in this time
	mostOffers  = 10
)

// refusal is a person's no to what loosens.
type refusal struct {
	items []Item
	until time.Time
}

// refuse takes note of a person's no.
func (g *Gate) refuse(items []Item) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.refused = append(g.refused, refusal{items, time.Now().Add(refusedFor)})
	g.opts.Changed()
}

// mayOffer says why what loosens must not be put before the person now. It is called
// with mu held.
func (g *Gate) mayOffer(items []Item) error {
	now := time.Now()
	g.refused = slices.DeleteFunc(g.refused, func(r refusal) bool { return !now.Before(r.until) })
	g.offered = slices.DeleteFunc(g.offered, func(at time.Time) bool { return now.Sub(at) >= offerWithin })
	for _, r := range slices.Backward(g.refused) {
		if slices.Equal(r.items, items) {
			return fmt.Errorf("a person said no to it; a reload asks again after %s", roundUp(r.until.Sub(now)))
		}
	}
	if len(g.offered) >= mostOffers {
		return fmt.Errorf("a person was asked %d times within a minute; a reload asks again after %s",
			len(g.offered), roundUp(g.offered[0].Add(offerWithin).Sub(now)))
	}
	return nil
}

// prompts is called with mu held.
func (g *Gate) prompts(kind Kind) []*Pending {
	var out []*Pending
	for p := range g.pending {
		if p.Kind == kind {
			out = append(out, p)
		}
	}
	return out
}

// OfferAccept puts what loosens before the person, if anything does. Where that
// is not possible it stays inert, and Warnings says so.
func (g *Gate) OfferAccept() {
	g.mu.Lock()
	items := g.items
	g.mu.Unlock()
	if len(items) == 0 {
		return
	}
	if err := g.offer(AskAccept, items); err != nil {
		g.opts.Log.Warn().Err(err).Int("items", len(items)).Msg("what loosens is not in force")
	}
}

// accept is called with the person's yes to exactly p's items.
func (g *Gate) accept(p *Pending) {
	g.mu.Lock()
	f := g.force.Load()
	is := f.proposed != nil && slices.Equal(p.Items, g.items)
	if is {
		g.warning = "" // of what was accepted before
		switch {
		case p.answer.TillEnd:
			g.tillEnd(f)
		case g.lasting != nil:
			// They may have seen only what came on top of what was accepted while this
			// process lives.
			if _, items, err := g.over(*g.lasting, &f.proposed.Policy); err == nil && slices.Equal(items, p.Items) {
				g.lasting = nil
			}
		}
		g.inForce(&inForce{accepted: f.proposed}, nil)
		g.unsavedYes = g.unsaved != nil && g.lasting == nil
	}
	g.mu.Unlock()
	if is && g.opts.OnAccept != nil {
		g.opts.OnAccept()
	}
}

// tillEnd has what is accepted next not be saved. It is called with mu held.
func (g *Gate) tillEnd(f *inForce) {
	if g.lasting == nil {
		l := f.accepted.Policy
		g.lasting = &l
	}
}

// lost is what holds in the place of what was accepted, when that cannot be told.
// It is called with mu held, or before anybody else has g.
func (g *Gate) lost(err error) Policy {
	err = fmt.Errorf("what was accepted before cannot be trusted, so every call is denied until a person accepts the configuration: %w", err)
	g.warning = err.Error()
	g.opts.Log.Warn().Err(err).Msg("loosening is not in force")
	return Policy{Unknown: true}
}

// addRule writes a rule that the person was shown, so it is accepted; rules that
// somebody else put into the file meanwhile are not. With tillEnd it is accepted
// while this process lives.
func (g *Gate) addRule(r Rule, tillEnd bool) error {
	g.policy.Lock()
	defer g.policy.Unlock()
	rules, err := g.opts.Rules.Add(r)
	if err != nil {
		return fmt.Errorf("the rule could not be written: %w", err)
	}
	g.mu.Lock()
	next := g.latest()
	f := g.force.Load()
	if tillEnd {
		g.tillEnd(f)
	} else if g.lasting != nil {
		l := *g.lasting
		l.Rules = append(slices.Clone(l.Rules), r)
		g.lasting = &l
	}
	accepted := f.accepted.Policy
	accepted.Rules = append(slices.Clone(accepted.Rules), r)
	set, err := compilePolicy(accepted)
	if err == nil {
		g.force.Store(&inForce{accepted: set, proposed: f.proposed})
	}
	g.mu.Unlock()
	if err == nil {
		next.Rules = rules
		err = g.setPolicy(next)
	}
	if err != nil {
		return fmt.Errorf("the rule was written, but is not in force: %w", err)
	}
	return nil
}

// Rules returns the person's own rules as they were last read, in the order of
// their numbers.
func (g *Gate) Rules() []Rule {
	return slices.Clone(g.latest().Rules)
}

// RevokeRule takes a rule out of the person's file, by number (from 1) or key.
// To take out an allow tightens, and holds at once. To take out an ask or a deny
// loosens, and holds once the person accepted it.
func (g *Gate) RevokeRule(which string) (Rule, error) {
	g.policy.Lock()
	defer g.policy.Unlock()
	gone, rest, err := g.opts.Rules.Remove(which)
	if err != nil {
		return gone, err
	}
	next := g.latest()
	next.Rules = rest
	return gone, g.setPolicy(next)
}

// latest is the policy that was set last, accepted or not.
func (g *Gate) latest() Policy {
	f := g.force.Load()
	if f.proposed != nil {
		return f.proposed.Policy
	}
	return f.accepted.Policy
}

// AllowedActions returns what a client may do with the computer tool, as in
// force; nil: every action.
func (g *Gate) AllowedActions(client string) []string {
	var allowed []string
	for _, s := range g.force.Load().sets() {
		if s != nil {
			allowed = intersect(allowed, s.actions(client))
		}
	}
	return allowed
}

// Lost tells whether what was accepted cannot be told any more, and nobody has
// accepted anything since.
func (g *Gate) Lost() bool { return g.force.Load().accepted.Unknown }

// TrustHint tells whether a host's word that a tool is read-only is believed.
func (g *Gate) TrustHint(host string) bool {
	for _, s := range g.force.Load().sets() {
		if s != nil && !s.trust[host] {
			return false
		}
	}
	return true
}

// InForce returns what is in force: what was accepted, with everything that tightens
// in what was set last.
func (g *Gate) InForce() Policy {
	f := g.force.Load()
	p := f.accepted.Policy
	if f.proposed == nil {
		return p
	}
	// It is not among what was accepted, since it would loosen there once it goes.
	p.ConfigRules = slices.Clone(p.ConfigRules)
	for _, r := range f.proposed.ConfigRules {
		if r.Then == ThenAsk && !has(p.ConfigRules, r) {
			p.ConfigRules = append(p.ConfigRules, r)
		}
	}
	return p
}

// Waiting lists what loosens and waits for a person to accept it.
func (g *Gate) Waiting() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	texts := make([]string, len(g.items))
	for i, it := range g.items {
		texts[i] = it.Text
	}
	return texts
}

// Warnings are sentences for the status: what is looser than by default, or
// asked for and not in force.
func (g *Gate) Warnings() []string {
	var out []string
	for _, a := range g.opts.Allow {
		text := fmt.Sprintf("tools that fit %q run unasked while this process lives (--allow)", a.String())
		if g.opts.AllowFor != "" {
			text += fmt.Sprintf("; those of %s alone: of any other host they are asked about, since a flag cannot let loose what acts with what was granted to Drawbridge", g.opts.AllowFor)
		}
		out = append(out, text)
	}
	g.mu.Lock()
	warning, unsaved, what := g.warning, g.unsaved, "what configuration and rules narrow"
	if g.unsavedYes {
		what = "what you accepted"
	}
	lasting := g.lasting != nil
	var held error
	if len(g.prompts(AskAccept)) == 0 {
		held = g.mayOffer(g.items)
	}
	g.mu.Unlock()
	if warning != "" {
		out = append(out, warning)
	}
	if unsaved != nil {
		out = append(out, what+" is in force, but could not be saved. That is tried again; should the agent end before, "+
			"its next start counts what you accepted as lost, and denies every call until you accept again: "+unsaved.Error())
	}
	if lasting {
		out = append(out, "something that a person accepted at a terminal is in force until the agent ends, and asked again after that")
	}
	waiting := g.Waiting()
	for _, text := range waiting {
		out = append(out, NotInForce+text)
	}
	switch {
	case len(waiting) == 0:
	case !g.ready():
		out = append(out, "nobody can be asked here to accept what waits: run Drawbridge with its tray or in a terminal's foreground")
	case held != nil:
		out = append(out, "what waits is not asked about again yet: "+held.Error())
	}
	return out
}

// NotInForce begins a warning of something that waits for a person.
const NotInForce = "not in force until a person accepts it: "
