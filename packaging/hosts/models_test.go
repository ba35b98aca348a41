package hosts

import (
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
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/token"
	"drawbridge/packaging/mockmodel"
)

// consent is a person who allows.
type consent struct{}

func (consent) Name() string                   { return "desk" }
func (consent) Ready() bool                    { return true }
func (consent) Withdraw(*gate.Pending, string) {}
func (consent) Show(p *gate.Pending) error {
	return p.Answer(gate.Answer{Scope: gate.Once, By: "desk"})
}

// models is a real host with a model that counts, and an agent that can be away.
type models struct {
	t      *testing.T
	sw     *hostllm.Switch
	model  *mockmodel.Model
	out    *lines
	stdin  io.WriteCloser
	client *rig   // of the agent, while it runs
	detach func() // ends the agent
	work   string // the host's folder
	state  string
	log    zerolog.Logger
	name   string
}

// ompSettings are how omp is set up: a command goes to the background after half a
// second, and a model that fails has another one in its place.
const ompSettings = `{"bash": {"autoBackground": {"enabled": true, "thresholdMs": 500}},
"retry": {"maxRetries": 1, "baseDelayMs": 10, "fallbackChains": {"mock/m": ["spare/m"]}}}`

// startModels starts a host whose model is one that counts. The agent that it
// attaches to does not run before attach.
func startModels(t *testing.T, name string, saved hostllm.Mode, env ...string) *models {
	t.Helper()
	p := programs[name]
	cache := install(t, p)
	m := &models{t: t, model: mockmodel.Start(), out: &lines{}, work: t.TempDir(), state: t.TempDir(), log: zerolog.New(zerolog.NewTestWriter(t)), name: name}
	t.Cleanup(m.model.Close)
	if err := os.Chmod(m.state, 0o700); err != nil {
		t.Fatal(err)
	}
	var err error
	m.sw, err = hostllm.Open(hostllm.Options{
		Dir: m.state, Configured: saved, Audit: &ledger{}, Log: m.log,
		Person: gate.New(gate.Options{Surfaces: []gate.Surface{consent{}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	store, err := token.Open(m.state)
	if err != nil {
		t.Fatal(err)
	}
	hostToken, err := store.Add(name, token.Host, "")
	if err != nil {
		t.Fatal(err)
	}
	home := t.TempDir()
	dir, err := Dir(name, home, func(string) string { return "" })
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, Settings{Endpoint: filepath.Join(m.state, "endpoint.json"), Token: hostToken, Name: name, Main: true}); err != nil {
		t.Fatal(err)
	}
	if name == "omp" {
		if err := os.WriteFile(filepath.Join(filepath.Dir(dir), "config.yml"), []byte(ompSettings), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	mock, err := filepath.Abs("testdata/mockmodel.ts")
	if err != nil {
		t.Fatal(err)
	}
	args := append(p.command(cache), "--mode", "rpc", "--no-session", "-e", mock, "--model", "mock/m")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = m.work
	cmd.Env = append(os.Environ(), "HOME="+home, "PI_OFFLINE=1", "PI_CODING_AGENT_DIR=", "MOCK_BASE="+m.model.URL+"/v1",
		"PATH="+filepath.Join(cache, "node_modules/.bin")+":"+os.Getenv("PATH"))
	for _, v := range env {
		cmd.Env = append(cmd.Env, strings.NewReplacer("MODEL", m.model.URL, "WORK", m.work).Replace(v))
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Stdout, cmd.Stderr = m.out, m.out
	if m.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait() // it was killed
		if t.Failed() {
			said := m.out.String()
			t.Logf("%s said: %s", name, said[max(0, len(said)-4000):])
		}
	})
	return m
}

// attach starts the agent, and waits for the session to be under the switch.
func (m *models) attach() {
	m.t.Helper()
	m.connect()
	st, _ := m.sw.Watch()
	m.inForce(st.Mode == hostllm.Deny)
}

// connect starts the agent, and becomes its client.
func (m *models) connect() {
	m.t.Helper()
	store, err := token.Open(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	set, err := host.NewSet(host.Options{Log: m.log, Version: "test", Models: m.sw})
	if err != nil {
		m.t.Fatal(err)
	}
	secret, err := store.Add(fmt.Sprintf("tester-%d", time.Now().UnixNano()), token.Client, "")
	if err != nil {
		m.t.Fatal(err)
	}
	server := bridge.New(bridge.Options{Log: m.log, Version: "test", Hosts: set, Gate: &openGate{}, Audit: &ledger{}, Tokens: store})
	set.Start()
	web := httptest.NewServer(server.Handler())
	m.detach = sync.OnceFunc(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		server.Close(ctx)
		set.Close()
		web.Close()
	})
	m.t.Cleanup(m.detach)
	ws := "ws" + strings.TrimPrefix(web.URL, "http") + "/mcp"
	if err := os.WriteFile(filepath.Join(m.state, "endpoint.json"), []byte(`{"v":1,"url":"`+ws+`"}`), 0o600); err != nil {
		m.t.Fatal(err)
	}
	m.client = &rig{t: m.t, waiting: map[string]chan json.RawMessage{}}
	m.client.connect(ws, secret)
}

func (m *models) eventually(what string, ok func() bool) {
	m.t.Helper()
	(&rig{t: m.t}).eventually(what, ok)
}

// inForce waits until the session says that both layers refuse, or no longer do.
func (m *models) inForce(want bool) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("in force: %v", want), func() bool {
		return slices.Equal(m.report().Layers, []hostllm.LayerState{{Name: hostllm.LayerProviders, InForce: want}, {Name: hostllm.LayerFetch, InForce: want}})
	})
}

func (m *models) report() hostllm.HostReport {
	for _, h := range m.sw.Report().Hosts {
		if h.ID == m.name {
			return h
		}
	}
	return hostllm.HostReport{}
}

// say sends a command to the host.
func (m *models) say(command string) {
	m.t.Helper()
	if _, err := io.WriteString(m.stdin, command+"\n"); err != nil {
		m.t.Fatal(err)
	}
}

// turn waits until the host has ended a turn, and does nothing more. It returns
// what the host has said since before.
func (m *models) turn(before int) (said string) {
	m.t.Helper()
	ends := 0
	m.eventually("the end of the turn", func() bool {
		said = m.out.String()[before:]
		ends = strings.Count(said, `"type":"agent_end"`)
		return ends > 0
	})
	// It must not begin another one by itself.
	id := fmt.Sprintf("state-%d", time.Now().UnixNano())
	m.eventually("the session to rest", func() bool {
		asked := len(m.out.String())
		m.say(`{"id":"` + id + `","type":"get_state"}`)
		m.eventually("the session's state", func() bool { return strings.Contains(m.out.String()[asked:], id) })
		return strings.Contains(m.out.String()[asked:], `"isStreaming":false`) && !strings.Contains(m.out.String()[asked:], `"hasPendingAsyncWork":true`)
	})
	said = m.out.String()[before:]
	if n := strings.Count(said, `"type":"agent_end"`); n != ends {
		m.t.Errorf("%d turns, want %d", n, ends)
	}
	return said
}

// prompt gives the session a turn, and waits for its end.
func (m *models) prompt() (said string) {
	m.t.Helper()
	before := len(m.out.String())
	m.say(`{"id":"p","type":"prompt","message":"hello"}`)
	return m.turn(before)
}

// refused checks that what the session did was one attempt, refused by its
// providers' shadows, and that nothing reached the model.
func (m *models) refused(what string, do func() (said string)) {
	m.t.Helper()
	requests, connections, before := len(m.model.Requests()), m.model.Connections(), m.report()
	said := do()
	if !strings.Contains(said, hostllm.RefusalText) {
		m.t.Errorf("%s: the turn does not say why it ended", what)
	}
	for _, event := range []string{"auto_retry_start", "retry_fallback_applied"} {
		if strings.Contains(said, event) {
			m.t.Errorf("%s: %s", what, event)
		}
	}
	m.eventually("the count", func() bool { return m.report().Refused > before.Refused })
	after := m.report()
	if a, r := after.Attempts-before.Attempts, after.Refused-before.Refused; a != 1 || r != 1 {
		m.t.Errorf("%s: %d attempts, %d refused; want one: %+v", what, a, r, after.Counts)
	}
	for _, c := range after.Counts {
		if c.Layer != hostllm.LayerProviders {
			m.t.Errorf("%s: counted at %+v", what, c)
		}
	}
	if r, c := len(m.model.Requests())-requests, m.model.Connections()-connections; r != 0 || c != 0 {
		m.t.Errorf("%s: %d requests and %d connections reached the model", what, r, c)
	}
	m.t.Logf("%s: 1 attempt, refused; 0 requests at the model", what)
}

// reaches checks that a turn's requests reach the model, below a path.
func (m *models) reaches(what, path string, do func() (said string)) {
	m.t.Helper()
	before := len(m.model.Requests())
	do()
	n := 0
	for _, r := range m.model.Requests()[before:] {
		if strings.HasPrefix(r.URI, path) {
			n++
		}
	}
	if n == 0 {
		m.t.Errorf("%s: nothing reached the model at %s", what, path)
	}
	m.t.Logf("%s: %d requests at the model", what, n)
}

// TestModels: at deny a turn of the real host makes one request, which is refused
// in the host; at allow it reaches the model.
func TestModels(t *testing.T) {
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			m := startModels(t, name, hostllm.Allow)
			m.attach()
			m.reaches("allow", "/v1/", m.prompt)
			m.deny()
			m.refused("deny", m.prompt)
			m.allow()
			m.reaches("allow again", "/v1/", m.prompt)
		})
	}
}

