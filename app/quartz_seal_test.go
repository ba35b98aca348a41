//go:build standin

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/token"
	"drawbridge/packaging/standin"

	"golang.org/x/sys/unix"
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
	flags             []string // of run
	env               []string // beside the usual one
	terminal          *os.File // the person's end of it, where the agent has one
	shown             *screen
	dialled           *atomic.Int64 // requests to a host that is a server
}

func newMac(t *testing.T) *mac {
	t.Helper()
	home := t.TempDir()
	return &mac{t: t, home: home, state: filepath.Join(home, "s"), conf: filepath.Join(home, "c.yaml"),
		flags: []string{"--backend", "simulated"}, dialled: new(atomic.Int64)}
}

func (m *mac) self(args ...string) *exec.Cmd {
	cmd := self(m.home, append([]string{"--state", m.state, "--config", m.conf}, args...)...)
	cmd.Env = append(cmd.Env, "STANDIN_keychain="+filepath.Join(m.home, "keychain"))
	cmd.Env = append(cmd.Env, m.env...)
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
	m.agent = m.self(append([]string{"run", "--no-tray"}, m.flags...)...)
	if attended {
		master, slave := openPTY(m.t)
		// Tall enough that what is accepted at once is on one page.
		if err := unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 400, Col: 200}); err != nil {
			m.t.Fatal(err)
		}
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

// ready waits until a host is there.
func (m *mac) ready(host string) {
	m.t.Helper()
	m.until(host+" is ready", func() bool {
		return slices.ContainsFunc(m.status().Hosts, func(h bridge.HostStatus) bool { return h.Name == host && h.State == "ready" })
	})
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
	m.agree()
	m.start(false)
	greets := func() bool { return m.runs("tools_greet", "{}") }
	m.until("what was accepted is in force", greets)
	m.stop()
	loose := m.files()
	m.configure(strictConfig)
	m.start(false)
	if out, code := m.run("host-llm", "deny"); code != exitOK {
		t.Fatal(out)
	}
	m.refused("strict", `type`, "computer", typing)
	m.ready("tools")
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
				if c.lost { // and so was that the host was
					greet, typed = "is not exposed", "a lost record of what was accepted denies"
				} else {
					m.ready("tools")
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
			m.until("what was accepted is in force", greets)
			m.stop()
			m.agree()
			m.start(false)
			if s := m.status(); strings.Contains(strings.Join(s.Warnings, "\n"), "accept") {
				t.Errorf("accepted, and asked again: %q", s.Warnings)
			}
			m.stop()
		})
	}
}

// agree has the person accept configuration and rules on a native surface, of an
// agent that ends then.
func (m *mac) agree() {
	m.t.Helper()
	d, err := standin.Open("", "", "1:0,0,1280,800,1,0,0", "")
	if err == nil {
		defer d.Close()
		defer d.Set("keychain", "")
		err = errors.Join(d.Set("keychain", filepath.Join(m.home, "keychain")), makeStateDir(m.state))
	}
	if err != nil {
		m.t.Fatal(err)
	}
	c := &cli{stdio: stdio{getenv: func(string) string { return "" }}}
	c.flags.config = m.conf
	conf, err := c.loadConfig(runOptions{})
	if err != nil {
		m.t.Fatal(err)
	}
	policy, err := readPolicy(conf.Written, rulesFile(m.state))
	if err != nil {
		m.t.Fatal(err)
	}
	desk := &personWho{answer: gate.Answer{Scope: gate.Once}}
	g := gate.New(gate.Options{Accepted: openSeals(m.state).accepted(), Surfaces: []gate.Surface{desk}})
	defer g.Close()
	if err := g.SetPolicy(policy); err != nil {
		m.t.Fatal(err)
	}
	if w := g.Warnings(); len(desk.asked) != 1 || len(w) != 0 {
		m.t.Fatalf("asked %d times, and the gate warns %q", len(desk.asked), w)
	}
}

