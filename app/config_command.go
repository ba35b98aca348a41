package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"drawbridge/app/config"
	"drawbridge/ui"
)

// loadConfig reads the configuration in force, with what flags and environment
// put over it.
func (c *cli) loadConfig(o runOptions) (*config.Loaded, error) {
	path, asked, err := c.configFile()
	if err != nil {
		return nil, err
	}
	l, err := config.Load(path, asked)
	if err != nil {
		return nil, &exitError{code: exitUsage, err: err}
	}
	for _, over := range []struct{ field, value, from string }{
		{"listen", c.getenv("DRAWBRIDGE_LISTEN"), "environment DRAWBRIDGE_LISTEN"},
		{"computer.backend", c.getenv("DRAWBRIDGE_BACKEND"), "environment DRAWBRIDGE_BACKEND"},
		{"listen", o.listen, "flag --listen"},
		{"computer.backend", o.backend, "flag --backend"},
	} {
		if over.value == "" {
			continue
		}
		if err := l.Set(over.field, over.value, over.from); err != nil {
			return nil, &exitError{code: exitUsage, err: err}
		}
	}
	return l, nil
}

func (c *cli) configCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "config", Short: "Check and show the configuration"}
	cmd.AddCommand(
		&cobra.Command{
			Use: "check", Short: "Check the configuration file, and say what in it a person is asked about", Args: noArgs,
			Long: "Check the configuration file, and say what in it goes beyond the defaults, so that a\n" +
				"person who has accepted nothing yet is asked. What a running agent waits for says\n" +
				"drawbridge status.",
			RunE: func(*cobra.Command, []string) error { return c.checkConfig() },
		},
		&cobra.Command{
			Use: "show", Short: "Print what is in force and where each value came from", Args: noArgs,
			Long: "Print what is in force and where each value came from: a file and line, a flag,\n" +
				"the environment, or the default. With an agent running, what it holds.",
			RunE: c.showConfig,
		},
		&cobra.Command{
			Use: "path", Short: "Print where the configuration file is", Args: noArgs,
			RunE: func(*cobra.Command, []string) error {
				path, _, err := c.configFile()
				if err != nil {
					return err
				}
				if c.flags.json {
					return c.printJSON(map[string]string{"path": path})
				}
				_, err = fmt.Fprintln(c.out, path)
				return err
			},
		},
		&cobra.Command{
			Use: "example", Short: "Print a configuration with every option and its default", Args: noArgs,
			RunE: func(*cobra.Command, []string) error {
				_, err := fmt.Fprint(c.out, config.Example())
				return err
			},
		},
	)
	return cmd
}

func (c *cli) checkConfig() error {
	l, err := c.loadConfig(runOptions{})
	if err != nil {
		return err
	}
	loosens, err := configPolicy(l.Written).Loosens()
	if err != nil {
		return err
	}
	asked := []string{}
	for _, it := range loosens {
		asked = append(asked, it.Text)
	}
	if c.flags.json {
		return c.printJSON(map[string]any{"ok": true, "path": l.Path, "found": l.Found, "asked": asked})
	}
	if !l.Found {
		_, err = fmt.Fprintf(c.out, "%s: no such file; the defaults hold\n", l.Path)
		return err
	}
	if _, err = fmt.Fprintf(c.out, "%s: good\n", l.Path); err != nil || len(asked) == 0 {
		return err
	}
	if _, err = fmt.Fprintln(c.out, "This goes beyond the defaults. A person who has not accepted it yet is asked about this, and it is not in force before:"); err != nil {
		return err
	}
	for _, text := range asked {
		if _, err = fmt.Fprintf(c.out, "  %s\n", ui.Escape(text, 0)); err != nil {
			return err
		}
	}
	return nil
}

// shownConfig is what the agent answers to the verb config.
type shownConfig struct {
	Path   string         `json:"path"`
	Found  bool           `json:"found"`
	Values []config.Value `json:"values"`
	Text   string         `json:"text,omitempty"`
}

func shown(l *config.Loaded) shownConfig {
	return shownConfig{Path: l.Path, Found: l.Found, Values: l.Values(), Text: l.Show()}
}
