package host

import (
	"encoding/json"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/hostllm"
)

// consent is a person who allows.
type consent struct{}

func (consent) Name() string                   { return "desk" }
func (consent) Ready() bool                    { return true }
func (consent) Withdraw(*gate.Pending, string) {}
func (consent) Show(p *gate.Pending) error {
	return p.Answer(gate.Answer{Scope: gate.Once, By: "desk"})
}

type unheard struct{}

func (unheard) Append(...audit.Record) {}

func newModels(t *testing.T, mode hostllm.Mode) *hostllm.Switch {
	t.Helper()
	s, err := hostllm.Open(hostllm.Options{
		Dir: t.TempDir(), Configured: mode, Audit: unheard{}, Log: zerolog.Nop(),
		Person: gate.New(gate.Options{Surfaces: []gate.Surface{consent{}}}),
	})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func reportOf(s *hostllm.Switch, id string) hostllm.HostReport {
	for _, h := range s.Report().Hosts {
		if h.ID == id {
			return h
		}
	}
	return hostllm.HostReport{}
}

// TestFollowsModels: a session hears the mode when it attaches and at every
// change, and what it says is in the report.
func TestFollowsModels(t *testing.T) {
	models := newModels(t, hostllm.Deny)
	f := newFixture(t, Options{Models: models})
	var mu sync.Mutex
	var heard []string
	s := &hosttest.Server{HostLLM: func(params json.RawMessage) string {
		mu.Lock()
		defer mu.Unlock()
		heard = append(heard, string(params))
		var p struct{ Mode string }
		_ = json.Unmarshal(params, &p) // ours
		return `{"mode":"` + p.Mode + `","covers":["fetch"],"residuals":["node:http2"]}`
	}}
	s.SetTools(`{"name":"read","inputSchema":{"type":"object"}}`)
	session := f.dial(s, "omp", `{"v":1,"session":"a"}`)
	inForce := func(want bool) func() bool {
		return func() bool {
			h := reportOf(models, "omp")
			return len(h.Layers) == 1 && h.Layers[0].Name == hostllm.LayerFetch && h.Layers[0].InForce == want
		}
	}
	eventually(t, "deny in force", inForce(true))
	if h := reportOf(models, "omp"); len(h.Residuals) != 1 || h.Residuals[0] != "node:http2" {
		t.Errorf("residuals %q", h.Residuals)
	}
	if err := models.Allow(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "allow in force", inForce(false))
	if err := models.Deny("test"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "deny in force again", inForce(true))
	for _, frame := range []string{
		`{"layer":"fetch","provider":"api.openai.com","destination":"api.openai.com:443"}`,
		`{"layer":"gateway","provider":"openai"}`, // not a session's to say
		`{"layer":"fetch","provider":"` + strings.Repeat("x", 2000) + `"}`,
		`[]`,
	} {
		if err := session.Send(`{"jsonrpc":"2.0","method":"drawbridge/hostLlmRefused","params":` + frame + `}`); err != nil {
			t.Fatal(err)
		}
	}
	eventually(t, "the refusal", func() bool { return reportOf(models, "omp").Refused == 1 })
	session.WS.Close()
	eventually(t, "the end", func() bool { return len(reportOf(models, "omp").Layers) == 0 })
	if n := reportOf(models, "omp").Attempts; n != 1 {
		t.Errorf("%d attempts", n)
	}
	mu.Lock()
	defer mu.Unlock()
	if got := strings.Join(heard, " "); got != `{"mode":"deny"} {"mode":"allow"} {"mode":"deny"}` {
		t.Errorf("it heard %s", got)
	}
}

// TestDoesNotFollowModels: whoever does not follow, or says what cannot be
// understood, covers nothing and is warned of.
func TestDoesNotFollowModels(t *testing.T) {
	for name, answer := range map[string]func(json.RawMessage) string{
		"does not know it": nil,
		"no object":        func(json.RawMessage) string { return `[]` },
		"no mode":          func(json.RawMessage) string { return `{"covers":["fetch"]}` },
		"at allow":         func(json.RawMessage) string { return `{"mode":"allow","covers":["fetch"]}` },
		"too much":         func(json.RawMessage) string { return `{"mode":"deny","covers":["` + strings.Repeat("x", 2000) + `"]}` },
	} {
		t.Run(name, func(t *testing.T) {
			models := newModels(t, hostllm.Deny)
			f := newFixture(t, Options{Models: models})
			s := &hosttest.Server{HostLLM: answer}
			s.SetTools(`{"name":"read","inputSchema":{"type":"object"}}`)
			f.dial(s, "omp", `{"v":1}`)
			f.waitNames("omp/omp_read")
			eventually(t, "the warning", func() bool {
				return strings.Contains(strings.Join(models.Warnings(), "\n"), "can call theirs: omp")
			})
			for _, l := range reportOf(models, "omp").Layers {
				if l.InForce {
					t.Errorf("layer %s is said to be in force", l.Name)
				}
			}
		})
	}
}
