// Package agent builds the drawbridge command, starts it with a state folder of
// its own, and ends it again: for the tests and measurements that are about the
// program as it ships.
package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Build compiles the command of the module that the working directory lies in,
// as it ships, and returns the path of the executable in dir.
func Build(ctx context.Context, dir string) (string, error) {
	bin := filepath.Join(dir, "drawbridge")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", bin, "drawbridge/app")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build drawbridge: %w\n%s", err, out)
	}
	return bin, nil
}

// Options say how an agent is started.
type Options struct {
	Bin   string   // the executable
	State string   // its state folder; made if missing
	Args  []string // after "run"
	Env   []string // added to this process's environment
}

// Agent is a running one.
type Agent struct {
	Bin, State string
	Host       string // address:port that it serves on
	Token      string // of the default client
	PID        int
	Took       time.Duration // from starting the process to its endpoint file

	cmd  *exec.Cmd
	out  *output
	done chan struct{} // closed when the process has ended
	err  error         // how it ended; set before done is closed
}

// serving is how long a start may take. A virtual display is part of it.
const serving = 30 * time.Second

// Start starts an agent and returns when it serves.
func Start(ctx context.Context, o Options) (*Agent, error) {
	a := prepare(o)
	a.cmd.Stdout, a.cmd.Stderr = a.out, a.out
	if err := a.start(ctx); err != nil {
		return nil, err
	}
	return a, nil
}

func prepare(o Options) *Agent {
	args := append([]string{"run", "--state", o.State, "--no-tray", "--listen", "127.0.0.1:0"}, o.Args...)
	a := &Agent{Bin: o.Bin, State: o.State, cmd: exec.Command(o.Bin, args...), out: &output{}, done: make(chan struct{})}
	a.cmd.Env = append(os.Environ(), o.Env...)
	return a
}

// start starts the process and returns when it serves. On an error nothing runs.
func (a *Agent) start(ctx context.Context) error {
	if err := os.MkdirAll(a.State, 0o700); err != nil {
		return err
	}
	args := strings.Join(a.cmd.Args[1:], " ")
	begin := time.Now()
	if err := a.cmd.Start(); err != nil {
		return err
	}
	a.PID = a.cmd.Process.Pid
	go func() { // ends with the process
		a.err = a.cmd.Wait()
		close(a.done)
	}()

	ctx, cancel := context.WithTimeout(ctx, serving)
	defer cancel()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		select {
		case <-a.done:
			return fmt.Errorf("%s ended at the start: %v\n%s", args, a.err, a.out)
		case <-ctx.Done():
			err := fmt.Errorf("%s does not serve: %w\n%s", args, context.Cause(ctx), a.out)
			return errors.Join(err, a.Stop())
		case <-look.C:
		}
		ok, err := a.readEndpoint()
		if err != nil {
			return errors.Join(err, a.Stop())
		}
		if ok {
			a.Took = time.Since(begin)
			return nil
		}
	}
}

// readEndpoint takes the address from endpoint.json and the token from
// default.token, and reports false when this agent has not written them yet.
func (a *Agent) readEndpoint() (bool, error) {
	b, err := os.ReadFile(filepath.Join(a.State, "endpoint.json"))
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	} else if err != nil {
		return false, err
	}
	var e struct {
		PID int    `json:"pid"`
		URL string `json:"url"`
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return false, fmt.Errorf("endpoint.json: %w", err)
	}
	if e.PID != a.PID {
		return false, nil // an older agent's
	}
	u, err := url.Parse(e.URL)
	if err != nil || u.Host == "" {
		return false, fmt.Errorf("endpoint.json: no address in url %q", e.URL)
	}
	token, err := os.ReadFile(filepath.Join(a.State, "default.token"))
	if err != nil {
		return false, err
	}
	a.Host, a.Token = u.Host, strings.TrimSpace(string(token))
	return true, nil
}

// WebSocket is the address of the websocket endpoint.
func (a *Agent) WebSocket() string { return "ws://" + a.Host + "/mcp" }

// HTTP is the address of the Streamable HTTP endpoint.
func (a *Agent) HTTP() string { return "http://" + a.Host + "/mcp" }

// Connect is the command that speaks MCP on its pipes.
func (a *Agent) Connect() (command string, args []string) {
	return a.Bin, []string{"connect", "--state", a.State}
}

// Output is what the agent has written so far.
func (a *Agent) Output() string { return a.out.String() }

// ending is how long an agent may take to end before it is killed.
const ending = 10 * time.Second

// Stop asks the agent to end and waits for it. It fails when the agent had to be
// killed, ended by itself before, or left its endpoint file.
func (a *Agent) Stop() error {
	select {
	case <-a.done:
		return fmt.Errorf("the agent had ended by itself: %v\n%s", a.err, a.out)
	default:
	}
	if err := a.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return err
	}
	late := time.NewTimer(ending)
	defer late.Stop()
	select {
	case <-a.done:
	case <-late.C:
		err := a.cmd.Process.Kill()
		<-a.done
		return errors.Join(fmt.Errorf("the agent did not end within %v of SIGTERM\n%s", ending, a.out), err)
	}
	if _, err := os.Stat(filepath.Join(a.State, "endpoint.json")); !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("the agent left endpoint.json behind (%v)", err)
	}
	return nil
}

// output keeps what a process writes.
type output struct {
	mu  sync.Mutex
	buf bytes.Buffer // guarded by mu
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.buf.String()
}
