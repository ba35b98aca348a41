//go:build linux

package virtual

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A temporary directory is removed with its desktop, and the next start removes those
// of processes that were killed. A lock, which the system gives up for the dead, tells
// them from the living.
const (
	tempDirs = "drawbridge-desktop-"
	lockName = "lock"
)

// own locks a directory that was just made until the file is closed. The lock has its
// name once it is held: before that nobody sweeps the directory.
func own(dir string) (*os.File, error) {
	path := filepath.Join(dir, lockName)
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if err == nil {
		err = os.Rename(path+".new", path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes what dead owners left in a directory for temporary files. What cannot
// be removed, or is not surely theirs, stays.
func sweep(temp string) {
	all, _ := os.ReadDir(temp) // as far as it can be read
	for _, e := range all {
		dir := filepath.Join(temp, e.Name())
		if !strings.HasPrefix(e.Name(), tempDirs) {
			continue
		}
		if st, err := os.Lstat(dir); err != nil || !st.IsDir() || st.Sys().(*syscall.Stat_t).Uid != uint32(os.Getuid()) {
			continue
		}
		f, err := os.OpenFile(filepath.Join(dir, lockName), os.O_WRONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil {
			os.RemoveAll(dir)
		}
		f.Close()
	}
}
