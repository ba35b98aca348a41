package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/hostllm"
)

// Options of a Set.
type Options struct {
	Log     zerolog.Logger
	Version string // of this program, for hosts to see
	// Main names the host whose tools keep their names; empty: the attached
	// session that claims it.
	Main  string
	Hosts map[string]Config // by name
	// Note writes into the audit: a changed definition, a host that asks.
	Note func(audit.Record)
	// Changed is told when the tools are others than before.
	Changed func()
	// Reserved tells whether a host token may not call its session so, because
	// the name is another token's. nil: every name is free.
	Reserved func(name, token string) bool
	// Trusted tells whether a host's hints are believed now; nil: as configured.
	Trusted func(host string) bool
	// Withheld tells whether a host may not be started, dialled or taken by a session
	// yet; nil: none is. It is asked by Configure, and when a session dials in.
	Withheld func(host string) bool
	// Models, if set, is the model switch: attached sessions are told of it, and
	// it of what they cover.
	Models *hostllm.Switch
	// MaxFrame is the longest frame kept of a host; 0: DefaultMaxFrame.
	MaxFrame int64
}

var _ bridge.Hosts = (*Set)(nil)

// Set is all hosts: it keeps their connections, and the names of their tools.
type Set struct {
	opts   Options
	ctx    context.Context // ends with the set
	cancel context.CancelCauseFunc
	jobs   sync.WaitGroup // connections and those who keep them

	catalogue atomic.Pointer[catalogue]

	mu       sync.Mutex // guards what follows, and the fields of Host that say so
	started  bool
	closed   bool
	main     string                         // from the configuration
	hosts    map[string]*Host               // by name
	ordinals map[string]int                 // by name: who came first
	owners   map[string]string              // by listed name: the host
	known    map[string]map[string][32]byte // definitions by host and tool
	listing  []listed                       // what is listed now, to tell a change
	changes  []string                       // changed definitions, oldest first
}

// maxChanges bounds how many changed definitions are kept for /status.
const maxChanges = 20

// NewSet makes a set. Nothing is started or dialled before Start.
func NewSet(o Options) (*Set, error) {
	if o.MaxFrame <= 0 {
		o.MaxFrame = DefaultMaxFrame
	}
	s := &Set{
		opts: o, main: o.Main,
		hosts: map[string]*Host{}, ordinals: map[string]int{}, owners: map[string]string{},
		known: map[string]map[string][32]byte{},
	}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if err := s.Configure(o.Main, o.Hosts); err != nil {
		s.cancel(err)
		return nil, err
	}
	return s, nil
}

// Start begins to start and dial the configured hosts.
func (s *Set) Start() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.started = true
	for _, h := range s.hosts {
		s.keep(h)
	}
}

// keep starts the keeper of a configured host that is not attached; s.mu is held.
func (s *Set) keep(h *Host) {
	if s.started && !s.closed && !h.withheld && h.config.Kind() != KindAttached {
		s.jobs.Add(1)
		go h.keep()
	}
}

// Configure takes another configuration: new hosts start, changed ones start
// again, those that are gone end. A host whose entry is as before is left alone.
func (s *Set) Configure(main string, hosts map[string]Config) error {
	for name, c := range hosts {
		if err := CheckName(name); err != nil {
			return fmt.Errorf("hosts: %w", err)
		}
		if err := c.Check(); err != nil {
			return fmt.Errorf("hosts.%s: %w", name, err)
		}
	}
	s.change(func() { s.configure(main, hosts) })
	return nil
}

// errOut is the cause of a host's end when the configuration no longer has it so.
var errOut = errors.New("the configuration has changed")

