package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"drawbridge/bridge/control"
	"drawbridge/packaging/hosts"
	"drawbridge/packaging/install"
	"drawbridge/packaging/login"
)

// installOptions are the flags of install.
type installOptions struct {
	app         string
	dir         string
	noLink      bool
	newIdentity bool
	downgrade   bool
}

// installed is what install --json prints.
type installed struct {
	install.Result
	Link    string `json:"link,omitempty"`
	OnPath  bool   `json:"link_on_path"`
	Running bool   `json:"old_running"` // an agent runs, from what was there before
}

func (c *cli) installCommand() *cobra.Command {
	var o installOptions
	cmd := &cobra.Command{
		Use: "install", Short: "Put the app at its stable place, and the command on PATH",
		Long: `Put Drawbridge.app into /Applications, or into ~/Applications where that may not be
written, and link the command onto PATH. An older version there is replaced in one
step. macOS ties permissions to the app's signature: where the new app is another
one to macOS, nothing is done until --new-identity says that they may be lost, and
where it is an older version, until --downgrade says that it is meant.

That is for macOS. Elsewhere the command is one file: put it into a directory on
PATH, as with: ` + ownPlace,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := c.install(cmd, o)
			if err != nil {
				return err
			}
			if c.flags.json {
				return c.printJSON(r)
			}
			return writeInstalled(c.out, r)
		},
	}
	f := cmd.Flags()
	f.StringVar(&o.app, "app", "", "the `app` to install (default: the one that this command is part of)")
	f.StringVar(&o.dir, "dir", "", "the `directory` to install it in")
	f.BoolVar(&o.noLink, "no-link", false, "do not link the command onto PATH")
	f.BoolVar(&o.downgrade, "downgrade", false, "go on where the app in place is a newer version, whose state this one may refuse")
	f.BoolVar(&o.newIdentity, "new-identity", false, "go on where the permissions given to the app in place are lost")
	return cmd
}

func (c *cli) install(cmd *cobra.Command, o installOptions) (installed, error) {
	home, homeless := homeDir(c.getenv)
	if o.app == "" {
		exe, err := ownProgram()
		if err != nil {
			return installed{}, err
		}
		o.app = install.AppOf(exe)
		switch {
		case o.app == "" && runtime.GOOS != "darwin":
			return installed{}, &exitError{code: exitUsage, err: fmt.Errorf("%s is not part of an app, which is for macOS alone: here the command is this one file", exe), hint: "put it on PATH, as with: " + ownPlace}
		case o.app == "":
			return installed{}, &exitError{code: exitUsage, err: fmt.Errorf("%s is not part of an app", exe), hint: "make one with make app, and name it with --app"}
		}
	}
	if homeless != nil && (!o.noLink || o.dir == "") {
		return installed{}, homeless
	}
	arch := "" // elsewhere no app starts
	if runtime.GOOS == "darwin" {
		arch = runtime.GOARCH
	}
	if o.dir == "" {
		if arch == "" {
			return installed{}, usagef("an app is installed on macOS; here, name the directory with --dir")
		}
		o.dir = install.Dir(home)
	}
	var err error
	for _, p := range []*string{&o.app, &o.dir} {
		if *p, err = filepath.Abs(*p); err != nil {
			return installed{}, err
		}
	}
	var r installed
	r.Result, err = install.Install(install.Options{Source: o.app, Dir: o.dir, NewIdentity: o.newIdentity, Downgrade: o.downgrade, Arch: arch})
	var identity *install.IdentityError
	var older *install.DowngradeError
	switch {
	case errors.As(err, &identity):
		return r, &exitError{code: exitFailed, err: err, hint: "to go on all the same: drawbridge install --new-identity"}
	case errors.As(err, &older):
		return r, &exitError{code: exitFailed, err: err, hint: "to go on all the same: drawbridge install --downgrade"}
	}
	if err != nil {
		return r, err
	}
	if !o.noLink {
		if r.Link, r.OnPath, err = install.Link(r.App, install.LinkDirs(home), filepath.Join(home, ".local", "bin"), c.getenv("PATH")); err != nil {
			return r, fmt.Errorf("the app is in place, the link is not: %w", err)
		}
	}
	r.Running = !r.Unchanged && c.ask(cmd, verbStatus, nil, nil) == nil
	return r, nil
}

