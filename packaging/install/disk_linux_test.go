package install

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func init() { mountAnew = mount }

// mount is called in the process that installs.
func mount(how, dir string) error {
	if how == "ro" {
		return errors.Join(unix.Mount(dir, dir, "", unix.MS_BIND, ""), unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY, ""))
	}
	return unix.Mount("tmpfs", dir, "tmpfs", 0, "size=1m") // an app has more
}

// TestDisks installs onto a disk that may only be read, and onto a real one that
// is full. What was there stays, and nothing is left.
func TestDisks(t *testing.T) {
	one, two, _ := versions(t)
	for how, want := range map[string]string{"ro": "read-only file system", "full": "no space left on device"} {
		dir := t.TempDir()
		if how == "ro" {
			if _, err := Install(Options{Source: one, Dir: dir}); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), envSource+"="+two, envDir+"="+dir, envMount+"="+how)
		cmd.SysProcAttr = &syscall.SysProcAttr{
			Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
			UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
			GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		}
		out, err := cmd.CombinedOutput()
		if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) || strings.Contains(string(out), "cannot mount") {
			t.Skipf("no mounts of a test's own here: %v %s", err, out)
		}
		if err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v, %s; want %q", how, err, out, want)
		}
		if strings.Contains(string(out), "left: ") {
			t.Errorf("%s: %s", how, out)
		}
		if how == "ro" && (names(t, dir) != Name || version(t, dir) != "1.0.0") {
			t.Errorf("it leaves %s", names(t, dir))
		}
	}
	// From one that may only be read, as a disk image is, it can be installed.
	source := filepath.Join(t.TempDir(), Name)
	if err := os.CopyFS(source, os.DirFS(two)); err != nil {
		t.Fatal(err)
	}
	err := filepath.WalkDir(source, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		return os.Chmod(path, st.Mode()&^0o222)
	})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for range 2 { // and replaced
		if _, err := Install(Options{Source: source, Dir: dir}); err != nil {
			t.Error(err)
		}
	}
}