// configure is Configure with everything checked; s.mu is held.
func (s *Set) configure(main string, hosts map[string]Config) {
	if s.closed {
		return
	}
	s.main = main
	for name, h := range s.hosts {
		if _, still := hosts[name]; h.configured && !still {
			s.end(h, errOut)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(hosts)) {
		c := hosts[name]
		h := s.hosts[name]
		withheld := s.withheld(name)
		if h != nil && h.config.equal(c) && h.withheld == withheld {
			continue
		}
		if h != nil {
			s.end(h, errOut)
		}
		h = s.add(name, c)
		h.configured = true
		if h.withheld = withheld; withheld {
			h.why = "it waits for a person to accept it; nothing was started"
			h.log().Warn().Msg("host waits for a person to accept it")
		}
		s.keep(h)
	}
}

// withheld tells whether a host waits for a person.
func (s *Set) withheld(name string) bool { return s.opts.Withheld != nil && s.opts.Withheld(name) }

// change does something to the set, decides the names anew and tells whether the
// tools have changed by it.
func (s *Set) change(do func()) {
	s.mu.Lock()
	do()
	changed := s.rebuild()
	s.mu.Unlock()
	if changed && s.opts.Changed != nil {
		s.opts.Changed() // not under the lock: it may ask for the sources
	}
}

// add makes a host known; s.mu is held.
func (s *Set) add(name string, c Config) *Host {
	h := &Host{set: s, name: name, config: c, kind: c.Kind(), state: StateDown}
	h.view.Store(&view{})
	h.ctx, h.cancel = context.WithCancelCause(s.ctx)
	if _, ok := s.ordinals[name]; !ok {
		s.ordinals[name] = len(s.ordinals)
	}
	s.hosts[name] = h
	return h
}

// end lets a host go; s.mu is held.
func (s *Set) end(h *Host, why error) {
	h.cancel(why)
	if s.hosts[h.name] == h {
		delete(s.hosts, h.name)
	}
}

var errEnding = errors.New("the agent is ending")

// Close ends every host and waits: children are gone when it returns.
func (s *Set) Close() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.cancel(errEnding)
	s.jobs.Wait()
}

// Sources returns the hosts as sources of tools: Main first, then in the order in
// which they first came.
func (s *Set) Sources() []bridge.Source { return s.catalogue.Load().sources }

// Find returns the host that lists a tool under this name, and the tool.
func (s *Set) Find(name string) (bridge.Source, bridge.Tool, bool) {
	e, ok := s.catalogue.Load().index[name]
	return e.source, e.tool, ok
}

// ordered returns the hosts in the catalogue's order; s.mu is held.
func (s *Set) ordered() []*Host {
	hosts := slices.Collect(maps.Values(s.hosts))
	slices.SortFunc(hosts, func(a, b *Host) int {
		if am, bm := s.isMain(a), s.isMain(b); am != bm {
			if am {
				return -1
			}
			return 1
		}
		return cmp.Compare(s.ordinals[a.name], s.ordinals[b.name])
	})
	return hosts
}

// isMain tells whether a host is Main; s.mu is held.
func (s *Set) isMain(h *Host) bool {
	if s.main != "" {
		return h.name == s.main
	}
	return h.main
}

// update takes a host's new list of tools.
func (s *Set) update(h *Host, tools []Tool, notes []string) {
	var changed []string
	s.change(func() {
		if s.hosts[h.name] != h {
			return // another has taken its place
		}
		h.tools, h.notes = tools, notes
		changed = s.compare(h)
	})
	for _, note := range notes {
		h.log().Warn().Msg(note)
	}
	for _, name := range changed {
		h.log().Warn().Str("tool", name).Msg("a host changed the definition of a tool")
		if s.opts.Note != nil {
			s.opts.Note(audit.Record{Phase: audit.Note, Host: h.name, Tool: name, Outcome: "definition changed"})
		}
	}
}

// compare remembers a host's definitions and returns the names of the tools whose
// definition is another than the last one seen; s.mu is held.
func (s *Set) compare(h *Host) []string {
	known := s.known[h.name]
	if known == nil {
		known = map[string][32]byte{}
		s.known[h.name] = known
	}
	var changed []string
	for i := range h.tools {
		t := &h.tools[i]
		if was, ok := known[t.Name]; ok && was != t.sum {
			changed = append(changed, t.Name)
			s.changes = append(s.changes, fmt.Sprintf("host %s changed the definition of its tool %q at %s", h.name, t.Name, time.Now().Format(time.TimeOnly)))
		}
		known[t.Name] = t.sum
	}
	if n := len(s.changes); n > maxChanges {
		s.changes = slices.Clone(s.changes[n-maxChanges:])
	}
	return changed
}

// Warnings are what a person should know, for /status.
func (s *Set) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var w []string
	for _, h := range s.ordered() {
		for _, n := range slices.Concat(h.notes, h.clashes) {
			w = append(w, "host "+h.name+": "+n)
		}
		if h.state == StateDown && h.why != "" && h.configured {
			w = append(w, "host "+h.name+": "+h.why)
		}
	}
	return append(w, s.changes...)
}

// Status lists the hosts for /status.
func (s *Set) Status() []bridge.HostStatus {
	s.mu.Lock()
	defer s.mu.Unlock()
	list := []bridge.HostStatus{}
	for _, h := range s.ordered() {
		st := bridge.HostStatus{Name: h.name, Kind: h.kind, State: string(h.state), Tools: len(h.tools)}
		if h.conn == nil {
			st.Reason = h.why
		} else if asking := h.conn.Asking(); len(asking) > 0 {
			st.State = string(StateAsking)
			st.Asking = asking
		}
		list = append(list, st)
	}
	return list
}
