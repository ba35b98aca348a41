package gate

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Policy is what configuration and rules allow. The gate holds it against what
// the person last accepted: what tightens is in force at once, what loosens only
// once it is accepted. The zero Policy is the built-in default.
type Policy struct {
	Rules       []Rule `json:"rules,omitempty"`        // the person's rules file
	ConfigRules []Rule `json:"config_rules,omitempty"` // the configuration's
	// AllowedActions narrows the computer tool, under "" for every client and
	// under a client's name for that client besides; nil: all.
	AllowedActions map[string][]string `json:"allowed_actions,omitempty"`
	// TrustHints names the hosts whose tools are believed to be read-only when
	// they say so.
	TrustHints []string `json:"trust_hints,omitempty"`
	// Settings are what else of the configuration can loosen; nil: nothing.
	Settings Settings `json:"-"`
	// Kept is what is kept of the settings that were accepted.
	Kept json.RawMessage `json:"settings,omitempty"`
	// Unknown is what was accepted when that cannot be told any more. It may have
	// been stricter than anything that is said now, so every call is denied until
	// the person accepts that. It is never kept.
	Unknown bool `json:"-"`
}

// Settings are the parts of a configuration by which others than the gate decide,
// and that loosen too. There are three kinds: what is wider than the built-in
// default, and loosens when it appears; what is narrower, and loosens when it
// disappears; and what is neither, such as a name that rules go by, and loosens
// when it changes. Whoever made them tells which is which.
type Settings interface {
	// Over holds the settings against what was kept of the accepted ones, nil where
	// nothing was. It returns what to keep of the stricter of both, and what the
	// settings widen over that. The error tells that kept is none of Keep's.
	Over(kept json.RawMessage) (stricter json.RawMessage, wider []Item, err error)
	// Keep returns what is kept once a person accepted the settings: no secrets.
	Keep() json.RawMessage
}

// Item is one thing that loosens: a key that stays the same while it means the
// same, and a line for the person who is to accept it.
type Item struct {
	Key  string `json:"key"`
	Text string `json:"text"`
}

// Store keeps the last accepted policy over restarts. It must be bound to this
// program (by a keyed hash whose key no other program can read): whoever can
// change it can loosen the gate.
type Store interface {
	// Load returns nil where nothing was accepted yet, and an error for what was
	// changed by somebody else.
	Load() ([]byte, error)
	Save([]byte) error
}

// ruleset is a policy ready to be asked.
type ruleset struct {
	Policy
	rules, config []compiled
	trust         map[string]bool
}

func compilePolicy(p Policy) (*ruleset, error) {
	s := &ruleset{Policy: p, trust: map[string]bool{}}
	var err error
	if s.rules, err = compileRules("rules.yaml", p.Rules); err != nil {
		return nil, err
	}
	if s.config, err = compileRules("config", p.ConfigRules); err != nil {
		return nil, err
	}
	for _, h := range p.TrustHints {
		s.trust[h] = true
	}
	return s, nil
}

// find returns the rule that decides, nil if none fits, and whether it is the
// person's own.
func (s *ruleset) find(r *Request) (c *compiled, own bool) {
	if c := first(s.rules, r); c != nil {
		return c, true
	}
	return first(s.config, r), false
}

// actions returns what a client may do with the computer tool; nil: all.
func (p *Policy) actions(client string) []string {
	all := p.AllowedActions[""]
	if client == "" {
		return all
	}
	return intersect(all, p.AllowedActions[client])
}