// TestQuartzTerminalTillEnd: whoever starts the agent in a terminal of their own and
// says yes there has loosened nothing for the next one.
func TestQuartzTerminalTillEnd(t *testing.T) {
	m := newMac(t)
	m.configure(strictConfig)
	m.agree()
	m.start(false)
	if out, code := m.run("host-llm", "deny"); code != exitOK {
		t.Fatal(out)
	}
	m.stop()
	m.configure(looseConfig)
	m.start(true)
	m.shown.await(t, `holds until the agent ends`)
	m.accept()
	m.until("what was accepted is in force", func() bool { return m.runs("tools_greet", "{}") })
	allow := m.self("host-llm", "allow")
	if err := allow.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = allow.Process.Kill() }()
	m.shown.await(t, `(?s)holds until the agent ends.*call their own models again`)
	m.accept()
	if err := allow.Wait(); err != nil || m.status().HostLLM != "allow" {
		t.Errorf("the models are not allowed: %v", err)
	}
	m.stop()
	m.start(false)
	m.ready("tools")
	s := m.status()
	if w := strings.Join(s.Warnings, "\n"); s.HostLLM != "deny" || !strings.Contains(w, "not in force until a person accepts it") {
		t.Errorf("the models are at %s, and the warnings are\n%s", s.HostLLM, w)
	}
	m.refused("the next start", "denies this call", "tools_greet", "{}")
	m.refused("the next start", "type", "computer", typing)
	m.stop()
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

// TestQuartzSwappedState: another state directory in the place of the person's, or
// named, is not the first start.
func TestQuartzSwappedState(t *testing.T) {
	m := newMac(t)
	m.configure(strictConfig)
	m.agree()
	real, elsewhere := m.state, filepath.Join(m.home, "elsewhere")
	lost := func(what string) {
		t.Helper()
		m.configure("listen: 127.0.0.1:0\n")
		for _, again := range []string{", first start", ", second start"} {
			m.start(false)
			s := m.status()
			if w := strings.Join(s.Warnings, "\n"); s.HostLLM != "deny" || !strings.Contains(w, "in another state directory") {
				t.Errorf("%s: the models are at %s, and the warnings are\n%s", what+again, s.HostLLM, w)
			}
			m.refused(what+again, "a lost record of what was accepted denies", "computer", typing)
			m.stop()
		}
	}
	m.state = elsewhere
	lost("another one named")

	// As an older agent's, whose switch would be sealed as it is found.
	m.state = filepath.Join(m.home, "old")
	tokens, err := os.ReadFile(filepath.Join(elsewhere, token.FileName))
	if err == nil {
		err = errors.Join(os.Mkdir(m.state, 0o700), os.WriteFile(filepath.Join(m.state, token.FileName), tokens, 0o600))
	}
	if err != nil {
		t.Fatal(err)
	}
	m.put(map[string][]byte{"format": []byte("1\n"), "host-llm.json": []byte(`{"v":1,"mode":"allow","since":"2026-01-02T03:04:05Z","by":"x","model_hosts":[]}`)})
	lost("an older agent's")

	m.state = real
	if err := errors.Join(os.Rename(real, real+".real"), os.Symlink(elsewhere, real)); err != nil {
		t.Fatal(err)
	}
	if out, code := m.run("run", "--no-tray"); code != exitUsage || !strings.Contains(out, "is a link") {
		t.Errorf("a link: ended with %d and\n%s", code, out)
	}
	if err := errors.Join(os.Remove(real), os.Rename(real+".real", real)); err != nil {
		t.Fatal(err)
	}
	m.configure(strictConfig)
	m.start(false)
	if s := m.status(); len(s.Warnings) != 0 {
		t.Errorf("the person's own again: %q", s.Warnings)
	}
	m.stop()
	keys := openKeys(t, m.home, real)
	removed, kept, err := keys.remove()
	if err != nil || len(removed) != 2 || len(kept) != 2 || !strings.Contains(kept[0], elsewhere) || !strings.Contains(kept[1], m.home+"/old") {
		t.Errorf("removed %q, kept %q, %v", removed, kept, err)
	}
}

