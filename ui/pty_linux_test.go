package ui

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"drawbridge/bridge/gate"
)

// agentEnv makes the test binary the agent that runs at the pty.
const agentEnv = "DRAWBRIDGE_TEST_AGENT"

// agent is what the test binary does at the pty.
type agent struct {
	Background bool          // be a job in the background, as of a shell
	Reflex     time.Duration // for Terminal.reflex
	Deadline   time.Duration
	Pause      bool
	Accept     int      // so many rules that allow are to be accepted
	HangUp     bool     // wait for the terminal to close, not for the calls
	Calls      []string // the tools that are called at once
	After      string   // and one after that
}

// onFirstThread runs the tests; where a platform wants its main loop to run on
// the first thread meanwhile, it is another.
var onFirstThread = func(run func() int) int { return run() }

func TestMain(m *testing.M) {
	if s := os.Getenv(agentEnv); s != "" {
		var a agent
		if err := json.Unmarshal([]byte(s), &a); err != nil {
			panic(err)
		}
		a.run()
		return
	}
	os.Exit(onFirstThread(m.Run))
}

func (a agent) run() {
	signal.Ignore(syscall.SIGHUP) // to see what comes after
	if a.Background {
		a.Background = false
		cmd := a.command()
		cmd.Stdin, cmd.Stderr, cmd.ExtraFiles = os.Stdin, os.Stderr, []*os.File{os.NewFile(3, "verdicts")}
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		if err := cmd.Run(); err != nil {
			panic(err)
		}
		return
	}
	t := NewTerminal(os.Stdin, os.Stderr)
	t.reflex = a.Reflex
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	ended := make(chan error, 1)
	go func() { ended <- t.Run(ctx) }()
	g := gate.New(gate.Options{Surfaces: []gate.Surface{t}, Deadline: a.Deadline, Rules: gate.RulesFile{Path: "/nonexistent/rules.yaml"}})
	if a.Pause {
		g.Pause("test")
	}
	if a.Accept > 0 {
		var p gate.Policy
		for i := range a.Accept {
			p.Rules = append(p.Rules, gate.Rule{Tool: fmt.Sprint("harmless", i), Then: gate.ThenAllow})
		}
		if err := g.SetPolicy(p); err != nil {
			panic(err)
		}
	}
	verdicts := json.NewEncoder(os.NewFile(3, "verdicts"))
	var mu sync.Mutex
	decide := func(tool string) {
		v := g.Decide(ctx, &gate.Request{ID: "c-1", Client: "claude", Conn: "k1", Host: "omp", Tool: tool,
			Args: json.RawMessage(`{"command":"ls\u202e -l"}`)})
		mu.Lock()
		defer mu.Unlock()
		if err := verdicts.Encode(v); err != nil {
			panic(err)
		}
	}
	var wg sync.WaitGroup
	for _, tool := range a.Calls {
		wg.Go(func() { decide(tool) })
	}
	if a.HangUp {
		<-ended
		ended <- nil
	} else {
		wg.Wait()
	}
	if a.After != "" {
		decide(a.After)
	}
	cancel()
	wg.Wait()
	<-ended
}

func (a agent) command() *exec.Cmd {
	b, err := json.Marshal(a)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), agentEnv+"="+string(b), "TERM=xterm",
		"GORACE=atexit_sleep_ms=0") // or the race detector makes each one a second longer
	return cmd
}

// pty is the person's side of a terminal.
type pty struct {
	t        *testing.T
	master   *os.File
	agent    *os.Process
	verdicts *bufio.Reader
	got      strings.Builder // not yet expected
	chunks   chan string
}

// start runs the agent in the foreground of a terminal of its own. ahead is
// typed before it starts.
func start(t *testing.T, a agent, ahead string) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudo-terminals here: %v", err)
	}
	// Not by Fd, which would take the descriptor from Go's poller: then a read
	// could not be ended by closing.
	conn, err := master.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var n int
	cerr := conn.Control(func(fd uintptr) {
		if err = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0); err == nil {
			n, err = unix.IoctlGetInt(int(fd), unix.TIOCGPTN)
		}
	})
	if err != nil || cerr != nil {
		t.Fatal(err, cerr)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer slave.Close()
	p := &pty{t: t, master: master, chunks: make(chan string, 1000)}
	p.typeText(ahead)
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	p.verdicts = bufio.NewReader(r)
	cmd := a.command()
	cmd.Stdin, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = slave, slave, slave, []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	p.agent = cmd.Process
	go func() { // ends when the agent does, and with it the last slave, or when master is closed
		defer close(p.chunks)
		var b [4096]byte
		for {
			n, err := master.Read(b[:])
			if err != nil {
				return
			}
			p.chunks <- string(b[:n])
		}
	}()
	kill := time.AfterFunc(5*time.Minute, func() { cmd.Process.Kill() })
	t.Cleanup(func() {
		if err := cmd.Wait(); err != nil {
			t.Errorf("the agent: %v", err)
		}
		kill.Stop()
		r.Close()
		master.Close()
	})
	return p
}

