package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestCallOnTerminal has a host say what would clear the screen: a terminal is
// shown it by number, a pipe gets it as it came.
func TestCallOnTerminal(t *testing.T) {
	p := newPerson(t)
	state := filepath.Join(p.home, "s")
	conf := filepath.Join(p.home, "c.yaml")
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(p.home, "toolhost") // see TestMain
	if err := os.Symlink(exe, tools); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(conf, []byte("hosts:\n  tools:\n    command: "+tools+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	agent := self(p.home, "--state", state, "--config", conf, "run", "--backend", "simulated", "--no-tray", "--listen", "127.0.0.1:0", "--allow", "*")
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		_ = agent.Wait()
	})
	fullDisk{p, state}.until(exitOK, "call", "tools_sh", `{"command":"true"}`)
	call := func() *exec.Cmd {
		return self(p.home, "--state", state, "call", "tools_sh", `{"command":"printf '\\033[2J\\tx\\n'"}`)
	}
	out, err := call().Output()
	if err != nil || string(out) != "\x1b[2J\tx\n" {
		t.Errorf("a pipe got %q, %v", out, err)
	}
	master, slave := openPTY(t)
	shown := watch(master)
	cmd := call()
	cmd.Stdout = slave
	if err := cmd.Run(); err != nil {
		t.Error(err)
	}
	slave.Close()
	got := shown.await(t, `^(.*)x\r?\n`)[1]
	if strings.Contains(got, "\x1b") || !strings.Contains(got, "⟨U+001B⟩[2J") {
		t.Errorf("a terminal got %q", got)
	}
}
