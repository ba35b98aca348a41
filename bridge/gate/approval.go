package gate

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Kind says what a person is asked about.
type Kind uint8

const (
	AskCall   Kind = iota // run this call?
	AskResume             // go on after a pause?
	AskAccept             // accept what loosens in configuration and rules?
	AskLoosen             // loosen what Items say, as a program or a menu asks?
	AskPage               // which of Choices does the page show that the person opened?
)

// Scope is what an answer covers.
type Scope uint8

const (
	Deny    Scope = iota // the zero Answer denies
	Once                 // this call; also the yes to AskResume, AskAccept and AskLoosen, and with a Choice to AskPage
	ForConn              // this tool for this connection
	For15m               // this tool for this client, for 15 minutes
	Always               // this tool for this client: writes the rule that the prompt shows
)

// Answer is what a person answered on a surface.
type Answer struct {
	Scope  Scope
	Reason string // of a Deny, if one was given; reaches the caller
	Choice string // of AskPage: which of the prompt's Choices was picked
	By     string // the surface's name
	// TillEnd is set by a place that another program can make for itself, by starting
	// this one anew: what is loosened there is in force, and is not saved.
	TillEnd bool
}

// Surface is a place where a person can be asked. Only the person may reach it.
type Surface interface {
	// Name names the surface in verdicts: "terminal", "tray", …
	Name() string
	// Ready tells whether a person could see a prompt there right now.
	Ready() bool
	// Show puts up a prompt and does not wait for its answer, which goes to
	// p.Answer. An error means that it cannot be shown. A prompt that is shown
	// and then lost is no denial: the surface just never answers.
	Show(p *Pending) error
	// Withdraw takes a prompt away, whose answer came from elsewhere or is no
	// longer wanted. It may come for a prompt that is gone already.
	Withdraw(p *Pending, reason string)
}

// Pending is one prompt. Its exported fields do not change.
type Pending struct {
	ID      string // of this prompt
	Kind    Kind
	Request *Request // of AskCall; of AskLoosen only its Client; nil for the others
	Hash    string   // binds an approval to exactly this call, hex
	Items   []Item   // of AskAccept: every difference; of AskLoosen: the one thing
	Choices []string // of AskPage: one of them is what the page shows
	// Rule is what Always would write; nil where Always would have no effect.
	Rule *Rule
	// Again is set when the call was allowed and the picture around its targets
	// has changed since it was shown.
	Again    bool
	Since    time.Time
	Deadline time.Time // zero: it stands until it is answered

	g      *Gate
	n      int
	origin string // of AskCall: key of the rule that asks; empty for the default
	done   chan struct{}

	// Guarded by g.mu.
	settled bool
	answer  Answer
	expired bool
	how     string    // how it ended, for who comes late
	shown   []Surface // where it has to be withdrawn
	timer   *time.Timer
}

// Scopes lists the answers that make sense, Deny first.
func (p *Pending) Scopes() []Scope {
	scopes := []Scope{Deny, Once}
	if p.Kind != AskCall {
		return scopes
	}
	if p.Request.Conn != "" {
		scopes = append(scopes, ForConn)
	}
	scopes = append(scopes, For15m)
	if p.Rule != nil {
		scopes = append(scopes, Always)
	}
	return scopes
}

// Done is closed when the prompt is answered or withdrawn.
func (p *Pending) Done() <-chan struct{} { return p.done }

// LateError tells that an answer came too late. It ran nothing.
type LateError struct{ How string }

func (e *LateError) Error() string {
	return "too late, nothing was run: " + e.How
}

// Answer answers the prompt. The first answer counts; a later one gets a
// *[LateError]. An answer that is none of Scopes is refused, and the prompt goes on.
func (p *Pending) Answer(a Answer) error {
	if a.By == "" {
		return fmt.Errorf("an answer must say where it was given")
	}
	if !slices.Contains(p.Scopes(), a.Scope) ||
		p.Kind == AskPage && a.Scope != Deny && !slices.Contains(p.Choices, a.Choice) {
		return fmt.Errorf("this prompt does not offer that answer")
	}
	how := "it was answered at the " + a.By
	if !p.g.settle(p, how, func() { p.answer = a }) {
		p.g.mu.Lock()
		defer p.g.mu.Unlock()
		return &LateError{p.how}
	}
	yes := a.Scope != Deny
	if p.g.opts.Answered != nil && p.Kind != AskCall {
		word := "no"
		if yes {
			word = "yes"
		}
		p.g.opts.Answered(fmt.Sprintf("a person said %s at the %s: %s", word, a.By, p.about()))
	}
	switch {
	case p.Kind == AskResume && yes:
		p.g.resume()
	case p.Kind == AskAccept && yes:
		p.g.accept(p)
	case p.Kind == AskAccept:
		p.g.refuse(p.Items)
	}
	return nil
}

