package audit

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestFullFilesystem has the log on a real small filesystem that others fill.
func TestFullFilesystem(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=128k"); err != nil {
		t.Skipf("no mounts of a test's own here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	logs := filepath.Join(dir, "audit")
	l := open(t, logs, Options{RetryEvery: time.Millisecond})
	l.Append(start("early"))
	fill(t, filepath.Join(dir, "theirs"))
	n := 0
	for ; l.Healthy() == nil; n++ { // what is left of the last block
		l.Append(start(fmt.Sprint(n)))
	}
	if err := l.Healthy(); !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	l.Append(done("early"))
	if r := verify(t, logs); !r.OK() || r.Last != uint64(n) {
		t.Errorf("full: %+v", r)
	}
	if err := os.Remove(filepath.Join(dir, "theirs")); err != nil {
		t.Fatal(err)
	}
	for deadline := time.Now().Add(time.Minute); l.Healthy() != nil; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("it never went on")
		}
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	got := lines(t, logs)
	if !strings.Contains(got[n], `"gap: 1 records are missing and 1 come late, since `) || !strings.Contains(got[n+1], `"phase":"done","id":"early"`) {
		t.Errorf("%s", strings.Join(got[n:], "\n"))
	}
	r := verify(t, logs)
	if !r.OK() || len(r.Gaps) != 1 || r.Gaps[0].Lost != 1 || r.Gaps[0].Late != 1 || r.Gaps[0].Why != "no space left on device" {
		t.Errorf("%+v", r)
	}
}

// fill writes a file until the disk takes no more.
func fill(t *testing.T, path string) {
	t.Helper()
	f, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for b := bytes.Repeat([]byte("x"), 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
}
