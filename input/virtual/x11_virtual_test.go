//go:build linux

package virtual

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/internal/x11"

	"github.com/jezek/xgb/xproto"
)

// TestMain doubles as the program that tests kill.
func TestMain(m *testing.M) {
	if dir := os.Getenv("VIRTUAL_TEST_HOLD"); dir != "" {
		if dir == inTemp {
			dir = ""
		}
		v, err := Start(context.Background(), Options{Dir: dir})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(v.server.cmd.Process.Pid, v.wm.cmd.Process.Pid)
		select {}
	}
	os.Exit(m.Run())
}

// inTemp has that program use a temporary directory.
const inTemp = "temp"

func start(t *testing.T, o Options) *Virtual {
	t.Helper()
	if err := Available(); err != nil {
		t.Skip(err)
	}
	v, err := Start(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func TestStart(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "desk")
	v := start(t, Options{Width: 800, Height: 600, Dir: dir})
	if _, err := os.Stat(fmt.Sprintf("/tmp/.X11-unix/X%d", v.number)); err != nil {
		t.Error(err)
	}
	c, err := x11.Dial(t.Context(), v.Display(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if w, h := c.Screen.WidthInPixels, c.Screen.HeightInPixels; w != 800 || h != 600 || c.Screen.RootDepth != 24 {
		t.Errorf("the screen is %dx%d of depth %d", w, h, c.Screen.RootDepth)
	}
	a, err := c.Atom(t.Context(), "_NET_SUPPORTING_WM_CHECK")
	if err != nil {
		t.Fatal(err)
	}
	p, err := xproto.GetProperty(c.Conn, false, c.Root, a, xproto.AtomWindow, 0, 1).Reply()
	if err != nil || len(p.Value) != 4 {
		t.Errorf("no window manager is ready: %v, %v", p, err)
	}
	for _, want := range []string{"DISPLAY=" + v.Display(), "XAUTHORITY=" + filepath.Join(dir, "Xauthority")} {
		if !slices.Contains(v.Env(), want) {
			t.Errorf("Env lacks %s", want)
		}
	}
	for path, mode := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, "Xauthority"): 0o600} {
		if st, err := os.Stat(path); err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v, want mode %v", path, st, err, mode)
		}
	}

	cmd := exec.Command("xprop", "-root", "_NET_SUPPORTING_WM_CHECK")
	cmd.Env = v.Env()
	if _, err := exec.LookPath("xprop"); err == nil {
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("a program started with Env: %v: %s", err, out)
		}
	}

	// A stranger has no key.
	x11.SetCookie(v.number, nil)
	t.Setenv("XAUTHORITY", filepath.Join(dir, "none"))
	if c, err := x11.Dial(t.Context(), v.Display(), nil); err == nil {
		c.Close()
		t.Error("the display opened without its key")
	}

	if err := v.Err(); err != nil {
		t.Errorf("Err while it runs: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if err := v.Close(); err != nil {
		t.Errorf("the second Close: %v", err)
	}
	select {
	case <-v.Exited():
	default:
		t.Error("Exited is open after Close")
	}
	if _, err := os.Stat(filepath.Join(dir, "Xauthority")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the key is left: %v", err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestTemporaryDirGoes(t *testing.T) {
	v := start(t, Options{})
	if _, err := os.Stat(v.dir); err != nil {
		t.Fatal(err)
	}
	v.Close()
	if _, err := os.Stat(v.dir); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%s is left: %v", v.dir, err)
	}
}

func TestServerDies(t *testing.T) {
	v := start(t, Options{})
	v.server.cmd.Process.Kill()
	<-v.Exited()
	if err := v.Err(); err == nil || !strings.Contains(err.Error(), "killed") {
		t.Errorf("Err is %v", err)
	}
	<-v.wm.done // it cannot live without a display
}

