package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"drawbridge/bridge"
	"drawbridge/ui"
)

// The verbs of the control socket. All are neutral or tightening.
const (
	verbStatus = "status"
	verbShow   = "show" // to the front; also: is somebody there
	verbDoctor = "doctor"
	verbStop   = "stop"
	verbPause  = "pause"
	verbReload = "reload"
	verbTools  = "tools"
	verbRules  = "rules"
	verbRevoke = "revoke_rule"
	verbTokens = "tokens" // read the tokens again, drop the revoked
	verbConfig = "config"
	verbQuit   = "quit"
	verbLogin  = "login" // look again whether the agent starts at login

	verbActivity = "activity" // open the page in the browser
)

func (c *cli) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use: "status", Short: "Say what the running agent does", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var raw json.RawMessage
			if err := c.ask(cmd, verbStatus, nil, &raw); err != nil {
				return err
			}
			if c.flags.json {
				return c.printJSON(raw)
			}
			var st bridge.Status
			if err := json.Unmarshal(raw, &st); err != nil {
				return fmt.Errorf("the agent's status has another shape than expected: %w", err)
			}
			return writeStatus(c.out, st)
		},
	}
}

func writeStatus(w io.Writer, st bridge.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "agent\tpid %d, version %s\n", st.PID, st.Version)
	backend := st.Backend
	if st.Reason != "" {
		backend += " (" + st.Reason + ")"
	}
	fmt.Fprintf(t, "backend\t%s\n", backend)
	if st.Display != "" {
		fmt.Fprintf(t, "display\t%s\n", st.Display)
	}
	state := "running"
	if st.Paused {
		state = "paused"
	}
	fmt.Fprintf(t, "calls\t%s, %d waiting for a person\n", state, st.Pending)
	for _, c := range st.Clients {
		fmt.Fprintf(t, "client\t%s: %d connections, %d calls\n", c.Name, c.Connections, c.Calls)
	}
	for _, h := range st.Hosts {
		fmt.Fprintf(t, "host\t%s: %s, %s, %d tools\n", h.Name, h.Kind, h.State, h.Tools)
		for call, what := range h.Asking {
			fmt.Fprintf(t, "\tit asks somebody itself about call %s: %s\n", call, ui.Escape(what, 200))
		}
	}
	for _, warning := range st.Warnings {
		fmt.Fprintf(t, "warning\t%s\n", ui.Escape(warning, 0)) // hosts have a part in some
	}
	return t.Flush()
}

// stopped is what the agent answers to stop and pause: the calls that it ended.
type stopped struct {
	Stopped int    `json:"stopped"`
	Paused  bool   `json:"paused"`
	GoOn    string `json:"go_on,omitempty"` // after a pause: how a person goes on
}

func (c *cli) stopCommand() *cobra.Command {
	var quit bool
	cmd := &cobra.Command{
		Use: "stop", Short: "Stop everything that runs or waits, now",
		Long: `Stop every call that runs or waits: keys and buttons that are held are let go of,
and each call is answered with what it had done. What a person allowed for a
while is asked again. The agent goes on; with --quit it ends too.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			verb := verbStop
			if quit {
				verb = verbQuit
			}
			var s stopped
			if err := c.ask(cmd, verb, nil, &s); err != nil {
				return err
			}
			if c.flags.json {
				return c.printJSON(s)
			}
			what := fmt.Sprintf("stopped %d calls", s.Stopped)
			if quit {
				what += "; the agent ends"
			}
			_, err := fmt.Fprintln(c.out, what)
			return err
		},
	}
	cmd.Flags().BoolVar(&quit, "quit", false, "end the agent too")
	return cmd
}

func (c *cli) pauseCommand() *cobra.Command {
	return &cobra.Command{
		Use: "pause", Short: "Stop what runs and let nothing run until a person resumes",
		Long: `Stop what runs, and hold every new call until a person resumes at the agent
itself. There is no command that resumes: a program could run it.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var s stopped
			if err := c.ask(cmd, verbPause, nil, &s); err != nil {
				return err
			}
			if c.flags.json {
				return c.printJSON(s)
			}
			_, err := fmt.Fprintf(c.out, "paused; stopped %d calls\n%s\n", s.Stopped, s.GoOn)
			return err
		},
	}
}

