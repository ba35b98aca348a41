package login

import (
	"context"
	"errors"
	"flag"
	"html"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/kardianos/service"
	"howett.net/plist"
)

var update = flag.Bool("update", false, "write the golden files")

// system is one that the library finds, whatever the machine has.
type system struct {
	service.System
	name string
}

func (s system) String() string { return s.name }
func (system) Detect() bool     { return true }

// TestMain has the library use systemd, also in a container without it: its tools
// are stood in for here. TestLaunchd runs all of this again with launchd.
func TestMain(m *testing.M) {
	for _, s := range service.AvailableSystems() {
		if s.String() == systemdSystem {
			service.ChooseSystem(system{s, systemdSystem})
		}
	}
	os.Exit(m.Run())
}

const (
	appProgram = "/Applications/Drawbridge.app/Contents/MacOS/drawbridge"
	// oddProgram has every character that means something to a template, to
	// property lists or to systemd.
	oddProgram = `/Users/a/100% A & <B> $HOME {{Name}}/Drawbridge.app/Contents/MacOS/drawbridge`
)

// here is a person with the fake tools on PATH.
func here(t *testing.T) (Options, string) {
	t.Helper()
	if runtime.GOOS == "darwin" {
		t.Skip("on macOS the library looks for the home directory of the person who runs this, and would change it")
	}
	home, state := filepath.Join(t.TempDir(), "a & b"), t.TempDir()
	if err := os.Mkdir(home, 0o700); err != nil {
		t.Fatal(err)
	}
	fake, err := filepath.Abs("testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", fake+":/usr/bin:/bin")
	t.Setenv("HOME", home)
	t.Setenv("FAKE_STATE", state)
	return Options{Program: appProgram, Home: home, UID: 501}, state
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

// left are the files below a home.
func left(t *testing.T, home string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(home, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestFiles holds both files against golden ones.
func TestFiles(t *testing.T) {
	o := Options{Program: oddProgram, Home: "/Users/a & b"}
	for name, m := range map[string]manager{"launchd.plist": launchd{o}, "systemd.service": systemd{o}} {
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
	if _, err := plist.Unmarshal(launchd{o}.content(), &agent); err != nil {
		t.Fatal(err)
	}
	if agent.Label != "io.github.drawbridge.Drawbridge" || len(agent.ProgramArguments) != 1 || agent.ProgramArguments[0] != o.Program ||
		!agent.RunAtLoad || len(agent.KeepAlive) != 1 || agent.KeepAlive["SuccessfulExit"] || agent.ProcessType != "Interactive" ||
		agent.StandardErrorPath != "/Users/a & b/Library/Logs/Drawbridge/io.github.drawbridge.Drawbridge.err.log" {
		t.Errorf("%+v", agent)
	}
}

// TestRendered has the library make the file of its own template engine: it is the
// golden one.
func TestRendered(t *testing.T) {
	o, _ := here(t)
	o.Program = oddProgram
	golden := map[string]string{launchdSystem: "launchd.plist", systemdSystem: "systemd.service"}[chosen()]
	want, err := os.ReadFile(filepath.Join("testdata", golden))
	if err != nil {
		t.Fatal(err)
	}
	m, err := o.manager()
	if err != nil {
		t.Fatal(err)
	}
	s, err := item(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Install(); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(m.file())
	if err != nil {
		t.Fatal(err)
	}
	if g := strings.ReplaceAll(string(got), html.EscapeString(o.Home), "/Users/a &amp; b"); g != string(want) {
		t.Errorf("the library makes\n%s\nwant\n%s", g, want)
	}
}

// TestLaunchd runs the tests of this package with what the library has for macOS.
// Its file for that is plain Go that builds anywhere but for its name, so a copy of
// the library is made that has it under another one, and nothing for Linux. One
// call in it is changed: it finds the home directory where a test cannot set it.
func TestLaunchd(t *testing.T) {
	if runtime.GOOS != "linux" || chosen() == launchdSystem {
		t.Skip("this is started on Linux with systemd, and starts the one with launchd")
	}
	tool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("go is not installed, so the tests cannot be built with launchd")
	}
	where, err := exec.Command(tool, "list", "-m", "-f", "{{.Dir}}", "github.com/kardianos/service").Output()
	if err != nil {
		t.Fatal(err)
	}
	library, dir := strings.TrimSpace(string(where)), t.TempDir()
	files, err := os.ReadDir(library)
	if err != nil {
		t.Fatal(err)
	}
	read := func(path string) string {
		t.Helper()
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return string(b)
	}
	write := func(name, content string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Mkdir(filepath.Join(dir, "service"), 0o700); err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		name := f.Name()
		if f.IsDir() || strings.HasSuffix(name, "_linux.go") || strings.HasSuffix(name, "_test.go") {
			continue
		}
		content := read(filepath.Join(library, name))
		if name == "service_darwin.go" {
			const call = "u, err := user.Current()"
			if strings.Count(content, call) != 1 {
				t.Fatalf("%s finds the home directory in another way than it did", name)
			}
			name = "service_launchd.go"
			content = strings.Replace(content, call, `u, err := &user.User{HomeDir: os.Getenv("HOME")}, error(nil)`, 1)
		}
		write(filepath.Join("service", name), content)
	}
	write("go.mod", read("../../go.mod")+"\nreplace github.com/kardianos/service => "+filepath.Join(dir, "service")+"\n")
	write("go.sum", read("../../go.sum"))
	out, err := exec.Command(tool, "test", "-count=1", "-v", "-modfile="+filepath.Join(dir, "go.mod"), ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if !strings.Contains(string(out), "--- PASS: TestLife/launchd ") {
		t.Errorf("it did not run with launchd:\n%s", out)
	}
}

func TestRefused(t *testing.T) {
	good := Options{Program: "/p", Home: "/h"}
	cases := map[string]struct {
		change func(*Options)
		want   string
	}{
		"no program":       {func(o *Options) { o.Program = "" }, "absolute"},
		"a relative home":  {func(o *Options) { o.Home = "h" }, "absolute"},
		"a line in a path": {func(o *Options) { o.Program = "/p\nExecStart=/x" }, "line break"},
	}
	if chosen() == systemdSystem {
		cases["quotes"] = struct {
			change func(*Options)
			want   string
		}{func(o *Options) { o.Program = `/"A"/p` }, "quotes or backslashes"}
	}
	for name, c := range cases {
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

// TestOtherSystem has the library find a system that keeps services for the whole
// machine: it is not asked to.
func TestOtherSystem(t *testing.T) {
	o, state := here(t)
	before := service.ChosenSystem()
	t.Cleanup(func() { service.ChooseSystem(before) })
	service.ChooseSystem(system{before, "unix-systemv"})
	ctx := context.Background()
	const want = "kept by unix-systemv"
	if _, _, err := Install(ctx, o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("install: %v", err)
	}
	if _, err := Read(ctx, o); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("status: %v", err)
	}
	if removed, err := Remove(ctx, o); removed || err != nil {
		t.Errorf("remove: %v, %v", removed, err)
	}
	if files := left(t, o.Home); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	// A unit from other days goes all the same.
	file := systemd{o}.file()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if removed, err := Remove(ctx, o); !removed || err != nil {
		t.Errorf("remove: %v, %v", removed, err)
	}
	if files, made := left(t, o.Home), calls(t, state); len(files) != 0 || made != "" {
		t.Errorf("left behind: %v; called: %s", files, made)
	}
}

// TestLife goes through install, again, stale, repaired and removed.
func TestLife(t *testing.T) {
	const (
		label   = "gui/501/io.github.drawbridge.Drawbridge"
		print   = "launchctl print " + label + "\n"
		enable  = "launchctl enable " + label + "\n"
		bootout = "launchctl bootout " + label + "\n"
		there   = "systemctl --user show-environment\n"
		is      = "systemctl --user is-enabled drawbridge.service\n"
		reload  = "systemctl --user daemon-reload\n"
		on      = "systemctl --user reenable drawbridge.service\n"
		off     = "systemctl --user disable drawbridge.service\n"
		// The library has options last.
		libraryReload = "systemctl daemon-reload --user\n"
		libraryOn     = "systemctl enable --user drawbridge.service\n"
	)
	for _, c := range []struct {
		chosen, system, file            string
		starts                          bool   // when it is installed, not only at login
		install, again, repair, removal string // the calls that each makes
		nothing                         string // of a removal where there is nothing
	}{
		{
			launchdSystem, "launchd", "Library/LaunchAgents/io.github.drawbridge.Drawbridge.plist", true,
			print + enable + "launchctl bootstrap gui/501 FILE\n",
			print,
			print + bootout + enable + "launchctl bootstrap gui/501 FILE\n",
			print + print + bootout,
			print,
		},
		{
			systemdSystem, "systemd", ".config/systemd/user/drawbridge.service", false,
			there + libraryOn + libraryReload + reload + on,
			there + is,
			there + reload + on,
			there + is + off + reload,
			there + is,
		},
	} {
		if c.chosen != chosen() {
			continue
		}
		t.Run(c.system, func(t *testing.T) {
			o, state := here(t)
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
			status(Status{Installed: true, Enabled: true, Running: c.starts})
			install(false)
			made(c.again)

			// The person logs in.
			if err := os.WriteFile(filepath.Join(state, "active-"+unit), nil, 0o600); err != nil {
				t.Fatal(err)
			}
			status(Status{Installed: true, Enabled: true, Running: true})
			if err := os.Remove(filepath.Join(state, "active-"+unit)); err != nil {
				t.Fatal(err)
			}

			// The app was moved: the old file starts what is no longer there.
			o.Program = "/Users/a/Applications/Drawbridge.app/Contents/MacOS/drawbridge"
			status(Status{Installed: true, Enabled: true, Stale: true, Running: c.starts})
			install(true)
			made(c.repair)
			status(Status{Installed: true, Enabled: true, Running: c.starts})
			whole, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(whole), o.Program) {
				t.Errorf("%v\n%s", err, whole)
			}

			// The library was ended while it wrote.
			if err := os.WriteFile(file, whole[:len(whole)/2], 0o600); err != nil {
				t.Fatal(err)
			}
			status(Status{Installed: true, Enabled: true, Stale: true, Running: c.starts})
			install(true)
			made(c.repair)

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
			if files := left(t, o.Home); len(files) != 0 {
				t.Errorf("left behind: %v", files)
			}
		})
	}
}

// TestInside: what runs as the login item changes the file alone, so that it is
// not ended by what it asks for.
func TestInside(t *testing.T) {
	o, state := here(t)
	if _, _, err := Install(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	o.Inside = true
	calls(t, state)
	removed, err := Remove(t.Context(), o)
	if err != nil || !removed {
		t.Errorf("removed: %v, %v", removed, err)
	}
	if left := calls(t, state); left != "" {
		t.Errorf("removing called %s", left)
	}
	if s, err := Read(t.Context(), o); err != nil || s.Installed {
		t.Errorf("after that: %+v, %v", s, err)
	}
	calls(t, state)
	if file, changed, err := Install(t.Context(), o); err != nil || !changed || file == "" {
		t.Errorf("installed again: %q, %v, %v", file, changed, err)
	}
	if called := calls(t, state); strings.Contains(called, "disable") || strings.Contains(called, "boot") {
		t.Errorf("installing called %s", called)
	}
	if s, err := Read(t.Context(), o); err != nil || !s.Installed || s.Stale || !s.Enabled {
		t.Errorf("after that: %+v, %v", s, err)
	}
}

// TestNothingHalfDone has the system refuse a new item, and a stale one that is
// repaired.
func TestNothingHalfDone(t *testing.T) {
	o, state := here(t)
	ctx := context.Background()
	refuse := func(file, content, want string) {
		t.Helper()
		if chosen() == launchdSystem != (file == "lingers") {
			return
		}
		if err := os.WriteFile(filepath.Join(state, file), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, changed, err := Install(ctx, o); changed || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", changed, err, want)
		}
		if err := os.Remove(filepath.Join(state, file)); err != nil {
			t.Fatal(err)
		}
	}
	refused := func() {
		refuse("lingers", "1000", "Bootstrap failed: 5")
		refuse("refuses", "", "Access denied")
	}
	refused()
	if files := left(t, o.Home); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
	if _, _, err := Install(ctx, o); err != nil {
		t.Fatal(err)
	}
	o.Program = "/elsewhere"
	refused()
	// A person keeps an item, which starts what they asked for.
	if s, err := Read(ctx, o); err != nil || !s.Installed || s.Stale {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestOtherHome has HOME lead the library elsewhere: it is told, and nothing stays
// there.
func TestOtherHome(t *testing.T) {
	o, _ := here(t)
	other := t.TempDir()
	t.Setenv("HOME", other)
	if _, _, err := Install(context.Background(), o); err == nil || !strings.Contains(err.Error(), "HOME is not the home directory") {
		t.Errorf("%v", err)
	}
	if files := append(left(t, o.Home), left(t, other)...); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// TestSwitchedOff has the file in order and the system not knowing it: installing
// switches it on again.
func TestSwitchedOff(t *testing.T) {
	o, state := here(t)
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
		t.Errorf("%+v, %v", s, err)
	}
	if _, changed, err := Install(ctx, o); !changed || err != nil {
		t.Errorf("%v, %v", changed, err)
	}
	if s, err := Read(ctx, o); err != nil || !s.Enabled {
		t.Errorf("%+v, %v", s, err)
	}
}

// TestLingers has launchd refuse to load for a while after a boot-out.
func TestLingers(t *testing.T) {
	if chosen() != launchdSystem {
		t.Skip("launchd does that; TestLaunchd runs this")
	}
	o, state := here(t)
	if err := os.WriteFile(filepath.Join(state, "lingers"), []byte("2"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Install(context.Background(), o); err != nil {
		t.Error(err)
	}
	// It stops when it is told to.
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, _, err := Install(ctx, o); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestNoSystem has the system's tool missing, or finding nobody to talk to.
func TestNoSystem(t *testing.T) {
	ctx := context.Background()
	o, state := here(t)
	if _, _, err := Install(ctx, o); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", "")
	if _, _, err := Install(ctx, o); err == nil || !strings.Contains(err.Error(), "not here") {
		t.Errorf("install: %v", err)
	}
	if _, err := Read(ctx, o); err == nil {
		t.Error("status: no error")
	}
	// Without the file nothing starts, whoever can be told.
	if removed, err := Remove(ctx, o); !removed || err != nil {
		t.Errorf("remove: %v, %v", removed, err)
	}
	if removed, err := Remove(ctx, o); removed || err != nil {
		t.Errorf("remove again: %v, %v", removed, err)
	}
	if chosen() != systemdSystem {
		return
	}
	t.Setenv("PATH", path)
	if err := os.WriteFile(filepath.Join(state, "no-bus"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := Install(ctx, o); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("without a bus: %v", err)
	}
	if _, err := os.Stat(systemd{o}.file()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a unit was left: %v", err)
	}
}

// TestHangs has the system's tool not answer: each thing ends, says what hangs, and
// leaves nothing half-done.
func TestHangs(t *testing.T) {
	verbs := map[string][]string{launchdSystem: {"", "print", "bootstrap", "enable", "bootout"}, systemdSystem: {"", "show-environment", "daemon-reload", "enable", "reenable", "is-enabled", "disable", "is-active"}}
	for _, verb := range verbs[chosen()] {
		o, state := here(t)
		hangs, hung := filepath.Join(state, "hangs"), filepath.Join(state, "hung")
		slow := errors.New("there is no answer")
		// hanging does something until the tool hangs, as long as time allows.
		hanging := func(what string, do func(context.Context) error) error {
			t.Helper()
			_ = os.Remove(hung)
			if err := os.WriteFile(hangs, []byte(verb), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancelCause(t.Context())
			defer cancel(nil)
			go func() {
				for ctx.Err() == nil {
					if _, err := os.Stat(hung); err == nil {
						cancel(slow)
					}
					time.Sleep(time.Millisecond)
				}
			}()
			err := do(ctx)
			if err != nil && !errors.Is(err, slow) {
				t.Errorf("%q hangs: %s: %v", verb, what, err)
			}
			if _, none := os.Stat(hung); none == nil && err == nil && what != "remove" {
				t.Errorf("%q hangs: %s says nothing", verb, what)
			}
			if err := os.Remove(hangs); err != nil {
				t.Error(err)
			}
			return err
		}
		_ = hanging("status", func(ctx context.Context) error { _, err := Read(ctx, o); return err })
		err := hanging("install", func(ctx context.Context) error {
			_, changed, err := Install(ctx, o)
			if changed != (err == nil) {
				t.Errorf("%q hangs: %v, %v", verb, changed, err)
			}
			return err
		})
		if files := left(t, o.Home); err != nil && len(files) != 0 {
			t.Errorf("%q hangs: install left %v", verb, files)
		}
		if _, _, err := Install(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		err = hanging("remove", func(ctx context.Context) error {
			removed, err := Remove(ctx, o)
			if !removed {
				t.Errorf("%q hangs: nothing was removed: %v", verb, err)
			}
			return err
		})
		if files := left(t, o.Home); len(files) != 0 {
			t.Errorf("%q hangs: remove left %v", verb, files)
		}
		if verb == "" && (err == nil || !strings.Contains(err.Error(), "was not told")) {
			t.Errorf("nothing answers, and remove says %v", err)
		}
	}
	ctx, cancel := limited(t.Context())
	defer cancel()
	if at, ok := ctx.Deadline(); !ok || time.Until(at) > answersWithin {
		t.Errorf("until %v, %v", at, ok)
	}
}

// TestLeftLink: the link that enables a unit is seen and removed also where the
// unit is gone, whether or not systemctl helps.
func TestLeftLink(t *testing.T) {
	if chosen() != systemdSystem {
		t.Skip("launchd has no links")
	}
	for _, how := range []string{"", "no-bus", "no systemctl"} {
		o, state := here(t)
		ctx := context.Background()
		if _, _, err := Install(ctx, o); err != nil {
			t.Fatal(err)
		}
		for _, unitGone := range []bool{true, false} {
			if unitGone {
				if err := os.Remove(systemd{o}.file()); err != nil {
					t.Fatal(err)
				}
				if s, err := Read(ctx, o); err != nil || s.Installed || !s.Enabled {
					t.Errorf("%+v, %v", s, err)
				}
			} else if _, _, err := Install(ctx, o); err != nil {
				t.Fatal(err)
			}
			path := os.Getenv("PATH")
			switch how {
			case "no-bus":
				if err := os.WriteFile(filepath.Join(state, how), nil, 0o600); err != nil {
					t.Fatal(err)
				}
			case "no systemctl":
				t.Setenv("PATH", "")
			}
			if removed, err := Remove(ctx, o); !removed || err != nil {
				t.Errorf("%s: %v, %v", how, removed, err)
			}
			t.Setenv("PATH", path)
			_ = os.Remove(filepath.Join(state, "no-bus"))
			if files := left(t, o.Home); len(files) != 0 {
				t.Errorf("%s: left %v", how, files)
			}
			if s, err := Read(ctx, o); err != nil || s.Enabled {
				t.Errorf("%s: %+v, %v", how, s, err)
			}
		}
	}
}

// TestMasked: a unit that a person masked, or that a full disk left empty, is told
// apart, and installing again puts it right.
func TestMasked(t *testing.T) {
	if chosen() != systemdSystem {
		t.Skip("launchd masks nothing")
	}
	for _, make := range []func(file string) error{
		func(file string) error { return os.WriteFile(file, nil, 0o600) },
		func(file string) error { return os.Symlink(os.DevNull, file) },
	} {
		o, _ := here(t)
		ctx := context.Background()
		file := systemd{o}.file()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := make(file); err != nil {
			t.Fatal(err)
		}
		if s, err := Read(ctx, o); err != nil || !s.Masked || !s.Stale || s.Enabled {
			t.Errorf("%+v, %v", s, err)
		}
		if _, changed, err := Install(ctx, o); !changed || err != nil {
			t.Errorf("%v, %v", changed, err)
		}
		if s, err := Read(ctx, o); err != nil || s.Masked || s.Stale || !s.Enabled {
			t.Errorf("%+v, %v", s, err)
		}
	}
}

// TestNoFile has something else stand where the file goes. Nothing waits for it.
func TestNoFile(t *testing.T) {
	for name, c := range map[string]struct {
		make func(file string) error
		want string // of status and install; empty: it is replaced
	}{
		"a pipe":            {func(file string) error { return syscall.Mkfifo(file, 0o600) }, "no regular file; move it away"},
		"a directory":       {func(file string) error { return os.Mkdir(file, 0o700) }, "no regular file; move it away"},
		"a link to nothing": {func(file string) error { return os.Symlink("nowhere", file) }, ""},
	} {
		o, _ := here(t)
		ctx := context.Background()
		m, err := o.manager()
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Dir(m.file()), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(m.file()); err != nil {
			t.Fatal(err)
		}
		_, read := Read(ctx, o)
		_, _, installed := Install(ctx, o)
		for _, err := range []error{read, installed} {
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%s: %v, want %q", name, err, c.want)
			}
		}
		if removed, err := Remove(ctx, o); !removed || err != nil {
			t.Errorf("%s: remove: %v, %v", name, removed, err)
		}
	}
}

// TestFakes holds the fakes to what the real tools do, on which the rest stands.
func TestFakes(t *testing.T) {
	o, state := here(t)
	if err := os.WriteFile(filepath.Join(state, "active-y.service"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
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
	if err := os.Symlink(os.DevNull, filepath.Join(o.Home, ".config/systemd/user/empty.service")); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		line string
		code int
		out  string
	}{
		{"launchctl print gui/501/x", 113, "Could not find service"},
		{"launchctl bootout gui/501/x", 3, "No such process"},
		{"launchctl bootstrap gui/501 AGENT.none", 5, "Input/output error"},
		{"launchctl bootstrap gui/501 AGENT", 0, ""},
		{"launchctl bootstrap gui/501 AGENT", 5, "Input/output error"},
		{"launchctl print gui/501/x", 0, "state = running"},
		{"launchctl bootout gui/501/x", 0, ""},
		{"launchctl print gui/501/x", 113, ""},
		{"launchctl fly", 64, "Unrecognized"},
		{"systemctl is-enabled x.service", 1, "authentication"},
		{"systemctl --user is-enabled none.service", 1, "No such file"},
		{"systemctl --user is-enabled x.service", 1, ""},
		{"systemctl enable --user none.service", 1, "does not exist"},
		{"systemctl enable --user x.service", 0, ""},
		{"systemctl --user is-enabled x.service", 0, "enabled"},
		{"systemctl disable --user x.service", 0, ""},
		{"systemctl is-active x.service --user", 3, ""},
		{"systemctl is-active y.service --user", 0, "active"},
		{"systemctl --user reenable none.service", 1, "does not exist"},
		{"systemctl --user reenable x.service", 0, ""},
		{"systemctl --user is-enabled x.service", 0, "enabled"},
		{"systemctl --user disable x.service", 0, ""},
		{"systemctl --user is-enabled x.service", 1, ""},
		{"systemctl --user disable none.service", 1, "does not exist"},
		{"systemctl --user is-enabled empty.service", 1, ""},
		{"systemctl --user enable empty.service", 1, "is masked"},
		{"systemctl --user fly", 1, "Unknown"},
	} {
		args := strings.Fields(c.line)
		for i := range args {
			args[i] = strings.ReplaceAll(args[i], "AGENT", agent)
		}
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
	o := Options{Program: filepath.Join(dir, `100% A & <B> $HOME {{Name}}`, "drawbridge"), Home: dir}
	if err := os.Mkdir(filepath.Dir(o.Program), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(o.Program, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	m := systemd{o}
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