func TestStartFails(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Start(cancelled, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if _, err := Start(t.Context(), Options{Width: 99999, Height: 1}); err == nil || !strings.Contains(err.Error(), "99999x1") {
		t.Errorf("size: %v", err)
	}
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Start(t.Context(), Options{Dir: file}); err == nil {
		t.Error("a file in place of the directory was accepted")
	}

	// Programs that end at once: what they said is told.
	bin := t.TempDir()
	for _, name := range []string{"Xvfb", "jwm"} {
		if err := os.WriteFile(filepath.Join(bin, name), []byte("#!/bin/sh\necho 'no memory for a screen' >&2\nexit 3\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", bin)
	if _, err := Start(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "no memory for a screen") {
		t.Errorf("a server that fails: %v", err)
	}

	t.Setenv("PATH", t.TempDir())
	_, err := Start(t.Context(), Options{})
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "apt-get install xvfb") {
		t.Errorf("nothing installed: %v", err)
	}
}

// TestDiesWithUs kills a process that holds a desktop, in the way that lets it
// clean up nothing.
func TestDiesWithUs(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	cmd, f := hold(t, t.TempDir())
	for _, pid := range f {
		if !running(t, pid) {
			t.Fatalf("process %s is not running before the kill", pid)
		}
	}
	cmd.Process.Kill()
	cmd.Wait()
	for _, pid := range f {
		for end := time.Now().Add(time.Minute); running(t, pid); time.Sleep(5 * time.Millisecond) {
			if time.Now().After(end) {
				t.Fatalf("process %s outlived the one that started it", pid)
			}
		}
	}
}

// hold starts a program that has a desktop until it is killed, and returns the numbers
// of the desktop's processes.
func hold(t *testing.T, dir string) (cmd *exec.Cmd, pids []string) {
	t.Helper()
	cmd = exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "VIRTUAL_TEST_HOLD="+dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	pids = strings.Fields(line)
	if len(pids) != 2 || pids[0] == "error" {
		t.Fatalf("the holder said %q", line)
	}
	return cmd, pids
}

// A start removes what killed processes left among temporary files, and nothing else.
func TestSweep(t *testing.T) {
	if err := Available(); err != nil {
		t.Skip(err)
	}
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	made := func() (names []string) {
		t.Helper()
		all, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range all {
			names = append(names, e.Name())
		}
		return names
	}
	for _, name := range []string{tempDirs + "unfinished", "lock", tempDirs + "link/" + lockName} {
		if err := os.MkdirAll(filepath.Join(temp, filepath.Dir(name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(temp, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	// What is no directory, or locked through a link, is nobody's of ours.
	if err := os.Remove(filepath.Join(temp, tempDirs+"link", lockName)); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(temp, "lock"), filepath.Join(temp, tempDirs+"link", lockName)); err != nil {
		t.Fatal(err)
	}
	others := made()
	hold(t, inTemp)
	living := made()
	dead, _ := hold(t, inTemp)
	if n := len(made()); n != len(others)+2 {
		t.Fatalf("the holders made %q", made())
	}
	dead.Process.Kill()
	dead.Wait()
	v := start(t, Options{})
	if got := slices.DeleteFunc(made(), func(n string) bool { return n == filepath.Base(v.dir) }); !slices.Equal(got, living) {
		t.Errorf("there is %q, want %q", got, living)
	}
	if err := v.Close(); err != nil {
		t.Error(err)
	}
	if got := made(); !slices.Equal(got, living) {
		t.Errorf("in the end there is %q, want %q", got, living)
	}
}

// running tells whether a process exists and is not just waiting to be reaped.
func running(t *testing.T, pid string) bool {
	t.Helper()
	if _, err := strconv.Atoi(pid); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile("/proc/" + pid + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := strings.Cut(string(b), ") ")
	return !strings.HasPrefix(after, "Z")
}

func TestTail(t *testing.T) {
	var tl tail
	fmt.Fprint(&tl, strings.Repeat("x", 5000))
	fmt.Fprint(&tl, "the end\n")
	if s := tl.String(); len(s) != tailBytes-1 || !strings.HasSuffix(s, "xthe end") {
		t.Errorf("kept %d bytes, ending in %q", len(s), s[len(s)-10:])
	}
	tl.forget()
	fmt.Fprint(&tl, "new\n")
	if s := tl.String(); s != "new" {
		t.Errorf("after it forgot: %q", s)
	}
}
