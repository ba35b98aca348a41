// Package gate decides, per call: allow, ask a person, or deny. It holds the
// rules, the pending approvals and the desktop lease.
package gate

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"
)

// Default is what happens to a call that no rule matches.
type Default uint8

const (
	// DefaultAsk asks a person. It is the zero value on purpose.
	DefaultAsk Default = iota
	// DefaultAskFirst asks until one such call of this client was allowed, then
	// lets the client's further ones run: looking at the person's own display.
	DefaultAskFirst
	// DefaultAllow runs unasked: looking at a desktop of the agent's own, or a
	// read-only tool of a host whose hints are trusted.
	DefaultAllow
)

// Request is one call that wants to run.
type Request struct {
	ID     string // the call's id in the audit
	Client string // the token's name
	// Token tells tokens of one name apart: what a person allowed for a while
	// ends with the token that it was allowed for.
	Token string
	Conn  string // the connection's id; empty on stateless HTTP, where nothing lasts for a connection
	Host  string // the host that would run it; "drawbridge" for our own tool
	Tool  string // the name as listed
	Args  json.RawMessage
	// Extra is an object of what else the call carries to the host beside its
	// arguments: answers to a host's questions and the like. It is shown and
	// bound like the arguments, but no rule reads it. Nil where there is nothing.
	Extra json.RawMessage
	// Default is for calls that no rule matches.
	Default Default
	// Preview, if set, makes what a graphical surface shows beside the
	// arguments: the last picture with the batch's targets marked, as PNG.
	Preview func(ctx context.Context) (png []byte, err error)
	// Closeup, if set, returns what Preview showed last around the first target,
	// in full size, as PNG; nil where there is none.
	Closeup func() []byte
	// Changed, if set, tells after a verdict whether the picture around the
	// targets is another than the one that was shown.
	Changed func(ctx context.Context) (bool, error)
	// Waiting, if set, is called once when the call begins to wait for a person
	// (or for a resume), and not at all when it does not have to.
	Waiting func()
}

// Hash binds an approval to exactly this call: who calls, what, and the
// arguments, with whatever else goes to the host, byte for byte.
func (r *Request) Hash() [32]byte {
	h := sha256.New()
	for _, part := range [][]byte{[]byte(r.Client), []byte(r.Host), []byte(r.Tool), r.Args, r.Extra} {
		var n [8]byte
		binary.BigEndian.PutUint64(n[:], uint64(len(part)))
		h.Write(n[:])
		h.Write(part)
	}
	return [32]byte(h.Sum(nil))
}

// Outcome is what became of a request.
type Outcome uint8

const (
	Denied         Outcome = iota // by a rule or a person
	Allowed                       // run it
	Nobody                        // nobody can be asked here
	Expired                       // nobody answered in time
	Full                          // too many approvals of this client wait, or it is cooling down after a denial
	Paused                        // everything is paused, and nobody resumed in time
	Gone                          // the caller cancelled or hung up while it waited
	AllowedTillEnd                // of Loosen: while this process lives, and nothing of it may be saved
)

// Verdict is the gate's decision on one request.
type Verdict struct {
	Outcome Outcome
	// By says who decided, for the audit: "rule config:3", "--allow computer",
	// "default", "person at the terminal", "deadline", …
	By string
	// Message is a sentence for the caller: why not, and what can be done.
	// Empty when allowed.
	Message string
}

// Options are what a gate is made of. Zero values mean the defaults.
type Options struct {
	Surfaces []Surface // more may come with AddSurface
	Allow    []Glob    // --allow: tools that run unasked while this process lives
	AllowFor string    // the host whose tools Allow is about; empty: every host
	Rules    RulesFile // where Always writes; without a path it is not offered
	Accepted Store     // what was accepted before; nil: kept in memory only

	Deadline    time.Duration // for an answer; 2 min
	PerClient   int           // approvals of one client that may wait; 8
	CoolDown    time.Duration // after a denial; 10 s, doubled by each further one
	CoolDownMax time.Duration // up to this; 5 min

	// Answered, if set, is told in a sentence what a person answered beside calls. It
	// must not block, nor call the gate.
	Answered func(what string)
	// Changed, if set, is called after each change of what the gate shows:
	// prompts, pause, rules. It must not block, nor call the gate.
	Changed func()

	// Unsaved, if set, is called when what is in force could not be saved: call
	// SaveAgain later. It must not block, nor call the gate.
	Unsaved func()

	// OnAccept, if set, is called after a person accepted what loosens: Settings
	// are others then. It must not block.
	OnAccept func()

	Log zerolog.Logger
}

// Gate decides about calls. It is safe for concurrent use.
type Gate struct {
	opts  Options
	force atomic.Pointer[inForce]

	policy sync.Mutex // orders changes of policy and rules file; taken before mu

	mu       sync.Mutex // guards everything below, and changes of force
	surfaces []Surface
	pending  map[*Pending]bool
	changed  chan struct{} // closed when pending changes
	counter  int
	grants   map[grant]*granted
	looked   map[bearer]bool     // who had a first DefaultAskFirst call allowed
	conns    map[string]*connUse // those that something is asked for
	cool     map[string]*coolDown
	resumed  chan struct{} // closed on resume; nil while not paused
	pausedBy string
	items    []Item      // what loosens and is not accepted
	refused  []refusal   // of the last minute
	offered  []time.Time // when what loosens was asked in the last minute
	// lasting is what is kept over restarts where that is not what is in force: a
	// person accepted something while this process lives. Otherwise nil.
	lasting    *Policy
	unsaved    error  // what is to be kept over restarts could not be
	unsavedYes bool   // and a person's yes is part of it
	warning    string // about what was accepted before
	closed     bool
}