func (m *models) deny() {
	m.t.Helper()
	if err := m.sw.Deny("test"); err != nil {
		m.t.Fatal(err)
	}
	m.inForce(true)
}

func (m *models) allow() {
	m.t.Helper()
	if err := m.sw.Allow(m.t.Context(), "test"); err != nil {
		m.t.Fatal(err)
	}
	m.inForce(false)
}

// TestModelsAlone: a session that starts while the agent is down takes what was
// saved, also for a provider that comes late; what it refused is told afterwards.
func TestModelsAlone(t *testing.T) {
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			m := startModels(t, name, hostllm.Deny, "MOCK_LATE=MODEL/late/v1")
			m.refused("deny, while the agent is down", func() string {
				said := m.prompt()
				m.attach()
				return said
			})
			m.allow()
			m.reaches("allow", "/late/", m.prompt)
		})
	}
}

// TestModelsUnderWay: a request that is under way ends when models are denied, and
// what the host makes of that reaches no model.
func TestModelsUnderWay(t *testing.T) {
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			m := startModels(t, name, hostllm.Allow)
			m.attach()
			m.model.Hold("/v1/")
			before := len(m.out.String())
			m.say(`{"id":"p","type":"prompt","message":"hello"}`)
			m.eventually("the request", func() bool { return len(m.model.Requests()) == 1 })
			m.deny()
			m.eventually("the end of the request", func() bool { return m.model.Cut() == 1 })
			m.turn(before)
			if n := len(m.model.Requests()); n != 1 {
				t.Errorf("%d requests reached the model, want the one before", n)
			}
			t.Logf("after that: %+v", m.report().Counts)
		})
	}
}

