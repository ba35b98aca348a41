// Package install puts Drawbridge.app at its one stable place, replaces an older
// version of it in one step, and takes it away again. macOS ties permissions to
// the place and the signature, so neither changes without a word.
package install

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"drawbridge/packaging/verify"
)

// Name is the app's name on disk, and Identifier the one that its Info.plist has.
const (
	Name       = "Drawbridge.app"
	Identifier = "io.github.drawbridge.Drawbridge"
)

// staging begins the name of the directories in which an app is made ready beside
// its place. One that a killed install left is removed by the next.
const staging = "." + Name + "-"

// Options say what is installed where.
type Options struct {
	Source string // the app to be put in place
	Dir    string // the directory that it is put in
	// NewIdentity goes on where the app in place is another one to macOS, so that
	// its permissions are lost.
	NewIdentity bool

	step func(what string) // called before each step, for tests that end there
}

// Result is what an install did.
type Result struct {
	App             string `json:"app"`
	Version         string `json:"version"`
	Replaced        string `json:"replaced,omitempty"` // the version that was there
	Unchanged       bool   `json:"unchanged"`          // the very app was there already
	PermissionsLost bool   `json:"permissions_lost"`
}

// IdentityError says that the new app is another one to macOS than the one in
// place.
type IdentityError struct {
	App      string // in place
	Old, New verify.Report
}

func (e *IdentityError) Error() string {
	old := func(s string) string {
		if s == "" {
			return "not readable"
		}
		return s
	}
	return fmt.Sprintf(`to macOS, the new app is another one than %s. The permissions given to it (Accessibility, Screen Recording) would be lost.
in place: identifier %s
  requirement %s
new: identifier %s
  requirement %s`, e.App, old(e.Old.Identifier), old(e.Old.Requirement), e.New.Identifier, e.New.Requirement)
}

// Install puts an app in place. Whenever it is interrupted, the place holds the
// old app whole, or the new one.
func Install(o Options) (Result, error) {
	target := filepath.Join(o.Dir, Name)
	r := Result{App: target}
	next, err := verify.Bundle(o.Source)
	if err != nil {
		return r, fmt.Errorf("this app is not whole and is not installed; get it again: %w", err)
	}
	r.Version = next.Version
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return r, err
	}
	unlock, err := lock(o.Dir)
	if err != nil {
		return r, err
	}
	defer unlock()

	there, err := lookAt(target)
	if err != nil {
		return r, err
	}
	if there.exists {
		r.Replaced = there.report.Version
		if same(o.Source, target) {
			r.Replaced, r.Unchanged = "", true
			return r, nil
		}
		if there.report.Identifier != next.Identifier || there.report.Requirement != next.Requirement {
			if !o.NewIdentity {
				return r, &IdentityError{App: target, Old: there.report, New: next}
			}
			r.PermissionsLost = true
		}
	}
	if err := removeStaged(o.Dir); err != nil {
		return r, err
	}
	o.at("stage")
	stage, err := os.MkdirTemp(o.Dir, staging)
	if err != nil {
		return r, err
	}
	err = o.replace(filepath.Join(stage, Name), target, there.exists, next)
	o.at("clean up")
	// What was in place is in the stage now.
	return r, errors.Join(err, os.RemoveAll(stage))
}

// replace copies the app beside its place, checks the copy, and exchanges it with
// what is there, in one step of the file system.
func (o Options) replace(staged, target string, exists bool, want verify.Report) error {
	if err := o.copyTree(o.Source, staged); err != nil {
		return fmt.Errorf("copying the app: %w", err)
	}
	o.at("check")
	got, err := verify.Bundle(staged)
	if err != nil {
		return fmt.Errorf("the copy is not whole: %w", err)
	}
	if got.Requirement != want.Requirement || got.Version != want.Version {
		return fmt.Errorf("%s changed while it was copied", o.Source)
	}
	o.at("replace")
	if exists {
		err = exchange(staged, target)
	} else {
		err = os.Rename(staged, target)
	}
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOSYS):
		return fmt.Errorf("the file system of %s cannot exchange two directories in one step; remove the old app first with drawbridge uninstall: %w", o.Dir, err)
	case err != nil:
		return err
	}
	o.at("write through")
	return syncDir(o.Dir)
}

func (o Options) at(what string) {
	if o.step != nil {
		o.step(what)
	}
}

// place is what stands where the app goes.
type place struct {
	exists bool
	report verify.Report // as far as it could be read: an app there may be damaged
}

func lookAt(target string) (place, error) {
	st, err := os.Lstat(target)
	if errors.Is(err, fs.ErrNotExist) {
		return place{}, nil
	}
	if err != nil {
		return place{}, err
	}
	if !st.IsDir() {
		return place{}, fmt.Errorf("%s is no app but a %s: move it away", target, kind(st.Mode()))
	}
	r, _ := verify.Bundle(target) // a damaged one is there to be replaced
	return place{exists: true, report: r}, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "link"
	case m.IsRegular():
		return "file"
	}
	return "special file"
}

// lock keeps other installs away from a directory. The lock is on the directory
// itself, so that it leaves nothing behind, and ends with the process.
func lock(dir string) (unlock func(), err error) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return func() { _ = f.Close() }, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		return nil, fmt.Errorf("another install is at work in %s: wait until it is done", dir)
	}
	return nil, fmt.Errorf("locking %s: %w", dir, err)
}

// removeStaged removes what killed installs left.
func removeStaged(dir string) error {
	left, err := filepath.Glob(filepath.Join(dir, staging+"*"))
	if err != nil {
		return err
	}
	for _, l := range left {
		if err := os.RemoveAll(l); err != nil {
			return err
		}
	}
	return nil
}

func same(a, b string) bool {
	sa, err := os.Stat(a)
	if err != nil {
		return false
	}
	sb, err := os.Stat(b)
	return err == nil && os.SameFile(sa, sb)
}

// copyTree copies directories and regular files, and writes them through to the
// disk: after a power cut the app must not be there by name only.
func (o Options) copyTree(from, to string) error {
	return filepath.WalkDir(from, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, p)
		if err != nil {
			return err
		}
		dest := filepath.Join(to, name)
		o.at("copy " + name)
		if d.IsDir() {
			if err := os.Mkdir(dest, 0o755); err != nil {
				return err
			}
			return os.Chmod(dest, 0o755)
		}
		return copyFile(p, dest)
	})
}

func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	st, err := in.Stat()
	if err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if st.Mode()&0o111 != 0 {
		mode = 0o755
	}
	out, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if _, err := io.Copy(out, in); err != nil {
		return err
	}
	if err := out.Chmod(mode); err != nil {
		return err
	}
	return out.Sync()
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
