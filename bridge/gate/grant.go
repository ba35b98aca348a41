package gate

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// grantTime is how long For15m lasts.
const grantTime = 15 * time.Minute

// GrantKind is how long a grant lasts.
type GrantKind string

// How long grants last.
const (
	GrantConn GrantKind = "connection" // while the connection lives
	Grant15m  GrantKind = "15 minutes"
	GrantLook GrantKind = "looking" // looking at the person's display, while this process lives
)

// Grant is what a person allowed for later calls without writing a rule. It ends
// with the process at the latest, and with Forget.
type Grant struct {
	Key    string    `json:"key"` // short, for RevokeGrant
	Kind   GrantKind `json:"kind"`
	Client string    `json:"client"`
	Tool   string    `json:"tool,omitempty"` // as Host, not of GrantLook
	Host   string    `json:"host,omitempty"`
	// Rule is the key of the rule that asks about calls which this allows; empty:
	// no rule does.
	Rule  string    `json:"rule,omitempty"`
	Until time.Time `json:"until,omitzero"` // of Grant15m
}

// String says what is allowed, and not how long.
func (g Grant) String() string {
	if g.Kind == GrantLook {
		return fmt.Sprintf("client %s may look at the screen", quote(g.Client))
	}
	s := fmt.Sprintf("client %s may run %s of host %s", quote(g.Client), quote(g.Tool), quote(g.Host))
	if g.Rule != "" {
		s += ", where rule " + g.Rule + " asks"
	}
	return s
}

// grant is what a person allowed for later calls. origin is the rule that made
// the call ask: a rule that asks about certain arguments goes on asking when the
// tool was allowed on another occasion.
type grant struct {
	bearer
	conn, host, tool, origin string
}

// granted is how long a grant lasts.
type granted struct {
	until time.Time   // zero: while the connection lives
	timer *time.Timer // ends it; nil where until is zero
}

// bearer is a client as long as it has the same token. A name that was revoked
// and given anew is somebody else.
type bearer struct{ client, token string }

func (r *Request) bearer() bearer { return bearer{r.Client, r.Token} }

// connUse follows a connection while something is asked for one of its calls, so
// that nothing is allowed for a connection that has closed meanwhile.
type connUse struct {
	users  int
	closed bool
}

// use begins to follow a connection. It is called with mu held; unuse ends it.
func (g *Gate) use(conn string) *connUse {
	u := g.conns[conn]
	if u == nil {
		u = &connUse{}
		g.conns[conn] = u
	}
	u.users++
	return u
}

func (g *Gate) unuse(conn string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if u := g.conns[conn]; u.users > 1 {
		u.users--
	} else {
		delete(g.conns, conn)
	}
}

// grant takes over what an answer says about later calls of r's tool. It is
// called with mu held, and while r's connection is followed.
func (g *Gate) grant(r *Request, origin string, scope Scope) {
	k := grant{bearer: r.bearer(), host: r.Host, tool: r.Tool, origin: origin}
	switch scope {
	case ForConn:
		if k.conn = r.Conn; g.conns[k.conn].closed {
			return
		}
		g.grants[k] = &granted{}
	case For15m:
		if old := g.grants[k]; old != nil {
			old.timer.Stop()
		}
		e := &granted{until: time.Now().Add(grantTime)}
		e.timer = time.AfterFunc(grantTime, func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			if g.grants[k] == e {
				g.endGrant(k)
			}
		})
		g.grants[k] = e
	default:
		return
	}
	g.opts.Changed()
}

// endGrant is called with mu held.
func (g *Gate) endGrant(k grant) {
	if e := g.grants[k]; e.timer != nil {
		e.timer.Stop()
	}
	delete(g.grants, k)
	g.opts.Changed()
}

// isGranted tells whether an earlier answer covers the call. It is called with mu
// held.
func (g *Gate) isGranted(r *Request, origin string) (by string) {
	k := grant{bearer: r.bearer(), host: r.Host, tool: r.Tool, origin: origin}
	if e := g.grants[k]; e != nil && time.Now().Before(e.until) {
		return "person, for 15 minutes"
	}
	if k.conn = r.Conn; k.conn == "" {
		return ""
	}
	if g.grants[k] != nil {
		return "person, for this connection"
	}
	return ""
}

// ConnClosed drops what was allowed for a connection, or is asked for it.
func (g *Gate) ConnClosed(conn string) {
	if conn == "" {
		return
	}
	g.mu.Lock()
	for k := range g.grants {
		if k.conn == conn {
			g.endGrant(k)
		}
	}
	if u := g.conns[conn]; u != nil {
		u.closed = true
	}
	var stale []*Pending
	for _, p := range g.prompts(AskLoosen) {
		if p.Request.Conn == conn {
			stale = append(stale, p)
		}
	}
	g.mu.Unlock()
	for _, p := range stale {
		g.settle(p, "the connection has closed", nil)
	}
}

