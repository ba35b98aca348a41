package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/spf13/cobra"

	"drawbridge/packaging/install"
	"drawbridge/packaging/login"
	"drawbridge/ui"
)

func (c *cli) loginItemCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "login-item", Short: "Start the agent at login, or not",
		Long: `Have the agent started when you log in: by a LaunchAgent on macOS, by a systemd
user unit that follows the graphical session on Linux. Installing again repairs a
login item that starts something that was moved.`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use: "install", Short: "Start the agent at login", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				program, err := c.loginProgram()
				if err != nil {
					return err
				}
				file, changed, err := login.Install(cmd.Context(), c.loginItem(program))
				if err != nil {
					return err
				}
				c.toldLogin(cmd)
				if c.flags.json {
					return c.printJSON(map[string]any{"file": file, "changed": changed})
				}
				what := "Drawbridge starts at login"
				if !changed {
					what += " already"
				}
				if why := mayGo(program, c.getenv("HOME"), c.getenv("TMPDIR")); why != "" {
					fmt.Fprintf(c.err, "warning: it starts %s: %s; put the command where it stays, as with %s, and run login-item install from there\n", program, why, ownPlace)
				}
				_, err = fmt.Fprintf(c.out, "%s: %s\n", what, file)
				return err
			},
		},
		&cobra.Command{
			Use: "remove", Short: "Do not start the agent at login", Args: noArgs,
			Long: "Do not start the agent at login. On macOS an agent that the login item started\nends with it.",
			RunE: func(cmd *cobra.Command, _ []string) error {
				removed, err := login.Remove(cmd.Context(), c.loginItem("/"))
				if err != nil {
					return err
				}
				c.toldLogin(cmd)
				if c.flags.json {
					return c.printJSON(map[string]bool{"removed": removed})
				}
				what := "Drawbridge does not start at login any more"
				if !removed {
					what = "there was no login item"
				}
				_, err = fmt.Fprintln(c.out, what)
				return err
			},
		},
		&cobra.Command{
			Use: "status", Short: "Say whether the agent starts at login", Args: noArgs,
			RunE: func(cmd *cobra.Command, _ []string) error {
				program, err := ownProgram()
				if err != nil {
					return err
				}
				s, err := login.Read(cmd.Context(), c.loginItem(program))
				if err != nil {
					return err
				}
				if c.flags.json {
					return c.printJSON(s)
				}
				var text string
				switch {
				case !s.Installed && !s.Enabled:
					text = "Drawbridge does not start at login"
				case s.Masked:
					text = fmt.Sprintf("the login item is masked, so that %s starts nothing: %s; drawbridge login-item install repairs it, remove takes it away", s.System, s.File)
				case s.Stale:
					text = fmt.Sprintf("the login item is stale: %s starts another program than this one; drawbridge login-item install repairs it", s.File)
				case !s.Installed:
					text = fmt.Sprintf("the login item is half there: %s is gone, and what enables it is not; drawbridge login-item install repairs it, remove takes away the rest", s.File)
				case !s.Enabled:
					text = fmt.Sprintf("the login item is half there (%s); drawbridge login-item install repairs it", s.File)
				default:
					text = fmt.Sprintf("Drawbridge starts at login, by %s: %s", s.System, s.File)
				}
				_, err = fmt.Fprintln(c.out, text)
				return err
			},
		},
	)
	return cmd
}

// toldLogin has a running agent look again, for its menu. Without one nobody needs
// to be told.
func (c *cli) toldLogin(cmd *cobra.Command) { _ = c.ask(cmd, verbLogin, nil, nil) }

// readLogin looks whether the agent starts at login, for the menu. Where that
// cannot be changed from here the menu says nothing about it.
func (a *agent) readLogin(ctx context.Context) {
	var l ui.Login
	if program, err := a.cli.loginProgram(); err == nil {
		s, err := login.Read(ctx, a.cli.loginItem(program))
		l = ui.Login{Known: err == nil, On: s.Installed && s.Enabled && !s.Stale}
	}
	if old := a.login.Swap(&l); old == nil || *old != l {
		a.pulse.Touch()
	}
}

// setLogin has the agent start at login, or not.
func (a *agent) setLogin(ctx context.Context, on bool) error {
	defer a.readLogin(ctx)
	program, err := a.cli.loginProgram()
	if err != nil {
		return err
	}
	if on {
		_, _, err = login.Install(ctx, a.cli.loginItem(program))
	} else {
		_, err = login.Remove(ctx, a.cli.loginItem(program))
	}
	if err != nil {
		return fmt.Errorf("start at login: %w", err)
	}
	return nil
}

func (c *cli) loginItem(program string) login.Options {
	return login.Options{Program: program, Home: c.getenv("HOME"), UID: os.Getuid(), Inside: c.getenv("XPC_SERVICE_NAME") == login.Label}
}

// loginProgram is what starts at login: this program, which on macOS must be in an
// app at a place where it keeps its permissions.
func (c *cli) loginProgram() (string, error) {
	if c.flags.state != "" || c.flags.config != "" {
		return "", usagef("at login the agent starts with the platform's own places: leave out --state and --config")
	}
	exe, err := ownProgram()
	if err != nil || runtime.GOOS != "darwin" {
		return exe, err
	}
	app := install.AppOf(exe)
	why := "it is not part of an app"
	if app != "" {
		why = install.Volatile(app, c.getenv("HOME"), c.getenv("TMPDIR"))
	}
	if why != "" {
		return "", &exitError{code: exitUsage, err: fmt.Errorf("%s cannot start at login: %s", exe, why), hint: "first: drawbridge install"}
	}
	return exe, nil
}

// ownPlace is how a person puts the command where it stays, where it is in no app.
const ownPlace = "install -D build/drawbridge ~/.local/bin/drawbridge"

// mayGo says why a program that is in no app may not stay where it is, or nothing.
func mayGo(program, home, temp string) string {
	if install.AppOf(program) != "" {
		return "" // whether it stays was looked at
	}
	for dir := filepath.Dir(program); ; dir = filepath.Dir(dir) {
		for _, mark := range []string{".git", "go.mod"} {
			if _, err := os.Lstat(filepath.Join(dir, mark)); err == nil {
				return "it is in a source tree, where make replaces and removes it"
			}
		}
		if dir == filepath.Dir(dir) {
			return install.Volatile(program, home, temp)
		}
	}
}