// about says what a prompt that is no call's asks.
func (p *Pending) about() string {
	switch p.Kind {
	case AskResume:
		return "go on after the pause"
	case AskPage:
		if p.answer.Choice == "" {
			return "let an activity page answer"
		}
		return "let an activity page answer, which shows " + p.answer.Choice
	}
	texts := make([]string, len(p.Items))
	for i, item := range p.Items {
		texts[i] = item.Text
	}
	return "allow more: " + strings.Join(texts, "; ")
}

// settle ends a prompt once: it is off the list, and off every surface but the
// one that answered. set, if given, runs before anybody is told.
func (g *Gate) settle(p *Pending, how string, set func()) bool {
	g.mu.Lock()
	if p.settled {
		g.mu.Unlock()
		return false
	}
	p.settled, p.how = true, how
	if set != nil {
		set()
	}
	if p.timer != nil {
		p.timer.Stop()
	}
	shown := p.shown
	delete(g.pending, p)
	g.bump()
	g.mu.Unlock()
	close(p.done)
	for _, s := range shown {
		if s.Name() != p.answer.By {
			s.Withdraw(p, how)
		}
	}
	return true
}

// bump tells who watches the list. It is called with mu held.
func (g *Gate) bump() {
	close(g.changed)
	g.changed = make(chan struct{})
	g.opts.Changed()
}

// newPending puts a prompt on the list, so that from here on no input is
// injected. It is called with mu held; show puts it up afterwards.
func (g *Gate) newPending(kind Kind, deadline time.Duration) *Pending {
	g.counter++
	p := &Pending{
		ID: fmt.Sprintf("a-%d", g.counter), Kind: kind, Since: time.Now(),
		g: g, n: g.counter, done: make(chan struct{}),
	}
	if deadline > 0 {
		p.Deadline = p.Since.Add(deadline)
		p.timer = time.AfterFunc(deadline, func() {
			g.settle(p, "nobody answered in time", func() { p.expired = true })
		})
	}
	g.pending[p] = true
	g.bump()
	return p
}

// show puts a prompt up on every surface that is ready, and tells whether that
// worked on any. It is called without mu.
func (g *Gate) show(p *Pending) bool {
	g.mu.Lock()
	surfaces := slices.Clone(g.surfaces)
	g.mu.Unlock()
	any := false
	for _, s := range surfaces {
		if g.showOn(p, s) {
			any = true
		}
	}
	return any
}

func (g *Gate) showOn(p *Pending, s Surface) bool {
	if !s.Ready() {
		return false
	}
	if err := s.Show(p); err != nil {
		g.opts.Log.Warn().Err(err).Str("surface", s.Name()).Msg("a prompt could not be shown")
		return false
	}
	g.mu.Lock()
	settled, how, by := p.settled, p.how, p.answer.By
	if !settled {
		p.shown = append(p.shown, s)
	}
	g.mu.Unlock()
	if settled && s.Name() != by {
		s.Withdraw(p, how)
	}
	return true
}

// ready tells whether a person can be asked anywhere.
func (g *Gate) ready() bool {
	g.mu.Lock()
	surfaces := slices.Clone(g.surfaces)
	g.mu.Unlock()
	return slices.ContainsFunc(surfaces, Surface.Ready)
}

// List returns the prompts that wait, oldest first.
func (g *Gate) List() []*Pending {
	g.mu.Lock()
	defer g.mu.Unlock()
	list := make([]*Pending, 0, len(g.pending))
	for p := range g.pending {
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b *Pending) int { return cmp.Compare(a.n, b.n) })
	return list
}

// Quiet returns how many prompts wait, and a channel that is closed when that
// changes. While any waits nobody's input may be injected: a program must not
// be able to answer for the person.
func (g *Gate) Quiet() (pending int, changed <-chan struct{}) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return len(g.pending), g.changed
}

// AddSurface adds a place to ask at, which shows at once what waits.
func (g *Gate) AddSurface(s Surface) {
	g.mu.Lock()
	g.surfaces = append(g.surfaces, s)
	g.mu.Unlock()
	for _, p := range g.List() {
		g.showOn(p, s)
	}
	g.offerStanding()
	g.OfferAccept()
}

