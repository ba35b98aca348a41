package main

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge"
	agents "drawbridge/packaging/agent"
)

// openPTY returns the two ends of a new terminal.
func openPTY(t *testing.T) (master, slave *os.File) {
	t.Helper()
	master, slave, err := agents.OpenTerminal()
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { master.Close() })
	return master, slave
}

// screen is what a terminal has shown.
type screen struct {
	mu   sync.Mutex // guards text
	text bytes.Buffer
	more chan struct{}
}

func watch(r io.Reader) *screen {
	s := &screen{more: make(chan struct{}, 1)}
	go func() {
		b := make([]byte, 4096)
		for {
			n, err := r.Read(b)
			s.mu.Lock()
			s.text.Write(b[:n])
			s.mu.Unlock()
			select {
			case s.more <- struct{}{}:
			default:
			}
			if err != nil {
				return // the other end is closed
			}
		}
	}()
	return s
}

// await waits until the screen shows what pattern fits, takes away what was
// shown up to there, and returns the groups.
func (s *screen) await(t *testing.T, pattern string) []string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	late := time.After(time.Minute)
	for {
		s.mu.Lock()
		text := s.text.String()
		if at := re.FindStringSubmatchIndex(text); at != nil {
			groups := re.FindStringSubmatch(text)
			s.text.Next(at[1])
			s.mu.Unlock()
			return groups
		}
		s.mu.Unlock()
		select {
		case <-s.more:
		case <-late:
			t.Fatalf("the terminal does not show %s, but\n%s", pattern, text)
		}
	}
}

// The person at the terminal that runs the agent decides about a batch: yes, no,
// and Ctrl-C ends the agent.
func TestPersonAtTheTerminal(t *testing.T) {
	home := t.TempDir()
	state := filepath.Join(home, "s")
	master, slave := openPTY(t)
	agent := self(home, "--state", state, "run", "--backend", "simulated", "--listen", "127.0.0.1:0")
	agent.Stdin, agent.Stdout, agent.Stderr = slave, slave, slave
	agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	defer agent.Process.Kill()
	shown := watch(master)
	shown.await(t, `serving`)

	call := func(batch string) (code <-chan int, out *bytes.Buffer) {
		cmd := self(home, "--state", state, "call", "computer", batch, "--out", filepath.Join(home, "out"))
		out = &bytes.Buffer{}
		cmd.Stdout, cmd.Stderr = out, out
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan int, 1)
		go func() {
			var exit *exec.ExitError
			if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
				done <- -1
				return
			}
			done <- cmd.ProcessState.ExitCode()
		}()
		return done, out
	}
	answer := func(line string) {
		// An answer right after the prompt does not count.
		time.Sleep(600 * time.Millisecond)
		if _, err := io.WriteString(master, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}

	code, out := call(`{"actions":[{"type":"screenshot"}]}`)
	if c := <-code; c != exitOK {
		t.Fatalf("a picture of the agent's own desktop: exit %d, %s", c, out)
	}
	code, out = call(`{"actions":[{"type":"click","x":50,"y":60}]}`)
	word := shown.await(t, `allow +([a-z]+) `)[1]
	shown.await(t, `seconds left`)
	answer("allow " + word)
	if c := <-code; c != exitOK || !strings.Contains(out.String(), "clicked left at 50,60") {
		t.Errorf("allowed: exit %d, %s", c, out)
	}
	code, out = call(`{"actions":[{"type":"click","x":51,"y":60}]}`)
	shown.await(t, `allow +([a-z]+) `)
	shown.await(t, `seconds left`)
	answer("deny not today")
	if c := <-code; c != exitRefused || !strings.Contains(out.String(), "not today") {
		t.Errorf("denied: exit %d, %s", c, out)
	}
	if _, err := master.Write([]byte{3}); err != nil { // Ctrl-C
		t.Fatal(err)
	}
	if err := agent.Wait(); err != nil {
		t.Errorf("after Ctrl-C: %v", err)
	}
	for _, name := range []string{"control.sock", "endpoint.json"} {
		if _, err := os.Lstat(filepath.Join(state, name)); err == nil {
			t.Errorf("%s is left", name)
		}
	}
}

// What loosens is asked at the terminal once the agent serves: nothing says
// before that nobody can be asked, and no log line is written into the question.
func TestLooseningIsAskedAtTheTerminal(t *testing.T) {
	home := t.TempDir()
	state, conf := filepath.Join(home, "s"), filepath.Join(home, "c.yaml")
	if err := os.WriteFile(conf, []byte("allowed_origins: [\"https://good.example\"]\nrules:\n  - {tool: computer, then: allow}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	master, slave := openPTY(t)
	agent := self(home, "--state", state, "--config", conf, "run", "--backend", "simulated", "--listen", "127.0.0.1:0")
	agent.Stdin, agent.Stdout, agent.Stderr = slave, slave, slave
	agent.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	slave.Close()
	defer agent.Process.Kill()
	shown := watch(master)
	before := shown.await(t, `(?s)^(.*)Configuration or rules allow more`)[1]
	if strings.Contains(before, "nobody can be asked") || !strings.Contains(before, "serving") {
		t.Errorf("before the question the terminal shows\n%s", before)
	}
	word := shown.await(t, `allow +([a-z]+) +yes`)[1]
	shown.await(t, `seconds left`)
	// A stranger's request is logged, and changes nothing that is asked.
	e, err := bridge.ReadEndpoint(state)
	if err != nil {
		t.Fatal(err)
	}
	// Nor does it let anybody in before the answer, nor wait for a restart after it.
	visit := func() int {
		q, err := http.NewRequest("GET", "http"+strings.TrimPrefix(e.URL, "ws"), nil)
		if err != nil {
			t.Fatal(err)
		}
		q.Header.Set("Origin", "https://good.example")
		res, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		return res.StatusCode
	}
	if got := visit(); got != http.StatusForbidden {
		t.Errorf("a page that nobody accepted is answered %d", got)
	}
	time.Sleep(600 * time.Millisecond) // an answer right after the prompt does not count
	if _, err := io.WriteString(master, "allow "+word+"\n"); err != nil {
		t.Fatal(err)
	}
	asked := shown.await(t, `(?s)^(.*)Allowed\.`)[1]
	if strings.Contains(asked, "refused a connection") {
		t.Errorf("the log is written into the question:\n%s", asked)
	}
	shown.await(t, `refused a connection`)
	for end := time.Now().Add(time.Minute); visit() != http.StatusUnauthorized; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the page that was accepted is not let in")
		}
	}
}
