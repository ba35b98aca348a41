package clientfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"time"

	"drawbridge/bridge/private"
)

// largest is how large a file may be: a configuration is far smaller.
const largest = 16 << 20

// Written tells what Write did.
type Written struct {
	File    string // what was written: what a link points to
	Backup  string // the file as it was; empty: there was none, or nothing changed
	Changed bool
}

// Write replaces the content of a file by what merge makes of it, in one step. The
// old content is kept beside it. With secret nobody but the owner may read the new
// one; else its mode stays. A link is followed. A file that is not there is made,
// with its directories.
func Write(path string, secret bool, merge func(old []byte) ([]byte, error)) (Written, error) {
	w := Written{File: path}
	if real, err := filepath.EvalSymlinks(path); err == nil {
		w.File = real
	} else if !errors.Is(err, fs.ErrNotExist) {
		return w, err
	} else if _, err := os.Lstat(path); err == nil {
		return w, fmt.Errorf("%s is a link to nothing", path)
	}
	old, mode, err := read(w.File)
	there := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return w, err
	}
	content, err := merge(old)
	if err != nil {
		return w, fmt.Errorf("%s: %w", w.File, err)
	}
	if !there || secret {
		mode = 0o600
	}
	if there && bytes.Equal(content, old) {
		if secret { // it may have been written by hand
			err = os.Chmod(w.File, mode)
		}
		return w, err
	}
	if there {
		if w.Backup, err = backup(w.File, old); err != nil {
			return w, err
		}
	} else if err := os.MkdirAll(filepath.Dir(w.File), 0o700); err != nil {
		return w, err
	}
	if err := replace(w.File, content, mode, old, there); err != nil {
		if w.Backup != "" {
			_ = os.Remove(w.Backup)
			w.Backup = ""
		}
		return w, err
	}
	w.Changed = true
	return w, nil
}

func read(path string) ([]byte, fs.FileMode, error) {
	f, info, err := private.OpenPlain(path, 0)
	if err != nil {
		return nil, 0, err
	}
	defer f.Close()
	if info.Size() > largest {
		return nil, 0, fmt.Errorf("%s is larger than %d bytes, which no configuration is", path, largest)
	}
	b, err := io.ReadAll(f)
	return b, info.Mode().Perm(), err
}

// backup keeps the content of a file beside it, under a name that is not taken.
func backup(path string, content []byte) (string, error) {
	name := path + time.Now().Format(".20060102-150405.bak")
	for n := 1; ; n++ {
		f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if errors.Is(err, fs.ErrExist) && n < 100 {
			name = fmt.Sprintf("%s%s-%d.bak", path, time.Now().Format(".20060102-150405"), n)
			continue
		}
		if err != nil {
			return "", fmt.Errorf("keeping the file as it was: %w", err)
		}
		_, err = f.Write(content)
		if err := errors.Join(err, f.Close()); err != nil {
			_ = os.Remove(name)
			return "", fmt.Errorf("keeping the file as it was: %w", err)
		}
		return name, nil
	}
}

// replace puts content in the place of a file, unless somebody else changed that
// meanwhile.
func replace(path string, content []byte, mode fs.FileMode, old []byte, there bool) error {
	left := regexp.MustCompile(`^\.` + regexp.QuoteMeta(filepath.Base(path)) + `\.[0-9]{1,10}$`)
	_ = private.Sweep(filepath.Dir(path), left)                               // it is in nobody's way
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+".*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		now, _, unread := read(path)
		if there && (unread != nil || !bytes.Equal(now, old)) || !there && !errors.Is(unread, fs.ErrNotExist) {
			err = fmt.Errorf("%s was changed meanwhile: try again", path)
		}
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}
