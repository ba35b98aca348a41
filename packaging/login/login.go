// Package login starts a program when a person logs in: by a LaunchAgent on macOS,
// by a systemd user unit that follows the graphical session on Linux.
//
// github.com/kardianos/service finds the system and puts the file in place, from
// templates of ours. Where it falls short we add to it: it refuses to install what
// is there already, has no notion of a stale file, waits for the tools without end,
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
	"syscall"
	"time"

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
	// Masked: the file is an empty one, or a link to nothing, by which systemd is
	// told to start nothing. It is stale, too.
	Masked bool `json:"masked,omitempty"`
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

// answersWithin is how long the system's tools may take over one thing that is asked
// of this package.
const answersWithin = 10 * time.Second

// limited bounds what is asked of the system's tools.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, answersWithin, fmt.Errorf("there is no answer within %s", answersWithin))
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
	// gone tells the system that the file is gone.
	gone(context.Context) error
	enabled(context.Context) (bool, error)
	running(context.Context) (bool, error)
	// links are those beside the file by which the system starts it, also where the
	// file is no more.
	links() []string
}

// maxFile bounds what is read of a file that may be anybody's.
const maxFile = 64 << 10

// standing is the item's file as it is found.
type standing struct {
	content []byte
	there   bool
	masked  bool
}

func (s standing) stale(m manager) bool { return s.there && !bytes.Equal(s.content, m.content()) }

func look(m manager) (s standing, err error) {
	_, err = os.Lstat(m.file())
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	s.there = true
	if to, err := os.Readlink(m.file()); err == nil && to == os.DevNull {
		s.masked = m.system() == systemdSystem
		return s, nil
	}
	s.content, err = private.ReadPlain(m.file(), 0, maxFile)
	if errors.Is(err, fs.ErrNotExist) { // a link to what was there
		return s, nil
	}
	if err != nil {
		return s, fmt.Errorf("the login item: %w; move it away", err)
	}
	s.masked = m.system() == systemdSystem && len(s.content) == 0
	return s, nil
}

// takeAway removes the file and the links to it, and says whether there were any.
func takeAway(m manager) (removed bool, err error) {
	for _, path := range append([]string{m.file()}, m.links()...) {
		err := os.Remove(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return removed, err
		}
		removed = true
		if path != m.file() {
			_ = os.Remove(filepath.Dir(path)) // where it was the last
		}
	}
	return removed, nil
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
	ctx, cancel := limited(ctx)
	defer cancel()
	if err := usable(ctx, m); err != nil {
		return "", false, err
	}
	file = m.file()
	found, err := look(m)
	if err != nil {
		return file, false, err
	}
	if found.there && !found.stale(m) {
		on, err := m.enabled(ctx)
		if err != nil || on {
			return file, false, err
		}
	}
	switch {
	case !found.there:
		err = create(ctx, m)
		if o.Inside {
			return file, err == nil, err
		}
	case found.stale(m):
		// The library would want the old one removed first, and a person would
		// have none if that were all that happened.
		err = private.WriteFile(file, m.content())
	}
	if err == nil {
		err = m.enable(ctx)
	}
	if err != nil && !found.there {
		_, kept := takeAway(m)
		err = errors.Join(err, kept)
	}
	return file, err == nil, err
}

// bounded runs what the library does, which waits for the system's tools without
// end. Where we do not, it ends with the tool that hangs.
func bounded(ctx context.Context, do func() error) error {
	done := make(chan error, 1)
	go func() { done <- do() }()
	select {
	case err := <-done:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// create has the library write a new file, and holds it to the content that we
// compare with later.
func create(ctx context.Context, m manager) error {
	s, err := item(m)
	if err != nil {
		return err
	}
	if err = bounded(ctx, s.Install); ctx.Err() != nil {
		return fmt.Errorf("writing %s: %w", m.file(), err)
	}
	got, unread := private.ReadPlain(m.file(), 0, maxFile)
	if bytes.Equal(got, m.content()) {
		// What else went wrong goes wrong again when the item is enabled, which
		// tells more about it.
		return nil
	}
	switch {
	case err != nil:
	case errors.Is(unread, fs.ErrNotExist):
		_ = bounded(ctx, s.Uninstall) // wherever it is
		err = fmt.Errorf("it was put elsewhere, so HOME is not the home directory of this person: %w", unread)
	case unread != nil:
		err = unread
	default:
		err = errors.New("it has another content than was meant")
	}
	return fmt.Errorf("writing %s: %w", m.file(), err)
}

// Remove has the program not started any more. It may be called again. removed
// says whether there was anything. The files go also where the system does not
// answer: without them nothing starts. That it was not told is an error then.
func Remove(ctx context.Context, o Options) (removed bool, err error) {
	m, err := o.manager()
	if err != nil {
		return false, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	if o.Inside {
		if removed, err = takeAway(m); removed || err != nil {
			return removed, err
		}
	}
	known := false
	untold := usable(ctx, m)
	reached := untold == nil
	if reached {
		if known, untold = m.enabled(ctx); known {
			untold = m.disable(ctx)
		}
	}
	gone, err := takeAway(m)
	removed = gone || known && untold == nil
	switch {
	case err != nil:
		return removed, errors.Join(err, untold)
	case !reached && (!gone || ctx.Err() == nil):
		return removed, nil // there is nobody who could know of it
	case reached && untold == nil && removed:
		untold = m.gone(ctx)
	}
	if untold != nil && gone {
		untold = fmt.Errorf("its files are removed, but %s was not told, and may know it until you log out: %w", m.name(), untold)
	}
	return removed, untold
}

// Read says how things stand.
func Read(ctx context.Context, o Options) (Status, error) {
	m, err := o.manager()
	if err != nil {
		return Status{}, err
	}
	ctx, cancel := limited(ctx)
	defer cancel()
	s := Status{System: m.name(), File: m.file()}
	found, err := look(m)
	if err != nil {
		return s, err
	}
	s.Installed, s.Stale, s.Masked = found.there, found.stale(m), found.masked
	if err := usable(ctx, m); err != nil {
		return s, err
	}
	if s.Enabled, err = m.enabled(ctx); err != nil {
		return s, err
	}
	if !s.Installed && len(m.links()) > 0 {
		s.Enabled = true // as soon as there is a file again
	}
	s.Running, err = m.running(ctx)
	return s, err
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
	// With whatever it started, which could hold its output open.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", 0, fmt.Errorf("%s %s: %w", tool, strings.Join(args, " "), context.Cause(ctx))
	}
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return stderr.String(), exit.ExitCode(), nil
	}
	if err != nil {
		return "", 0, fmt.Errorf("%s %s: %w", tool, strings.Join(args, " "), err)
	}
	return stdout.String(), 0, nil
}

// must is run where another exit code than 0 is an error.
func must(ctx context.Context, tool string, args ...string) error {
	out, code, err := run(ctx, tool, args...)
	if err == nil && code != 0 {
		err = fmt.Errorf("%s %s: exit code %d: %s", tool, strings.Join(args, " "), code, strings.TrimSpace(out))
	}
	return err
}
