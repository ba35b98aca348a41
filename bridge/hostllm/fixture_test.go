package hostllm

import (
	"context"
	"fmt"
	"net"
	"net/url"
	"slices"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/packaging/mockmodel"
)

// notes keeps what would go into the audit.
type notes struct {
	mu   sync.Mutex // guards list
	list []audit.Record
}

func (n *notes) Append(r ...audit.Record) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = append(n.list, r...)
}

func (n *notes) all() []audit.Record {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.list)
}

// sitter is a surface of the real gate at which a person sits who gives one
// answer to everything.
type sitter struct {
	answer gate.Answer
	away   bool
	seen   chan *gate.Pending
}

func (s *sitter) Name() string                   { return "desk" }
func (s *sitter) Ready() bool                    { return !s.away }
func (s *sitter) Withdraw(*gate.Pending, string) {}
func (s *sitter) Show(p *gate.Pending) error {
	s.seen <- p
	a := s.answer
	a.By = "desk"
	return p.Answer(a)
}

// yes is a gate whose person allows.
func yes() *gate.Gate { return person(gate.Answer{Scope: gate.Once}) }

func person(a gate.Answer) *gate.Gate {
	return gate.New(gate.Options{Surfaces: []gate.Surface{&sitter{answer: a, seen: make(chan *gate.Pending, 100)}}})
}

func openSwitch(t testing.TB, o Options) *Switch {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	if o.Configured == "" {
		o.Configured = Allow
	}
	if o.Audit == nil {
		o.Audit = &notes{}
	}
	o.Log = zerolog.Nop()
	s, err := Open(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// rig is a served gateway before a model host that counts.
type rig struct {
	t     testing.TB
	sw    *Switch
	gw    *Gateway
	model *mockmodel.Model
	notes *notes
	host  Access
}

// localModel is a name that leads to this machine and that no model has.
const localModel = "localhost"

func newRig(t testing.TB, mode Mode) *rig {
	t.Helper()
	r := &rig{t: t, model: mockmodel.Start(), notes: &notes{}}
	t.Cleanup(r.model.Close)
	dir := t.TempDir()
	r.sw = openSwitch(t, Options{Dir: dir, Configured: mode, Person: yes(), Audit: r.notes, ModelHosts: []string{localModel}})
	providers := map[string]string{"custom": r.model.URL + "/base"}
	for name := range builtinProviders {
		providers[name] = r.model.URL
	}
	r.serve(dir, providers)
	return r
}

// serve serves the gateway until the test ends.
func (r *rig) serve(dir string, providers map[string]string) {
	r.t.Helper()
	gw, err := OpenGateway(GatewayOptions{Dir: dir, Listen: "127.0.0.1:0", Providers: providers, Switch: r.sw, Log: zerolog.Nop()})
	if err != nil {
		r.t.Fatal(err)
	}
	r.gw = gw
	if r.host, err = AccessFor(dir, "codex"); err != nil {
		r.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error, 1)
	go func() { served <- gw.Serve(ctx) }()
	r.t.Cleanup(func() {
		cancel()
		if err := <-served; err != nil {
			r.t.Errorf("serving: %v", err)
		}
	})
}

// base is the address of a provider at the gateway.
func (r *rig) base(provider string) string { return r.gw.URL() + "/" + r.host.secret + "/" + provider }

// proxy is the proxy's address with credentials.
func (r *rig) proxy() *url.URL {
	return &url.URL{Scheme: "http", Host: r.gw.Addr().String(), User: url.UserPassword(r.host.Host, r.host.password)}
}

// modelPort is the port of the model host, for a destination by name.
func (r *rig) modelAt(name string) string {
	_, port, err := net.SplitHostPort(r.model.Addr)
	if err != nil {
		r.t.Fatal(err)
	}
	return net.JoinHostPort(name, port)
}

// count is what the switch has counted of a layer and provider.
func (r *rig) count(layer Layer, provider string) string {
	for _, h := range r.sw.Report().Hosts {
		for _, c := range h.Counts {
			if h.ID == "codex" && c.Layer == layer && c.Provider == provider {
				return fmt.Sprintf("%d attempts, %d refused, %d left", c.Attempts, c.Refused, c.Left)
			}
		}
	}
	return "nothing"
}
