package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/control"
	"drawbridge/bridge/gate"
	"drawbridge/ui"
)

// ruleEntry is one rule as rules list prints it.
type ruleEntry struct {
	Place  string `json:"place"`  // rules, or config
	Number int    `json:"number"` // in its place, from 1; 0 where it is there no more
	Key    string `json:"key"`
	// Waits: it is not in force before a person accepts it. With number 0 it is in
	// force until a person accepts that it is gone.
	Waits bool `json:"waits"`
	gate.Rule
}

// String is the rule, and whether it waits.
func (r ruleEntry) String() string {
	switch {
	case r.Number == 0:
		return r.Rule.String() + ", in force until a person accepts that it is gone"
	case r.Waits:
		return r.Rule.String() + ", waits for a person"
	}
	return r.Rule.String()
}

// ruleList is what the agent answers to the verb rules.
type ruleList struct {
	Rules    []ruleEntry  `json:"rules"`
	Grants   []gate.Grant `json:"grants"`   // what a person allowed for a while
	Warnings []string     `json:"warnings"` // what is looser than by default, or not accepted yet
}

// revoked is what the agent answers to the verb revoke_rule: one of both.
type revoked struct {
	Rule  *gate.Rule  `json:"rule,omitempty"`
	Grant *gate.Grant `json:"grant,omitempty"`
}

func (r revoked) String() string {
	if r.Grant != nil {
		return r.Grant.String()
	}
	return r.Rule.String()
}

// listRules lists the rules of the file and of the configuration, and those that are
// in force still; force is nil where no agent runs.
func listRules(own, conf []gate.Rule, force *gate.Policy) []ruleEntry {
	if force == nil {
		force = &gate.Policy{Rules: own, ConfigRules: conf}
	}
	has := func(list []gate.Rule, r gate.Rule) bool { return slices.ContainsFunc(list, r.Equal) }
	list := []ruleEntry{}
	for _, part := range []struct {
		place          string
		rules, inForce []gate.Rule
	}{{"rules", own, force.Rules}, {"config", conf, force.ConfigRules}} {
		for i, r := range part.rules {
			list = append(list, ruleEntry{Place: part.place, Number: i + 1, Key: r.Key(), Waits: !has(part.inForce, r), Rule: r})
		}
		for _, r := range part.inForce {
			if !has(part.rules, r) {
				list = append(list, ruleEntry{Place: part.place, Key: r.Key(), Waits: true, Rule: r})
			}
		}
	}
	return list
}

func (a *agent) listRules() []ruleEntry {
	a.mu.Lock()
	conf := a.read.Written.Rules
	a.mu.Unlock()
	force := a.gate.InForce()
	return listRules(a.gate.Rules(), conf, &force)
}

func (a *agent) rules() ruleList {
	return ruleList{Rules: a.listRules(), Grants: a.gate.Grants(), Warnings: a.gate.Warnings()}
}

// remembered is what rules list lists, for the surfaces: first what ends by
// itself.
func (a *agent) remembered(now time.Time) []ui.Rule {
	var out []ui.Rule
	for _, g := range a.gate.Grants() {
		r := ui.Rule{Key: g.Key, Text: g.String(), Lasts: lasting[g.Kind], Until: g.Until}
		if !g.Until.IsZero() {
			r.Left = max(time.Millisecond, g.Until.Sub(now))
		}
		out = append(out, r)
	}
	for _, r := range a.listRules() {
		out = append(out, ui.Rule{Key: r.Key, Text: r.String(), Fixed: r.Place != "rules" || r.Number == 0})
	}
	return out
}

// lasting says how long a grant lasts that does not end at a known time.
var lasting = map[gate.GrantKind]string{gate.GrantConn: "while its connection lives", gate.GrantLook: "until Drawbridge ends"}

// revoke takes a rule out of the person's file, by number or key, or ends what
// was allowed for a while.
func (a *agent) revoke(which string) (revoked, error) {
	if g, ok := a.gate.RevokeGrant(which); ok {
		return revoked{Grant: &g}, nil
	}
	r, err := a.gate.RevokeRule(which)
	return revoked{Rule: &r}, err
}

