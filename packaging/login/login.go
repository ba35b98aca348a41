// Package login starts a program when a person logs in: by a LaunchAgent on macOS,
// by a systemd user unit that follows the graphical session on Linux.
//
// github.com/kardianos/service puts the file in place, takes it away and says
// whether the program runs, from templates of ours. Where it falls short we add to
// it: it refuses to install what is there already, has no notion of a stale file,
// loads by launchctl's old verbs, takes a machine without systemd for one of System
// V and writes to /etc there, and keeps what the tools say to itself.
package login

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/kardianos/service"

	"drawbridge/bridge/private"
)

// Label names the item to launchd; systemd has it as drawbridge.service.
const Label = "io.github.drawbridge.Drawbridge"

// Status says how things stand.
type Status struct {
	System    string `json:"system"` // launchd or systemd
	File      string `json:"file"`
	Installed bool   `json:"installed"`
	// Stale: a file is there, and not the one that would be written now, such as
	// one that starts a program that was moved.
	Stale bool `json:"stale"`
	// Enabled: the system knows it and will start it.
	Enabled bool `json:"enabled"`
	// Running: what the system started still runs. An agent that was started in
	// another way does not count.
	Running bool `json:"running"`
}

// Options say what is started, and for whom.
type Options struct {
	Program string // absolute
	Home    string // absolute, of the person who runs this
	UID     int
	// Inside: who asks is what the login item started. Only the file is changed:
	// launchd ends what it runs when it is told to forget it, or to load it anew.
	Inside bool
}

// A manager is launchd or systemd.
type manager interface {
	name() string
	// system is what the service library calls it.
	system() string
	file() string
	// config has the library write the file: from a template, and values for it.
	config() *service.Config
	// content is what the library makes of that, which it does not tell.
	content() []byte
	// check says why the system cannot be used.
	check(context.Context) error
	// enable tells the system about the file, which may have changed.
	enable(context.Context) error
	// disable makes the system forget it. It is no error that it knows nothing.
	disable(context.Context) error
	enabled(context.Context) (bool, error)
}

func (o Options) manager() (manager, error) {
	if !filepath.IsAbs(o.Program) || !filepath.IsAbs(o.Home) {
		return nil, fmt.Errorf("the program %q and the home %q must be absolute paths", o.Program, o.Home)
	}
	if strings.ContainsAny(o.Program+o.Home, "\n\r\x00") {
		return nil, errors.New("a path with a line break cannot be started at login")
	}
	// The library cleans it, too.
	o.Program = filepath.Clean(o.Program)
	if chosen() == launchdSystem {
		return launchd{o}, nil
	}
	if strings.ContainsAny(o.Program, "\"'\\") {
		return nil, fmt.Errorf("systemd starts no program with quotes or backslashes in its path, as in %s: put it elsewhere", o.Program)
	}
	return systemd{o}, nil
}

// chosen is the system that the library uses here.
func chosen() string { return service.ChosenSystem().String() }

const instead = "have your desktop start drawbridge by its own means"

// usable says why the login item cannot be used here. The library would go on with
// whatever it finds, so it is asked first what that is.
func usable(ctx context.Context, m manager) error {
	if c := chosen(); c != m.system() {
		return fmt.Errorf("the login item needs launchd or systemd, and services here are kept by %s; %s", c, instead)
	}
	return m.check(ctx)
}

// item is the login item as the library has it. The program is never run through
// it, so it is given nothing to run.
func item(m manager) (service.Service, error) {
	s, err := service.New(nil, m.config())
	if err != nil {
		return nil, fmt.Errorf("the login item: %w", err)
	}
	return s, nil
}

