// Package login starts a program when a person logs in: by a LaunchAgent on macOS,
// by a systemd user unit that follows the graphical session on Linux. Both are
// plain files that the system's own tool is told about; all of it works on any
// system, so that it is tested on any.
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
}

// Options say what is started, and for whom.
type Options struct {
	OS      string              // runtime.GOOS
	Program string              // absolute
	Home    string              // absolute
	Getenv  func(string) string // for XDG_CONFIG_HOME
	UID     int
}

// A manager is launchd or systemd.
type manager interface {
	name() string
	file() string
	content() []byte
	// check says why the system cannot be used.
	check(context.Context) error
	// enable tells the system about the file, which was just written if changed.
	enable(ctx context.Context, changed bool) error
	// disable makes the system forget it. It is no error that it knows nothing.
	disable(context.Context) error
	enabled(context.Context) (bool, error)
	// forgotten tells the system that the file was removed.
	forgotten(context.Context) error
}

func (o Options) manager() (manager, error) {
	if !filepath.IsAbs(o.Program) || !filepath.IsAbs(o.Home) {
		return nil, fmt.Errorf("the program %q and the home %q must be absolute paths", o.Program, o.Home)
	}
	if strings.ContainsAny(o.Program+o.Home, "\n\r\x00") {
		return nil, errors.New("a path with a line break cannot be started at login")
	}
	switch o.OS {
	case "darwin":
		return launchd{o}, nil
	case "linux":
		if strings.ContainsAny(o.Program, "\"'\\") {
			return nil, fmt.Errorf("systemd starts no program with quotes or backslashes in its path, as in %s: put it elsewhere", o.Program)
		}
		return systemd{o}, nil
	}
	return nil, fmt.Errorf("starting at login is not known on %s: use what your desktop has for it", o.OS)
}

// Install has the program started at login, from now on. It may be called again:
// what is in order is left alone, what is stale is repaired. changed says whether
// it did anything.
func Install(ctx context.Context, o Options) (file string, changed bool, err error) {
	m, err := o.manager()
	if err != nil {
		return "", false, err
	}
	if err := m.check(ctx); err != nil {
		return "", false, err
	}
	file = m.file()
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return file, false, err
	}
	changed = err != nil || !bytes.Equal(old, m.content())
	if !changed {
		on, err := m.enabled(ctx)
		if err != nil || on {
			return file, false, err
		}
	}
	if changed {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return file, false, err
		}
		if err := private.WriteFile(file, m.content()); err != nil {
			return file, false, err
		}
	}
	return file, true, m.enable(ctx, changed)
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
	if err := m.check(ctx); err != nil {
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
	if err := os.Remove(m.file()); err != nil {
		return false, err
	}
	return true, m.forgotten(ctx)
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
	if err := m.check(ctx); err != nil {
		return s, err
	}
	s.Enabled, err = m.enabled(ctx)
	return s, err
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