// ask puts a call before a person and waits. d is why.
func (g *Gate) ask(ctx context.Context, r *Request, d decision, waiting func()) Verdict {
	hash := r.Hash()
	g.mu.Lock()
	g.use(r.Conn)
	g.mu.Unlock()
	defer g.unuse(r.Conn)
	for again := false; ; again = true {
		p, refused := g.askable(r, d, hash, again)
		if p == nil {
			return refused
		}
		if !g.show(p) {
			g.settle(p, "it could not be shown", nil)
			return nobody()
		}
		waiting()
		select {
		case <-p.done:
		case <-ctx.Done():
			g.settle(p, "the call was cancelled", nil)
		}
		v := g.outcome(p, r)
		if v.Outcome != Allowed {
			return v
		}
		if r.Hash() != hash {
			return Verdict{Denied, v.By, "the call is not the one that was approved: it was changed while it waited"}
		}
		if r.Changed != nil {
			changed, err := r.Changed(ctx)
			switch {
			case ctx.Err() != nil:
				return gone()
			case (changed || err != nil) && !again:
				continue
			case changed || err != nil:
				return Verdict{Denied, "picture", "what is on the screen around the targets changed twice while a person looked at it: take a new screenshot and try again"}
			}
		}
		g.spend(p, r)
		return v
	}
}

// askable makes the prompt for a call, or says why there can be none.
func (g *Gate) askable(r *Request, d decision, hash [32]byte, again bool) (*Pending, Verdict) {
	if !g.ready() {
		return nil, nobody()
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, gone()
	}
	if v := g.crowded(r.Client); v != nil && !again {
		return nil, *v
	}
	p := g.newPending(AskCall, g.opts.Deadline)
	p.Request, p.Again, p.Hash, p.origin = r, again, fmt.Sprintf("%x", hash), d.origin
	if !d.ownAsk && g.opts.Rules.Path != "" {
		p.Rule = &Rule{Tool: exactly(r.Tool), Client: exactly(r.Client), Host: exactly(r.Host), Then: ThenAllow}
	}
	return p, Verdict{}
}

// crowded says why a client may not put up another prompt now, or returns nil.
// It is called with mu held.
func (g *Gate) crowded(client string) *Verdict {
	if c := g.cool[client]; c != nil {
		if left := time.Until(c.until); left > 0 {
			return &Verdict{Full, "cool-down", fmt.Sprintf(
				"a person just denied a call of this client: it may ask again in %s", roundUp(left))}
		}
	}
	n := 0
	for p := range g.pending {
		if p.Request != nil && p.Request.Client == client {
			n++
		}
	}
	if n >= g.opts.PerClient {
		return &Verdict{Full, "queue", fmt.Sprintf(
			"%d calls of this client wait for a person already: wait until they are answered", n)}
	}
	return nil
}

func roundUp(d time.Duration) time.Duration { return (d + time.Second - 1).Truncate(time.Second) }

// outcome reads how a call's prompt ended, and keeps the cool-down.
func (g *Gate) outcome(p *Pending, r *Request) Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	by := "person at the " + p.answer.By
	switch {
	case p.expired:
		return Verdict{Expired, "deadline", fmt.Sprintf("nobody answered within %s", g.opts.Deadline)}
	case p.answer.By == "":
		return gone()
	case p.answer.Scope != Deny:
		delete(g.cool, r.Client)
		return Verdict{Allowed, by, ""}
	}
	c := g.cool[r.Client]
	// Who was quiet for as long as a cool-down can last begins anew.
	if c == nil || time.Since(c.until) > g.opts.CoolDownMax {
		c = &coolDown{length: g.opts.CoolDown}
		g.cool[r.Client] = c
	} else if !time.Now().Before(c.until) { // another denial of the same lot does not double
		c.length = min(2*c.length, g.opts.CoolDownMax)
	}
	c.until = time.Now().Add(c.length)
	msg := "a person denied this call"
	if p.answer.Reason != "" {
		msg += ": " + p.answer.Reason
	}
	return Verdict{Denied, by, msg}
}

type coolDown struct {
	length time.Duration
	until  time.Time
}

// spend takes over what an answer says about later calls.
func (g *Gate) spend(p *Pending, r *Request) {
	if p.answer.Scope == Always {
		if err := g.addRule(*p.Rule, p.answer.TillEnd); err != nil {
			g.opts.Log.Error().Err(err).Msg("always: the call was allowed once")
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if r.Default == DefaultAskFirst {
		g.looked[r.bearer()] = true
		g.opts.Changed()
	}
	g.grant(r, p.origin, p.answer.Scope)
}

func nobody() Verdict {
	return Verdict{Nobody, "nobody to ask", "this call needs a person's approval and nobody can be asked here: " +
		"run Drawbridge with its tray or in a terminal's foreground, or let a person write an allow rule for it"}
}

func gone() Verdict {
	return Verdict{Gone, "caller", "the call was cancelled while it waited for a person"}
}
