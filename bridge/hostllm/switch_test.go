package hostllm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
)

func TestAtStart(t *testing.T) {
	const allowed, denied = `{"v":1,"mode":"allow","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`, `{"v":1,"mode":"deny","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`
	for _, c := range []struct {
		name       string
		saved      string // empty: no file
		configured Mode
		want       Mode
		by         string
	}{
		{"first start", "", Allow, Allow, "configuration"},
		{"first start at deny", "", Deny, Deny, "configuration"},
		{"both allow", allowed, Allow, Allow, "b"},
		{"saved deny", denied, Allow, Deny, "b"},
		{"configured deny", allowed, Deny, Deny, "configuration"},
		{"both deny", denied, Deny, Deny, "b"},
		{"empty file", " ", Allow, Deny, "unreadable state"},
		{"no JSON", "allow", Allow, Deny, "unreadable state"},
		{"half a file", allowed[:20], Allow, Deny, "unreadable state"},
		{"two states", allowed + denied, Allow, Deny, "unreadable state"},
		{"another mode", strings.Replace(allowed, "allow", "Allow", 1), Allow, Deny, "unreadable state"},
		{"no mode", `{"v":1}`, Allow, Deny, "unreadable state"},
		{"another version", strings.Replace(allowed, "1", "2", 1), Allow, Deny, "unreadable state"},
		{"a newer version", `{"v":2,"mode":"allow","until":"x"}`, Allow, Deny, "unreadable state"},
		{"a member twice", `{"v":1,"mode":"deny","mode":"allow","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`, Allow, Deny, "unreadable state"},
		{"a member in another case besides", `{"v":1,"mode":"deny","Mode":"allow","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`, Allow, Deny, "unreadable state"},
		{"a member in another case", `{"v":1,"MODE":"allow","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`, Allow, Deny, "unreadable state"},
		{"an escaped member twice", `{"v":1,"mode":"deny","\u006dode":"allow","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`, Allow, Deny, "unreadable state"},
		{"unknown field", `{"v":1,"mode":"allow","more":1}`, Allow, Deny, "unreadable state"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if c.saved != "" {
				if err := os.WriteFile(filepath.Join(dir, StateFile), []byte(c.saved), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			s := openSwitch(t, Options{Dir: dir, Configured: c.configured})
			st, _ := s.Watch()
			if st.Mode != c.want || st.By != c.by || s.Denied() != (c.want == Deny) || st.Since.IsZero() {
				t.Errorf("%+v, denied %v; want %s by %s", st, s.Denied(), c.want, c.by)
			}
			// What holds is in the file, so that hosts read the same.
			if got, err := (stateFile{dir: dir}).load(); err != nil || got != st {
				t.Errorf("saved is %+v, %v; want %+v", got, err, st)
			}
		})
	}
}

// TestNewerState holds that what a newer version saved is not lost.
func TestNewerState(t *testing.T) {
	const saved = `{"v":3,"mode":"allow","until":"tomorrow"}`
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, StateFile), []byte(saved), 0o600); err != nil {
		t.Fatal(err)
	}
	for range 2 { // a second start has nothing to keep
		if s := openSwitch(t, Options{Dir: dir, Configured: Allow}); !s.Denied() {
			t.Error("models are allowed by what cannot be read")
		}
		if b, err := os.ReadFile(filepath.Join(dir, StateFile+".v3")); err != nil || string(b) != saved {
			t.Errorf("kept: %s, %v", b, err)
		}
	}
	// Where it cannot be kept it is not replaced.
	dir = t.TempDir()
	if err := errors.Join(os.WriteFile(filepath.Join(dir, StateFile), []byte(saved), 0o600), os.Mkdir(filepath.Join(dir, StateFile+".v3"), 0o700)); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(Options{Dir: dir, Configured: Allow, Audit: &notes{}}); err == nil || !strings.Contains(err.Error(), "newer Drawbridge") {
		t.Errorf("opened: %v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, StateFile)); err != nil || string(b) != saved {
		t.Errorf("replaced: %s, %v", b, err)
	}
}

