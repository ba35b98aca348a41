package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"drawbridge/bridge/control"
)

// cli is one command line under way.
type cli struct {
	stdio
	flags struct {
		config string
		state  string
		json   bool
	}
}

func (c *cli) root() *cobra.Command {
	var start runOptions
	root := &cobra.Command{
		Use:   "drawbridge",
		Short: "Let a program drive this desktop, and stay in charge of it",
		Long: `Drawbridge serves MCP over a local websocket: the tools of a host, and one
computer tool that drives the real desktop. A person approves what runs, and
everything is in an audit log.

Without a command it starts the agent, like drawbridge run.

Exit codes: 0 done, 1 failed, 2 wrong usage or configuration, 3 refused,
4 no agent running.`,
		Args:          noArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE:          func(cmd *cobra.Command, _ []string) error { return c.start(cmd.Context(), start) },
	}
	f := root.PersistentFlags()
	f.StringVar(&c.flags.config, "config", "", "configuration `file` (default: the platform's place)")
	f.StringVar(&c.flags.state, "state", "", "`directory` of everything that is written (default: the platform's place)")
	f.BoolVar(&c.flags.json, "json", false, "answer in JSON")
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return &exitError{code: exitUsage, err: err, hint: "see: " + cmd.CommandPath() + " --help"}
	})
	root.AddCommand(
		c.runCommand(), c.doctorCommand(), c.toolsCommand(), c.callCommand(), c.connectCommand(),
		c.clientCommand(), c.hostCommand(), c.hostLLMCommand(), c.rulesCommand(), c.statusCommand(),
		c.stopCommand(), c.pauseCommand(), c.reloadCommand(), c.activityCommand(),
		c.auditCommand(), c.loginItemCommand(), c.installCommand(), c.uninstallCommand(),
		c.configCommand(), c.versionCommand(),
	)
	root.SuggestionsMinimumDistance = 2
	// Before cobra's own commands are made: they keep the writer.
	root.SetIn(c.in)
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		strict(cmd)
	}
	return root
}

// strict makes a command that only has subcommands refuse to do nothing, and
// cobra's own commands end with our exit code.
func strict(cmd *cobra.Command) {
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
	if cmd.Args == nil || cmd.HasParent() && cmd.Parent().Name() == "completion" {
		cmd.Args = noArgs
	}
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			var names []string
			for _, sub := range cmd.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name())
				}
			}
			what := "needs a command"
			if len(args) > 0 {
				what = fmt.Sprintf("knows no command %q", args[0])
			}
			return usagef("%s %s: one of %s", cmd.CommandPath(), what, strings.Join(names, ", "))
		}
		cmd.Args = cobra.ArbitraryArgs
	}
}

// noArgs and exactArgs are cobra's, with our exit code and a hint.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if cmd.Parent() != nil {
		return &exitError{code: exitUsage, err: fmt.Errorf("%s takes no argument, not %q", cmd.CommandPath(), args[0]), hint: "see: " + cmd.CommandPath() + " --help"}
	}
	msg := fmt.Sprintf("there is no command %q", args[0])
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		msg += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return &exitError{code: exitUsage, err: fmt.Errorf("%s", msg), hint: "see: drawbridge --help"}
}

func exactArgs(n int) cobra.PositionalArgs { return rangeArgs(n, n) }

func rangeArgs(low, high int) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if len(args) >= low && len(args) <= high {
			return nil
		}
		return &exitError{code: exitUsage, err: fmt.Errorf("usage: %s", cmd.UseLine()), hint: "see: " + cmd.CommandPath() + " --help"}
	}
}

// printJSON writes v as one indented JSON value.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// ask asks the running agent one thing.
func (c *cli) ask(cmd *cobra.Command, verb string, args, out any) error {
	dir, err := c.stateDir()
	if err != nil {
		return err
	}
	agent, err := control.Dial(cmd.Context(), dir)
	if err != nil {
		return err
	}
	return agent.Do(cmd.Context(), verb, args, out, nil)
}

func (c *cli) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArgs,
		RunE: func(*cobra.Command, []string) error {
			if c.flags.json {
				return c.printJSON(map[string]string{"version": buildVersion()})
			}
			_, err := fmt.Fprintln(c.out, "drawbridge", buildVersion())
			return err
		},
	}
}
