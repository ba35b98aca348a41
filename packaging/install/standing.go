package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"

	"drawbridge/packaging/verify"
)

// place is what stands where the app goes.
type place struct {
	exists bool
	report verify.Report // as far as it could be read: an app there may be damaged
}

// lookAt tells what stands at a place. What is not the app of an identifier is an
// error, since it is somebody's: it must be neither replaced nor removed.
func lookAt(target, identifier string) (place, error) {
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
	r, err := verify.Bundle(target)
	switch {
	case r.Identifier == "":
		return place{}, fmt.Errorf("%s does not say what app it is, so it may be something of yours: move it away (%w)", target, err)
	case r.Identifier != identifier:
		return place{}, fmt.Errorf("%s is not Drawbridge: its identifier is %q, not %q; move it away", target, r.Identifier, identifier)
	}
	if err := verify.CheckRoot(target); err != nil {
		return place{}, fmt.Errorf("%s holds what is not the app's: move that away first: %w", target, err)
	}
	return place{exists: true, report: r}, nil // a damaged one is there to be replaced
}

// CheckReplaceable says why what stands at a path must not make way for Drawbridge.
// Nothing need stand there.
func CheckReplaceable(path string) error {
	_, err := lookAt(path, Identifier)
	return err
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

// RemoveLeft removes from a directory what killed processes left there: directories
// of this user, whose whole name fits and that hold no other entries than those
// named.
func RemoveLeft(dir string, name *regexp.Regexp, entries ...string) error {
	all, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range all {
		path := filepath.Join(dir, e.Name())
		if !e.IsDir() || !name.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err != nil {
			continue // it is gone
		}
		if st, ok := info.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Geteuid() || !holdsOnly(path, entries) {
			continue
		}
		if err := os.RemoveAll(path); err != nil {
			return err
		}
	}
	return nil
}

func holdsOnly(dir string, names []string) bool {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if !slices.Contains(names, e.Name()) {
			return false
		}
	}
	return err == nil
}

var staged = regexp.MustCompile(`^` + regexp.QuoteMeta(staging) + `[0-9]{1,10}$`)

// removeStaged removes what killed installs left.
func removeStaged(dir string) error { return RemoveLeft(dir, staged, Name) }