func (a *agent) revokeRule(_ context.Context, raw json.RawMessage, _ func(any) error) (any, error) {
	var which string
	if err := json.Unmarshal(raw, &which); err != nil {
		return nil, fmt.Errorf("the argument of %s: %w", verbRevoke, err)
	}
	return a.revoke(which)
}

func (c *cli) rulesCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "rules", Short: "What runs unasked, what asks, what is denied"}
	cmd.AddCommand(
		&cobra.Command{
			Use: "list", Short: "List the rules, those of the person first", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				l, err := c.findRules(cmd)
				if err != nil {
					return err
				}
				if c.flags.json {
					return c.printJSON(l)
				}
				return writeRules(c.out, l)
			},
		},
		&cobra.Command{
			Use: "revoke NUMBER|KEY", Short: "Take a rule out of the person's file, or end what was allowed for a while", Args: exactArgs(1),
			Long: `Take a rule out of the person's file, by its number or key in rules list, or end
what a person allowed for a while, by its key. What allowed is gone at once. With a
rule that asked or denied gone, more is allowed: a running agent holds to it until a
person accepts that.`,
			RunE: func(cmd *cobra.Command, args []string) error {
				gone, err := c.revokeRule(cmd, args[0])
				if err != nil {
					return err
				}
				if c.flags.json {
					if gone.Grant != nil {
						return c.printJSON(map[string]any{"revoked": gone.Grant})
					}
					return c.printJSON(map[string]any{"revoked": gone.Rule})
				}
				_, err = fmt.Fprintf(c.out, "revoked %s\n", ui.Escape(gone.String(), 0))
				return err
			},
		},
	)
	return cmd
}

func writeRules(w io.Writer, l ruleList) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, g := range l.Grants {
		lasts := lasting[g.Kind]
		if !g.Until.IsZero() {
			lasts = fmt.Sprintf("for another %s", time.Until(g.Until).Round(time.Second))
		}
		fmt.Fprintf(t, "allowed\t\t%s\t%s, %s\n", g.Key, ui.Escape(g.String(), 0), lasts)
	}
	for _, r := range l.Rules {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", r.Place, r.Number, r.Key, ui.Escape(r.String(), 0))
	}
	if len(l.Rules)+len(l.Grants) == 0 {
		fmt.Fprintln(t, "no rules")
	}
	for _, text := range l.Warnings {
		fmt.Fprintf(t, "warning: %s\n", ui.Escape(text, 0)) // the configuration has a part in it
	}
	return t.Flush()
}

// rulesFile is the person's rules file of the state directory in force.
func (c *cli) rulesFile() (gate.RulesFile, error) {
	dir, err := c.stateDir()
	return rulesFile(dir), err
}

// rulesFile is the person's rules file of a state directory.
func rulesFile(dir string) gate.RulesFile {
	return gate.RulesFile{Path: filepath.Join(dir, rulesName), Check: computer.CheckRule}
}

// findRules asks the agent, or reads the files when none runs.
func (c *cli) findRules(cmd *cobra.Command) (ruleList, error) {
	var l ruleList
	if err := c.ask(cmd, verbRules, nil, &l); !errors.Is(err, control.ErrNoAgent) {
		return l, err
	}
	file, err := c.rulesFile()
	if err != nil {
		return l, err
	}
	own, err := file.Load()
	if err != nil {
		return l, &exitError{code: exitUsage, err: err}
	}
	conf, err := c.loadConfig(runOptions{})
	if err != nil {
		return l, err
	}
	return ruleList{Rules: listRules(own, conf.Rules, nil), Grants: []gate.Grant{}, Warnings: []string{}}, nil
}

func (c *cli) revokeRule(cmd *cobra.Command, which string) (revoked, error) {
	var gone revoked
	if err := c.ask(cmd, verbRevoke, which, &gone); !errors.Is(err, control.ErrNoAgent) {
		return gone, err
	}
	file, err := c.rulesFile()
	if err != nil {
		return gone, err
	}
	rule, _, err := file.Remove(which)
	return revoked{Rule: &rule}, err
}
