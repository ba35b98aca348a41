package private

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWriteFileFull writes onto a real disk without room: what is no longer than
// what was there goes in its place, and what is longer leaves it as it was.
func TestWriteFileFull(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=64k,nr_inodes=16"); err != nil {
		t.Skipf("no mounts of a test's own here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "f")
	if err := WriteFile(path, []byte("one and two")); err != nil {
		t.Fatal(err)
	}
	err := os.WriteFile(filepath.Join(dir, "theirs"), bytes.Repeat([]byte("x"), 1<<20), 0o600)
	if !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	for content, want := range map[string]bool{"one": true, strings.Repeat("long", 9): false} {
		err := WriteFile(path, []byte(content))
		if b, rerr := ReadFile(path, 1<<10); rerr != nil || (string(b) == content) != want || (err == nil) != want || !want && !errors.Is(err, unix.ENOSPC) {
			t.Errorf("%q on a full disk: %v, and there is %q, %v", content, err, b, rerr)
		}
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
