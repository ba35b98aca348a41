package private

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestFiles(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	if _, err := ReadFile(path, 10); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	for _, content := range []string{"one", "two"} {
		if err := WriteFile(path, []byte(content)); err != nil {
			t.Fatal(err)
		}
		if b, err := ReadFile(path, 10); err != nil || string(b) != content {
			t.Errorf("%q, %v", b, err)
		}
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if _, err := ReadFile(path, 2); err == nil || !strings.Contains(err.Error(), "larger than 2") {
		t.Errorf("too large: %v", err)
	}
	// What stands there is replaced, not written through.
	link := filepath.Join(dir, "link")
	if err := os.Symlink(path, link); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(link, 10); err == nil || !strings.Contains(err.Error(), "link") {
		t.Errorf("a link: %v", err)
	}
	if err := WriteFile(link, []byte("new")); err != nil {
		t.Fatal(err)
	}
	if b, _ := os.ReadFile(path); string(b) != "two" {
		t.Errorf("the link's target became %q", b)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if _, err := ReadFile(path, 10); err == nil || !strings.HasSuffix(err.Error(), "may be read or written by others (mode 0640): chmod 600 it") {
		t.Errorf("others may read: %v", err)
	}
	if err := WriteFile(filepath.Join(dir, "none", "f"), nil); err == nil {
		t.Error("wrote into a directory that is not there")
	}
	left, err := filepath.Glob(filepath.Join(dir, ".*"))
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestDir(t *testing.T) {
	path := filepath.Join(t.TempDir(), "a", "b")
	if err := Dir(path); err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(path); err != nil || st.Mode().Perm() != 0o700 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	if err := os.Chmod(path, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := Dir(path); err == nil || !strings.Contains(err.Error(), "chmod 700") {
		t.Errorf("others may look: %v", err)
	}
	file := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Dir(file); err == nil {
		t.Error("a file was taken for a directory")
	}
}

func TestLock(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	unlock, err := Lock(path)
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan func())
	go func() {
		second, err := Lock(path)
		if err != nil {
			t.Error(err)
		}
		got <- second
	}()
	select {
	case <-got:
		t.Fatal("two hold the lock")
	default:
	}
	unlock()
	(<-got)()
}

func TestSweep(t *testing.T) {
	dir := t.TempDir()
	long := time.Now().Add(-time.Hour)
	for name, stays := range map[string]bool{
		".tokens.json-1234567890": false, ".default.token-1": false, ".format-22": false, ".rules.yaml-3": false,
		".tokens.json-": true, ".tokens.json-12a": true, "tokens.json-12": true, ".tokens.json": true, ".-1": true, ".a-12345678901": true,
	} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		// Another process may be about to rename it.
		if err := Sweep(dir, Leftover); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); err != nil {
			t.Errorf("%s was swept at once: %v", name, err)
		}
		if err := os.Chtimes(path, long, long); err != nil {
			t.Fatal(err)
		}
		if err := Sweep(dir, Leftover); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Lstat(path); (err == nil) != stays {
			t.Errorf("%s stays: %v, want %v", name, err == nil, stays)
		}
	}
	sub := filepath.Join(dir, ".dir-1")
	if err := errors.Join(os.Mkdir(sub, 0o700), os.Chtimes(sub, long, long), os.Symlink("x", filepath.Join(dir, ".link-1")), Sweep(dir, Leftover)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{".dir-1", ".link-1"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			t.Errorf("%s was swept", name)
		}
	}
	// What a killed WriteFile leaves is what is swept.
	f, err := os.CreateTemp(dir, temporary(filepath.Join(dir, "host-llm.json")))
	if err != nil || !Leftover.MatchString(filepath.Base(f.Name())) {
		t.Errorf("%s, %v", f.Name(), err)
	}
	f.Close()
}
