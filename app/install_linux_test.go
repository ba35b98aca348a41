package main

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/control"
	"drawbridge/packaging/install"
	"drawbridge/packaging/sample"
	"drawbridge/packaging/sign"
)

// person is a home with the fake systemctl on PATH, in which commands run.
type person struct {
	t    *testing.T
	home string
	env  []string
}

func newPerson(t *testing.T) person {
	t.Helper()
	fake, err := filepath.Abs("../packaging/login/testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	bin := filepath.Join(home, ".local", "bin")
	if err := os.MkdirAll(bin, 0o755); err != nil {
		t.Fatal(err)
	}
	return person{t, home, []string{
		"PATH=" + bin + ":" + fake + ":/usr/bin:/bin", "FAKE_STATE=" + t.TempDir(),
		"XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "DRAWBRIDGE_STATE=", "DRAWBRIDGE_CONFIG=", "PI_CODING_AGENT_DIR=",
	}}
}

// run runs a command that must end with a code, and returns what it printed.
func (p person) run(code int, args ...string) string {
	p.t.Helper()
	cmd := self(p.home, args...)
	cmd.Env = append(cmd.Env, p.env...)
	out, err := cmd.CombinedOutput()
	if got := cmd.ProcessState.ExitCode(); got != code {
		p.t.Fatalf("drawbridge %s: exit code %d, want %d (%v)\n%s", strings.Join(args, " "), got, code, err, out)
	}
	return string(out)
}

func (p person) has(out string, want ...string) {
	p.t.Helper()
	for _, w := range want {
		if !strings.Contains(out, w) {
			p.t.Errorf("no %q in\n%s", w, out)
		}
	}
}

// left are the files below the home.
func (p person) left() []string {
	p.t.Helper()
	var out []string
	err := filepath.WalkDir(p.home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(p.home, path)
		out = append(out, rel)
		return err
	})
	if err != nil {
		p.t.Fatal(err)
	}
	return out
}

// drawbridgeApp is a sample app that has Drawbridge's own identifier.
func drawbridgeApp(t *testing.T, version string, id *sign.Identity) string {
	t.Helper()
	app := sample.Unsigned(t, t.TempDir(), version)
	sample.Replace(t, filepath.Join(app, "Contents/Info.plist"), sample.Identifier, install.Identifier)
	if err := sign.Bundle(app, sign.Options{Identity: id, Now: sample.Now}); err != nil {
		t.Fatal(err)
	}
	return app
}