// TestModelsHidden: where the extension does not find the host's providers it says
// so, and the layer below refuses.
func TestModelsHidden(t *testing.T) {
	m := startModels(t, "pi", hostllm.Deny, "MOCK_HIDE=1")
	m.connect()
	want := []hostllm.LayerState{{Name: hostllm.LayerFetch, InForce: true}}
	m.eventually("the report", func() bool { return len(m.report().Layers) > 0 })
	if h := m.report(); !slices.Equal(h.Layers, want) || !strings.HasPrefix(h.Residuals[0], "the host's own providers") {
		t.Errorf("reported %+v, want the layers %+v", h, want)
	}
	if said := m.prompt(); !strings.Contains(said, hostllm.RefusalText) {
		t.Error("the turn does not say why it ended")
	}
	m.eventually("the count", func() bool { return m.report().Refused > 0 })
	if h := m.report(); h.Attempts != 1 || h.Counts[0].Layer != hostllm.LayerFetch || m.model.Connections() != 0 {
		t.Errorf("counted %+v, and %d connections at the model; want one attempt at fetch", h.Counts, m.model.Connections())
	}
}

// TestChain: a job of the host ends and wakes the session. At deny that costs no
// request: one attempt is refused, and the turn ends; at allow it reaches the model.
func TestChain(t *testing.T) {
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			t.Run("attached", func(t *testing.T) {
				m := startModels(t, name, hostllm.Allow, "MOCK_WAKE=WORK/woken")
				m.attach()
				m.reaches("woken at allow", "/v1/", m.woken)
				m.deny()
				m.refused("woken at deny", m.woken)
				m.allow()
				m.reaches("woken at allow again", "/v1/", m.woken)
				m.reaches("asked at allow again", "/v1/", m.prompt)
			})
			t.Run("a provider that came late", func(t *testing.T) {
				m := startModels(t, name, hostllm.Deny, "MOCK_WAKE=WORK/woken", "MOCK_LATE=MODEL/late/v1")
				m.attach()
				m.refused("woken at deny", m.woken)
				m.allow()
				m.reaches("woken at allow", "/late/", m.woken)
			})
			t.Run("the agent was down when the session began", func(t *testing.T) {
				m := startModels(t, name, hostllm.Deny, "MOCK_WAKE=WORK/woken")
				m.started()
				m.attach()
				m.refused("woken at deny", m.woken)
				m.refused("woken at deny, after the agent went down", func() string {
					before := m.begin("3")
					m.detach()
					said := m.turn(before)
					m.attach()
					return said
				})
				m.allow()
				m.reaches("woken at allow", "/v1/", m.woken)
			})
			t.Run("a chain of fallbacks", func(t *testing.T) {
				if name != "omp" {
					t.Skip(name, "has none")
				}
				m := startModels(t, name, hostllm.Allow, "MOCK_SPARE=MODEL/spare/v1")
				m.model.Break("/v1/")
				m.attach()
				m.reaches("asked at allow", "/spare/", m.prompt)
				m.deny()
				m.refused("woken at deny", m.woken)
				m.allow()
				m.reaches("woken at allow", "/spare/", m.woken)
			})
		})
	}
}

// started waits until the session has begun.
func (m *models) started() {
	m.t.Helper()
	m.eventually("the session to begin", func() bool {
		m.say(`{"id":"began","type":"get_state"}`)
		return strings.Contains(m.out.String(), `"id":"began"`)
	})
}

// begin starts a job in the host, through the agent, that takes some seconds and
// wakes the session by its end. In omp that is a command that goes to the
// background by itself; pi has no such thing but its extensions can wake it.
func (m *models) begin(seconds string) (before int) {
	m.t.Helper()
	m.client.eventually("the host's tools", func() bool { return strings.Contains(m.client.request("tools/list", `{}`), `"bash"`) })
	before = len(m.out.String())
	if m.name == "pi" {
		m.client.call("bash", map[string]any{"command": "(sleep " + seconds + "; touch " + m.work + "/woken) >/dev/null 2>&1 &"})
		return before
	}
	if got := m.client.call("bash", map[string]any{"command": "sleep " + seconds + "; echo finished"}); !strings.Contains(got, "ackground") {
		m.t.Fatalf("the command did not go to the background: %s", got)
	}
	return before
}

func (m *models) woken() (said string) {
	m.t.Helper()
	return m.turn(m.begin("1"))
}
