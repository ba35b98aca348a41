package hostllm

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"drawbridge/bridge/audit"
)

// Layer names a place where model requests are refused.
type Layer string

// The layers.
const (
	LayerGateway   Layer = "gateway"   // requests to the base URLs that we gave
	LayerProxy     Layer = "proxy"     // destinations, at our proxy
	LayerProviders Layer = "providers" // the host's own providers, by our extension in it
	LayerFetch     Layer = "fetch"     // destinations, by our extension in the host
)

// Refusal is one model request that did not leave.
type Refusal struct {
	Host        string // the host's name
	Layer       Layer
	Provider    string // or the pattern that the destination fits
	Destination string // host and port; nothing else of the request
}

func (r Refusal) String() string {
	return fmt.Sprintf("host %s, %s, to %s", r.Host, r.Layer, cmp.Or(r.Destination, r.Provider))
}

// Count is what became of the requests of one host to one provider in one layer.
type Count struct {
	Layer    Layer  `json:"layer"`
	Provider string `json:"provider"`
	Attempts uint64 `json:"attempts"`
	Refused  uint64 `json:"refused"`
	Left     uint64 `json:"left"`
}

// LayerState is one layer of a host.
type LayerState struct {
	Name    Layer `json:"name"`
	InForce bool  `json:"in_force"` // it refuses right now
}

// HostReport is what is known of one host.
type HostReport struct {
	ID        string       `json:"id"`
	Layers    []LayerState `json:"layers"`
	Attempts  uint64       `json:"attempts"`
	Refused   uint64       `json:"refused"`
	Left      uint64       `json:"left"`
	Residuals []string     `json:"residuals"`
	Counts    []Count      `json:"counts"`
}

// Report is what GET /host-llm answers.
type Report struct {
	Asked Mode         `json:"asked"`
	Since time.Time    `json:"since"`
	By    string       `json:"by"`
	Hosts []HostReport `json:"hosts"`
}

// Coverage is what an attached host says that its extension does.
type Coverage struct {
	Mode      Mode     `json:"mode"`   // in force in the host
	Covers    []string `json:"covers"` // layers
	Residuals []string `json:"residuals"`
}

// outside are the ways around the gateway and the proxy.
var outside = []string{
	"the gateway sees only what the host sends to the base URLs that it was given",
	"the proxy sees only what honours HTTPS_PROXY and HTTP_PROXY, and knows model hosts by name: a destination given as an address passes",
	"a program that ignores both, a local model, and child processes with settings of their own are not covered",
}

// ledger holds what is known by host. Switch.book guards it.
type ledger map[string]*account

type account struct {
	launched bool      // by us, with base URLs and proxy
	attached *Attached // nil: it is not
	coverage *Coverage // what its extension said; nil: nothing yet
	counts   map[countKey]*Count
}

type countKey struct {
	layer    Layer
	provider string
}

// maxCounts bounds what one host can make us count apart.
const maxCounts = 256

func (l ledger) account(host string) *account {
	a := l[host]
	if a == nil {
		a = &account{counts: map[countKey]*Count{}}
		l[host] = a
	}
	return a
}

func (a *account) count(layer Layer, provider string) *Count {
	// It came our way, so it was told to, maybe before we were started again.
	a.launched = a.launched || layer == LayerGateway || layer == LayerProxy
	k := countKey{layer, provider}
	c := a.counts[k]
	if c == nil && len(a.counts) >= maxCounts {
		k.provider = "others"
		provider, c = k.provider, a.counts[k]
	}
	if c == nil {
		c = &Count{Layer: layer, Provider: provider}
		a.counts[k] = c
	}
	return c
}

// Launched tells that a host was given base URLs and proxy.
func (s *Switch) Launched(host string) {
	s.book.Lock()
	defer s.book.Unlock()
	s.ledger.account(host).launched = true
	s.bump()
}

// Attached is a host's session while it is attached.
type Attached struct {
	s    *Switch
	host string
}

// Attach tells that a host is attached. A newer session of a name takes the
// place of the older one.
func (s *Switch) Attach(host string) *Attached {
	a := &Attached{s, host}
	s.book.Lock()
	defer s.book.Unlock()
	acc := s.ledger.account(host)
	acc.attached, acc.coverage = a, nil
	s.bump()
	return a
}

// Covers tells what the session says that its extension covers; nil: nothing.
func (a *Attached) Covers(c *Coverage) { a.change(func(acc *account) { acc.coverage = c }) }

// Gone tells that the session has ended.
func (a *Attached) Gone() { a.change(func(acc *account) { acc.attached, acc.coverage = nil, nil }) }

