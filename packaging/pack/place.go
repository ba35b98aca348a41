package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"golang.org/x/sys/unix"

	"drawbridge/packaging/install"
)

// What a staging directory holds: the slices, the app, and for a moment the app
// before, where the file system cannot exchange the two.
const before = "before"

var (
	stages = regexp.MustCompile(`^\.app-[0-9]{1,10}$`)
	staged = append([]string{install.Name, before}, arches...)
)

// checkOut says why the app must not be put at a path: what stands there is not
// Drawbridge, or the path names no app.
func checkOut(out string) error {
	if filepath.Ext(out) != ".app" {
		return fmt.Errorf("-out %s names no app: say where the app itself is to be, such as %s", out, filepath.Join(out, install.Name))
	}
	if err := install.CheckReplaceable(out); err != nil {
		return fmt.Errorf("-out: %w", err)
	}
	return nil
}

// A stage is a directory beside the app's place in which it is made ready.
type stage struct {
	dir  string
	held *os.File // locked while the stage is in use
}

// newStage makes a stage for an app, and puts in order what killed builds left
// beside it.
func newStage(out string) (_ *stage, err error) {
	parent := filepath.Dir(out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return nil, err
	}
	// One at a time looks for stages that nobody holds, and makes its own.
	gate, err := lock(parent, unix.LOCK_EX)
	if err != nil {
		return nil, err
	}
	defer gate.Close()
	if err := putInOrder(out); err != nil {
		return nil, err
	}
	s := &stage{}
	if s.dir, err = os.MkdirTemp(parent, ".app-*"); err != nil {
		return nil, err
	}
	if s.held, err = lock(s.dir, unix.LOCK_EX); err != nil {
		return nil, errors.Join(err, os.Remove(s.dir))
	}
	return s, nil
}

// remove takes the stage away.
func (s *stage) remove() error { return errors.Join(os.RemoveAll(s.dir), s.held.Close()) }

// putInOrder gives an app back that a killed build had taken aside, and removes the
// stages that killed builds left.
func putInOrder(out string) error {
	parent := filepath.Dir(out)
	entries, err := os.ReadDir(parent)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.IsDir() || !stages.MatchString(e.Name()) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		held, err := lock(dir, unix.LOCK_EX|unix.LOCK_NB)
		if err != nil {
			continue // another build is at work there, or it is not ours
		}
		err = os.Rename(filepath.Join(dir, before, filepath.Base(out)), out)
		if err == nil || errors.Is(err, fs.ErrNotExist) || errors.Is(err, fs.ErrExist) || errors.Is(err, unix.ENOTEMPTY) {
			err = install.RemoveLeft(parent, regexp.MustCompile("^"+regexp.QuoteMeta(e.Name())+"$"), staged...)
		}
		_ = held.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func lock(dir string, how int) (*os.File, error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), how)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", dir, err)
	}
	return f, nil
}

// replace puts a finished app at its place, in one step where the file system can.
// Where it cannot, the app before is taken aside, and comes back if the new one does
// not get there, at the latest with the next build.
func (s *stage) replace(app, out string) error {
	if err := checkOut(out); err != nil { // it was looked at before the build, a while ago
		return err
	}
	if _, err := os.Lstat(out); errors.Is(err, fs.ErrNotExist) {
		return os.Rename(app, out)
	}
	err := install.Exchange(app, out)
	if !errors.Is(err, install.ErrNoExchange) {
		return err
	}
	return s.takeTurns(app, out)
}

func (s *stage) takeTurns(app, out string) error {
	aside := filepath.Join(s.dir, before)
	if err := os.Mkdir(aside, 0o755); err != nil {
		return err
	}
	aside = filepath.Join(aside, filepath.Base(out))
	if err := os.Rename(out, aside); err != nil {
		return err
	}
	if err := os.Rename(app, out); err != nil {
		return errors.Join(err, os.Rename(aside, out))
	}
	return nil
}
