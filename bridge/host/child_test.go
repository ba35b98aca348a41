package host

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"
)

// alive tells whether a process runs; a zombie does not.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && len(bytes.TrimSpace(out)) > 0 && !bytes.HasPrefix(bytes.TrimSpace(out), []byte("Z"))
}

// family reads the pids that an orphan-making child wrote: its own and its child's.
func family(t *testing.T, file string) (child, grandchild int) {
	t.Helper()
	eventually(t, "the pids of "+file, func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		n, _ := fmt.Sscan(string(b), &child, &grandchild)
		return n == 2
	})
	return child, grandchild
}

func TestChildEndsWithUs(t *testing.T) {
	for _, mode := range []string{"legacy", "legacy stubborn"} {
		t.Run(mode, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "pids")
			c := childConfig(mode)
			c.Env["DRAWBRIDGE_TEST_ORPHAN"] = file
			f := newFixture(t, Options{Hosts: map[string]Config{"h": c}})
			child, grandchild := family(t, file)
			eventually(t, "its tools", func() bool { s, _ := f.find("h_exit"); return s != nil })
			f.Close()
			if alive(child) {
				t.Error("the child is still there after Close")
			}
			eventually(t, "the child's own child to go", func() bool { return !alive(grandchild) })
		})
	}
}

// TestChildEndsWhenWeAreKilled kills, with SIGKILL, a program that keeps a child
// host which ignores SIGTERM and the end of its input and has a child of its own.
func TestChildEndsWhenWeAreKilled(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pids")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	keeper := exec.Command(exe, "-test.run=^TestKeeper$", "-test.v")
	keeper.Env = append(os.Environ(), "DRAWBRIDGE_TEST_KEEPER="+file)
	if err := keeper.Start(); err != nil {
		t.Fatal(err)
	}
	child, grandchild := family(t, file)
	if err := keeper.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = keeper.Wait() // it was killed
	eventually(t, "the child to go", func() bool { return !alive(child) })
	eventually(t, "the child's own child to go", func() bool { return !alive(grandchild) })
}

// TestKeeper is the program that TestChildEndsWhenWeAreKilled kills.
func TestKeeper(t *testing.T) {
	file := os.Getenv("DRAWBRIDGE_TEST_KEEPER")
	if file == "" {
		t.Skip("runs only as the process that another test kills")
	}
	c := childConfig("legacy stubborn")
	c.Env["DRAWBRIDGE_TEST_ORPHAN"] = file
	newFixture(t, Options{Hosts: map[string]Config{"h": c}})
	time.Sleep(time.Hour)
}

func TestChildCrashes(t *testing.T) {
	for _, c := range []struct{ tool, want string }{
		{"exit", "it ended: exit status 7"},
		{"half", "ended while the call ran"},
	} {
		t.Run(c.tool, func(t *testing.T) {
			f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": childConfig("legacy")}})
			eventually(t, "its tools", func() bool { s, _ := f.find(c.tool); return s != nil })
			got := text(f.call(within(t), c.tool, `{"name":"`+c.tool+`"}`, nil))
			if !strings.Contains(got, c.want) || !strings.Contains(got, "whether it had its effect is not known") {
				t.Errorf("text %q", got)
			}
			// Its tools stay listed, and it comes again.
			eventually(t, "the child to come again", func() bool {
				a := f.call(within(t), "zeta", `{"name":"zeta"}`, nil)
				return strings.Contains(string(a.Result), `"params"`)
			})
		})
	}
}

func TestChildThatCannotStart(t *testing.T) {
	for name, c := range map[string]struct {
		config Config
		want   string
	}{
		"no such command": {Config{Command: "drawbridge-no-such-command"}, "executable file not found in $PATH when the configuration was read"},
		"not resolved":    {Config{Command: "sh"}, "executable file not found in $PATH when the configuration was read"},
		"gone":            {Config{Command: "/nonexistent/program"}, "/nonexistent/program"},
		"no such folder":  {Config{Command: "/bin/sh", Cwd: "/nonexistent/folder"}, "/nonexistent/folder"},
		"ends with words": {childConfig("fail"), `exit status 3; its last words: "cannot find my things"`},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, Options{Hosts: map[string]Config{"h": c.config}})
			eventually(t, "a warning that says why", func() bool {
				return strings.Contains(strings.Join(f.Warnings(), "\n"), c.want)
			})
			if st := f.Status()[0]; st.Kind != "child" || st.Tools != 0 {
				t.Errorf("status %+v", st)
			}
		})
	}
}