// KeepTokens ends what a person allowed for a while to whoever has none of these
// tokens: they were revoked.
func (g *Gate) KeepTokens(valid func(token string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.grants {
		if !valid(k.token) {
			g.endGrant(k)
		}
	}
	for b := range g.looked {
		if !valid(b.token) {
			delete(g.looked, b)
			g.opts.Changed()
		}
	}
}

// Forget ends what a person allowed for a connection, for 15 minutes or for
// looking. Rules stay, and so does a cool-down.
func (g *Gate) Forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k := range g.grants {
		g.endGrant(k)
	}
	clear(g.looked)
	g.opts.Changed()
}

// Grants lists what a person allowed for later calls without a rule, by client.
func (g *Gate) Grants() []Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := make([]Grant, 0, len(g.grants)+len(g.looked))
	for k, e := range g.grants {
		out = append(out, k.shown(e))
	}
	for b := range g.looked {
		out = append(out, b.shown())
	}
	slices.SortFunc(out, func(a, b Grant) int {
		return cmp.Or(strings.Compare(a.Client, b.Client), strings.Compare(a.Tool, b.Tool), strings.Compare(a.Key, b.Key))
	})
	return out
}

func (k grant) shown(e *granted) Grant {
	kind := GrantConn
	if k.conn == "" {
		kind = Grant15m
	}
	return Grant{
		Key: grantKey(string(kind), k.client, k.token, k.conn, k.host, k.tool, k.origin), Kind: kind,
		Client: k.client, Tool: k.tool, Host: k.host, Rule: k.origin, Until: e.until,
	}
}

func (b bearer) shown() Grant {
	return Grant{Key: grantKey(string(GrantLook), b.client, b.token), Kind: GrantLook, Client: b.client}
}

// grantKey is a short name for a grant. No rule has one that begins so.
func grantKey(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return "g-" + hex.EncodeToString(sum[:6])
}

// RevokeGrant ends a grant by its key, and tells whether there was one. What it
// allowed asks again.
func (g *Gate) RevokeGrant(key string) (Grant, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for k, e := range g.grants {
		if s := k.shown(e); s.Key == key {
			g.endGrant(k)
			return s, true
		}
	}
	for b := range g.looked {
		if s := b.shown(); s.Key == key {
			delete(g.looked, b)
			g.opts.Changed()
			return s, true
		}
	}
	return Grant{}, false
}

// AnswerHere is Answer for a place that may answer for a call but not loosen: of
// an answer that covers later calls too, it takes the yes to this one, and has
// the rest asked on the native surfaces. It waits for that; an error says what
// does not hold.
func (p *Pending) AnswerHere(ctx context.Context, a Answer) error {
	if p.Kind != AskCall || a.Scope <= Once || !slices.Contains(p.Scopes(), a.Scope) {
		return p.Answer(a)
	}
	g, r, scope := p.g, p.Request, a.Scope
	g.mu.Lock()
	g.use(r.Conn) // before the answer, while the call's own wait follows it too
	g.mu.Unlock()
	defer g.unuse(r.Conn)
	a.Scope = Once
	if err := p.Answer(a); err != nil {
		return err
	}
	item := Item{Key: fmt.Sprintf("grant %d %s", scope, p.Hash)}
	what := fmt.Sprintf("client %s may run %s of host %s unasked", quote(r.Client), quote(r.Tool), quote(r.Host))
	asking := &Request{Client: a.By}
	switch scope {
	case ForConn:
		item.Text = what + " while its connection lives"
		asking.Conn = r.Conn // with which the question ends, too
	case For15m:
		item.Text = what + " for 15 minutes"
	default:
		item = Item{Key: "rules+" + p.Rule.Key(), Text: fmt.Sprintf("new rule in the rules file: %s", *p.Rule)}
	}
	v := g.loosen(ctx, asking, item)
	if v.Outcome != Allowed && v.Outcome != AllowedTillEnd {
		return fmt.Errorf("the call was allowed once, and nothing beyond it: %s", v.Message)
	}
	if scope == Always {
		if err := g.addRule(*p.Rule, v.Outcome == AllowedTillEnd); err != nil {
			return fmt.Errorf("the call was allowed once, but %w", err)
		}
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if scope == ForConn && g.conns[r.Conn].closed {
		return errors.New("the call was allowed once; its connection has closed meanwhile")
	}
	g.grant(r, p.origin, scope)
	return nil
}
