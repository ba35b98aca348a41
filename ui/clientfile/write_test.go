package clientfile

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	set := func(content string) func([]byte) ([]byte, error) {
		return func([]byte) ([]byte, error) { return []byte(content), nil }
	}
	holds := func(path, content string, mode fs.FileMode) {
		t.Helper()
		b, err := os.ReadFile(path)
		info, serr := os.Stat(path)
		if err != nil || serr != nil || string(b) != content || info.Mode().Perm() != mode {
			t.Errorf("%s: %q, %v, %v; want %q, %v", path, b, info.Mode(), err, content, mode)
		}
	}
	// A new one, with its directories.
	file := filepath.Join(dir, "a", "b.json")
	w, err := Write(file, false, set("one"))
	if err != nil || !w.Changed || w.Backup != "" || w.File != file {
		t.Fatalf("%+v, %v", w, err)
	}
	holds(file, "one", 0o600)
	// What a killed process left on its way into place goes; what is another's stays.
	long := time.Now().Add(-time.Hour)
	for _, name := range []string{".b.json.123", ".c.json.123", "b.json.123"} {
		left := filepath.Join(dir, "a", name)
		if err := errors.Join(os.WriteFile(left, nil, 0o600), os.Chtimes(left, long, long)); err != nil {
			t.Fatal(err)
		}
	}
	defer func() {
		for name, stays := range map[string]bool{".b.json.123": false, ".c.json.123": true, "b.json.123": true} {
			if _, err := os.Lstat(filepath.Join(dir, "a", name)); (err == nil) != stays {
				t.Errorf("%s stays: %v, want %v", name, err == nil, stays)
			}
		}
	}()
	// Its mode stays, and so does what it was.
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	w, err = Write(file, false, set("two"))
	if err != nil || !w.Changed || w.Backup == "" {
		t.Fatalf("%+v, %v", w, err)
	}
	holds(file, "two", 0o644)
	holds(w.Backup, "one", 0o600)
	// A second backup in the same second.
	other, err := Write(file, true, set("three"))
	if err != nil || other.Backup == w.Backup {
		t.Fatalf("%+v, %v", other, err)
	}
	holds(file, "three", 0o600)
	holds(other.Backup, "two", 0o600)
	// Nothing to change is nothing to keep, but what is secret becomes it.
	if err := os.Chmod(file, 0o644); err != nil {
		t.Fatal(err)
	}
	if w, err := Write(file, true, set("three")); err != nil || w.Changed || w.Backup != "" {
		t.Errorf("%+v, %v", w, err)
	}
	holds(file, "three", 0o600)
	// A pipe is no file, and nothing waits for somebody to write into it.
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Write(pipe, false, set("x")); err == nil || !strings.Contains(err.Error(), "no regular file") {
		t.Errorf("a pipe: %v", err)
	}
	// A link stays one.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(file, link); err != nil {
		t.Fatal(err)
	}
	if w, err := Write(link, false, set("four")); err != nil || w.File != file {
		t.Errorf("%+v, %v", w, err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().Type() != fs.ModeSymlink {
		t.Errorf("the link is %v, %v", info.Mode(), err)
	}
	holds(file, "four", 0o600)

	// What fails leaves all as it was.
	before, err := os.ReadDir(filepath.Dir(file))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("nowhere", filepath.Join(dir, "dangling")); err != nil {
		t.Fatal(err)
	}
	bad := errors.New("line 3: no")
	for name, do := range map[string]func() error{
		"no: " + file + ": line 3: no": func() error {
			_, err := Write(file, true, func([]byte) ([]byte, error) { return nil, bad })
			return err
		},
		"was changed meanwhile": func() error {
			_, err := Write(file, true, func([]byte) ([]byte, error) { return []byte("five"), os.WriteFile(file, []byte("theirs"), 0o600) })
			return err
		},
		"no regular file":   func() error { _, err := Write(dir, true, set("x")); return err },
		"a link to nothing": func() error { _, err := Write(filepath.Join(dir, "dangling"), true, set("x")); return err },
	} {
		if err := do(); err == nil || !strings.Contains(err.Error(), strings.TrimPrefix(name, "no: ")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	holds(file, "theirs", 0o600)
	after, err := os.ReadDir(filepath.Dir(file))
	if err != nil || len(after) != len(before) {
		t.Errorf("%d files are there, want %d: %v, %v", len(after), len(before), after, err)
	}
}
