//go:build standin

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/measured"
	"drawbridge/input/virtual"
)

// The whole agent on macOS's own backend, over the stand-in: a client calls it by
// MCP, a person allows it at the terminal, events land in a real editor.

// typedText is what is typed: accents, scripts that no keyboard has, characters
// made of several, tabs and newlines.
const typedText = "The quick brown fox, 0123456789 (jumps) [over] {the} \"lazy\" dog's ~!@#$%^&*_+-=|\\:;<>?/`\n" +
	"\täöü ÄÖÜ ß éèêë ñ çÇ Åå øØ ¿¡ £ €\n日本語 한국어 中文 Привет Γειά\n😀 👩\u200d💻 👍🏽 🇨🇭 ❤️ end"

// macDesktop is a running agent, and the display that its events land on.
type macDesktop struct {
	v          *virtual.Virtual
	home       string
	state, log string
}

func startMacDesktop(t *testing.T, displays, layout, source string, display int, env ...string) *macDesktop {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	for _, program := range []string{"mousepad", "setxkbmap"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	v, err := virtual.Start(t.Context(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	keys := exec.Command("setxkbmap", strings.Fields(layout)...)
	keys.Env = v.Env()
	if out, err := keys.CombinedOutput(); err != nil {
		t.Fatalf("setxkbmap: %v\n%s", err, out)
	}
	home := t.TempDir()
	a := &macDesktop{v: v, home: home, state: filepath.Join(home, "s"), log: filepath.Join(home, "posted")}
	conf := filepath.Join(home, "c.yaml")
	rules := fmt.Sprintf("computer: {display: %d}\nhand_back: {quiet: 0s}\nrules:\n  - {tool: computer, then: allow}\n", display)
	if err := os.WriteFile(conf, []byte(rules), 0o600); err != nil {
		t.Fatal(err)
	}
	master, slave := openPTY(t)
	agent := self(home, "--state", a.state, "--config", conf, "run", "--backend", "native", "--no-tray", "--listen", "127.0.0.1:0")
	agent.Stdin, agent.Stdout, agent.Stderr = slave, slave, slave
	agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	var cookie string
	for _, e := range v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	agent.Env = append(agent.Env, "DISPLAY="+v.Display(), "XAUTHORITY="+cookie, "STANDIN_xauthority="+cookie, "STANDIN_x="+v.Display(), "STANDIN_displays="+displays,
		"STANDIN_log="+a.log, "STANDIN_source=com.apple.keylayout."+source)
	agent.Env = append(agent.Env, env...)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	t.Cleanup(func() {
		_ = agent.Process.Signal(syscall.SIGTERM)
		if err := agent.Wait(); err != nil {
			t.Errorf("the agent's end: %v", err)
		}
	})
	shown := watch(master)
	word := shown.await(t, `allow +([a-z]+) +yes`)[1]
	shown.await(t, `seconds left`)
	time.Sleep(600 * time.Millisecond) // an answer right after the prompt does not count
	if _, err := io.WriteString(master, "allow "+word+"\n"); err != nil {
		t.Fatal(err)
	}
	shown.await(t, `Allowed\.`)
	return a
}

// call runs a batch by the command that is a client.
func (a *macDesktop) call(t *testing.T, actions ...map[string]any) (computer.Structured, string) {
	t.Helper()
	arguments, err := json.Marshal(map[string]any{"actions": actions})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := self(a.home, "--state", a.state, "--json", "call", "computer", string(arguments), "--out", filepath.Join(a.home, "out"))
	cmd.Stdout = &out
	err = cmd.Run()
	var result struct {
		StructuredContent computer.Structured `json:"structuredContent"`
	}
	if e := json.Unmarshal(out.Bytes(), &result); e != nil {
		t.Fatalf("%v, %v: %s", err, e, out.Bytes())
	}
	return result.StructuredContent, out.String()
}

func TestQuartzDesktop(t *testing.T) {
	for _, c := range []struct {
		name, displays string
		display        int
		layout, source string
		scale          float64
	}{
		{"retina", "1:0,0,640,400,2,0,0", 0, "us", "US", 2},
		{"negative origin", "1:0,0,320,400,2,640,0 2:-640,-100,640,800,1,0,0", 1, "us", "US", 1},
		{"azerty", "1:0,0,640,400,2,0,0", 0, "fr -variant mac", "French", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := startMacDesktop(t, c.displays, c.layout, c.source, c.display)
			file := filepath.Join(a.home, "text.txt")
			if err := os.WriteFile(file, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			editor := exec.Command("mousepad", "--disable-server", file)
			editor.Env = append(a.v.Env(), "LC_ALL=C.UTF-8", "HOME="+a.home, "GSETTINGS_BACKEND=memory", "NO_AT_BRIDGE=1",
				"XDG_CONFIG_HOME="+a.home, "XDG_DATA_HOME="+a.home, "XDG_CACHE_HOME="+a.home, "DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
			if err := editor.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { editor.Process.Kill(); editor.Wait() }()
			// Its window is up when a click is recorded to have gone into it.
			for end := time.Now().Add(time.Minute); ; {
				if s, out := a.call(t, map[string]any{"type": "screenshot"}); s.Picture == nil || s.Display.Scale != c.scale || s.Display.Index != c.display {
					t.Fatal(out)
				}
				s, out := a.call(t, map[string]any{"type": "click", "x": 300, "y": 300})
				if s.Stopped != nil {
					t.Fatal(out)
				}
				if target := s.Executed[0].Target; target != nil && target.App == "Mousepad" {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the editor does not come up: %s", out)
				}
			}
			s, out := a.call(t, map[string]any{"type": "type", "text": "to be replaced"}, map[string]any{"type": "keypress", "keys": []string{"CTRL", "A"}},
				map[string]any{"type": "type", "text": typedText}, map[string]any{"type": "keypress", "keys": []string{"CTRL", "S"}})
			if s.Stopped != nil || s.Backend != "native" {
				t.Fatal(out)
			}
			for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
				got, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if string(got) == typedText {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("the file holds %q", got)
				}
			}
		})
	}
}

// TestQuartzDesktopMeasures: doctor runs in the agent, and what it measures is kept.
func TestQuartzDesktopMeasures(t *testing.T) {
	a := startMacDesktop(t, "1:0,0,1280,800,1,0,0", "us", "US", 0)
	out, err := self(a.home, "--state", a.state, "--json", "doctor", "--test-input").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, ok := measured.Load(a.state, "15.1 (24B83)")
	if !ok || f.WheelReversed || !f.Typing || f.Watch == "" {
		t.Errorf("measured %+v, %v", f, ok)
	}
}

// TestQuartzDesktopAsks: doctor --ask has macOS ask for what is missing, and opens
// System Settings at the first of it; nothing else prompts.
func TestQuartzDesktopAsks(t *testing.T) {
	dir := t.TempDir()
	opened := filepath.Join(dir, "opened")
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte("#!/bin/sh\necho \"$@\" >>"+opened+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	a := startMacDesktop(t, "1:0,0,1280,800,1,0,0", "us", "US", 0, "PATH="+dir+":"+os.Getenv("PATH"), "STANDIN_screen=0", "STANDIN_listen=0", "STANDIN_trusted=0")
	prompts := func() (n int) {
		b, err := os.ReadFile(a.log)
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("prompt "))
	}
	for _, action := range []map[string]any{{"type": "screenshot"}, {"type": "keypress", "keys": []string{"a"}}} {
		if s, out := a.call(t, action); s.Stopped == nil || s.Stopped.Reason != "permission" {
			t.Errorf("%v: %s", action, out)
		}
	}
	out, err := self(a.home, "--state", a.state, "doctor").CombinedOutput()
	if err == nil || prompts() > 0 {
		t.Errorf("%d prompts before anybody wanted to be asked; doctor: %v\n%s", prompts(), err, out)
	}
	if out, err = self(a.home, "--state", a.state, "doctor", "--ask").CombinedOutput(); err == nil || prompts() != 3 {
		t.Errorf("%d prompts; doctor --ask: %v\n%s", prompts(), err, out)
	}
	if b, err := os.ReadFile(opened); err != nil || string(b) != "x-apple.systempreferences:com.apple.preference.security?Privacy_Accessibility\n" {
		t.Errorf("opened %q, %v", b, err)
	}
}