func (a *Attached) change(what func(*account)) {
	a.s.book.Lock()
	defer a.s.book.Unlock()
	if acc := a.s.ledger.account(a.host); acc.attached == a {
		what(acc)
		a.s.bump()
	}
}

// Refuse counts and records one request that was refused elsewhere, in a host.
func (s *Switch) Refuse(r Refusal) {
	s.attempt(r)
	s.refused(r)
}

// refused counts and records the refusal of an attempt.
func (s *Switch) refused(r Refusal) {
	s.book.Lock()
	s.ledger.account(r.Host).count(r.Layer, r.Provider).Refused++
	first := s.first == nil
	if first {
		s.first = &r
		s.bump()
	}
	s.book.Unlock()
	s.opts.Audit.Append(audit.Record{Phase: audit.Note, Host: r.Host, Tool: auditTool, Outcome: "refused a model request: " + r.String()})
	if first {
		s.opts.Log.Warn().Str("host", r.Host).Str("layer", string(r.Layer)).Str("to", cmp.Or(r.Destination, r.Provider)).
			Msg("refused a model request (told at the first of each denial)")
	}
}

// attempt counts a request; left counts it once more when it has left this
// machine.
func (s *Switch) attempt(r Refusal) (left func()) {
	s.book.Lock()
	defer s.book.Unlock()
	c := s.ledger.account(r.Host).count(r.Layer, r.Provider)
	c.Attempts++
	return func() {
		s.book.Lock()
		defer s.book.Unlock()
		c.Left++
	}
}

// Report tells what is asked, and what is in force.
func (s *Switch) Report() Report {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Lock()
	defer s.book.Unlock()
	r := Report{Asked: s.state.Mode, Since: s.state.Since, By: s.state.By, Hosts: []HostReport{}}
	denied := s.state.Mode != Allow
	for _, id := range slices.Sorted(maps.Keys(s.ledger)) {
		r.Hosts = append(r.Hosts, s.ledger[id].report(id, denied))
	}
	return r
}

func (a *account) report(id string, denied bool) HostReport {
	h := HostReport{ID: id, Layers: []LayerState{}, Residuals: []string{}, Counts: []Count{}}
	for _, c := range a.counts {
		h.Counts = append(h.Counts, *c)
		h.Attempts += c.Attempts
		h.Refused += c.Refused
		h.Left += c.Left
	}
	slices.SortFunc(h.Counts, func(x, y Count) int {
		return cmp.Or(cmp.Compare(x.Layer, y.Layer), cmp.Compare(x.Provider, y.Provider))
	})
	if a.launched {
		h.Layers = append(h.Layers, LayerState{LayerGateway, denied}, LayerState{LayerProxy, denied})
		h.Residuals = append(h.Residuals, outside...)
	}
	switch {
	case a.coverage != nil:
		for _, name := range a.coverage.Covers {
			h.Layers = append(h.Layers, LayerState{Layer(name), a.coverage.Mode == Deny})
		}
		h.Residuals = append(h.Residuals, a.coverage.Residuals...)
	case a.attached != nil && !a.launched:
		h.Residuals = append(h.Residuals, "no layer covers this host: it calls its model as it likes; install the extension, or start it with drawbridge host run")
	}
	return h
}

// HostInForce is one host, and whether a layer refuses its model requests now.
type HostInForce struct {
	ID      string
	InForce bool
}

// InForce lists the hosts that are attached, or that were given base URLs and
// proxy, by name. It is what a person is shown beside what was asked.
func (s *Switch) InForce() (State, []HostInForce) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Lock()
	defer s.book.Unlock()
	var hosts []HostInForce
	for _, id := range slices.Sorted(maps.Keys(s.ledger)) {
		if a := s.ledger[id]; a.attached != nil || a.launched {
			hosts = append(hosts, HostInForce{id, a.refuses(s.state.Mode != Allow)})
		}
	}
	return s.state, hosts
}

// refuses tells whether any layer of the host refuses.
func (a *account) refuses(denied bool) bool {
	return a.launched && denied || a.coverage != nil && len(a.coverage.Covers) > 0 && a.coverage.Mode == Deny
}

// uncovered warns of the attached hosts that no layer covers.
func (l ledger) uncovered() []string {
	var names []string
	for id, a := range l {
		if a.attached != nil && !a.refuses(true) {
			names = append(names, id)
		}
	}
	if len(names) == 0 {
		return nil
	}
	slices.Sort(names)
	return []string{"models are off, but no layer covers these attached hosts, which can call theirs: " + strings.Join(names, ", ")}
}