// TestStateFileOfOthers: a file that somebody else may have written says nothing.
func TestStateFileOfOthers(t *testing.T) {
	const allowed = `{"v":1,"mode":"allow","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":[]}`
	for name, put := range map[string]func(t *testing.T, path string) error{
		"a link": func(t *testing.T, path string) error {
			other := filepath.Join(t.TempDir(), "x")
			return errors.Join(os.WriteFile(other, []byte(allowed), 0o600), os.Symlink(other, path))
		},
		"others may write": func(_ *testing.T, path string) error {
			return errors.Join(os.WriteFile(path, []byte(allowed), 0o600), os.Chmod(path, 0o666))
		},
		"a directory": func(_ *testing.T, path string) error { return os.Mkdir(path, 0o700) },
		"too large":   func(_ *testing.T, path string) error { return os.WriteFile(path, make([]byte, maxStateFile+1), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			if err := put(t, filepath.Join(dir, StateFile)); err != nil {
				t.Fatal(err)
			}
			if s := openSwitch(t, Options{Dir: dir}); !s.Denied() {
				t.Error("it is at allow")
			}
		})
	}
}

func TestDenyAndAllow(t *testing.T) {
	dir := t.TempDir()
	n := &notes{}
	s := openSwitch(t, Options{Dir: dir, Person: yes(), Audit: n})
	leave := s.permission()
	_, changed := s.Watch()
	if err := s.Deny("client a"); err != nil {
		t.Fatal(err)
	}
	if !leave.denied() || !s.Denied() {
		t.Error("what may leave was not ended")
	}
	select {
	case <-changed:
	default:
		t.Error("nobody was told")
	}
	if got, err := (stateFile{dir: dir}).load(); err != nil || got.Mode != Deny || got.By != "client a" {
		t.Errorf("saved is %+v, %v", got, err)
	}
	st, changed := s.Watch()
	if err := (stateFile{dir: dir}).save(State{Mode: Allow}, nil); err != nil { // by somebody else
		t.Fatal(err)
	}
	if err := s.Deny("client b"); err != nil {
		t.Fatal(err)
	}
	if got, err := (stateFile{dir: dir}).load(); err != nil || got != st {
		t.Errorf("saved is %+v, %v; want %+v", got, err, st)
	}
	if again, _ := s.Watch(); again != st {
		t.Errorf("a second deny made %+v of %+v", again, st)
	}
	select {
	case <-changed:
		t.Error("a second deny told somebody")
	default:
	}
	if err := s.Allow(t.Context(), "client a"); err != nil {
		t.Fatal(err)
	}
	if s.Denied() || s.permission() == leave {
		t.Error("it is still at deny")
	}
	if got, err := (stateFile{dir: dir}).load(); err != nil || got.Mode != Allow || got.By != "client a, allowed by the person at the desk" {
		t.Errorf("saved is %+v, %v", got, err)
	}
	var told []string
	for _, r := range n.all() {
		told = append(told, r.Outcome)
	}
	if got := strings.Join(told, "; "); got != "deny, by client a; allow, by client a, allowed by the person at the desk" {
		t.Errorf("the audit says %s", got)
	}
}

func TestAllowNeedsAPerson(t *testing.T) {
	for _, c := range []struct {
		name   string
		person Person
		want   gate.Outcome
	}{
		{"no person is wired", nil, gate.Nobody},
		{"no surface", gate.New(gate.Options{Allow: []gate.Glob{everything(t)}}), gate.Nobody},
		{"away", gate.New(gate.Options{Surfaces: []gate.Surface{&sitter{away: true}}}), gate.Nobody},
		{"no", person(gate.Answer{}), gate.Denied},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			s := openSwitch(t, Options{Dir: dir, Configured: Deny, Person: c.person})
			var refused *RefusedError
			if err := s.Allow(t.Context(), "a"); !errors.As(err, &refused) || refused.Verdict.Outcome != c.want {
				t.Errorf("%v, want outcome %d", err, c.want)
			}
			if st, err := (stateFile{dir: dir}).load(); !s.Denied() || err != nil || st.Mode != Deny {
				t.Errorf("it is at %v, saved %+v, %v", s.Denied(), st, err)
			}
		})
	}
}