func (p *pty) typeText(s string) {
	p.t.Helper()
	if s == "" {
		return
	}
	if _, err := p.master.WriteString(s); err != nil {
		p.t.Fatal(err)
	}
}

// expect reads until the screen has shown what re describes, and returns its
// groups.
func (p *pty) expect(re string) []string {
	p.t.Helper()
	want := regexp.MustCompile(re)
	for {
		s := p.got.String()
		if m := want.FindStringSubmatchIndex(s); m != nil {
			groups := want.FindStringSubmatch(s)
			p.got.Reset()
			p.got.WriteString(s[m[1]:])
			return groups
		}
		chunk, ok := <-p.chunks
		if !ok {
			p.t.Fatalf("%q never came; the screen shows:\n%s", re, s)
		}
		p.got.WriteString(chunk)
	}
}

func (p *pty) verdict() gate.Verdict {
	p.t.Helper()
	line, err := p.verdicts.ReadBytes('\n')
	if err != nil {
		p.t.Fatalf("no verdict: %v; the screen shows:\n%s", err, p.got.String())
	}
	var v gate.Verdict
	if err := json.Unmarshal(line, &v); err != nil {
		p.t.Fatal(err)
	}
	return v
}

// word reads the whole prompt, up to where it is typed.
func (p *pty) word() string {
	p.t.Helper()
	return p.expect(`(?s)  allow   (\w+) .*left\.\r\n> `)[1]
}

func TestTerminalAllow(t *testing.T) {
	p := start(t, agent{Calls: []string{"bash"}}, "")
	p.expect("Client claude wants to run bash of host omp\\.\r\n  {\r\n    \"command\": \"ls⟨U\\+202E⟩ -l\"\r\n  }\r\n")
	first := p.word()
	p.typeText("allow nope\n")
	second := p.expect(`that was not it\.\r\nNothing was answered\. The word is now (\w+)\.\r\n> `)[1]
	p.typeText("allow " + first + "\n") // used up
	third := p.expect(`The word is now (\w+)\.\r\n> `)[1]
	p.typeText("yes " + third + "\n")
	fourth := p.expect(`none of the answers above\.\r\nNothing was answered\. The word is now (\w+)\.\r\n> `)[1]
	if first == second || second == third || third == fourth {
		t.Errorf("the word stays: %s %s %s %s", first, second, third, fourth)
	}
	p.typeText("allow " + fourth + "\n")
	p.expect(`Allowed\.`)
	if v := p.verdict(); v.Outcome != gate.Allowed || v.By != "person at the terminal" {
		t.Errorf("%+v", v)
	}
}

func TestTerminalScopes(t *testing.T) {
	for _, verb := range []string{"conn", "15m"} {
		p := start(t, agent{Calls: []string{"bash"}, After: "bash"}, "")
		p.typeText(verb + " " + p.word() + "\n")
		if v := p.verdict(); v.Outcome != gate.Allowed {
			t.Errorf("%s: %+v", verb, v)
		}
		if v := p.verdict(); v.Outcome != gate.Allowed || !strings.HasPrefix(v.By, "person, for ") {
			t.Errorf("%s does not cover the next call: %+v", verb, v)
		}
	}
}

func TestTerminalDeny(t *testing.T) {
	for typed, want := range map[string]string{
		"\n":                      "a person denied this call",
		"deny\n":                  "a person denied this call",
		"deny use read instead\n": "a person denied this call: use read instead",
	} {
		p := start(t, agent{Calls: []string{"bash"}}, "")
		p.word()
		p.typeText(typed)
		p.expect(`Denied\.`)
		if v := p.verdict(); v.Outcome != gate.Denied || v.Message != want {
			t.Errorf("%q: %+v", typed, v)
		}
	}
}

func TestTerminalDropsWhatWasTypedAhead(t *testing.T) {
	p := start(t, agent{Calls: []string{"bash"}}, "deny this was typed ahead\n\n\n")
	p.typeText("allow " + p.word() + "\n")
	if v := p.verdict(); v.Outcome != gate.Allowed {
		t.Errorf("%+v", v)
	}
}

func TestTerminalTooQuick(t *testing.T) {
	p := start(t, agent{Calls: []string{"bash"}, Reflex: time.Hour}, "")
	p.typeText("allow " + p.word() + "\n")
	p.expect(`too quick`)
	p.typeText("\n")
	p.expect(`too quick`)
	p.agent.Signal(syscall.SIGTERM)
	if v := p.verdict(); v.Outcome != gate.Gone {
		t.Errorf("%+v", v)
	}
}

