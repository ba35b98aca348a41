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

	"drawbridge/bridge/private"
	"drawbridge/packaging/verify"
)

// Name is the app's name on disk, and Identifier the one that its Info.plist has.
const (
	Name       = "Drawbridge.app"
	Identifier = "io.github.drawbridge.Drawbridge"
)

// staging begins the name of the directories in which an app is made ready beside
// its place, and a number ends it. One that a killed install left is removed by the
// next.
const staging = "." + Name + "-"

// Options say what is installed where.
type Options struct {
	Source string // the app to be put in place
	Dir    string // the directory that it is put in
	// NewIdentity goes on where the app in place is another one to macOS, so that
	// its permissions are lost.
	NewIdentity bool
	// Downgrade goes on where the app in place is a newer version.
	Downgrade bool
	// Arch is the processor, as Go calls it, on which the app must start; empty: any.
	Arch string

	step func(what string) // called before each step, for tests that end there
}

// Result is what an install did.
type Result struct {
	App             string `json:"app"`
	Version         string `json:"version"`
	Replaced        string `json:"replaced,omitempty"` // the version that was there
	Unchanged       bool   `json:"unchanged"`          // the very app was there already
	PermissionsLost bool   `json:"permissions_lost"`
	Downgraded      bool   `json:"downgraded"` // a newer version was there
}

// IdentityError says that the new app is another one to macOS than the one in
// place.
type IdentityError struct {
	App      string // in place
	Old, New verify.Report
}

func (e *IdentityError) Error() string {
	old := e.Old.Requirement
	if old == "" {
		old = "a requirement that cannot be read"
	}
	return fmt.Sprintf(`to macOS, the new app is another one than %s. The permissions given to it (Accessibility, Screen Recording, Input Monitoring) would be lost.
in place: %s
new: %s`, e.App, old, e.New.Requirement)
}

// DowngradeError says that the app in place is newer than the one that would take
// its place.
type DowngradeError struct{ App, Old, New string }

func (e *DowngradeError) Error() string {
	return fmt.Sprintf("%s is version %s, and the new app is the older %s, which may refuse the state that the newer one wrote", e.App, e.Old, e.New)
}

// Install puts an app in place. Whenever it is interrupted, the place holds the
// old app whole, or the new one.
func Install(o Options) (Result, error) {
	target := filepath.Join(o.Dir, Name)
	r := Result{App: target}
	if real, err := filepath.EvalSymlinks(o.Source); err == nil { // or it says below that there is none
		o.Source = real
	}
	next, err := verify.Bundle(o.Source)
	if err != nil {
		return r, fmt.Errorf("this app is not whole and is not installed; get it again: %w", err)
	}
	r.Version = next.Version
	if o.Arch != "" && !next.StartsOn(o.Arch) {
		return r, fmt.Errorf("%s does not start on this machine: it has no part for %s, only for %s; make app makes one for both kinds of Mac", o.Source, o.Arch, arches(next))
	}
	if err := os.MkdirAll(o.Dir, 0o755); err != nil {
		return r, err
	}
	unlock, err := lock(o.Dir)
	if err != nil {
		return r, err
	}
	defer unlock()

	there, err := lookAt(target, next.Identifier)
	if err != nil {
		return r, err
	}
	if there.exists {
		r.Replaced = there.report.Version
		if same(o.Source, target) {
			r.Replaced, r.Unchanged = "", true
			return r, nil
		}
		if there.report.Requirement != next.Requirement {
			if !o.NewIdentity {
				return r, &IdentityError{App: target, Old: there.report, New: next}
			}
			r.PermissionsLost = true
		}
		if older(next, there.report) {
			if !o.Downgrade {
				return r, &DowngradeError{App: target, Old: there.report.Version, New: next.Version}
			}
			r.Downgraded = true
		}
	}
	if err := removeStaged(o.Dir); err != nil {
		return r, err
	}
	o.at("stage")
	stage, err := os.MkdirTemp(o.Dir, staging+"*")
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
		err = Exchange(staged, target)
	} else {
		err = os.Rename(staged, target)
	}
	switch {
	case errors.Is(err, ErrNoExchange):
		return fmt.Errorf("%w; remove the old app first with drawbridge uninstall", err)
	case errors.Is(err, unix.EPERM), errors.Is(err, unix.EACCES):
		// In a directory with the sticky bit, what is another's stays.
		return fmt.Errorf("%s cannot be replaced by this user: take it away as whom it belongs to, or name another directory with --dir: %w", target, err)
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
		if verify.Leftover(name) {
			return nil
		}
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
	in, st, err := private.OpenPlain(from, unix.O_NOFOLLOW)
	if err != nil {
		return err
	}
	defer in.Close()
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
