package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Then is what a rule does with the calls that it fits.
type Then string

// What a rule can do. Among rules of one place deny beats ask beats allow.
const (
	ThenAllow Then = "allow"
	ThenAsk   Then = "ask"
	ThenDeny  Then = "deny"
)

// strictness orders verdicts; the zero value of Then, no rule, is below all.
func (t Then) strictness() int { return slices.Index([]Then{"", ThenAllow, ThenAsk, ThenDeny}, t) }

// Rule decides about calls. Tool, Client and Host are globs (see [Glob]); an
// empty Client or Host fits every one.
type Rule struct {
	Tool   string `yaml:"tool" json:"tool"`
	Client string `yaml:"client,omitempty" json:"client,omitempty"`
	Host   string `yaml:"host,omitempty" json:"host,omitempty"`
	// When maps JSON pointers into the arguments, in which a step * means every
	// element, to globs for the values there: a string's content, anything else's
	// JSON as sent. All of them must hold. For allow every value that a pointer
	// leads to must fit, there must be one, and no way may lead nowhere; for ask
	// and deny one value that fits is enough. Arguments that are no JSON, or that
	// hold a member that a pointer asks for twice or in another case, fit every
	// ask and deny, and no allow.
	When map[string]string `yaml:"when,omitempty" json:"when,omitempty"`
	Then Then              `yaml:"then" json:"then"`
}

// Key is a short name for the rule's content: equal rules have equal keys.
func (r Rule) Key() string {
	b, err := json.Marshal(r)
	if err != nil { // strings always marshal
		panic(err)
	}
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// String says the rule in one line, as YAML.
func (r Rule) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "{tool: %s", quote(r.Tool))
	if r.Client != "" {
		fmt.Fprintf(&b, ", client: %s", quote(r.Client))
	}
	if r.Host != "" {
		fmt.Fprintf(&b, ", host: %s", quote(r.Host))
	}
	if len(r.When) > 0 {
		b.WriteString(", when: {")
		for i, p := range slices.Sorted(maps.Keys(r.When)) {
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%s: %s", quote(p), quote(r.When[p]))
		}
		b.WriteString("}")
	}
	fmt.Fprintf(&b, ", then: %s}", r.Then)
	return b.String()
}

// quote returns s as a JSON string, which YAML reads too.
func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil { // a string always marshals
		panic(err)
	}
	return string(b)
}

// Equal tells whether two rules say the same.
func (r Rule) Equal(o Rule) bool { return r.Key() == o.Key() }

// Check tells what is wrong with the rule, also where it only can never fit.
func (r Rule) Check() error {
	if _, err := compileRule(r); err != nil {
		return err
	}
	for _, n := range []struct {
		what Named
		text string
	}{{NamedTool, r.Tool}, {NamedClient, r.Client}, {NamedHost, r.Host}} {
		if n.text == "" {
			continue
		}
		if _, err := ParseNames(n.what, n.text); err != nil {
			return fmt.Errorf("%s: %w", n.what, err)
		}
	}
	return nil
}

// compiled is a rule ready to be matched.
type compiled struct {
	rule               Rule
	by                 string // names it in verdicts
	tool, client, host Glob
	when               []condition
}

type condition struct {
	at   pointer
	glob Glob
}

func compileRule(r Rule) (compiled, error) {
	c := compiled{rule: r}
	if r.Tool == "" {
		return c, fmt.Errorf(`a rule needs a tool: write "*" for every one`)
	}
	if r.Then.strictness() <= 0 {
		return c, fmt.Errorf("then is %q: it must be allow, ask or deny", r.Then)
	}
	for _, g := range []struct {
		name, text string
		to         *Glob
	}{{"tool", r.Tool, &c.tool}, {"client", r.Client, &c.client}, {"host", r.Host, &c.host}} {
		if g.text == "" {
			continue
		}
		var err error
		if *g.to, err = ParseGlob(g.text); err != nil {
			return c, fmt.Errorf("%s: %w", g.name, err)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(r.When)) {
		at, err := parsePointer(p)
		if err != nil {
			return c, fmt.Errorf("when: %w", err)
		}
		glob, err := ParseGlob(r.When[p])
		if err != nil {
			return c, fmt.Errorf("when %q: %w", p, err)
		}
		c.when = append(c.when, condition{at, glob})
	}
	return c, nil
}

func compileRules(place string, rules []Rule) ([]compiled, error) {
	out := make([]compiled, len(rules))
	for i, r := range rules {
		c, err := compileRule(r)
		if err != nil {
			return nil, fmt.Errorf("rule %s:%d: %w", place, i+1, err)
		}
		c.by = fmt.Sprintf("rule %s:%d", place, i+1)
		out[i] = c
	}
	return out, nil
}

func (c *compiled) match(r *Request) bool {
	if !c.tool.Match(r.Tool) || !c.client.Match(r.Client) || !c.host.Match(r.Host) {
		return false
	}
	for i := range c.when {
		if !c.when[i].holds(r.Args, c.rule.Then == ThenAllow) {
			return false
		}
	}
	return true
}

// holds looks at the arguments; every asks for all values to fit.
func (c *condition) holds(args []byte, every bool) bool {
	if len(args) == 0 {
		args = []byte("{}") // what a call without arguments means
	}
	fit, unfit := 0, 0
	missing, err := c.at.find(args, func(text string) {
		if c.glob.Match(text) {
			fit++
		} else {
			unfit++
		}
	})
	if every {
		return err == nil && !missing && fit > 0 && unfit == 0
	}
	return err != nil || fit > 0
}

// first returns the rule of one place that decides, nil if none fits.
func first(rules []compiled, r *Request) *compiled {
	var best *compiled
	for i := range rules {
		c := &rules[i]
		if best != nil && c.rule.Then.strictness() <= best.rule.Then.strictness() {
			continue
		}
		if c.match(r) {
			if best = c; c.rule.Then == ThenDeny {
				break
			}
		}
	}
	return best
}
