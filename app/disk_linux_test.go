package main

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullDisk is an agent whose state lies on a real small disk.
type fullDisk struct {
	person
	state string
}

func (d fullDisk) run(code int, args ...string) string {
	d.t.Helper()
	return d.person.run(code, append([]string{"--state", d.state}, args...)...)
}

// code is what a command ends with.
func (d fullDisk) code(args ...string) int {
	cmd := self(d.home, append([]string{"--state", d.state}, args...)...)
	_ = cmd.Run() // its code tells
	return cmd.ProcessState.ExitCode()
}

// until waits for a command to end with a code.
func (d fullDisk) until(code int, args ...string) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		got := d.code(args...)
		if got == code {
			return
		}
		if time.Now().After(end) {
			d.t.Fatalf("drawbridge %s: exit code %d for a minute, want %d", strings.Join(args, " "), got, code)
		}
	}
}

func (d fullDisk) fill() {
	d.t.Helper()
	f, err := os.Create(filepath.Join(d.state, "theirs"))
	if err != nil {
		d.t.Fatal(err)
	}
	defer f.Close()
	for b := bytes.Repeat([]byte("x"), 4096); err == nil; {
		_, err = f.Write(b)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		d.t.Fatal(err)
	}
}

// unwritable calls until what is left of the log's last block is used. No call fails.
func (d fullDisk) unwritable(call []string) {
	d.t.Helper()
	for end := time.Now().Add(time.Minute); ; {
		d.run(exitOK, call...)
		if strings.Contains(d.run(exitOK, "status"), "the audit") {
			return
		}
		if time.Now().After(end) {
			d.t.Fatal("the disk is full, and no word of it in the status")
		}
	}
}

func (d fullDisk) free() {
	d.t.Helper()
	if err := os.Remove(filepath.Join(d.state, "theirs")); err != nil {
		d.t.Fatal(err)
	}
}

// TestFullDisk fills the disk under a running agent. Calls go on, which is told;
// what tightens works all the same; and with room the record goes on by itself and
// tells what it lacks.
func TestFullDisk(t *testing.T) {
	d := fullDisk{newPerson(t), t.TempDir()}
	if err := unix.Mount("tmpfs", d.state, "tmpfs", 0, "size=1m,mode=700"); err != nil {
		t.Skipf("no mounts of a test's own here: %v", err)
	}
	t.Cleanup(func() {
		if err := unix.Unmount(d.state, unix.MNT_DETACH); err != nil {
			t.Error(err)
		}
	})
	agent := self(d.home, "--state", d.state, "run", "--backend", "simulated", "--no-tray", "--listen", "127.0.0.1:0", "--allow", "computer")
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		if err := agent.Wait(); err != nil {
			t.Error(err)
		}
	})
	call := []string{"call", "computer", `{"actions":[{"type":"screenshot"}]}`, "--out", d.home}
	d.until(exitOK, "status")
	d.run(exitOK, "client", "add", "other")
	rule := []byte("- {tool: computer, client: other, then: allow}\n")
	if err := os.WriteFile(filepath.Join(d.state, rulesName), rule, 0o600); err != nil {
		t.Fatal(err)
	}
	d.run(exitOK, "reload")
	d.run(exitOK, call...)

	d.fill()
	d.unwritable(call)
	d.has(d.run(exitOK, "status"), "calls go on without a record", "no space left on device: free some space")
	d.run(exitOK, "stop")
	d.run(exitOK, "client", "revoke", "other")
	if out := d.run(exitOK, "client", "list"); strings.Contains(out, "other") {
		t.Errorf("a client that was revoked is listed: %s", out)
	}
	d.run(exitOK, "rules", "revoke", "1")
	if out := d.run(exitOK, "rules", "list"); strings.Contains(out, "other") {
		t.Errorf("a rule that was revoked is listed: %s", out)
	}
	d.code("host-llm", "deny") // it may not be saved, which is said
	d.has(d.run(exitOK, "host-llm", "status"), "deny")

	d.free()
	d.until(exitOK, call...)
	d.has(d.run(exitOK, "audit", "verify"), "no space left on device", "nothing was changed, and 1 times the disk took no records")

	d.fill()
	d.unwritable(call)
	d.run(exitOK, "pause")
	d.has(d.run(exitOK, "status"), "paused")
	d.free()
}