// reloaded is what the agent answers to reload.
type reloaded struct {
	Changed  []string `json:"changed"` // fields in force now
	Restart  []string `json:"restart"` // fields that take a restart
	Waiting  []string `json:"waiting"` // what is not in force before a person accepts it
	Warnings []string `json:"warnings"`
}

func (c *cli) reloadCommand() *cobra.Command {
	return &cobra.Command{
		Use: "reload", Short: "Read the configuration and the rules again",
		Long: `Read the configuration and the rules again. What narrows holds at once; what
widens what programs may do waits until a person accepts it at the agent.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var r reloaded
			if err := c.ask(cmd, verbReload, nil, &r); err != nil {
				return err
			}
			if c.flags.json {
				return c.printJSON(r)
			}
			for _, part := range []struct {
				what string
				list []string
			}{{"changed", r.Changed}, {"after a restart", r.Restart}, {"waiting", r.Waiting}, {"warning", r.Warnings}} {
				for _, s := range part.list {
					if _, err := fmt.Fprintf(c.out, "%s: %s\n", part.what, ui.Escape(s, 0)); err != nil {
						return err
					}
				}
			}
			if len(r.Changed)+len(r.Restart)+len(r.Waiting) == 0 {
				_, err := fmt.Fprintln(c.out, "nothing changed")
				return err
			}
			return nil
		},
	}
}

// listing is the shape of tools --json.
type listing struct {
	Tools []listed `json:"tools"`
}

type listed struct {
	Host       string          `json:"host"`
	Definition json.RawMessage `json:"definition"`
}

func (c *cli) toolsCommand() *cobra.Command {
	return &cobra.Command{
		Use: "tools", Short: "List the tools that a client would see", Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var l listing
			if err := c.ask(cmd, verbTools, nil, &l); err != nil {
				return err
			}
			if c.flags.json {
				// Not through the indenting encoder: definitions stay as they are.
				b, err := json.Marshal(l)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(c.out, "%s\n", b)
				return err
			}
			return writeTools(c.out, l)
		},
	}
}

func writeTools(w io.Writer, l listing) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, tool := range l.Tools {
		var d struct {
			Name        string `json:"name"`
			Description string `json:"description"`
		}
		if err := json.Unmarshal(tool.Definition, &d); err != nil {
			return fmt.Errorf("a definition of host %s is no tool: %w", tool.Host, err)
		}
		first, _, _ := strings.Cut(strings.TrimSpace(d.Description), "\n")
		fmt.Fprintf(t, "%s\t%s\t%s\n", ui.Escape(d.Name, 0), ui.Escape(tool.Host, 0), ui.Escape(shorten(first, 80), 0))
	}
	return t.Flush()
}

func shorten(s string, n int) string {
	if r := []rune(s); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return s
}

// showConfig asks the running agent what it holds, unless a file was named or
// none runs.
func (c *cli) showConfig(cmd *cobra.Command, _ []string) error {
	var s shownConfig
	if c.flags.config != "" || c.ask(cmd, verbConfig, nil, &s) != nil {
		l, err := c.loadConfig(runOptions{})
		if err != nil {
			return err
		}
		s = shown(l)
	}
	if c.flags.json {
		s.Text = ""
		return c.printJSON(s)
	}
	return writeConfig(c.out, s.Text)
}

// writeConfig writes a configuration, in which names of others may stand.
func writeConfig(w io.Writer, text string) error {
	for line := range strings.Lines(text) {
		if _, err := fmt.Fprintln(w, ui.Escape(strings.TrimSuffix(line, "\n"), 0)); err != nil {
			return err
		}
	}
	return nil
}