// TestInstallCommands goes from install to uninstall as a person would.
func TestInstallCommands(t *testing.T) {
	p := newPerson(t)
	id := sample.SelfSigned(t)
	one, two := drawbridgeApp(t, "v1.0.0", id), drawbridgeApp(t, "v2.0.0", id)
	other := drawbridgeApp(t, "v3.0.0", sample.SelfSigned(t))
	apps := filepath.Join(p.home, "Applications")
	app, link := filepath.Join(apps, install.Name), filepath.Join(p.home, ".local/bin/drawbridge")

	p.has(p.run(exitUsage, "install"), "is not part of an app", "put it on PATH, as with: install -D build/drawbridge ~/.local/bin/drawbridge")
	p.has(p.run(exitUsage, "install", "--app", one), "name the directory with --dir")
	p.has(p.run(exitFailed, "install", "--app", p.home, "--dir", apps), "not whole")

	p.has(p.run(exitOK, "install", "--app", one, "--dir", apps), "installed Drawbridge 1.0.0: "+app+"\n", "linked the command: "+link)
	if to, err := os.Readlink(link); err != nil || to != filepath.Join(app, "Contents/MacOS/drawbridge") {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	var r installed
	if err := json.Unmarshal([]byte(p.run(exitOK, "install", "--app", two, "--dir", apps, "--json")), &r); err != nil {
		t.Fatal(err)
	}
	if r.Version != "2.0.0" || r.Replaced != "1.0.0" || r.App != app || r.Link != link || !r.OnPath || r.PermissionsLost || r.Running {
		t.Errorf("%+v", r)
	}
	p.has(p.run(exitOK, "install", "--app", app, "--dir", apps), "is in place")
	p.has(p.run(exitFailed, "install", "--app", other, "--dir", apps), "would be lost", "--new-identity", "certificate leaf")
	p.has(p.run(exitOK, "install", "--app", other, "--dir", apps, "--new-identity"), "in place of 2.0.0", "tccutil reset Accessibility "+install.Identifier)

	p.has(p.run(exitFailed, "install", "--app", one, "--dir", apps, "--new-identity"), "is version 3.0.0, and the new app is the older 1.0.0", "--downgrade")
	p.has(p.run(exitOK, "install", "--app", one, "--dir", apps, "--new-identity", "--downgrade"), "it is older than what was in place")
	p.has(p.run(exitOK, "install", "--app", other, "--dir", apps, "--new-identity"), "installed Drawbridge 3.0.0")

	p.has(p.run(exitOK, "login-item", "status"), "does not start at login")
	p.has(p.run(exitOK, "login-item", "install"), "starts at login: "+p.home)
	p.has(p.run(exitOK, "login-item", "install"), "already")
	p.has(p.run(exitOK, "login-item", "status"), "by systemd")
	p.has(p.run(exitOK, "login-item", "remove"), "any more")
	p.has(p.run(exitOK, "login-item", "remove"), "there was no login item")
	p.has(p.run(exitUsage, "login-item", "install", "--state", p.home), "leave out --state")
	p.run(exitOK, "login-item", "install")

	// An agent that runs is noticed, and ended.
	agent := self(p.home, "run", "--backend", "simulated", "--listen", "127.0.0.1:0")
	agent.Env = append(agent.Env, p.env...)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = agent.Process.Kill(); _ = agent.Wait() })
	state := filepath.Join(p.home, ".local/state/drawbridge")
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		if _, err := control.Dial(t.Context(), state); err == nil {
			break
		} else if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	p.has(p.run(exitOK, "install", "--app", two, "--dir", apps, "--new-identity", "--downgrade"), "the old one still runs")

	p.run(exitOK, "host", "install", "omp")
	out := p.run(exitOK, "uninstall", "--dir", apps)
	p.has(out, "removed the login item", "removed the extension of omp", "removed "+link, "removed "+app, "kept "+state, "tccutil reset ScreenCapture")
	if err := agent.Wait(); err != nil {
		t.Errorf("the agent ended with %v", err)
	}
	for _, f := range p.left() {
		if !strings.HasPrefix(f, ".local/state/drawbridge/") {
			t.Errorf("left: %s", f)
		}
	}
	if out := p.run(exitOK, "uninstall", "--dir", apps, "--purge"); !strings.Contains(out, "removed "+state) || strings.Contains(out, "tccutil") {
		t.Errorf("purged:\n%s", out)
	}
	if left := p.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	p.has(p.run(exitOK, "uninstall"), "nothing was installed")
}

