package login

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"howett.net/plist"
)

var update = flag.Bool("update", false, "write the golden files")

// here is a person with the fake tools on PATH.
func here(t *testing.T, goos string) (Options, string) {
	t.Helper()
	home, state := t.TempDir(), t.TempDir()
	fake, err := filepath.Abs("testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", fake+":/usr/bin:/bin")
	t.Setenv("HOME", home)
	t.Setenv("FAKE_STATE", state)
	return Options{OS: goos, Program: "/Applications/Drawbridge.app/Contents/MacOS/drawbridge", Home: home, UID: 501, Getenv: func(string) string { return "" }}, state
}

// calls are what the fake tools were called with since the last time.
func calls(t *testing.T, state string) string {
	t.Helper()
	file := filepath.Join(state, "calls")
	b, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	_ = os.Remove(file)
	return string(b)
}

// TestFiles holds both files against golden ones, for a path with every character
// that means something to one of them.
func TestFiles(t *testing.T) {
	o := Options{Program: `/Users/a/100% A & <B> $HOME/Drawbridge.app/Contents/MacOS/drawbridge`, Home: "/Users/a & b", Getenv: func(string) string { return "" }}
	for goos, name := range map[string]string{"darwin": "launchd.plist", "linux": "systemd.service"} {
		o.OS = goos
		m, err := o.manager()
		if err != nil {
			t.Fatal(err)
		}
		golden := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(golden, m.content(), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(golden)
		if err != nil {
			t.Fatal(err)
		}
		if string(m.content()) != string(want) {
			t.Errorf("%s is now\n%s", golden, m.content())
		}
	}
	// A parser of property lists gets the path back.
	var agent struct {
		Label             string
		ProgramArguments  []string
		RunAtLoad         bool
		KeepAlive         map[string]bool
		ProcessType       string
		StandardErrorPath string
	}
	o.OS = "darwin"
	m, _ := o.manager()
	if _, err := plist.Unmarshal(m.content(), &agent); err != nil {
		t.Fatal(err)
	}
	if agent.Label != "io.github.drawbridge.Drawbridge" || len(agent.ProgramArguments) != 1 || agent.ProgramArguments[0] != o.Program ||
		!agent.RunAtLoad || len(agent.KeepAlive) != 1 || agent.KeepAlive["SuccessfulExit"] || agent.ProcessType != "Interactive" ||
		agent.StandardErrorPath != "/Users/a & b/Library/Logs/Drawbridge/login-item.log" {
		t.Errorf("%+v", agent)
	}
}

func TestRefused(t *testing.T) {
	good := Options{OS: "darwin", Program: "/p", Home: "/h"}
	for name, c := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"another system":     {func(o *Options) { o.OS = "plan9" }, "not known on plan9"},
		"no program":         {func(o *Options) { o.Program = "" }, "absolute"},
		"a relative home":    {func(o *Options) { o.Home = "h" }, "absolute"},
		"quotes for systemd": {func(o *Options) { o.OS, o.Program = "linux", `/"A"/p` }, "quotes or backslashes"},
		"a line in a path":   {func(o *Options) { o.Program = "/p\nExecStart=/x" }, "line break"},
	} {
		o := good
		c.change(&o)
		for _, err := range []error{
			func() error { _, _, err := Install(context.Background(), o); return err }(),
			func() error { _, err := Remove(context.Background(), o); return err }(),
			func() error { _, err := Read(context.Background(), o); return err }(),
		} {
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
	}
}

// TestLife goes through install, again, stale, repaired and removed on both
// systems.
func TestLife(t *testing.T) {
	const (
		service = "gui/501/io.github.drawbridge.Drawbridge"
		print   = "launchctl print " + service + "\n"
		enable  = "launchctl enable " + service + "\n"
		bootout = "launchctl bootout " + service + "\n"
		there   = "systemctl --user show-environment\n"
		is      = "systemctl --user is-enabled drawbridge.service\n"
		reload  = "systemctl --user daemon-reload\n"
		on      = "systemctl --user reenable drawbridge.service\n"
		off     = "systemctl --user disable drawbridge.service\n"
	)
	for _, c := range []struct {
		goos, system, file              string
		install, again, repair, removal string // the calls that each makes
		nothing                         string // of a removal where there is nothing
	}{
		{
			"darwin", "launchd", "Library/LaunchAgents/io.github.drawbridge.Drawbridge.plist",
			print + enable + "launchctl bootstrap gui/501 FILE\n",
			print,
			print + bootout + enable + "launchctl bootstrap gui/501 FILE\n",
			print + print + bootout,
			print,
		},
		{
			"linux", "systemd", ".config/systemd/user/drawbridge.service",
			there + reload + on,
			there + is,
			there + reload + on,
			there + is + off + reload,
			there + is,
		},
	} {
		t.Run(c.system, func(t *testing.T) {
			o, state := here(t, c.goos)
			ctx := context.Background()
			file := filepath.Join(o.Home, c.file)
			made := func(want string) {
				t.Helper()
				if got := calls(t, state); got != strings.ReplaceAll(want, "FILE", file) {
					t.Errorf("calls\n%swant\n%s", got, want)
				}
			}
			status := func(want Status) {
				t.Helper()
				want.System, want.File = c.system, file
				if got, err := Read(ctx, o); err != nil || got != want {
					t.Errorf("%+v, %v\nwant %+v", got, err, want)
				}
				calls(t, state)
			}
			install := func(wantChanged bool) {
				t.Helper()
				if at, changed, err := Install(ctx, o); err != nil || at != file || changed != wantChanged {
					t.Fatalf("%s, %v, %v; want %v", at, changed, err, wantChanged)
				}
			}
			status(Status{})
			install(true)
			made(c.install)
			status(Status{Installed: true, Enabled: true})
			install(false)
			made(c.again)

			// The app was moved: the old file starts what is no longer there.
			o.Program = "/Users/a/Applications/Drawbridge.app/Contents/MacOS/drawbridge"
			status(Status{Installed: true, Enabled: true, Stale: true})
			install(true)
			made(c.repair)
			status(Status{Installed: true, Enabled: true})
			if b, err := os.ReadFile(file); err != nil || !strings.Contains(string(b), o.Program) {
				t.Errorf("%v\n%s", err, b)
			}

			removed, err := Remove(ctx, o)
			if !removed || err != nil {
				t.Fatalf("%v, %v", removed, err)
			}
			made(c.removal)
			status(Status{})
			if removed, err = Remove(ctx, o); removed || err != nil {
				t.Errorf("again: %v, %v", removed, err)
			}
			made(c.nothing)
			if left, _ := filepath.Glob(filepath.Join(filepath.Dir(file), "*")); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestSwitchedOff has the file in order and the system not knowing it: installing
// switches it on again.
func TestSwitchedOff(t *testing.T) {
	for _, goos := range []string{"darwin", "linux"} {
		o, state := here(t, goos)
		ctx := context.Background()
		if _, _, err := Install(ctx, o); err != nil {
			t.Fatal(err)
		}
		m, err := o.manager()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.disable(ctx); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(state, "disabled-"+Label), nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(ctx, o); err != nil || s.Enabled || !s.Installed {
			t.Errorf("%s: %+v, %v", goos, s, err)
		}
		if _, changed, err := Install(ctx, o); !changed || err != nil {
			t.Errorf("%s: %v, %v", goos, changed, err)
		}
		if s, err := Read(ctx, o); err != nil || !s.Enabled {
			t.Errorf("%s: %+v, %v", goos, s, err)
		}
	}
}

// TestLingers has launchd refuse to load for a while after a boot-out.
func TestLingers(t *testing.T) {
	o, state := here(t, "darwin")
	if err := os.WriteFile(filepath.Join(state, "lingers"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Install(context.Background(), o); err != nil {
		t.Error(err)
	}
	// It does not try for ever, and stops when it is told to.
	if err := os.WriteFile(filepath.Join(state, "lingers"), []byte("1000"), 0o600); err != nil {
		t.Fatal(err)
	}
	o.Program = "/elsewhere"
	if _, _, err := Install(context.Background(), o); err == nil || !strings.Contains(err.Error(), "Bootstrap failed: 5") {
		t.Errorf("%v", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Install(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNoSystem has the system's tool missing, or finding nobody to talk to.
func TestNoSystem(t *testing.T) {
	ctx := context.Background()
	for _, goos := range []string{"darwin", "linux"} {
		o, _ := here(t, goos)
		if _, _, err := Install(ctx, o); err != nil {
			t.Fatal(err)
		}
		t.Setenv("PATH", "")
		if _, _, err := Install(ctx, o); err == nil || !strings.Contains(err.Error(), "not here") {
			t.Errorf("%s: install: %v", goos, err)
		}
		if _, err := Read(ctx, o); err == nil {
			t.Errorf("%s: status: no error", goos)
		}
		// Without the file nothing starts, whoever can be told.
		if removed, err := Remove(ctx, o); !removed || err != nil {
			t.Errorf("%s: remove: %v, %v", goos, removed, err)
		}
		if removed, err := Remove(ctx, o); removed || err != nil {
			t.Errorf("%s: remove again: %v, %v", goos, removed, err)
		}
	}
	o, state := here(t, "linux")
	if err := os.WriteFile(filepath.Join(state, "no-bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Install(ctx, o); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without a bus: %v", err)
	}
	if m, _ := o.manager(); m != nil {
		if _, err := os.Stat(m.file()); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("a unit was left: %v", err)
		}
	}
}

func TestConfigHome(t *testing.T) {
	o := Options{OS: "linux", Program: "/p", Home: "/h", Getenv: func(string) string { return "/c" }}
	if m, _ := o.manager(); m.file() != "/c/systemd/user/drawbridge.service" {
		t.Error(m.file())
	}
}

// TestFakes holds the fakes to what the real tools do, on which the rest stands.
func TestFakes(t *testing.T) {
	o, _ := here(t, "darwin")
	agent := filepath.Join(o.Home, "x.plist")
	unitFile := filepath.Join(o.Home, ".config/systemd/user/x.service")
	if err := os.MkdirAll(filepath.Dir(unitFile), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{agent, unitFile} {
		if err := os.WriteFile(f, []byte("[Install]\nWantedBy=some.target\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		line string
		code int
		out  string
	}{
		{"launchctl print gui/501/x", 113, "Could not find service"},
		{"launchctl bootout gui/501/x", 3, "No such process"},
		{"launchctl bootstrap gui/501 " + agent + ".none", 5, "Input/output error"},
		{"launchctl bootstrap gui/501 " + agent, 0, ""},
		{"launchctl bootstrap gui/501 " + agent, 5, "Input/output error"},
		{"launchctl print gui/501/x", 0, "state = running"},
		{"launchctl bootout gui/501/x", 0, ""},
		{"launchctl print gui/501/x", 113, ""},
		{"launchctl fly", 64, "Unrecognized"},
		{"systemctl is-enabled x.service", 1, "authentication"},
		{"systemctl --user is-enabled none.service", 1, "No such file"},
		{"systemctl --user is-enabled x.service", 1, ""},
		{"systemctl --user reenable none.service", 1, "does not exist"},
		{"systemctl --user reenable x.service", 0, ""},
		{"systemctl --user is-enabled x.service", 0, "enabled"},
		{"systemctl --user disable x.service", 0, ""},
		{"systemctl --user is-enabled x.service", 1, ""},
		{"systemctl --user fly", 1, "Unknown"},
	} {
		args := strings.Fields(c.line)
		out, code, err := run(context.Background(), args[0], args[1:]...)
		if err != nil || code != c.code || !strings.Contains(out, c.out) {
			t.Errorf("%s: code %d, %q, %v; want %d, %q", c.line, code, out, err, c.code, c.out)
		}
	}
}

// TestSystemdAnalyze has systemd itself read the unit.
func TestSystemdAnalyze(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	// A program with a name that needs every escape, which must exist.
	dir := t.TempDir()
	o := Options{OS: "linux", Program: filepath.Join(dir, `100% A & <B> $HOME`, "drawbridge"), Home: dir, Getenv: func(string) string { return "" }}
	if err := os.Mkdir(filepath.Dir(o.Program), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	m, err := o.manager()
	if err != nil {
		t.Fatal(err)
	}
	verify := func(content string) (string, error) {
		file := filepath.Join(dir, unit)
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(analyze, "--user", "--man=no", "--generators=no", "verify", file)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	if out, err := verify(string(m.content())); err != nil || out != "" {
		t.Errorf("%v\n%s", err, out)
	}
	// It does find what is wrong.
	for _, wrong := range []string{"RestartSec=2", "ExecStart="} {
		if out, err := verify(strings.Replace(string(m.content()), wrong, wrong+"/none/", 1)); err == nil && out == "" {
			t.Errorf("nothing wrong with %q", wrong)
		}
	}
}
