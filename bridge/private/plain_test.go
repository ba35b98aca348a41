package private

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestPlain opens what may stand where a file is looked for. Nothing waits.
func TestPlain(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, []byte("text"), 0o644); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"pipe":     func(path string) error { return unix.Mkfifo(path, 0o600) },
		"link":     func(path string) error { return os.Symlink(file, path) },
		"dangling": func(path string) error { return os.Symlink("nowhere", path) },
		"leads":    func(path string) error { return os.Symlink("pipe2", path) },
		"pipe2":    func(path string) error { return unix.Mkfifo(path, 0o600) },
		"dir":      func(path string) error { return os.Mkdir(path, 0o700) },
		"socket": func(path string) error {
			l, err := net.Listen("unix", path)
			if err == nil {
				t.Cleanup(func() { l.Close() })
			}
			return err
		},
	} {
		if err := make(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name  string
		flags int
		want  string // of the error
	}{
		{"file", 0, ""},
		{"file", unix.O_NOFOLLOW, ""},
		{"link", 0, ""},
		{"link", unix.O_NOFOLLOW, "link is no regular file but a link"},
		{"dangling", 0, "no such file"},
		{"dangling", unix.O_NOFOLLOW, "is no regular file"},
		{"pipe", 0, "pipe is no regular file"},
		{"leads", 0, "leads is no regular file"},
		{"dir", 0, "dir is no regular file"},
		{"socket", 0, "socket is no regular file"},
	} {
		b, err := ReadPlain(filepath.Join(dir, c.name), c.flags, 4)
		if c.want == "" && (err != nil || string(b) != "text") || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s (%d): %q, %v; want %q", c.name, c.flags, b, err, c.want)
		}
	}
	if _, err := ReadPlain(file, 0, 3); err == nil || !strings.Contains(err.Error(), "larger than 3 bytes") {
		t.Errorf("a larger one: %v", err)
	}
	if _, err := ReadPlain(filepath.Join(dir, "none"), 0, 3); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
}