// Install has the program started at login, from now on. It may be called again:
// what is in order is left alone, what is stale is repaired. changed says whether
// it did anything. Where it fails, no new item is left behind.
func Install(ctx context.Context, o Options) (file string, changed bool, err error) {
	m, err := o.manager()
	if err != nil {
		return "", false, err
	}
	if err := usable(ctx, m); err != nil {
		return "", false, err
	}
	s, err := item(m)
	if err != nil {
		return "", false, err
	}
	file = m.file()
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, false, err
	}
	there := err == nil
	stale := there && !bytes.Equal(old, m.content())
	if there && !stale {
		on, err := m.enabled(ctx)
		if err != nil || on {
			return file, false, err
		}
	}
	switch {
	case !there:
		err = create(s, m)
		if o.Inside {
			return file, err == nil, err
		}
	case stale:
		// The library would want the old one removed first, and a person would
		// have none if that were all that happened.
		err = private.WriteFile(file, m.content())
	}
	if err == nil {
		err = m.enable(ctx)
	}
	if err != nil && !there {
		_ = s.Uninstall() // as far as it gets: what counts is the file
		if gone := os.Remove(file); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
			err = errors.Join(err, gone)
		}
	}
	return file, err == nil, err
}

// create has the library write a new file, and holds it to the content that we
// compare with later.
func create(s service.Service, m manager) error {
	err := s.Install()
	got, unread := os.ReadFile(m.file())
	if bytes.Equal(got, m.content()) {
		// What else went wrong goes wrong again when the item is enabled, which
		// tells more about it.
		return nil
	}
	switch {
	case err != nil:
	case errors.Is(unread, fs.ErrNotExist):
		err = fmt.Errorf("it was put elsewhere, so HOME is not the home directory of this person: %w", unread)
	case unread != nil:
		err = unread
	default:
		err = errors.New("it has another content than was meant")
	}
	return fmt.Errorf("writing %s: %w", m.file(), err)
}

// Remove has the program not started any more. It may be called again. removed
// says whether there was anything.
func Remove(ctx context.Context, o Options) (removed bool, err error) {
	m, err := o.manager()
	if err != nil {
		return false, err
	}
	_, err = os.Lstat(m.file())
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	if o.Inside && there {
		return true, os.Remove(m.file())
	}
	if err := usable(ctx, m); err != nil {
		if !there {
			return false, nil // there is nothing, and nothing that could know of it
		}
		// The file is what matters: without it nothing starts.
		return true, os.Remove(m.file())
	}
	on, err := m.enabled(ctx)
	if err != nil {
		return false, err
	}
	if on {
		if err := m.disable(ctx); err != nil {
			return false, err
		}
	}
	if !there {
		return on, nil
	}
	s, err := item(m)
	if err != nil {
		return false, err
	}
	if err := s.Uninstall(); err != nil {
		return false, fmt.Errorf("removing %s: %w", m.file(), err)
	}
	return true, nil
}

// Read says how things stand.
func Read(ctx context.Context, o Options) (Status, error) {
	m, err := o.manager()
	if err != nil {
		return Status{}, err
	}
	s := Status{System: m.name(), File: m.file()}
	content, err := os.ReadFile(m.file())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s, err
	}
	s.Installed = err == nil
	s.Stale = s.Installed && !bytes.Equal(content, m.content())
	if err := usable(ctx, m); err != nil {
		return s, err
	}
	if s.Enabled, err = m.enabled(ctx); err != nil {
		return s, err
	}
	it, err := item(m)
	if err != nil {
		return s, err
	}
	// Its errors are ways not to run: not installed, or ended by a failure. That
	// the system can be asked was just seen.
	state, _ := it.Status()
	s.Running = state == service.StatusRunning
	return s, nil
}

// fill puts values in the place of a template's actions, as the library does:
// pairs of an action and its value, which is not looked at again.
func fill(template string, values ...string) []byte {
	return []byte(strings.NewReplacer(values...).Replace(template))
}

// run runs one of the system's tools. Another exit code than 0 is no error here.
func run(ctx context.Context, tool string, args ...string) (out string, code int, err error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return stderr.String(), exit.ExitCode(), nil
	}
	return stdout.String(), 0, err
}

// must is run where another exit code than 0 is an error.
func must(ctx context.Context, tool string, args ...string) error {
	out, code, err := run(ctx, tool, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("exit code %d: %s", code, strings.TrimSpace(out))
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", tool, strings.Join(args, " "), err)
	}
	return nil
}
