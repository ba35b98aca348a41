//go:build standin

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge"
)

// The whole agent as it is built for macOS, over the stand-in's Keychain, between
// whose runs another program of the same person forges what it can.

// strictConfig is what the person has; looseConfig is what the other program would
// like.
const (
	strictConfig = `listen: 127.0.0.1:0
computer: {allowed_actions: [screenshot, wait]}
hosts:
  tools: {command: %TOOLS%}
rules:
  - {tool: tools_greet, then: deny}
`
	looseConfig = `listen: 127.0.0.1:0
host_llm: allow
hand_back: {allow_unwatched: true}
hosts:
  tools: {command: %TOOLS%, trust_hints: true}
rules:
  - {tool: "*", then: allow}
`
)

// mac is a person with an agent whose Keychain outlives it.
type mac struct {
	t                 *testing.T
	home, state, conf string
	agent             *exec.Cmd
	terminal          *os.File // the person's end of it, where the agent has one
	shown             *screen
}

func newMac(t *testing.T) *mac {
	t.Helper()
	home := t.TempDir()
	return &mac{t: t, home: home, state: filepath.Join(home, "s"), conf: filepath.Join(home, "c.yaml")}
}

func (m *mac) self(args ...string) *exec.Cmd {
	cmd := self(m.home, append([]string{"--state", m.state, "--config", m.conf}, args...)...)
	cmd.Env = append(cmd.Env, "STANDIN_keychain="+filepath.Join(m.home, "keychain"))
	return cmd
}

// configure writes the configuration, with a program for its host.
func (m *mac) configure(text string) {
	m.t.Helper()
	tools := filepath.Join(m.home, "toolhost")
	exe, err := os.Executable()
	if err != nil {
		m.t.Fatal(err)
	}
	// The test binary is the program when it is called so; see TestMain.
	if err := os.Symlink(exe, tools); err != nil && !errors.Is(err, os.ErrExist) {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(m.conf, []byte(strings.ReplaceAll(text, "%TOOLS%", tools)), 0o600); err != nil {
		m.t.Fatal(err)
	}
}

// start starts the agent; attended tells whether a person sits at its terminal.
func (m *mac) start(attended bool) {
	m.t.Helper()
	m.agent = m.self("run", "--backend", "simulated", "--no-tray")
	if attended {
		master, slave := openPTY(m.t)
		m.agent.Stdin, m.agent.Stdout, m.agent.Stderr = slave, slave, slave
		m.agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
		defer slave.Close()
		m.terminal, m.shown = master, watch(master)
	} else {
		r, w, err := os.Pipe()
		if err != nil {
			m.t.Fatal(err)
		}
		defer w.Close()
		m.agent.Stderr = w
		m.shown = watch(r)
	}
	if err := m.agent.Start(); err != nil {
		m.t.Fatal(err)
	}
	agent := m.agent
	m.t.Cleanup(func() { _ = agent.Process.Kill() })
	m.shown.await(m.t, `serving`)
}

// stop ends the agent as a person does, kill as a crash.
func (m *mac) stop() {
	m.t.Helper()
	if out, code := m.run("stop", "--quit"); code != exitOK {
		m.t.Fatal(out)
	}
	if err := m.agent.Wait(); err != nil {
		m.t.Fatal(err)
	}
}

func (m *mac) kill() {
	_ = m.agent.Process.Kill()
	_ = m.agent.Wait()
}

func (m *mac) run(args ...string) (out string, code int) {
	m.t.Helper()
	cmd := m.self(args...)
	b, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		m.t.Fatal(err)
	}
	return string(b), cmd.ProcessState.ExitCode()
}

func (m *mac) status() (s bridge.Status) {
	m.t.Helper()
	out, code := m.run("status", "--json")
	if err := json.Unmarshal([]byte(out), &s); code != exitOK || err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	return s
}

// refused makes sure that a call does not run, by a reason.
func (m *mac) refused(what, want, tool, args string) {
	m.t.Helper()
	out, code := m.run("call", tool, args)
	if code == exitOK || !strings.Contains(out, want) {
		m.t.Errorf("%s: %s %s ended with %d and\n%s\nwant %q", what, tool, args, code, out, want)
	}
}

const typing = `{"actions":[{"type":"type","text":"x"}]}`

// read and put back what the other program can reach: all of the state directory.
func (m *mac) files() map[string][]byte {
	m.t.Helper()
	all := map[string][]byte{}
	for _, name := range []string{acceptedName, "host-llm.json", "format", "rules.yaml"} {
		b, err := os.ReadFile(filepath.Join(m.state, name))
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			m.t.Fatal(err)
		}
		all[name] = b
	}
	return all
}

func (m *mac) put(all map[string][]byte) {
	m.t.Helper()
	for name, b := range all {
		path := filepath.Join(m.state, name)
		err := os.Remove(path)
		if errors.Is(err, os.ErrNotExist) {
			err = nil
		}
		if b != nil {
			err = errors.Join(err, os.WriteFile(path, b, 0o600))
		}
		if err != nil {
			m.t.Fatal(err)
		}
	}
}