func TestChildBanner(t *testing.T) {
	f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": childConfig("legacy banner")}})
	eventually(t, "its tools", func() bool { s, _ := f.find("zeta"); return s != nil })
}

// TestChildSilent has a child that gives no answer to server/discover.
func TestChildSilent(t *testing.T) {
	f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": childConfig("legacy silent")}})
	eventually(t, "its tools", func() bool { s, _ := f.find("zeta"); return s != nil })
}

// TestChildFloodsStderr bounds what a flood on stderr puts into the log.
func TestChildFloodsStderr(t *testing.T) {
	var log lockedBuffer
	set, err := NewSet(Options{Main: "h", Log: zerolog.New(&log), Version: "test", Hosts: map[string]Config{"h": childConfig("legacy flood")}})
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	set.Start()
	eventually(t, "its tools", func() bool { return len(set.Sources()) == 1 && len(set.Sources()[0].Tools("c")) > 0 })
	eventually(t, "the flood", func() bool { return log.Len() > stderrLine })
	set.Close()
	// Bursts and what the rate lets through in the time that the test took.
	if n := log.Len(); n > 4*stderrBurst*stderrLine {
		t.Errorf("the log has %d bytes", n)
	}
}

func TestChildCancelKillsNothingElse(t *testing.T) {
	f := newFixture(t, Options{Main: "h", Hosts: map[string]Config{"h": childConfig("legacy")}})
	eventually(t, "its tools", func() bool { s, _ := f.find("hang"); return s != nil })
	ctx, cancel := context.WithCancel(within(t))
	done := make(chan string, 1)
	go func() { done <- text(f.call(ctx, "hang", `{"name":"hang"}`, nil)) }()
	before := f.call(within(t), "pid", `{"name":"pid"}`, nil)
	cancel()
	<-done
	if after := f.call(within(t), "pid", `{"name":"pid"}`, nil); string(after.Result) != string(before.Result) {
		t.Errorf("another process answers: %s, then %s", before.Result, after.Result)
	}
}

// TestSignalGroup shows that a child's process group is its own: what is sent to
// it does not reach us.
func TestSignalGroup(t *testing.T) {
	ch, err := startChild(Command{Path: "/bin/sleep", Args: []string{"600"}}, DefaultMaxFrame, testLog(t))
	if err != nil {
		t.Fatal(err)
	}
	defer ch.Close()
	pgid, err := syscall.Getpgid(ch.cmd.Process.Pid)
	if err != nil || pgid != ch.cmd.Process.Pid {
		t.Errorf("process group %d, error %v; want the child's own, %d", pgid, err, ch.cmd.Process.Pid)
	}
}

// TestWithheld: a host that waits for a person is not started, says so, and is
// started once it may be; one that runs is ended when it may not any more.
func TestWithheld(t *testing.T) {
	var withheld atomic.Bool
	withheld.Store(true)
	hosts := map[string]Config{"h": childConfig("legacy")}
	f := newFixture(t, Options{Hosts: hosts, Withheld: func(name string) bool { return name == "h" && withheld.Load() }})
	const why = "it waits for a person to accept it; nothing was started"
	waits := func() bool {
		st := f.Status()
		return len(st) == 1 && st[0].State == string(StateDown) && st[0].Reason == why && f.names() == ""
	}
	configure := func(may bool) {
		t.Helper()
		withheld.Store(!may)
		if err := f.Configure("", hosts); err != nil {
			t.Fatal(err)
		}
	}
	configure(false)
	if !waits() || !slices.Contains(f.Warnings(), "host h: "+why) {
		t.Errorf("%+v, %q", f.Status(), f.Warnings())
	}
	configure(true)
	eventually(t, "it is started", func() bool { return f.Status()[0].State == string(StateReady) })
	configure(false)
	if !waits() {
		t.Errorf("%+v, it lists %q", f.Status(), f.names())
	}
}