func writeInstalled(w io.Writer, r installed) error {
	var b strings.Builder
	switch {
	case r.Unchanged:
		fmt.Fprintf(&b, "Drawbridge %s is in place: %s\n", r.Version, r.App)
	case r.Replaced == r.Version:
		fmt.Fprintf(&b, "installed Drawbridge %s: %s (in place of another build of it)\n", r.Version, r.App)
	case r.Replaced != "":
		fmt.Fprintf(&b, "installed Drawbridge %s: %s (in place of %s)\n", r.Version, r.App, r.Replaced)
	default:
		fmt.Fprintf(&b, "installed Drawbridge %s: %s\n", r.Version, r.App)
	}
	if r.Link != "" {
		fmt.Fprintf(&b, "linked the command: %s\n", r.Link)
		if !r.OnPath {
			fmt.Fprintf(&b, "  the shell does not look there: add %s to PATH\n", filepath.Dir(r.Link))
		}
	}
	if r.PermissionsLost {
		fmt.Fprintf(&b, "the permissions of the app before are lost; take them off the lists, then give them again when Drawbridge asks:\n%s", resetLines())
	}
	if r.Downgraded {
		fmt.Fprintf(&b, "it is older than what was in place: where it refuses the state, put back what backup-format-N in the state directory holds\n")
	}
	if r.Running {
		fmt.Fprintf(&b, "the old one still runs; to change over: drawbridge stop --quit, then open %s\n", r.App)
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// resetLines are the commands that take Drawbridge off macOS's lists of
// permissions.
func resetLines() string {
	var b strings.Builder
	for _, service := range []string{"Accessibility", "PostEvent", "ScreenCapture", "ListenEvent", "AppleEvents"} {
		fmt.Fprintf(&b, "  tccutil reset %s %s\n", service, install.Identifier)
	}
	return b.String()
}

// ownProgram is this program's file, with links followed.
func ownProgram() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	return filepath.EvalSymlinks(exe)
}

// uninstalled is what uninstall --json prints.
type uninstalled struct {
	Removed []string `json:"removed"`
	Kept    []string `json:"kept"`
	app     bool     // an app was removed
}

func (c *cli) uninstallCommand() *cobra.Command {
	var dir string
	var purge bool
	cmd := &cobra.Command{
		Use: "uninstall", Short: "Remove the app and what belongs to it",
		Long: `End the running agent and remove the app, the login item, the link on PATH and
the extensions of hosts. State and configuration stay, unless --purge asks for
them to go too: tokens, rules and the audit are gone for good then.`,
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, err := c.uninstall(cmd.Context(), dir, purge)
			if c.flags.json {
				return errors.Join(c.printJSON(r), err)
			}
			for _, p := range r.Removed {
				fmt.Fprintf(c.out, "removed %s\n", p)
			}
			for _, p := range r.Kept {
				fmt.Fprintf(c.out, "kept %s; --purge removes it\n", p)
			}
			if len(r.Removed) == 0 && err == nil {
				fmt.Fprintln(c.out, "nothing was installed")
			}
			if r.app {
				fmt.Fprintf(c.out, "macOS keeps the permissions on its lists; these take them off:\n%s", resetLines())
			}
			return err
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "", "the `directory` that the app is in (default: /Applications and ~/Applications, on macOS)")
	f.BoolVar(&purge, "purge", false, "remove state and configuration too")
	return cmd
}

// uninstall removes everything that it can, also where one part fails.
func (c *cli) uninstall(ctx context.Context, dir string, purge bool) (uninstalled, error) {
	r := uninstalled{Removed: []string{}, Kept: []string{}}
	home, err := homeDir(c.getenv)
	if err != nil {
		return r, err
	}
	state, err := c.stateDir()
	if err != nil {
		return r, err
	}
	keys := openSeals(state) // while its place is there to be named
	// The login item first: launchd would start again what is ended.
	var problems []error
	removed := func(what string, is bool, err error) {
		if is {
			r.Removed = append(r.Removed, what)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", what, err))
		}
	}
	item := c.loginItem("/")
	is, err := login.Remove(ctx, item)
	removed("the login item", is, err)
	if err := c.endAgent(ctx, state); err != nil {
		return r, errors.Join(append(problems, err)...)
	}
	// An extension that is left would look for the agent, and deny its host a model
	// where it cannot read what the agent last said.
	for _, kind := range hosts.Kinds {
		where, err := c.extensionDir(kind)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		is, err := hosts.Uninstall(where)
		removed("the extension of "+kind, is, err)
	}
	dirs := []string{dir}
	if dir == "" && runtime.GOOS == "darwin" {
		dirs = []string{"/Applications", filepath.Join(home, "Applications")}
	}
	for _, d := range dirs {
		if d == "" {
			continue
		}
		if d, err = filepath.Abs(d); err != nil {
			return r, err
		}
		app := filepath.Join(d, install.Name)
		links, err := install.Unlink(app, install.LinkDirs(home))
		r.Removed = append(r.Removed, links...)
		if err != nil {
			problems = append(problems, err)
		}
		is, err := install.Uninstall(d, install.Identifier)
		removed(app, is, err)
		r.app = r.app || is
	}
	config, asked, err := c.configFile()
	if err != nil {
		return r, err
	}
	ours := stateTree
	if !asked && filepath.Dir(config) == state { // as on macOS
		ours.files = append(slices.Clip(ours.files), filepath.Base(config))
	}
	for _, p := range []struct {
		path   string
		remove func(string) error
	}{
		{state, func(dir string) error {
			if err := isStateDir(dir, home); err != nil {
				return err
			}
			return ours.purge(dir)
		}},
		{config, func(file string) error {
			if asked {
				return errors.New("a configuration that was named is left where it is")
			}
			return os.Remove(file)
		}},
		{filepath.Join(home, "Library", "Logs", "Drawbridge"), logsTree.purge},
	} {
		if _, err := os.Lstat(p.path); err != nil {
			continue
		}
		if !purge {
			r.Kept = append(r.Kept, p.path)
			continue
		}
		err := p.remove(p.path)
		removed(p.path, err == nil, err)
	}
	if purge {
		gone, kept, err := keys.remove()
		r.Removed, r.Kept = append(r.Removed, gone...), append(r.Kept, kept...)
		if err != nil {
			problems = append(problems, err)
		}
	}
	if purge && !asked {
		_ = os.Remove(filepath.Dir(config)) // if nothing else is in it
	}
	return r, errors.Join(problems...)
}

// isStateDir refuses to take a directory for one of ours that may hold other
// things of a person.
func isStateDir(dir, home string) error {
	if rel, err := filepath.Rel(dir, home); err != nil || filepath.IsLocal(rel) {
		return errors.New("the home directory is in it: remove what is Drawbridge's yourself")
	}
	// A token, which host install makes too, may come before the first agent.
	for _, ours := range []string{"lock", "tokens.lock"} {
		if _, err := os.Lstat(filepath.Join(dir, ours)); err == nil {
			return nil
		}
	}
	return errors.New("no agent ever ran there: remove it yourself")
}

// endAgent ends the agent of a state directory, if one runs, and waits until it
// has.
func (c *cli) endAgent(ctx context.Context, state string) error {
	agent, err := control.Dial(ctx, state)
	if errors.Is(err, control.ErrNoAgent) {
		return nil
	}
	if err == nil {
		err = agent.Do(ctx, verbQuit, nil, nil, nil)
	}
	if err != nil && !errors.Is(err, control.ErrNoAgent) {
		return fmt.Errorf("ending the running agent: %w", err)
	}
	for deadline := time.Now().Add(2 * closeWithin); ; {
		lock, held, pid, err := lockState(state)
		if err != nil {
			return err
		}
		if !held {
			return lock.Close()
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("the agent, pid %s, does not end: end it, then uninstall again", pid)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// leaveVolatile keeps the agent from serving from a place where its app cannot
// keep permissions, and offers to move it. moved says that the app was moved and
// started from its new place.
func (c *cli) leaveVolatile(ctx context.Context) (moved bool, err error) {
	exe, err := ownProgram()
	if err != nil {
		return false, err
	}
	return c.moveAway(ctx, exe)
}

// moveAway is leaveVolatile of a program.
func (c *cli) moveAway(ctx context.Context, exe string) (moved bool, err error) {
	app, home := install.AppOf(exe), c.getenv("HOME")
	if app == "" {
		return false, nil
	}
	why := install.Volatile(app, home, c.getenv("TMPDIR"))
	if why == "" {
		return false, nil
	}
	refused := &exitError{
		code: exitUsage,
		err:  fmt.Errorf("not serving from %s: %s, and macOS would forget the permissions given there", app, why),
		hint: "move it: drawbridge install, or drag it into Applications; then start it there",
	}
	if !macOS {
		return false, refused
	}
	dir := install.Dir(home)
	yes, err := c.confirmMove(ctx, fmt.Sprintf("Drawbridge cannot keep its permissions where it is: %s. Move it to %s and start it there?", why, dir))
	if err != nil || !yes {
		return false, errors.Join(refused, err)
	}
	r, err := install.Install(install.Options{Source: app, Dir: dir, Arch: runtime.GOARCH})
	if err != nil {
		return false, err
	}
	// By LaunchServices, so that permissions land on the app and on no parent.
	if out, err := exec.CommandContext(ctx, "open", "-n", r.App).CombinedOutput(); err != nil {
		return false, fmt.Errorf("moved to %s, but it does not start: %w: %s", r.App, err, strings.TrimSpace(string(out)))
	}
	_, err = fmt.Fprintf(c.out, "moved to %s and started there\n", r.App)
	return true, err
}

// confirmMove asks the person: in the terminal where there is one, else in a
// dialog.
func (c *cli) confirmMove(ctx context.Context, question string) (bool, error) {
	if isTerminal(c.in) {
		fmt.Fprintf(c.err, "%s [y/N] ", question)
		line, err := bufio.NewReader(c.in).ReadString('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return false, err
		}
		answer := strings.ToLower(strings.TrimSpace(line))
		return answer == "y" || answer == "yes", nil
	}
	const move = "Move and Start"
	// The text comes as an argument, so that it is never taken for script.
	out, err := exec.CommandContext(ctx, "osascript", "-e", "on run argv",
		"-e", `display dialog (item 1 of argv) buttons {"Quit", "`+move+`"} default button 2 with title "Drawbridge"`,
		"-e", "end run", question).Output()
	if err != nil {
		return false, fmt.Errorf("asking in a dialog: %w", err)
	}
	return strings.Contains(string(out), move), nil
}
