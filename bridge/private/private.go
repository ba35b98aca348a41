// Package private reads and writes files that only their owner may see: opened
// without following links, of the right owner and mode, replaced whole. It also
// reads those of others without waiting for what is no file.
package private

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Dir makes the directory (0700) if it is missing and checks one that exists.
func Dir(path string) error {
	if err := os.MkdirAll(path, 0o700); err != nil {
		// Something stands there, and it leads to no directory.
		_, there := os.Lstat(path)
		if info, serr := os.Stat(path); there != nil || serr == nil && info.IsDir() {
			return err
		}
		return fmt.Errorf("%s is no directory: move it away", path)
	}
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	return check(path, &st, unix.S_IFDIR, "700")
}

// ReadFile reads a file of at most limit bytes. It refuses a link, a file of
// another owner, and one that others may read or write. A missing file is
// fs.ErrNotExist.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := Open(path, unix.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, larger, err := readUpTo(f, limit)
	if larger {
		return nil, fmt.Errorf("%s is larger than %d bytes; that is no file of ours: move it away", path, limit)
	}
	return b, err
}

// readUpTo reads all of a file, unless it is larger than limit bytes.
func readUpTo(f io.Reader, limit int64) (b []byte, larger bool, err error) {
	b, err = io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, false, err
	}
	return b, int64(len(b)) > limit, nil
}

// WriteFile replaces a file (0600) in one step: a reader sees the old content
// or the new, also after a crash. Only on a disk without room is content that is
// no longer than the old one written over it, so that a revocation need not wait
// for room; a crash in that moment can leave neither.
func WriteFile(path string, content []byte) error {
	err := replace(path, content)
	if errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) {
		if overwrite(path, content) == nil {
			return nil
		}
	}
	return err
}

// overwrite puts content where a file of ours has room for it already. Until it
// is whole, line ends stand where the old content was longer.
func overwrite(path string, content []byte) error {
	f, err := Open(path, unix.O_RDWR)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	more := info.Size() - int64(len(content))
	if more < 0 {
		return unix.ENOSPC
	}
	all := append(slices.Clip(content), bytes.Repeat([]byte("\n"), int(more))...)
	if _, err := f.WriteAt(all, 0); err != nil {
		return err
	}
	if err := f.Truncate(int64(len(content))); err != nil {
		return err
	}
	return f.Sync()
}

func replace(path string, content []byte) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), temporary(path))
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = f.Close()
			_ = os.Remove(f.Name())
		}
	}()
	// CreateTemp makes it 0600.
	if _, err = f.Write(content); err != nil {
		return err
	}
	if err = f.Sync(); err != nil {
		return err
	}
	if err = f.Close(); err != nil {
		return err
	}
	err = os.Rename(f.Name(), path)
	if info, serr := os.Lstat(path); err != nil && serr == nil && info.IsDir() {
		err = fmt.Errorf("%s is a directory, where a file of ours must stand: move it away", path)
	}
	return err
}

// temporary is the pattern of what stands for a file that is not in its place yet.
func temporary(path string) string { return "." + filepath.Base(path) + "-*" }

// Leftover is what WriteFile calls a file that is not in its place yet, in a
// directory of ours alone.
var Leftover = regexp.MustCompile(`^\.[A-Za-z][A-Za-z._-]*-[0-9]{1,10}$`)

// leftAfter is how old a file must be that was left: no write takes as long.
const leftAfter = time.Minute

// Sweep removes from dir the files that killed processes left on their way into
// place: plain files of ours, older than a minute, whose whole name fits.
func Sweep(dir string, name *regexp.Regexp) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		if !e.Type().IsRegular() || !name.MatchString(e.Name()) {
			continue
		}
		info, err := e.Info()
		if err == nil {
			st, ok := info.Sys().(*syscall.Stat_t)
			if !ok || int(st.Uid) != os.Geteuid() || time.Since(info.ModTime()) < leftAfter {
				continue
			}
			err = os.Remove(filepath.Join(dir, e.Name()))
		}
		if !errors.Is(err, fs.ErrNotExist) { // another one swept it, or it came into place
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// Lock takes the lock file at path for this process and waits for it. The
// returned func gives it back.
func Lock(path string) (unlock func(), err error) {
	f, err := Open(path, unix.O_RDWR|unix.O_CREAT)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		_ = f.Close()
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return func() { _ = f.Close() }, nil
}

// Open opens a file with flags as of open(2), and makes one 0600. It refuses a
// link, what is no regular file, a file of another owner, and one that others
// may read or write. A missing file is fs.ErrNotExist.
func Open(path string, flags int) (*os.File, error) {
	fd, err := unix.Open(path, flags|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) || errors.Is(err, unix.EMLINK) {
		return nil, fmt.Errorf("%s is a link; a file of its own must stand there: remove the link", path)
	}
	if errors.Is(err, unix.EISDIR) || errors.Is(err, unix.ENXIO) { // a directory; a pipe or a socket
		return nil, fmt.Errorf("%s is no regular file: move it away", path)
	}
	if err != nil {
		return nil, &fs.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), path)
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil {
		err = check(path, &st, unix.S_IFREG, "600")
	}
	if err != nil {
		_ = f.Close()
		return nil, err
	}
	return f, nil
}

// SharedError tells that others may read or write a file, or look into a directory.
type SharedError struct {
	Path string
	mode uint32
	want string
}

func (e *SharedError) Error() string {
	return fmt.Sprintf("%s may be read or written by others (mode %04o): chmod %s it", e.Path, e.mode, e.want)
}

func check(path string, st *unix.Stat_t, kind uint32, mode string) error {
	what := map[uint32]string{unix.S_IFREG: "regular file", unix.S_IFDIR: "directory"}[kind]
	switch {
	case uint32(st.Mode)&unix.S_IFMT != kind:
		return fmt.Errorf("%s is no %s: move it away", path, what)
	case int(st.Uid) != os.Geteuid():
		return fmt.Errorf("%s belongs to another user (uid %d): move it away", path, st.Uid)
	case uint32(st.Mode)&0o077 != 0:
		return &SharedError{path, uint32(st.Mode) & 0o777, mode}
	}
	return nil
}
