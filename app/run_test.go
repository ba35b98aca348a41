package main

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"

	"drawbridge/app/config"
	"drawbridge/bridge/control"
)

// command runs one command line in an environment of its own.
func command(t *testing.T, env map[string]string, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	if env == nil {
		env = map[string]string{"HOME": t.TempDir()}
	}
	code = run(args, stdio{in: strings.NewReader(stdin), out: &out, err: &errs, getenv: func(k string) string { return env[k] }})
	return code, out.String(), errs.String()
}

func TestUsage(t *testing.T) {
	for _, tc := range []struct {
		args string
		code int
		says string // on standard error where the code is not 0, else on standard output
	}{
		{"version", exitOK, "drawbridge dev\n"},
		{"version --json", exitOK, `"version": "dev"`},
		{"--help", exitOK, "Exit codes: 0 done, 1 failed, 2 wrong usage"},
		{"nonsense", exitUsage, `no command "nonsense"`},
		{"statsu", exitUsage, "did you mean status?"},
		{"version extra", exitUsage, `takes no argument, not "extra"`},
		{"--bogus", exitUsage, "unknown flag: --bogus"},
		{"run --bogus", exitUsage, "see: drawbridge run --help"},
		{"client", exitUsage, "needs a command: one of add, config, list, revoke"},
		{"client bogus", exitUsage, `knows no command "bogus"`},
		{"audit", exitUsage, "one of export, show, tail, verify"},
		{"config", exitUsage, "one of check, example, path, show"},
		{"rules", exitUsage, "one of list, revoke"},
		{"client add", exitUsage, "usage: drawbridge client add NAME"},
		{"client add a/b", exitUsage, `"a/b"`},
		{"client add ..", exitUsage, "not dots alone"},
		{"host add ..", exitUsage, "not dots alone"},
		{"client add a --images perhaps", exitUsage, "--images must be yes or no"},
		{"completion bash", exitOK, "bash completion"},
		{"completion bash x", exitUsage, `takes no argument, not "x"`},
		{"completion", exitUsage, "one of bash, fish, powershell, zsh"},
		{"config example", exitOK, "listen: 127.0.0.1:7317\n"},
		{"config check", exitOK, "the defaults hold"},
		{"call", exitUsage, "usage: drawbridge call NAME"},
		{"call computer [1]", exitUsage, "no JSON object"},
		{"call computer {", exitUsage, "no JSON object"},
		{"doctor --app TextEdit", exitUsage, "--app exists only on macOS"},
		{"audit tail -n -1", exitUsage, "must not be negative"},
		{"audit verify", exitFailed, "there is no audit in"},
		{"run --backend simulator", exitUsage, `flag --backend: must be one of auto,`},
		{"run --listen 0.0.0.0:1", exitUsage, "is not loopback"},
		{"run --backend native --allow computer", exitUsage, "desktop of the agent's own"},
		{"run --backend simulated --allow [", exitUsage, `--allow "["`},
		{"run --backend simulated --allow {computer,bash}", exitUsage, `--allow "{computer,bash}": pattern "{computer,bash}" fits no tool: braces`},
		{"status", exitNoAgent, "start it with: drawbridge run"},
		{"tools", exitNoAgent, "no agent is running"},
		{"stop", exitNoAgent, "no agent is running"},
		{"pause", exitNoAgent, "no agent is running"},
		{"reload", exitNoAgent, "no agent is running"},
		{"call computer {}", exitNoAgent, "no agent is running"},
		{"connect", exitNoAgent, "no agent is running"},
	} {
		t.Run(tc.args, func(t *testing.T) {
			code, out, errs := command(t, nil, "", strings.Fields(tc.args)...)
			if code != tc.code {
				t.Fatalf("exit %d, want %d; standard error: %s", code, tc.code, errs)
			}
			said := out
			if code != exitOK {
				said = errs
				if !strings.HasPrefix(errs, "drawbridge: ") {
					t.Errorf("standard error does not begin with the program's name: %q", errs)
				}
				if out != "" {
					t.Errorf("a failed command wrote %q to standard output", out)
				}
			}
			if !strings.Contains(said, tc.says) {
				t.Errorf("said %q, want %q", said, tc.says)
			}
		})
	}
}

func TestReport(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		code int
		want string
	}{
		"nothing":       {nil, exitOK, ""},
		"plain":         {errors.New("it broke"), exitFailed, "drawbridge: it broke\n"},
		"silent":        {&exitError{code: exitRefused}, exitRefused, ""},
		"hint":          {fmt.Errorf("outer: %w", &exitError{code: exitUsage, err: errors.New("bad"), hint: "do this"}), exitUsage, "drawbridge: outer: bad\n  do this\n"},
		"configuration": {errors.Join(&config.Error{File: "c", Line: 1, Msg: "x"}, &config.Error{File: "c", Line: 2, Msg: "y"}), exitUsage, "drawbridge: c:1: x\nc:2: y\n"},
		"no agent":      {fmt.Errorf("%w here", control.ErrNoAgent), exitNoAgent, "drawbridge: no agent is running here\n  start it with: drawbridge run\n"},
	} {
		var b bytes.Buffer
		if code := report(&b, tc.err); code != tc.code || b.String() != tc.want {
			t.Errorf("%s: exit %d and %q, want %d and %q", name, code, b.String(), tc.code, tc.want)
		}
	}
}
