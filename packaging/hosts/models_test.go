package hosts

import (
	"context"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
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
	t     *testing.T
	sw    *hostllm.Switch
	model *mockmodel.Model
	out   *lines
	stdin io.WriteCloser
	web   *httptest.Server
	state string
	log   zerolog.Logger
	name  string
}

// startModels starts a host whose model is one that counts. The agent that it
// attaches to does not run before attach.
func startModels(t *testing.T, name string, saved hostllm.Mode, env ...string) *models {
	t.Helper()
	p := programs[name]
	cache := install(t, p)
	m := &models{t: t, model: mockmodel.Start(), out: &lines{}, state: t.TempDir(), log: zerolog.New(zerolog.NewTestWriter(t)), name: name}
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
	mock, err := filepath.Abs("testdata/mockmodel.ts")
	if err != nil {
		t.Fatal(err)
	}
	args := append(p.command(cache), "--mode", "rpc", "--no-session", "-e", mock, "--model", "mock/m")
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "HOME="+home, "PI_OFFLINE=1", "PI_CODING_AGENT_DIR=", "MOCK_BASE="+m.model.URL+"/v1",
		"PATH="+filepath.Join(cache, "node_modules/.bin")+":"+os.Getenv("PATH"))
	for _, v := range env {
		cmd.Env = append(cmd.Env, strings.ReplaceAll(v, "MODEL", m.model.URL))
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

// attach starts the agent, and waits for the session.
func (m *models) attach() {
	m.t.Helper()
	store, err := token.Open(m.state)
	if err != nil {
		m.t.Fatal(err)
	}
	set, err := host.NewSet(host.Options{Log: m.log, Version: "test", Models: m.sw})
	if err != nil {
		m.t.Fatal(err)
	}
	server := bridge.New(bridge.Options{Log: m.log, Version: "test", Hosts: set, Gate: &openGate{}, Audit: &ledger{}, Tokens: store})
	set.Start()
	m.web = httptest.NewServer(server.Handler())
	m.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		server.Close(ctx)
		set.Close()
		m.web.Close()
	})
	text := `{"v":1,"url":"ws` + strings.TrimPrefix(m.web.URL, "http") + `/mcp"}`
	if err := os.WriteFile(filepath.Join(m.state, "endpoint.json"), []byte(text), 0o600); err != nil {
		m.t.Fatal(err)
	}
	st, _ := m.sw.Watch()
	m.inForce(st.Mode == hostllm.Deny)
}

func (m *models) eventually(what string, ok func() bool) {
	m.t.Helper()
	(&rig{t: m.t}).eventually(what, ok)
}

// inForce waits until the session says that it refuses, or no longer does.
func (m *models) inForce(want bool) {
	m.t.Helper()
	m.eventually(fmt.Sprintf("in force: %v", want), func() bool {
		h := m.report()
		return len(h.Layers) > 0 && h.Layers[0].InForce == want
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

// prompt gives the session a turn, and waits for its end.
func (m *models) prompt() (said string) {
	m.t.Helper()
	before := len(m.out.String())
	if _, err := io.WriteString(m.stdin, `{"id":"p","type":"prompt","message":"hello"}`+"\n"); err != nil {
		m.t.Fatal(err)
	}
	m.eventually("the end of the turn", func() bool {
		said = m.out.String()[before:]
		return strings.Contains(said, `"type":"agent_end"`)
	})
	return said
}

// TestModels: at deny a turn of the real host makes one request, which is refused
// in the host; at allow it reaches the model.
func TestModels(t *testing.T) {
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			m := startModels(t, name, hostllm.Allow)
			m.attach()
			m.prompt()
			reached := len(m.model.Requests())
			if reached == 0 {
				t.Fatal("at allow nothing reached the model")
			}
			if err := m.sw.Deny("test"); err != nil {
				t.Fatal(err)
			}
			m.inForce(true)
			connections := m.model.Connections()
			if said := m.prompt(); !strings.Contains(said, hostllm.RefusalText) {
				t.Error("the turn does not say why it ended")
			}
			m.eventually("the count", func() bool { return m.report().Refused > 0 })
			if h := m.report(); h.Attempts != 1 || h.Refused != 1 {
				t.Errorf("%d attempts, %d refused; want one", h.Attempts, h.Refused)
			}
			if n := len(m.model.Requests()) - reached; n != 0 || m.model.Connections() != connections {
				t.Errorf("%d requests reached the model", n)
			}
			if err := m.sw.Allow(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			m.inForce(false)
			m.prompt()
			if len(m.model.Requests()) == reached {
				t.Error("after allow nothing reached the model")
			}
		})
	}
}

// TestModelsAlone: a session that starts while the agent is down takes what was
// saved, also for a provider that comes late; what it refused is told afterwards.
func TestModelsAlone(t *testing.T) {
	for name := range programs {
		t.Run(name, func(t *testing.T) {
			m := startModels(t, name, hostllm.Deny, "MOCK_LATE=MODEL/late/v1")
			if said := m.prompt(); !strings.Contains(said, hostllm.RefusalText) {
				t.Error("the turn does not say why it ended")
			}
			if n := m.model.Connections(); n != 0 {
				t.Errorf("%d connections reached the model", n)
			}
			m.attach()
			m.eventually("the count", func() bool { return m.report().Refused > 0 })
			if h := m.report(); h.Attempts != 1 {
				t.Errorf("%d attempts, want one", h.Attempts)
			}
			if err := m.sw.Allow(t.Context(), "test"); err != nil {
				t.Fatal(err)
			}
			m.inForce(false)
			m.prompt()
			if len(m.model.Requests()) == 0 {
				t.Error("after allow nothing reached the model")
			}
		})
	}
}
