package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drawbridge/bridge/control"
	"drawbridge/bridge/gate"
)

// ruleEntry is one rule as rules list prints it.
type ruleEntry struct {
	Place  string `json:"place"`  // rules, or config
	Number int    `json:"number"` // in its place, from 1
	Key    string `json:"key"`
	gate.Rule
}

// ruleList is what the agent answers to the verb rules.
type ruleList struct {
	Rules    []ruleEntry `json:"rules"`
	Warnings []string    `json:"warnings"` // what is looser than by default, or not accepted yet
}

func listRules(own, conf []gate.Rule) []ruleEntry {
	list := []ruleEntry{}
	for _, part := range []struct {
		place string
		rules []gate.Rule
	}{{"rules", own}, {"config", conf}} {
		for i, r := range part.rules {
			list = append(list, ruleEntry{Place: part.place, Number: i + 1, Key: r.Key(), Rule: r})
		}
	}
	return list
}

func (a *agent) rules() ruleList {
	return ruleList{Rules: listRules(a.gate.Rules(), a.config().Rules), Warnings: a.gate.Warnings()}
}

func (a *agent) revokeRule(_ context.Context, raw json.RawMessage, _ func(any) error) (any, error) {
	var which string
	if err := json.Unmarshal(raw, &which); err != nil {
		return nil, fmt.Errorf("the argument of %s: %w", verbRevoke, err)
	}
	return a.gate.RevokeRule(which)
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
				t := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
				for _, r := range l.Rules {
					fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", r.Place, r.Number, r.Key, r.Rule)
				}
				if len(l.Rules) == 0 {
					fmt.Fprintln(t, "no rules")
				}
				for _, w := range l.Warnings {
					fmt.Fprintf(t, "warning: %s\n", w)
				}
				return t.Flush()
			},
		},
		&cobra.Command{
			Use: "revoke NUMBER|KEY", Short: "Take a rule out of the person's file", Args: exactArgs(1),
			Long: `Take a rule out of the person's file, by its number or key in rules list. A rule
that allowed is gone at once. With one that asked or denied gone, more is
allowed: a running agent holds to it until a person accepts that.`,
			RunE: func(cmd *cobra.Command, args []string) error {
				gone, err := c.revokeRule(cmd, args[0])
				if err != nil {
					return err
				}
				if c.flags.json {
					return c.printJSON(map[string]any{"revoked": gone})
				}
				_, err = fmt.Fprintf(c.out, "revoked %s\n", gone)
				return err
			},
		},
	)
	return cmd
}

// rulesFile is the person's rules file of the state directory in force.
func (c *cli) rulesFile() (gate.RulesFile, error) {
	dir, err := c.stateDir()
	return gate.RulesFile{Path: filepath.Join(dir, rulesName)}, err
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
	return ruleList{Rules: listRules(own, conf.Rules), Warnings: []string{}}, nil
}

func (c *cli) revokeRule(cmd *cobra.Command, which string) (gate.Rule, error) {
	var gone gate.Rule
	if err := c.ask(cmd, verbRevoke, which, &gone); !errors.Is(err, control.ErrNoAgent) {
		return gone, err
	}
	file, err := c.rulesFile()
	if err != nil {
		return gone, err
	}
	gone, _, err = file.Remove(which)
	return gone, err
}
