package main

import (
	"bytes"
	"context"
	"encoding/json"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/wire"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"drawbridge": main, "toolhost": toolHost, "killedupgrade": killedUpgrade})
}

// toolHost is a program that speaks MCP on stdio, for scripts to have as a host.
func toolHost() {
	s := &hosttest.Server{Call: func(ctx context.Context, c *hosttest.Call) (result, rpcErr json.RawMessage) {
		if c.Name != "sh" {
			return hosttest.Echo(ctx, c)
		}
		var p struct{ Arguments struct{ Command string } }
		if err := json.Unmarshal(c.Params, &p); err != nil {
			return nil, wire.Errorf(wire.CodeInvalidParams, "%v", err).Raw()
		}
		out, err := exec.CommandContext(ctx, "sh", "-c", p.Arguments.Command).CombinedOutput()
		if err != nil {
			return wire.ErrorResult(err.Error()+"\n"+string(out), ""), nil
		}
		return json.RawMessage(`{"content":[{"type":"text","text":` + string(wire.AppendString(nil, string(out))) + `}]}`), nil
	}}
	s.SetTools(
		`{"name":"greet","description":"Says hello","inputSchema":{"type":"object"},"x-vendor":9007199254740993}`,
		`{"name":"sh","description":"Runs a command","inputSchema":{"type":"object","properties":{"command":{"type":"string"}}}}`,
	)
	if err := s.ServeStdio(os.Stdin, os.Stdout); err != nil {
		os.Exit(1)
	}
}

// TestScripts runs the command itself as a person would, against agents in
// state directories of their own.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			// The script's own home, so that nobody's configuration is read, and no
			// display of the person's.
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("TMPDIR", filepath.Join(e.WorkDir, "tmp"))
			e.Setenv("DISPLAY", "")
			// An agent that a failed script leaves behind must not outlive it.
			e.Defer(func() { killAgents(e.WorkDir) })
			return os.Mkdir(filepath.Join(e.WorkDir, "tmp"), 0o700)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"serving":     cmdServing,
			"signal":      cmdSignal,
			"within":      cmdWithin,
			"eventually":  cmdEventually,
			"picture":     cmdPicture,
			"noprocess":   cmdNoProcess,
			"killprocess": cmdKillProcess,
		},
	})
}

// killAgents ends every agent whose lock is below dir.
func killAgents(dir string) {
	locks, _ := filepath.Glob(filepath.Join(dir, "*", "lock"))
	for _, l := range locks {
		lock, held, pid, err := lockState(filepath.Dir(l))
		if err != nil {
			continue
		}
		if !held {
			lock.Close()
			continue
		}
		if n, err := strconv.Atoi(pid); err == nil {
			syscall.Kill(n, syscall.SIGKILL)
		}
	}
}

// serving STATE waits until the agent of a state directory serves.
func cmdServing(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: serving STATE")
	}
	dir := ts.MkAbs(args[0])
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	for {
		_, err := control.Dial(ctx, dir)
		// A dead agent's endpoint.json stands until the next one has written its own.
		if err == nil {
			var e bridge.Endpoint
			var pid []byte
			if e, err = bridge.ReadEndpoint(dir); err == nil {
				pid, err = os.ReadFile(filepath.Join(dir, "lock"))
			}
			if err == nil && strconv.Itoa(e.PID) == strings.TrimSpace(string(pid)) {
				return
			}
		}
		select {
		case <-ctx.Done():
			ts.Fatalf("no agent serves in %s: %v", dir, err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// signal NAME STATE sends a signal to the agent of a state directory.
func cmdSignal(ts *testscript.TestScript, neg bool, args []string) {
	signals := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "INT": syscall.SIGINT, "HUP": syscall.SIGHUP, "KILL": syscall.SIGKILL}
	if neg || len(args) != 2 || signals[args[0]] == 0 {
		ts.Fatalf("usage: signal TERM|INT|HUP|KILL STATE")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(ts.ReadFile(filepath.Join(args[1], "lock"))))
	ts.Check(err)
	ts.Check(syscall.Kill(pid, signals[args[0]]))
}

// within DURATION COMMAND… runs the program and fails when it takes longer. It
// is for what must not wait for a person, whose deadline is minutes.
func cmdWithin(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: within DURATION COMMAND [ARG…]")
	}
	limit, err := time.ParseDuration(args[0])
	ts.Check(err)
	begin := time.Now()
	err = ts.Exec(args[1], args[2:]...)
	if took := time.Since(begin); took > limit {
		ts.Fatalf("took %s, more than %s", took, limit)
	}
	if (err == nil) == neg {
		ts.Fatalf("ended with %v", err)
	}
}

// eventually COMMAND runs a command again and again until it succeeds.
func cmdEventually(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: eventually COMMAND [ARG…]")
	}
	for end := time.Now().Add(60 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		err := ts.Exec(args[0], args[1:]...)
		if err == nil {
			return
		}
		if time.Now().After(end) {
			ts.Fatalf("tried for a minute: %v", err)
		}
	}
}

// picture RESULT reads a call's JSON and checks that its picture is a PNG of the
// size that the result states.
func cmdPicture(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: picture RESULT")
	}
	var r struct {
		Content []struct {
			Type, MimeType, Path, Data string
		}
		StructuredContent struct {
			Picture struct{ Width, Height int }
		}
	}
	ts.Check(json.Unmarshal([]byte(ts.ReadFile(args[0])), &r))
	pictures := 0
	for _, c := range r.Content {
		if c.Type != "image" {
			continue
		}
		pictures++
		if c.Data != "" || c.MimeType != "image/png" {
			ts.Fatalf("an image block of type %q with %d bytes of data; want a PNG's path only", c.MimeType, len(c.Data))
		}
		b, err := os.ReadFile(c.Path)
		ts.Check(err)
		conf, err := png.DecodeConfig(bytes.NewReader(b))
		ts.Check(err)
		p := r.StructuredContent.Picture
		if conf.Width != p.Width || conf.Height != p.Height || p.Width == 0 {
			ts.Fatalf("the picture has %dx%d pixels, the result says %dx%d", conf.Width, conf.Height, p.Width, p.Height)
		}
	}
	if pictures != 1 {
		ts.Fatalf("%d pictures, want 1", pictures)
	}
}

// noprocess TEXT fails while a process has TEXT in its command line. It looks
// again for a moment, since the dead are reaped late.
func cmdNoProcess(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 1 {
		ts.Fatalf("usage: noprocess TEXT")
	}
	var pid int
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		pid = processWith(args[0])
		if (pid == 0) != neg {
			return
		}
	}
	ts.Fatalf("process with %s: %d", args[0], pid)
}

// killprocess TEXT kills the process with TEXT in its command line.
func cmdKillProcess(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: killprocess TEXT")
	}
	pid := processWith(args[0])
	if pid == 0 {
		ts.Fatalf("no process with %s", args[0])
	}
	ts.Check(syscall.Kill(pid, syscall.SIGKILL))
}

// processWith returns a process that has text in its command line, or 0.
func processWith(text string) int {
	files, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range files {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		if b, err := os.ReadFile(f); err == nil && bytes.Contains(b, []byte(text)) {
			return pid
		}
	}
	return 0
}
