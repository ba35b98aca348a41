package install

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// command is the name that the link on PATH has.
const command = "drawbridge"

// program is where the executable is in the app.
const program = "Contents/MacOS/drawbridge"

// LinkDirs are the directories that a link to the command may be in, the best
// first.
func LinkDirs(home string) []string {
	return []string{"/usr/local/bin", filepath.Join(home, ".local", "bin"), filepath.Join(home, "bin")}
}

// Link makes a link to an app's command in the first of dirs that is on PATH and
// may be written, else in fallback, which is made. It replaces a link of ours and
// nothing else. onPath is false where the shell will not find it.
func Link(app string, dirs []string, fallback, path string) (link string, onPath bool, err error) {
	var on []string
	for _, d := range filepath.SplitList(path) {
		if filepath.IsAbs(d) {
			on = append(on, filepath.Clean(d))
		}
	}
	dir := filepath.Clean(fallback)
	for _, d := range dirs {
		if d = filepath.Clean(d); slices.Contains(on, d) && unix.Access(d, unix.W_OK) == nil {
			dir = d
			break
		}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", false, err
	}
	link = filepath.Join(dir, command)
	onPath = slices.Contains(on, dir)
	to := filepath.Join(app, filepath.FromSlash(program))
	switch at, err := os.Readlink(link); {
	case err == nil && at == to:
		return link, onPath, nil
	case err == nil && !ours(at), err != nil && !errors.Is(err, fs.ErrNotExist):
		return "", false, fmt.Errorf("%s is not ours and is left alone: move it away, or link %s yourself", link, to)
	}
	// A link cannot be made over another; a name can.
	next := link + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", false, err
	}
	if err := os.Symlink(to, next); err != nil {
		return "", false, err
	}
	if err := os.Rename(next, link); err != nil {
		return "", false, errors.Join(err, os.Remove(next))
	}
	return link, onPath, nil
}

// Unlink removes the links to an app's command from directories, and returns them.
func Unlink(app string, dirs []string) (removed []string, err error) {
	for _, d := range dirs {
		link := filepath.Join(d, command)
		at, err := os.Readlink(link)
		if err != nil || at != filepath.Join(app, filepath.FromSlash(program)) {
			continue
		}
		if err := os.Remove(link); err != nil {
			return removed, err
		}
		removed = append(removed, link)
	}
	return removed, nil
}

// ours tells a link into a Drawbridge.app, wherever that is.
func ours(to string) bool {
	return strings.HasSuffix(filepath.ToSlash(to), "/"+Name+"/"+program)
}