// TestQuartzForgedState: forged configuration and saved state, and a start, loosen
// nothing.
func TestQuartzForgedState(t *testing.T) {
	m := newMac(t)
	// At first everything was looser, and a person had accepted that.
	m.configure(looseConfig)
	m.start(true)
	m.accept()
	if out, code := m.run("call", "tools_greet", "{}"); code != exitOK {
		t.Fatalf("accepted, and it ended with %d and\n%s", code, out)
	}
	m.stop()
	loose := m.files()
	m.configure(strictConfig)
	m.start(false)
	if out, code := m.run("host-llm", "deny"); code != exitOK {
		t.Fatal(out)
	}
	m.refused("strict", `type`, "computer", typing)
	m.refused("strict", `denies this call`, "tools_greet", "{}")
	if s := m.status(); s.HostLLM != "deny" || len(s.Warnings) != 0 {
		t.Fatalf("strict: %+v", s)
	}
	m.stop()
	strict := m.files()
	if loose[acceptedName] == nil || strict[acceptedName] == nil || bytes.Equal(loose[acceptedName], strict[acceptedName]) {
		t.Fatal("nothing was kept of what was accepted")
	}

	edited := func(name, from, to string) func() map[string][]byte {
		return func() map[string][]byte {
			b := bytes.ReplaceAll(strict[name], []byte(from), []byte(to))
			if bytes.Equal(b, strict[name]) {
				t.Fatalf("%s has no %s", name, from)
			}
			return map[string][]byte{name: b}
		}
	}
	only := func(from map[string][]byte, names ...string) func() map[string][]byte {
		return func() map[string][]byte {
			out := map[string][]byte{}
			for _, n := range names {
				out[n] = from[n]
			}
			return out
		}
	}
	none := map[string][]byte{}
	for _, c := range []struct {
		name  string
		forge func() map[string][]byte
		lost  bool // what was accepted cannot be told any more
	}{
		{"the configuration", only(none), false},
		{"a rule", func() map[string][]byte {
			return map[string][]byte{"rules.yaml": []byte("- {tool: \"*\", then: allow}\n")}
		}, false},
		{"the saved switch", edited("host-llm.json", `"deny"`, `"allow"`), false},
		{"the saved switch as it was", only(loose, "host-llm.json"), false},
		{"no saved switch", only(none, "host-llm.json"), false},
		{"an older agent's format", func() map[string][]byte {
			return map[string][]byte{"format": []byte("1\n"), "host-llm.json": []byte(`{"v":1,"mode":"allow","since":"2026-01-02T03:04:05Z","by":"x","model_hosts":[]}`)}
		}, false},
		{"what was accepted", edited(acceptedName, `"then":"deny"`, `"then":"allow"`), true},
		{"what was accepted as it was", only(loose, acceptedName), true},
		{"nothing accepted", only(none, acceptedName), true},
		{"nothing accepted, sealed by itself", func() map[string][]byte {
			return map[string][]byte{acceptedName: []byte("drawbridge sealed 1 " + strings.Repeat("0", 64) + "\n{}")}
		}, true},
		{"everything as it was", only(loose, acceptedName, "host-llm.json", "format", "rules.yaml"), true},
		{"nothing left", only(none, acceptedName, "host-llm.json", "format", "rules.yaml"), true},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := m
			m.t = t
			m.put(strict)
			m.put(c.forge())
			m.configure(looseConfig)
			// A second start believes no more than the first.
			for _, again := range []string{"first start", "second start"} {
				m.start(false)
				s := m.status()
				if s.HostLLM != "deny" {
					t.Errorf("%s: hosts' models are at %s", again, s.HostLLM)
				}
				warnings := strings.Join(s.Warnings, "\n")
				if !strings.Contains(warnings, "not in force until a person accepts it") || strings.Contains(warnings, "outside of Drawbridge") != c.lost {
					t.Errorf("%s: the warnings are\n%s", again, warnings)
				}
				greet, typed := "denies this call", "type"
				if c.lost {
					greet, typed = "a lost record of what was accepted denies", "a lost record of what was accepted denies"
				}
				m.refused(again, greet, "tools_greet", "{}")
				m.refused(again, typed, "computer", typing)
				m.kill()
			}
			if c.name != "nothing left" {
				return
			}
			// The person can set it right.
			m.start(true)
			m.accept()
			if out, code := m.run("call", "tools_greet", "{}"); code != exitOK {
				t.Errorf("accepted, and it ended with %d and\n%s", code, out)
			}
			m.stop()
			m.start(false)
			if s := m.status(); strings.Contains(strings.Join(s.Warnings, "\n"), "accept") {
				t.Errorf("accepted, and asked again: %q", s.Warnings)
			}
			m.stop()
		})
	}
}

// accept says yes to what loosens, at the terminal.
func (m *mac) accept() {
	m.t.Helper()
	word := m.shown.await(m.t, `allow +([a-z]+) +yes`)[1]
	m.shown.await(m.t, `seconds left`)
	time.Sleep(600 * time.Millisecond) // an answer right after the prompt does not count
	if _, err := io.WriteString(m.terminal, "allow "+word+"\n"); err != nil {
		m.t.Fatal(err)
	}
	m.shown.await(m.t, `Allowed\.`)
}

// TestQuartzPurge: what the Keychain holds goes with the state.
func TestQuartzPurge(t *testing.T) {
	m := newMac(t)
	m.configure(strictConfig)
	m.start(false)
	keychain := filepath.Join(m.home, "keychain")
	if b, err := os.ReadFile(keychain); err != nil || bytes.Count(b, []byte("\n")) != 2 {
		t.Fatalf("the Keychain holds %q, %v", b, err)
	}
	m.stop()
	p := newPerson(t)
	cmd := m.self("uninstall", "--purge", "--dir", filepath.Join(m.home, "Applications"))
	cmd.Env = append(cmd.Env, p.env...)
	cmd.Env = append(cmd.Env, "HOME="+m.home)
	out, _ := cmd.CombinedOutput() // it leaves the configuration, which was named, and says so
	if !strings.Contains(string(out), "the Keychain's item \"accepted of "+m.state) {
		t.Errorf("%s", out)
	}
	if b, err := os.ReadFile(keychain); err != nil || len(b) != 0 {
		t.Errorf("the Keychain holds %q, %v\n%s", b, err, out)
	}
	if _, err := os.Stat(m.state); err == nil {
		t.Error("the state is there")
	}
}