// TestQuartzUnsaved: whoever keeps what tightens from being saved does not have what
// was looser at the next start.
func TestQuartzUnsaved(t *testing.T) {
	m := newMac(t)
	m.configure(looseConfig)
	m.agree()
	m.start(false)
	m.ready("tools")
	loose := m.files()
	block := func() {
		for _, name := range []string{acceptedName, "host-llm.json"} {
			path := filepath.Join(m.state, name)
			if err := errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700)); err != nil {
				t.Fatal(err)
			}
		}
	}
	unblock := func() {
		for _, name := range []string{acceptedName, "host-llm.json"} {
			if err := os.RemoveAll(filepath.Join(m.state, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	block()
	m.configure(strictConfig)
	if out, code := m.run("reload"); code != exitOK || !strings.Contains(out, "could not be saved") {
		t.Errorf("ended with %d and\n%s", code, out)
	}
	if out, code := m.run("host-llm", "deny"); code == exitOK || !strings.Contains(out, "could not be saved") {
		t.Errorf("ended with %d and\n%s", code, out)
	}
	if w := strings.Join(m.status().Warnings, "\n"); strings.Count(w, "could not be saved") != 2 {
		t.Errorf("the warnings are\n%s", w)
	}
	m.kill()
	unblock()
	m.put(loose)
	m.configure(looseConfig)
	m.start(false)
	if s := m.status(); s.HostLLM != "deny" {
		t.Errorf("the models are at %s", s.HostLLM)
	}
	m.refused("after a start", "a lost record of what was accepted denies", "computer", typing)
	m.stop()

	// It is saved by itself.
	m.agree()
	m.start(false)
	m.configure(strictConfig)
	block()
	if out, _ := m.run("reload"); !strings.Contains(out, "could not be saved") {
		t.Errorf("reloaded with\n%s", out)
	}
	unblock()
	m.until("it is saved", func() bool { return len(m.status().Warnings) == 0 })
	m.kill()
	m.start(false)
	if w := m.status().Warnings; len(w) != 0 {
		t.Errorf("the warnings are %q", w)
	}
	m.stop()
}

// openKeys has the items of a Mac in this process.
func openKeys(t *testing.T, home, state string) seals {
	t.Helper()
	d, err := standin.Open("", "", "1:0,0,1280,800,1,0,0", "")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(d.Set("keychain", ""), d.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := d.Set("keychain", filepath.Join(home, "keychain")); err != nil {
		t.Fatal(err)
	}
	return openSeals(state)
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

// guarded is what the person has of the settings that others than the gate hold;
// forged is what the other program would like of each, as lines in its place.
const guarded = `listen: 127.0.0.1:0
allowed_hosts: [good.example]
allowed_origins: ["https://good.example"]
computer:
  enabled: false
  backend: simulated
  record_titles: false
  display: 0
hand_back:
  quiet: 1h
  panic_chord: ctrl+option+f9
  allow_unwatched: false
clients:
  default: {hide: [tools_sh]}
expose: ["tools_*"]
hide: ["*secret"]
main_host: ""
hosts:
  tools: {command: %TOOLS%}
  omp: {attached: true, prefix: o-}
rules:
  - {tool: "*", then: allow}
host_llm: deny
model_gateway:
  providers: {corp: "http://127.0.0.1:1"}
  model_hosts: [llm.invalid]
`

// forgery is one thing that the other program changes, what the person is told of
// it, and what must not be so before they accepted it.
type forgery struct {
	name, from, to, told string
	is                   func(m *mac) bool
}

var forgeries = []forgery{
	{"a host name", "[good.example]", "[good.example, evil.example]", `requests that name this machine "evil.example" are let in`,
		func(m *mac) bool { return m.asks("", "evil.example") != http.StatusForbidden }},
	{"an origin", `["https://good.example"]`, `["https://good.example", "https://evil.example"]`, `web pages of "https://evil.example" may connect`,
		func(m *mac) bool { return m.asks("https://evil.example", "") != http.StatusForbidden }},
	{"the tool", "enabled: false", "enabled: true", "the computer tool is offered",
		func(m *mac) bool { return m.shows("computer.enabled", "true") }},
	{"the backend", "backend: simulated", "backend: native", "drives your own desktop",
		func(m *mac) bool { return m.status().Backend != "simulated" || m.shows("computer.backend", `"native"`) }},
	{"titles", "record_titles: false", "record_titles: true", "the titles of windows",
		func(m *mac) bool { return m.shows("computer.record_titles", "true") }},
	{"the display", "display: 0", "display: 1", "drives display 1, not 0",
		func(m *mac) bool { return m.shows("computer.display", "1") }},
	{"the quiet time", "quiet: 1h", "quiet: 0s", "batches go on 0s after",
		func(m *mac) bool { return m.shows("hand_back.quiet", `"0s"`) }},
	{"the chord", "panic_chord: ctrl+option+f9", `panic_chord: ""`, "no keys stop everything any more",
		func(m *mac) bool { return m.shows("hand_back.panic_chord", `""`) }},
	{"the watch", "allow_unwatched: false", "allow_unwatched: true", "cannot be seen",
		func(m *mac) bool { return m.shows("hand_back.allow_unwatched", "true") }},
	{"a client's list", "  default: {hide: [tools_sh]}", "  other: {}", "client default may see the tools that fit tools_sh, which were hidden",
		func(m *mac) bool { return m.runs("tools_sh", `{"command":"true"}`) }},
	{"all clients' list", `expose: ["tools_*"]`, `expose: ["tools_*", computer]`, "every client may see the tools that fit computer",
		func(m *mac) bool { return m.shows("expose", `["tools_*","computer"]`) }},
	{"what is hidden", `hide: ["*secret"]`, "hide: []", `every client may see the tools that fit "*secret", which were hidden`,
		func(m *mac) bool { return m.shows("hide", "[]") }},
	{"the main host", `main_host: ""`, "main_host: omp", "those of host omp",
		func(m *mac) bool { return m.shows("main_host", `"omp"`) }},
	{"a prefix", "prefix: o-", "prefix: p-", "the tools of host omp are called p-…, no longer o-…",
		func(m *mac) bool {
			return strings.Contains(m.inForce(), "prefix: p-")
		}},
	{"a program", "  omp: {", "  evil: {command: /bin/sh, args: [-c, \"touch %MARK%\"], env: {A: s3cret}}\n  omp: {", "host evil starts the program \"/bin/sh\"",
		func(m *mac) bool { return m.marked() }},
	{"another program", "tools: {command: %TOOLS%}", "tools: {command: /bin/sh, args: [-c, \"touch %MARK%; exec %TOOLS%\"]}", "host tools now starts the program \"/bin/sh\"",
		func(m *mac) bool { return m.marked() }},
	{"a server", "  omp: {", "  far: {url: \"%SERVER%?key=s3cret\"}\n  omp: {", "host far is the server http://127.0.0.1:",
		func(m *mac) bool { return m.dialled.Load() > 0 }},
	{"a provider", `corp: "http://127.0.0.1:1"`, `corp: "http://127.0.0.1:2"`, "model requests for corp go to http://127.0.0.1:2, no longer to http://127.0.0.1:1",
		func(m *mac) bool { return m.shows("model_gateway.providers", `{"corp":"http://127.0.0.1:2"}`) }},
	{"a model's host", "[llm.invalid]", "[]", `models are no longer known to answer at "llm.invalid"`,
		func(m *mac) bool { return !m.modelRefused("llm.invalid") }},
}

// asks makes a request as a page of an origin, or by another name of this machine,
// and returns its status.
func (m *mac) asks(origin, host string) int {
	m.t.Helper()
	e, err := bridge.ReadEndpoint(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	secret, err := token.ReadDefault(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	q, err := http.NewRequest("GET", "http"+strings.TrimSuffix(strings.TrimPrefix(e.URL, "ws"), "/mcp")+"/status", nil)
	if err != nil {
		m.t.Fatal(err)
	}
	q.Header.Set("Authorization", "Bearer "+secret)
	if q.Host = host; origin != "" {
		q.Header.Set("Origin", origin)
	}
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		m.t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode
}

// inForce is the configuration as the agent has it; with --config the command would
// read the file.
func (m *mac) inForce(args ...string) string {
	m.t.Helper()
	out, err := self(m.home, append([]string{"--state", m.state, "config", "show"}, args...)...).Output()
	if err != nil {
		m.t.Fatal(err)
	}
	return string(out)
}

// shows tells whether a field is in force with a value, as JSON.
func (m *mac) shows(name, value string) bool {
	m.t.Helper()
	var shown shownConfig
	if err := json.Unmarshal([]byte(m.inForce("--json")), &shown); err != nil {
		m.t.Fatal(err)
	}
	for _, v := range shown.Values {
		if v.Name == name {
			b, err := json.Marshal(v.Value)
			return err == nil && string(b) == value
		}
	}
	m.t.Fatalf("no field %s", name)
	return false
}

func (m *mac) runs(tool, args string) bool {
	m.t.Helper()
	_, code := m.run("call", tool, args)
	return code == exitOK
}

// marked tells whether the other program's host was started.
func (m *mac) marked() bool {
	_, err := os.Stat(filepath.Join(m.home, "mark"))
	return err == nil
}

// modelRefused tells whether the proxy of a host that was started through us takes
// a destination for a model's, while those are off.
func (m *mac) modelRefused(destination string) bool {
	m.t.Helper()
	out, code := m.run("host", "run", "--name", "h", "--", "sh", "-c", "printf %s $HTTP_PROXY")
	lines := strings.Split(strings.TrimSpace(out), "\n") // the command says what it set
	proxy, err := url.Parse(lines[len(lines)-1])
	if code != exitOK || err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
	c := &http.Client{Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}
	r, err := c.Get("http://" + destination + "/v1/messages")
	if err != nil {
		m.t.Fatal(err)
	}
	r.Body.Close()
	return r.StatusCode == http.StatusBadRequest
}

func (m *mac) until(what string, is func() bool) {
	m.t.Helper()
	for end := time.Now().Add(time.Minute); !is(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			m.t.Fatalf("not in a minute: %s", what)
		}
	}
}

// TestQuartzForgedSettings: nothing of a forged configuration that loosens is in
// force after a start, one by one and all at once; a person's yes puts it in force.
func TestQuartzForgedSettings(t *testing.T) {
	m := newMac(t)
	far := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		m.dialled.Add(1)
		w.WriteHeader(http.StatusNotFound)
	}))
	defer far.Close()
	m.flags = nil // the backend is the configuration's
	fill := strings.NewReplacer("%MARK%", filepath.Join(m.home, "mark"), "%SERVER%", far.URL)
	greets := func() bool { return m.runs("tools_greet", "{}") }
	warned := func() string { return strings.Join(m.status().Warnings, "\n") }

	m.configure(guarded)
	m.agree()
	m.start(false)
	m.until("the host that was accepted is there", greets)
	m.stop()
	m.start(false)
	m.until("what was accepted outlives the agent", greets)
	if w := warned(); strings.Contains(w, "accept") || !m.modelRefused("llm.invalid") {
		t.Fatalf("accepted, and the warnings are\n%s", w)
	}
	if m.asks("https://good.example", "good.example") != http.StatusOK {
		t.Error("what was accepted is not let in")
	}
	for _, f := range forgeries {
		if f.is(m) {
			t.Errorf("%s: so it is without a forgery", f.name)
		}
	}
	m.stop()
	// What holds before each forgery: the Keychain, too, which no other program reaches.
	strict, keychain := m.files(), filepath.Join(m.home, "keychain")
	keys, err := os.ReadFile(keychain)
	if err != nil {
		t.Fatal(err)
	}
	reset := func() {
		m.t.Helper()
		m.put(strict)
		if err := os.WriteFile(keychain, keys, 0o600); err != nil {
			m.t.Fatal(err)
		}
	}

	all := guarded
	for _, f := range forgeries {
		if strings.Count(guarded, f.from) != 1 {
			t.Fatalf("%s: %q is not once in the configuration", f.name, f.from)
		}
		all = strings.Replace(all, f.from, f.to, 1)
		t.Run(f.name, func(t *testing.T) {
			m := m
			m.t = t
			reset()
			m.configure(fill.Replace(strings.Replace(guarded, f.from, f.to, 1)))
			m.start(false)
			defer m.stop()
			if w := warned(); !strings.Contains(w, "not in force until a person accepts it: ") || !strings.Contains(w, f.told) || strings.Contains(w, "s3cret") {
				t.Errorf("the warnings are\n%s", w)
			}
			if f.is(m) {
				t.Error("it is in force")
			}
		})
	}
	m.t = t
	reset()
	m.configure(fill.Replace(all))
	for range 2 { // a second start believes no more than the first
		m.start(false)
		w := warned()
		for _, f := range forgeries {
			if !strings.Contains(w, f.told) {
				t.Errorf("all at once: %s: the warnings are\n%s", f.name, w)
			}
			if f.is(m) {
				t.Errorf("all at once: %s is in force", f.name)
			}
		}
		m.stop()
	}

	// All accepted. What takes a restart says so, and is in force after one.
	m.start(true)
	m.accept()
	for _, f := range forgeries {
		if f.name != "the backend" && f.name != "a model's host" {
			m.until(f.name+" is in force", func() bool { return f.is(m) })
		}
	}
	if w := warned(); !strings.Contains(w, "in force after a restart: computer.backend, model_gateway.providers, model_gateway.model_hosts") || strings.Contains(w, "until a person") {
		t.Errorf("accepted, and the warnings are\n%s", w)
	}
	m.stop()
	m.agree()
	m.flags = []string{"--backend", "simulated"} // there is no desktop of a person's here
	m.start(false)
	if w := warned(); strings.Contains(w, "accept") || m.modelRefused("llm.invalid") || !m.runs("tools_sh", `{"command":"true"}`) {
		t.Errorf("after a restart the warnings are\n%s", w)
	}
	m.stop()
	// A flag cannot do what takes a person in the configuration.
	reset()
	m.configure(guarded)
	m.flags = nil
	if out, code := m.run("run", "--backend", "native", "--no-tray"); code != exitUsage || !strings.Contains(out, "flag --backend is not used") {
		t.Errorf("ended with %d and\n%s", code, out)
	}
}

// TestQuartzAllow: --allow lets the agent's own tool loose on a desktop of its own,
// and never the programs of hosts, which act with the agent's grants.
func TestQuartzAllow(t *testing.T) {
	m := newMac(t)
	m.configure("listen: 127.0.0.1:0\nhosts: {tools: {command: %TOOLS%}}\n")
	m.agree()
	m.flags = append(m.flags, "--allow", "*")
	m.start(false)
	defer m.stop()
	m.ready("tools")
	m.refused("with --allow", "nobody can be asked", "tools_sh", `{"command":"true"}`)
	if !m.runs("computer", typing) {
		t.Error("the agent's own tool does not run unasked")
	}
	if w := strings.Join(m.status().Warnings, "\n"); !strings.Contains(w, `tools that fit "*" run unasked`) || !strings.Contains(w, "of any other host they are asked about") {
		t.Errorf("the warnings are\n%s", w)
	}
}

// TestQuartzNameStays: the name of a program that was accepted, and with it what a
// person allowed by that name, goes to no session that dials in.
func TestQuartzNameStays(t *testing.T) {
	m := newMac(t)
	const program = "listen: 127.0.0.1:0\nhosts: {tools: {command: %TOOLS%, trust_hints: true}}\nrules: [{tool: tools_sh, then: allow}]\n"
	m.configure(program)
	m.agree()
	m.start(false)
	m.ready("tools")
	out, code := m.run("host", "add", "tools")
	secret, _, _ := strings.Cut(out, "\n")
	if code != exitOK {
		t.Fatal(out)
	}
	session := &hosttest.Server{}
	session.SetTools(`{"name":"sh","inputSchema":{"type":"object"}}`)
	refused := func(what, told string) {
		t.Helper()
		if w := strings.Join(m.status().Warnings, "\n"); !strings.Contains(w, told) {
			t.Errorf("%s: the warnings are\n%s", what, w)
		}
		e, err := bridge.ReadEndpoint(m.state)
		if err != nil {
			t.Fatal(err)
		}
		s, err := session.Dial(strings.TrimSuffix(e.URL, "/mcp")+"/host", secret, `{"v":1,"name":"tools","session":"s"}`)
		if err != nil {
			t.Fatal(err)
		}
		defer s.WS.Close()
		<-s.Done
		if s.Err == nil || !strings.Contains(s.Err.Error(), "the name tools was accepted for a program or server") {
			t.Errorf("%s: the session ended with %v", what, s.Err)
		}
		m.refused(what, "is not exposed", "tools_sh", "{}")
	}
	for _, c := range []struct{ hosts, told string }{
		{"hosts: {tools: {attached: true, trust_hints: true}}", "host tools is a session that dials in, no longer the program or server that you accepted"},
		{"hosts: {}", "the name tools is free for any session, no longer kept for the program or server that you accepted"},
	} {
		m.configure(strings.Replace(program, "hosts: {tools: {command: %TOOLS%, trust_hints: true}}", c.hosts, 1))
		if out, code := m.run("reload"); code != exitOK {
			t.Fatal(out)
		}
		refused("reloaded", c.told)
		m.stop()
		m.start(false)
		refused("started", c.told)
	}
	m.stop()
	// A person can let it go.
	m.start(true)
	m.accept()
	m.until("the name is free", func() bool { return !strings.Contains(strings.Join(m.status().Warnings, "\n"), "until a person") })
	e, err := bridge.ReadEndpoint(m.state)
	if err != nil {
		t.Fatal(err)
	}
	s, err := session.Dial(strings.TrimSuffix(e.URL, "/mcp")+"/host", secret, `{"v":1,"name":"tools","session":"s"}`)
	if err != nil {
		t.Fatal(err)
	}
	defer s.WS.Close()
	m.ready("tools")
	m.stop()
}

// TestQuartzPath: another PATH starts no other program than the one that was shown
// and accepted, and a program that was not there then is not started once it is.
func TestQuartzPath(t *testing.T) {
	m := newMac(t)
	evil := filepath.Join(m.home, "evil")
	if err := os.Mkdir(evil, 0o700); err != nil {
		t.Fatal(err)
	}
	plant := func(name string) {
		t.Helper()
		script := "#!/bin/sh\ntouch " + filepath.Join(m.home, "mark") + "\n"
		if err := os.WriteFile(filepath.Join(evil, name), []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	good := "PATH=" + m.home + ":" + os.Getenv("PATH")
	m.configure("listen: 127.0.0.1:0\nhosts: {tools: {command: toolhost}, later: {command: later-server}}\n# %TOOLS%\n")
	m.env = []string{good}
	path := os.Getenv("PATH")
	t.Setenv("PATH", strings.TrimPrefix(good, "PATH="))
	m.agree()
	t.Setenv("PATH", path)
	m.start(false)
	m.ready("tools")
	if !strings.Contains(m.inForce(), filepath.Join(m.home, "toolhost")) {
		t.Errorf("what PATH found is not shown:\n%s", m.inForce())
	}
	m.stop()
	plant("toolhost")
	plant("later-server")
	m.env = []string{"PATH=" + evil + ":" + os.Getenv("PATH")}
	m.start(false)
	for _, want := range []string{
		"host tools now starts the program \"" + filepath.Join(evil, "toolhost") + "\", other than what you accepted",
		"host later now starts the program \"" + filepath.Join(evil, "later-server") + "\", other than what you accepted",
	} {
		if w := strings.Join(m.status().Warnings, "\n"); !strings.Contains(w, want) {
			t.Errorf("no %q in the warnings\n%s", want, w)
		}
	}
	m.refused("another PATH", "is not exposed", "tools_greet", "{}")
	m.stop()
	if m.marked() {
		t.Error("what the other PATH finds was started")
	}
}
