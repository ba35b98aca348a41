package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drawbridge/app/config"
	"drawbridge/packaging/login"
)

// envCrash has this program crash as an agent would.
const envCrash = "DRAWBRIDGE_TEST_CRASH"

func init() {
	if os.Getenv(envCrash) == "" {
		return
	}
	endByCrash()
	done := make(chan bool)
	go func() {
		defer close(done)
		panic("a fault of ours")
	}()
	<-done
}

// TestCrash: what starts the agent again tells a crash from a wrong configuration,
// which a crash of Go's own has the code of.
func TestCrash(t *testing.T) {
	home := t.TempDir()
	cmd := self(home)
	cmd.Dir = home
	cmd.Env = append(cmd.Env, envCrash+"=1")
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) {
		t.Fatalf("%v\n%s", err, out)
	}
	status := exit.Sys().(syscall.WaitStatus)
	if !status.Signaled() || status.Signal() != syscall.SIGABRT || status.CoreDump() {
		t.Errorf("%v", exit)
	}
	if !strings.Contains(string(out), "a fault of ours") {
		t.Errorf("nobody is told:\n%s", out)
	}
}

// lastLogged is the last line of the log in a state directory, or nil.
func lastLogged(t *testing.T, state string) map[string]any {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(state, logName))
	if err != nil {
		return nil
	}
	lines := bytes.Split(bytes.TrimSpace(b), []byte("\n"))
	var m map[string]any
	if err := json.Unmarshal(lines[len(lines)-1], &m); err != nil {
		t.Fatalf("%v: %s", err, lines[len(lines)-1])
	}
	return m
}