// New makes a gate with the built-in policy, or the one that was accepted last;
// SetPolicy tells it what configuration and rules say now.
func New(opts Options) *Gate {
	if opts.Deadline <= 0 {
		opts.Deadline = 2 * time.Minute
	}
	if opts.PerClient <= 0 {
		opts.PerClient = 8
	}
	if opts.CoolDown <= 0 {
		opts.CoolDown = 10 * time.Second
	}
	if opts.CoolDownMax <= 0 {
		opts.CoolDownMax = 5 * time.Minute
	}
	opts.CoolDownMax = max(opts.CoolDown, opts.CoolDownMax)
	if opts.Changed == nil {
		opts.Changed = func() {}
	}
	g := &Gate{
		opts: opts, surfaces: opts.Surfaces,
		pending: map[*Pending]bool{}, changed: make(chan struct{}),
		grants: map[grant]*granted{}, looked: map[bearer]bool{}, conns: map[string]*connUse{}, cool: map[string]*coolDown{},
	}
	accepted, err := loadAccepted(opts.Accepted)
	set, cerr := compilePolicy(accepted)
	if err = errors.Join(err, cerr); err != nil {
		set, _ = compilePolicy(g.lost(err)) // without rules nothing can fail
	}
	g.force.Store(&inForce{accepted: set})
	return g
}

// Decide decides about one call; where a person is needed it waits for one.
func (g *Gate) Decide(ctx context.Context, r *Request) Verdict {
	var once sync.Once
	waiting := func() {
		if r.Waiting != nil {
			once.Do(r.Waiting)
		}
	}
	var approved *Verdict // by a person, who need not be asked again
	for {
		if ctx.Err() != nil {
			return gone()
		}
		d, paused := g.decide(r)
		switch {
		case d.then == ThenDeny:
			return Verdict{Denied, d.by, d.by + " denies this call; only a person can change that"}
		case paused != nil:
			// What holds after a pause is looked up after it.
			if v, ok := g.awaitResume(ctx, paused, waiting); !ok {
				return v
			}
		case approved != nil:
			return *approved
		case d.then == ThenAllow:
			return Verdict{Allowed, d.by, ""}
		default:
			v := g.ask(ctx, r, d, waiting)
			if v.Outcome != Allowed {
				return v
			}
			approved = &v
		}
	}
}

// MayRunUnasked tells whether Decide would allow the call right now without a
// person. It changes nothing.
func (g *Gate) MayRunUnasked(r *Request) bool {
	d, paused := g.decide(r)
	return d.then == ThenAllow && paused == nil
}

// decision is what rules, flags and earlier answers say about a call.
type decision struct {
	then   Then
	by     string
	origin string // key of the rule that asks; empty for the default
	ownAsk bool   // a rule of the person's own asks, so that an allow rule beside it would not help
}

// decide also returns the channel that is closed on resume, nil if not paused.
func (g *Gate) decide(r *Request) (decision, chan struct{}) {
	var d decision
	for _, set := range g.force.Load().sets() {
		if set == nil {
			continue
		}
		c, own := g.decideBy(set, r), d.ownAsk
		// Of two that ask, the one with a rule says more.
		if n := c.then.strictness() - d.then.strictness(); n > 0 || n == 0 && d.origin == "" {
			d = c
		}
		d.ownAsk = own || c.ownAsk
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if d.then == ThenAsk {
		if by := g.isGranted(r, d.origin); by != "" {
			d.then, d.by = ThenAllow, by
		} else if d.by == "default" && r.Default == DefaultAskFirst && g.looked[r.bearer()] {
			d.then = ThenAllow
		}
	}
	return d, g.resumed
}

// decideBy is what one policy says by itself.
func (g *Gate) decideBy(set *ruleset, r *Request) decision {
	if set.Unknown {
		return decision{then: ThenDeny, by: "a lost record of what was accepted"}
	}
	if c, own := set.find(r); c != nil {
		d := decision{then: c.rule.Then, by: c.by}
		if d.then == ThenAsk {
			d.origin, d.ownAsk = c.rule.Key(), own
		}
		return d
	}
	for _, a := range g.opts.Allow {
		if a.Match(r.Tool) && (g.opts.AllowFor == "" || g.opts.AllowFor == r.Host) {
			return decision{then: ThenAllow, by: "--allow " + a.String()}
		}
	}
	if r.Default == DefaultAllow {
		return decision{then: ThenAllow, by: "default"}
	}
	return decision{then: ThenAsk, by: "default"}
}

// Close withdraws every prompt; calls that wait are told that they are gone.
func (g *Gate) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.Forget()
	for _, p := range g.List() {
		g.settle(p, "Drawbridge is ending", nil)
	}
}