func everything(t *testing.T) gate.Glob {
	g, err := gate.ParseGlob("*")
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// TestHungUp: who asks and goes away gets nothing.
func TestHungUp(t *testing.T) {
	seen := make(chan *gate.Pending, 1)
	g := gate.New(gate.Options{Surfaces: []gate.Surface{silent{seen}}})
	s := openSwitch(t, Options{Configured: Deny, Person: g})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Allow(ctx, "a") }()
	p := <-seen
	cancel()
	var refused *RefusedError
	if err := <-done; !errors.As(err, &refused) || refused.Verdict.Outcome != gate.Gone {
		t.Errorf("%v", err)
	}
	if err := p.Answer(gate.Answer{Scope: gate.Once, By: "desk"}); err == nil {
		t.Error("a late yes was taken")
	}
	if !s.Denied() {
		t.Error("it is at allow")
	}
}

// silent is a surface that shows and never answers.
type silent struct{ seen chan *gate.Pending }

func (silent) Name() string                   { return "desk" }
func (silent) Ready() bool                    { return true }
func (silent) Withdraw(*gate.Pending, string) {}
func (s silent) Show(p *gate.Pending) error   { s.seen <- p; return nil }

// TestUnsaved: where the state cannot be written, deny holds and allow does not.
func TestUnsaved(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	s := openSwitch(t, Options{Dir: dir, Person: yes()})
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := s.Deny("a"); err == nil || !s.Denied() {
		t.Errorf("deny: %v, denied %v", err, s.Denied())
	}
	if w := s.Warnings(); len(w) != 1 || !strings.Contains(w[0], "could not be saved") {
		t.Errorf("warnings: %q", w)
	}
	if err := s.Allow(t.Context(), "a"); err == nil || !s.Denied() {
		t.Errorf("allow: %v, denied %v", err, s.Denied())
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	// Asked again, it is saved.
	if err := s.Deny("a"); err != nil {
		t.Fatal(err)
	}
	if st, err := (stateFile{dir: dir}).load(); err != nil || st.Mode != Deny {
		t.Errorf("saved is %+v, %v", st, err)
	}
}

func TestReport(t *testing.T) {
	s := openSwitch(t, Options{Configured: Deny})
	s.Launched("codex")
	s.Attach("omp").Covers(&Coverage{Mode: Deny, Covers: []string{"providers", "fetch"}, Residuals: []string{"node:http2"}})
	s.Attach("bare")
	s.Attach("late").Covers(&Coverage{Mode: Allow, Covers: []string{"providers"}})
	s.Attach("gone").Gone()
	old := s.Attach("again")
	s.Attach("again").Covers(&Coverage{Mode: Deny, Covers: []string{"fetch"}})
	old.Covers(nil) // of a session whose place was taken
	old.Gone()
	s.Refuse(Refusal{Host: "omp", Layer: LayerProviders, Provider: "anthropic"})
	s.Refuse(Refusal{Host: "omp", Layer: LayerFetch, Provider: "api.openai.com", Destination: "api.openai.com:443"})
	s.attempt(Refusal{Host: "codex", Layer: LayerGateway, Provider: "openai"})()

	b, err := json.Marshal(s.Report())
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(b, &got); err != nil {
		t.Fatal(err)
	}
	if got["asked"] != "deny" || got["by"] != "configuration" || got["since"] == nil {
		t.Errorf("%s", b)
	}
	hosts := map[string]HostReport{}
	for _, h := range s.Report().Hosts {
		hosts[h.ID] = h
	}
	for id, want := range map[string]struct {
		layers                  int
		inForce                 bool
		attempts, refused, left uint64
		residual                string
	}{
		"codex": {2, true, 1, 0, 1, "HTTPS_PROXY"},
		"omp":   {2, true, 2, 2, 0, "node:http2"},
		"bare":  {0, false, 0, 0, 0, "no layer covers this host"},
		"late":  {1, false, 0, 0, 0, ""},
		"again": {1, true, 0, 0, 0, ""},
		"gone":  {0, false, 0, 0, 0, ""},
	} {
		h := hosts[id]
		if len(h.Layers) != want.layers || h.Attempts != want.attempts || h.Refused != want.refused || h.Left != want.left {
			t.Errorf("%s: %+v", id, h)
		}
		for _, l := range h.Layers {
			if l.InForce != want.inForce {
				t.Errorf("%s: layer %s in force %v", id, l.Name, l.InForce)
			}
		}
		if !strings.Contains(strings.Join(h.Residuals, "\n"), want.residual) {
			t.Errorf("%s: residuals %q", id, h.Residuals)
		}
	}
	if first := s.FirstRefusal(); first == nil || first.Provider != "anthropic" || s.FirstRefusal() != first {
		t.Errorf("the first refusal is %+v", first)
	}
	state, inForce := s.InForce()
	wantForce := []HostInForce{{"again", true}, {"bare", false}, {"codex", true}, {"late", false}, {"omp", true}}
	if state.Mode != Deny || !slices.Equal(inForce, wantForce) {
		t.Errorf("%s in force at %v, want %v", state.Mode, inForce, wantForce)
	}
	w := strings.Join(s.Warnings(), "\n")
	if !strings.Contains(w, "host omp, providers, to anthropic") || !strings.Contains(w, "can call theirs: bare, late") {
		t.Errorf("warnings: %s", w)
	}
}

// TestManyProviders: a host that makes up names does not grow what is counted.
func TestManyProviders(t *testing.T) {
	s := openSwitch(t, Options{Configured: Deny})
	for i := range 3 * maxCounts {
		s.Refuse(Refusal{Host: "omp", Layer: LayerFetch, Provider: fmt.Sprint(i)})
	}
	if h := s.Report().Hosts[0]; h.Refused != 3*maxCounts || len(h.Counts) > maxCounts+1 {
		t.Errorf("%d refused, %d counts", h.Refused, len(h.Counts))
	}
}

func TestPatternsAreSaved(t *testing.T) {
	dir := t.TempDir()
	openSwitch(t, Options{Dir: dir, ModelHosts: []string{"llm.corp.example"}})
	b, err := os.ReadFile(filepath.Join(dir, StateFile))
	if err != nil {
		t.Fatal(err)
	}
	var f saved
	if err := json.Unmarshal(b, &f); err != nil || len(f.ModelHosts) != len(modelHosts)+1 || f.ModelHosts[len(modelHosts)] != "llm.corp.example" {
		t.Errorf("%v, %q", err, f.ModelHosts)
	}
	if _, err := Open(Options{Dir: dir, Configured: Allow, ModelHosts: []string{"https://x"}, Audit: &notes{}}); err == nil {
		t.Error("a pattern that is none was taken")
	}
}

// TestDoubt: what was refused before is refused still, when what was accepted
// cannot be told.
func TestDoubt(t *testing.T) {
	dir := t.TempDir()
	open := func(doubt bool, hosts ...string) *Switch {
		t.Helper()
		s, err := Open(Options{Dir: dir, Configured: Deny, ModelHosts: hosts, Doubt: doubt, Audit: &notes{}})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	knows := func(s *Switch) bool {
		_, ok := s.match.matchName("llm.example")
		return ok
	}
	open(false, "llm.example")
	for range 2 { // it is saved again
		if !knows(open(true)) {
			t.Error("forgotten in doubt")
		}
	}
	if knows(open(false)) {
		t.Error("known, and not configured any more")
	}
	if err := os.WriteFile(filepath.Join(dir, StateFile), []byte(`{"v":1,"mode":"deny","since":"2026-01-02T03:04:05Z","by":"b","model_hosts":["llm.example","https://none"]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	if !knows(open(true)) {
		t.Error("one that is none hides the others")
	}
}