// TestEarlyEnds has each thing that a start meets be wrong. It ends with what keeps
// it from being started again and again, and the log says why.
func TestEarlyEnds(t *testing.T) {
	put := func(name, content string) func(t *testing.T, state string) {
		return func(t *testing.T, state string) {
			if err := os.WriteFile(filepath.Join(state, name), []byte(content), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	pipe := func(name string) func(t *testing.T, state string) {
		return func(t *testing.T, state string) {
			if err := unix.Mkfifo(filepath.Join(state, name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for name, c := range map[string]struct {
		damage func(t *testing.T, state string)
		args   []string
		says   string
	}{
		"newer state":         {put("format", "99\n"), nil, "written by a newer Drawbridge"},
		"an empty format":     {put("format", ""), nil, "no number of a format"},
		"a large format":      {put("format", strings.Repeat("1", 1000)), nil, "larger than 16 bytes"},
		"a format, a pipe":    {pipe("format"), nil, "no regular file"},
		"tokens":              {put("tokens.json", "{"), nil, "tokens.json cannot be read"},
		"tokens, a pipe":      {pipe("tokens.json"), nil, "no regular file"},
		"the gateway":         {put("gateway.json", "{}"), nil, "gateway.json cannot be used"},
		"the gateway, a pipe": {pipe("gateway.json"), nil, "no regular file"},
		"the gateway's port":  {put("gateway.json", `{"v":1,"addr":"127.0.0.1:99999","key":"MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE="}`), nil, "no port between 0 and 65535"},
		"the lock, a pipe":    {pipe("lock"), nil, "no regular file"},
		"the lock, shared": {func(t *testing.T, state string) {
			put("lock", "")(t, state)
			os.Chmod(filepath.Join(state, "lock"), 0o644)
		}, nil, "read or written by others"},
		"an upgrade":           {func(t *testing.T, state string) { put("format", "1\n")(t, state); put("upgrade.json", "{")(t, state) }, nil, "does not say what was begun"},
		"rules":                {put("rules.yaml", "rules: 7"), nil, "rules.yaml"},
		"the audit":            {put("audit", ""), nil, "audit"},
		"the configuration":    {put("c.yaml", "listen: ["), []string{"--config", "c.yaml"}, "c.yaml"},
		"a port in it":         {put("c.yaml", "listen: 127.0.0.1:99999"), []string{"--config", "c.yaml"}, `"99999" is no port`},
		"a flag":               {put("none", ""), []string{"--allow", "["}, "--allow"},
		"the endpoint's place": {func(t *testing.T, state string) { os.MkdirAll(filepath.Join(state, "endpoint.json/x"), 0o700) }, nil, "endpoint.json"},
		"the socket's place":   {func(t *testing.T, state string) { os.MkdirAll(filepath.Join(state, "control.sock/x"), 0o700) }, nil, "control.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			home := t.TempDir()
			state := filepath.Join(home, "state")
			if err := os.Mkdir(state, 0o700); err != nil {
				t.Fatal(err)
			}
			c.damage(t, state)
			start := func(env ...string) (int, string) {
				cmd := self(home, append([]string{"--state", state, "run", "--backend", "simulated", "--no-tray", "--listen", "127.0.0.1:0"}, c.args...)...)
				if slices.Contains(c.args, "c.yaml") { // whose address is meant
					cmd.Args = slices.DeleteFunc(cmd.Args, func(a string) bool { return a == "--listen" || a == "127.0.0.1:0" })
				}
				cmd.Dir = state
				cmd.Env = append(cmd.Env, env...)
				var out bytes.Buffer
				cmd.Stdout, cmd.Stderr = &out, &out
				if err := cmd.Start(); err != nil {
					t.Fatal(err)
				}
				defer time.AfterFunc(time.Minute, func() { _ = cmd.Process.Kill() }).Stop() // one that runs after all
				_ = cmd.Wait()
				return cmd.ProcessState.ExitCode(), out.String()
			}
			code, out := start()
			if code != exitUsage || !strings.Contains(out, c.says) {
				t.Errorf("exit code %d, want %d and %q\n%s", code, exitUsage, c.says, out)
			}
			last := lastLogged(t, state)
			why, _ := last["error"].(string)
			if !strings.Contains(why, c.says) || last["level"] != "error" || last["message"] != "not started" && last["message"] != "ended" {
				t.Errorf("the log ends with %v", last)
			}
			// launchd leaves alone only what ended well.
			if code, out := start("XPC_SERVICE_NAME=" + login.Label); code != exitOK || !strings.Contains(out, c.says) {
				t.Errorf("under launchd: exit code %d\n%s", code, out)
			}
		})
	}

	// A log that is none cannot hold the reason, and is one.
	state := t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	pipe(logName)(t, state)
	cmd := self(t.TempDir(), "--state", state, "run", "--backend", "simulated", "--no-tray", "--listen", "127.0.0.1:0")
	if out, _ := cmd.CombinedOutput(); cmd.ProcessState.ExitCode() != exitUsage || !strings.Contains(string(out), logName+" is no regular file") {
		t.Errorf("%s", out)
	}
	// Where there is no directory for it, none is made.
	home := t.TempDir()
	cmd = self(home, "--state", filepath.Join(home, "none"), "run", "--allow", "[")
	if out, err := cmd.CombinedOutput(); err == nil {
		t.Errorf("%s", out)
	}
	if _, err := os.Lstat(filepath.Join(home, "none")); err == nil {
		t.Error("a state directory was made for a log")
	}
}

func TestStaying(t *testing.T) {
	code := func(err error) int { return report(&bytes.Buffer{}, err) }
	for _, c := range []struct {
		err  error
		want int
	}{
		{errors.New("a damaged file"), exitUsage},
		{fmt.Errorf("opening: %w", os.ErrPermission), exitUsage},
		{&os.PathError{Op: "write", Path: "p", Err: unix.ENOSPC}, exitFailed},
		{fmt.Errorf("listening: %w", unix.EMFILE), exitFailed},
		{&exitError{code: exitRefused, err: errors.New("no")}, exitRefused},
		{&config.Error{File: "c", Msg: "m"}, exitUsage},
		{nil, exitOK},
	} {
		if got := code(staying(c.err)); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
		under := func(name string) string {
			return map[string]string{"XPC_SERVICE_NAME": login.Label}[name]
		}
		want := c.want
		if want == exitUsage {
			want = exitOK
		}
		if got := code(forLaunchd(staying(c.err), under)); got != want {
			t.Errorf("under launchd: %v: %d, want %d", c.err, got, want)
		}
	}
}
