//go:build linux

// Package program gives tests real programs with windows: small ones over GTK 3,
// under Debian's Python, with the toolkit's own accessibility. Each is a process
// that can be stopped, so that it hangs as programs do.
package program

import (
	"bufio"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"drawbridge/internal/session/saver"
)

// The kinds of windows. Each tells of "ready", "focused", "press" and "key".
const (
	Deaf  = "deaf"  // takes clicks and keys and does nothing with them
	Mover = "mover" // moves to the corner of the screen when the pointer comes
	Thief = "thief" // takes the keyboard back whenever another window gets it
	// Form has four parts from top to bottom, of the same height: an entry, a
	// password field, a text of several lines, a button. It tells of "changed name",
	// "changed secret", "changed notes", "clicked".
	Form = "form"
)

//go:embed window.py
var source string

// python is Debian's own, for which the packages are.
const python = "/usr/bin/python3"

// Available says whether programs can be started here: nil, or an error that tells
// how to get what is missing.
func Available() error {
	check := `import gi; gi.require_version("Gtk", "3.0"); from gi.repository import Gtk`
	if out, err := exec.Command(python, "-c", check).CombinedOutput(); err != nil && !strings.Contains(string(out), "Unable to init") {
		return errors.New("GTK for Python is missing: apt-get install python3-gi gir1.2-gtk-3.0")
	}
	return nil
}

// Session starts a session bus for programs on a display, with its files in dir. env
// is the environment, the display in it and no Wayland's; what is returned holds the
// session's too.
// The first program brings up the accessibility bus, where at-spi2-core is installed.
func Session(dir string, env []string) (with []string, stop func(), err error) {
	with = append(slices.Clone(env), "XDG_RUNTIME_DIR="+dir)
	address, stop, err := saver.Bus(dir, with...)
	if err != nil {
		return nil, nil, err
	}
	return append(with, "DBUS_SESSION_BUS_ADDRESS="+address, "GSETTINGS_BACKEND=memory", "HOME="+dir), stop, nil
}

// Program is a running one.
type Program struct {
	cmd   *exec.Cmd
	ended chan struct{}

	mu      sync.Mutex // guards what follows
	told    []string
	changed chan struct{} // closed and replaced when more is told
}

// Place is where a window is put, without the window manager's frame.
type Place struct{ X, Y, Width, Height int }

// Start starts a program and returns when its window shows. Its window's class is
// its title.
func Start(ctx context.Context, env []string, kind, title string, at Place) (*Program, error) {
	n := strconv.Itoa
	cmd := exec.Command(python, "-W", "ignore", "-c", source, kind, title, n(at.X), n(at.Y), n(at.Width), n(at.Height))
	cmd.Env, cmd.Stderr = env, os.Stderr
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start a program: %w", err)
	}
	p := &Program{cmd: cmd, ended: make(chan struct{}), changed: make(chan struct{})}
	go func() {
		defer close(p.ended)
		for lines := bufio.NewScanner(out); lines.Scan(); {
			p.mu.Lock()
			p.told = append(p.told, lines.Text())
			close(p.changed)
			p.changed = make(chan struct{})
			p.mu.Unlock()
		}
	}()
	if err := p.Await(ctx, "ready"); err != nil {
		p.Close()
		return nil, fmt.Errorf("the window %s does not show: %w", title, err)
	}
	return p, nil
}

// PID is the number of its process.
func (p *Program) PID() int { return p.cmd.Process.Pid }

// Told is how often it told something.
func (p *Program) Told(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for _, t := range p.told {
		if t == what {
			n++
		}
	}
	return n
}

// Await waits until it has told something.
func (p *Program) Await(ctx context.Context, what string) error {
	for {
		p.mu.Lock()
		changed := p.changed
		p.mu.Unlock()
		if p.Told(what) > 0 {
			return nil
		}
		select {
		case <-changed:
		case <-p.ended:
			return errors.New("the program ended")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Hang stops the process in the middle of whatever it does; Wake lets it go on.
func (p *Program) Hang() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }
func (p *Program) Wake() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Close ends it.
func (p *Program) Close() {
	_ = p.cmd.Process.Kill()
	<-p.ended
	_ = p.cmd.Wait() // killed: the error says so
}