// TestTerminalWithdraws: the deadline is long enough for the question to be shown.
func TestTerminalWithdraws(t *testing.T) {
	p := start(t, agent{Calls: []string{"bash"}, Deadline: 3 * time.Second}, "")
	p.expect(`No answer is needed any more: nobody answered in time`)
	if v := p.verdict(); v.Outcome != gate.Expired {
		t.Errorf("%+v", v)
	}
}

// TestTerminalEndOfFile: the end-of-file key is no denial.
func TestTerminalEndOfFile(t *testing.T) {
	p := start(t, agent{Calls: []string{"bash"}}, "")
	word := p.word()
	p.typeText("\x04\x04allow " + word + "\n")
	if v := p.verdict(); v.Outcome != gate.Allowed {
		t.Errorf("%+v", v)
	}
}

func TestTerminalQueue(t *testing.T) {
	p := start(t, agent{Calls: []string{"bash", "read"}}, "")
	tool := p.expect(`wants to run (bash|read)`)[1]
	p.typeText("allow " + p.word() + "\n")
	if v := p.verdict(); v.Outcome != gate.Allowed {
		t.Errorf("%+v", v)
	}
	if second := p.expect(`wants to run (bash|read)`)[1]; second == tool {
		t.Errorf("%s was asked twice", tool)
	}
	p.word()
	p.typeText("\n")
	if v := p.verdict(); v.Outcome != gate.Denied {
		t.Errorf("%+v", v)
	}
}

func TestTerminalResume(t *testing.T) {
	p := start(t, agent{Pause: true, Calls: []string{"bash"}}, "")
	word := p.expect(`(?s)Everything is paused\. Go on\?.*  allow   (\w+) .*stands until it is answered\.\r\n> `)[1]
	p.typeText("allow " + word + "\n")
	p.expect(`Allowed\.`)
	p.typeText("allow " + p.word() + "\n")
	if v := p.verdict(); v.Outcome != gate.Allowed {
		t.Errorf("%+v", v)
	}
}

// TestTerminalPages: what loosens and is longer than the screen is accepted after its
// last page, not before, and by no word that an earlier page could have told.
func TestTerminalPages(t *testing.T) {
	p := start(t, agent{Accept: 20, Calls: []string{"harmless19"}}, "")
	const asked = `(?s)Page 1 of (\d+)\.\r\nType one of:\r\n  more .*left\.\r\n> `
	var pages int
	if _, err := fmt.Sscan(p.expect(asked)[1], &pages); err != nil || pages < 2 {
		t.Fatal(pages, err)
	}
	p.typeText("allow badefo\n")
	p.expect(`none of the answers above\.\r\nNothing was answered\.\r\n> `)
	for i := 2; i < pages; i++ {
		p.typeText("more\n")
		p.expect(fmt.Sprintf(`(?s)Page %d of .*left\.\r\n> `, i))
	}
	p.typeText("more\n")
	p.expect(`(?s)harmless19.*  allow   \w+ .*left\.\r\n> `)
	p.typeText("more\n")
	word := p.expect(`none of the answers above\.\r\nNothing was answered\. The word is now (\w+)\.\r\n> `)[1]
	p.typeText("allow " + word + "\n")
	p.expect(`Allowed\.`)
	p.word() // the call came first and asked
	p.typeText("\n")
	p.verdict()
}

// TestTerminalInTheBackground: a job in the background that read or wrote the
// terminal would be stopped, and its caller would hang.
func TestTerminalInTheBackground(t *testing.T) {
	p := start(t, agent{Background: true, Calls: []string{"bash"}}, "")
	if v := p.verdict(); v.Outcome != gate.Nobody {
		t.Errorf("%+v", v)
	}
}

func TestTerminalHangUp(t *testing.T) {
	p := start(t, agent{HangUp: true, Calls: []string{"bash"}, After: "read"}, "")
	p.word()
	p.master.Close()
	if v := p.verdict(); v.Outcome != gate.Nobody {
		t.Errorf("asks at a closed terminal: %+v", v)
	}
	if v := p.verdict(); v.Outcome != gate.Gone {
		t.Errorf("a closed terminal answered: %+v", v)
	}
}

func TestTerminalNotATerminal(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	defer w.Close()
	if NewTerminal(r, w).Ready() {
		t.Error("a pipe is no terminal")
	}
	tty := NewTerminal(r, w)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tty.Run(ctx) }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if err := tty.Show(nil); err == nil {
		t.Error("shows after its end")
	}
}