// TestPurgeBeforeAnAgent takes away what host install made before an agent ran.
func TestPurgeBeforeAnAgent(t *testing.T) {
	p := newPerson(t)
	p.run(exitOK, "host", "install", "omp")
	p.has(p.run(exitOK, "uninstall", "--purge"), "removed the extension of omp", "removed "+filepath.Join(p.home, ".local/state/drawbridge"))
	if left := p.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestPurgeKeeps: where a person named a directory of their own as the state
// directory, what is theirs stays there.
func TestPurgeKeeps(t *testing.T) {
	p := newPerson(t)
	state := filepath.Join(p.home, "Documents")
	mine := []string{"thesis.txt", "pictures/cat.png", "pictures/20260101.png", "audit/audit-2026.jsonl", "backup/lock", "virtual/disk", ".config-1", "format.txt"}
	ours := []string{
		"lock", "tokens.json", "agent.log", "agent.log.1", "format", "rules.yaml", ".tokens.json-123", "audit/audit.jsonl", "audit/audit-00000000000000000012.jsonl",
		"pictures/20260101-120000-image-1.png", "virtual/Xauthority", "backup-format-1/tokens.json", "backup-format-1-2/anything", "host-llm.json", "gateway.json",
	}
	for _, f := range append(mine, ours...) {
		path := filepath.Join(state, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(p.home, "link")
	if err := os.Symlink("Documents", link); err != nil {
		t.Fatal(err)
	}
	p.has(p.run(exitFailed, "uninstall", "--purge", "--state", link), "what is not stays", "audit-2026.jsonl", "and 2 more")
	for _, f := range mine {
		if f == ".config-1" {
			continue // a file on its way into place is called so
		}
		if _, err := os.Lstat(filepath.Join(state, f)); err != nil {
			t.Error(err)
		}
	}
	for _, f := range ours {
		if _, err := os.Lstat(filepath.Join(state, f)); err == nil {
			t.Errorf("%s is left", f)
		}
	}
}

// TestUninstallGoesOn: where systemd does not answer, everything else goes.
func TestUninstallGoesOn(t *testing.T) {
	p := newPerson(t)
	apps := filepath.Join(p.home, "Applications")
	app := filepath.Join(apps, install.Name)
	p.run(exitOK, "install", "--app", drawbridgeApp(t, "v1.0.0", nil), "--dir", apps)
	p.run(exitOK, "login-item", "install")
	for _, e := range p.env {
		if dir, ok := strings.CutPrefix(e, "FAKE_STATE="); ok {
			hangs := filepath.Join(dir, "hangs")
			if err := os.WriteFile(hangs, nil, 0o600); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(hangs)
		}
	}
	p.has(p.run(exitFailed, "uninstall", "--dir", apps), "removed the login item", "removed "+app, "its files are removed, but systemd was not told", "there is no answer within 10s")
	if left := p.left(); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
}

// TestMayGo tells a command that may not stay where it is.
func TestMayGo(t *testing.T) {
	home := t.TempDir()
	tree := filepath.Join(home, "src", "drawbridge")
	if err := os.MkdirAll(filepath.Join(tree, ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	for program, want := range map[string]string{
		filepath.Join(tree, "build/drawbridge"):                         "source tree",
		filepath.Join(home, "Downloads/drawbridge"):                     "Downloads",
		"/tmp/drawbridge":                                               "temporary",
		"/usr/local/bin/drawbridge":                                     "",
		"/opt/drawbridge":                                               "",
		filepath.Join(tree, "Drawbridge.app/Contents/MacOS/drawbridge"): "",
	} {
		if got := mayGo(program, home, ""); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", program, got, want)
		}
	}
}

// TestPurgeRefuses keeps directories that hold other things.
func TestPurgeRefuses(t *testing.T) {
	p := newPerson(t)
	if err := os.Chmod(p.home, 0o700); err != nil { // as a state directory must be
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(p.home, "precious"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mine := filepath.Join(p.home, "mine")
	if err := os.Mkdir(mine, 0o700); err != nil {
		t.Fatal(err)
	}
	p.has(p.run(exitFailed, "uninstall", "--purge", "--state", p.home), "the home directory is in it")
	p.has(p.run(exitFailed, "uninstall", "--purge", "--state", mine), "no agent ever ran there")
	for _, f := range []string{mine, filepath.Join(p.home, "precious")} {
		if _, err := os.Stat(f); err != nil {
			t.Error(err)
		}
	}
	// A sample is another's app.
	if _, err := install.Install(install.Options{Source: sample.App(t, t.TempDir(), "v1.0.0", nil), Dir: p.home}); err != nil {
		t.Fatal(err)
	}
	p.has(p.run(exitFailed, "uninstall", "--dir", p.home), "is not Drawbridge")
}

// TestVolatilePlace starts the agent out of an app in a temporary place: it must
// not serve there.
func TestVolatilePlace(t *testing.T) {
	p := newPerson(t)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(p.home, "Downloads", "Drawbridge.app", "Contents", "MacOS")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(dir, "drawbridge")
	if err := os.Link(exe, program); err != nil {
		t.Skipf("the test's program cannot be linked there: %v", err)
	}
	for _, args := range [][]string{{}, {"run", "--backend", "simulated"}} {
		cmd := exec.Command(program, args...)
		cmd.Env = append(self(p.home).Env, p.env...)
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.ExitCode() != exitUsage {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
		p.has(string(out), "not serving from", "Downloads", "drawbridge install")
	}
	if _, err := os.Stat(filepath.Join(p.home, ".local/state")); err == nil {
		t.Error("it wrote state all the same")
	}
}