// intersect treats nil as everything, and an empty list as nothing.
func intersect(a, b []string) []string {
	if a == nil {
		return b
	}
	if b == nil {
		return a
	}
	out := []string{}
	for _, s := range a {
		if slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// loosening lists what next widens over accepted, beside its settings.
func loosening(accepted, next *Policy) []Item {
	// What lets calls run unasked is read first, of that what has a wildcard.
	const wild, unasked, rest = 0, 1, 2
	var items [3][]Item
	rank := wild
	add := func(key, format string, args ...any) {
		items[rank] = append(items[rank], Item{key, fmt.Sprintf(format, args...)})
	}
	if accepted.Unknown {
		add("unknown", "what you accepted before was changed or removed outside of Drawbridge, so that all calls are denied; "+
			"from now on the configuration and the rules hold as they are there now (drawbridge config show, drawbridge rules list)")
	}
	rules := func(place, where string, old, now []Rule, own bool) {
		for _, r := range now {
			switch rank = rest; {
			case r.Then == ThenAllow && strings.Contains(r.Tool, "*"):
				rank = wild
			case r.Then == ThenAllow:
				rank = unasked
			}
			// A rule of the person's own that only asks loosens too, where the
			// configuration denies.
			if !has(old, r) && (r.Then == ThenAllow || own && r.Then == ThenAsk) {
				add(place+"+"+r.Key(), "new rule in %s: %s", where, r)
			}
		}
		rank = rest
		for _, r := range old {
			if !has(now, r) && r.Then != ThenAllow {
				add(place+"-"+r.Key(), "rule removed from %s: %s", where, r)
			}
		}
	}
	rules("rules", "the rules file", accepted.Rules, next.Rules, true)
	rules("config", "the configuration", accepted.ConfigRules, next.ConfigRules, false)

	clients := map[string]bool{"": true}
	for c := range accepted.AllowedActions {
		clients[c] = true
	}
	for c := range next.AllowedActions {
		clients[c] = true
	}
	for _, c := range slices.Sorted(maps.Keys(clients)) {
		old, now := accepted.actions(c), next.actions(c)
		who := "every client"
		if c != "" {
			who = "client " + c
		}
		if old != nil && now == nil {
			add("actions:"+c, "%s may use every action of the computer tool, not only: %s", who, strings.Join(old, ", "))
		} else if more := without(now, old); old != nil && len(more) > 0 {
			add("actions:"+c+":"+strings.Join(more, ","), "%s may use more actions of the computer tool: %s", who, strings.Join(more, ", "))
		}
	}
	rank = unasked
	for _, h := range without(next.TrustHints, accepted.TrustHints) {
		add("trust:"+h, "tools of host %s that say they are read-only run unasked", h)
	}
	return slices.Concat(items[:]...)
}

// over is the Over of its settings; nothing where it has none.
func (p *Policy) over(kept json.RawMessage) (stricter json.RawMessage, wider []Item, err error) {
	if p.Settings == nil {
		return nil, nil, nil
	}
	return p.Settings.Over(kept)
}

// Loosens lists what the policy widens over the built-in default: what a person is
// asked about who has accepted nothing yet.
func (p Policy) Loosens() ([]Item, error) {
	_, wider, err := p.over(nil)
	return append(loosening(&Policy{}, &p), wider...), err
}

func has(rules []Rule, r Rule) bool { return slices.ContainsFunc(rules, r.Equal) }

// without returns what of a is not in b.
func without(a, b []string) []string {
	var out []string
	for _, s := range a {
		if !slices.Contains(b, s) {
			out = append(out, s)
		}
	}
	return out
}

// tightened is what stays accepted when next is proposed, beside the settings:
// accepted, with everything that next tightens, so that this outlives a next
// proposal.
func tightened(accepted, next *Policy) Policy {
	p := Policy{Rules: slices.Clone(accepted.Rules), ConfigRules: slices.Clone(accepted.ConfigRules), Unknown: accepted.Unknown}
	for _, r := range next.Rules {
		if r.Then == ThenDeny && !has(p.Rules, r) {
			p.Rules = append(p.Rules, r)
		}
	}
	for _, r := range next.ConfigRules {
		if r.Then == ThenDeny && !has(p.ConfigRules, r) {
			p.ConfigRules = append(p.ConfigRules, r)
		}
	}
	// An allow that is gone is gone.
	gone := func(now []Rule) func(Rule) bool {
		return func(r Rule) bool { return r.Then == ThenAllow && !has(now, r) }
	}
	p.Rules = slices.DeleteFunc(p.Rules, gone(next.Rules))
	p.ConfigRules = slices.DeleteFunc(p.ConfigRules, gone(next.ConfigRules))

	p.AllowedActions = map[string][]string{}
	for _, m := range []map[string][]string{accepted.AllowedActions, next.AllowedActions} {
		for c := range m {
			if a := intersect(accepted.AllowedActions[c], next.AllowedActions[c]); a != nil {
				p.AllowedActions[c] = a
			}
		}
	}
	for _, h := range accepted.TrustHints {
		if slices.Contains(next.TrustHints, h) {
			p.TrustHints = append(p.TrustHints, h)
		}
	}
	return p
}

// inForce is what decides now: what is accepted and, while a proposal waits to
// be accepted, the proposal besides. The stricter of both holds.
type inForce struct {
	accepted *ruleset
	proposed *ruleset // nil when it is accepted
}

// sets returns both; the second is nil when it is accepted.
func (f *inForce) sets() [2]*ruleset { return [2]*ruleset{f.accepted, f.proposed} }

// loadAccepted returns what a store holds; nil: there is none.
func loadAccepted(s Store) (Policy, error) {
	var p Policy
	if s == nil {
		return p, nil
	}
	b, err := s.Load()
	if err == nil && b != nil {
		err = json.Unmarshal(b, &p)
	}
	return p, err
}
