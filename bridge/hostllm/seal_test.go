package hostllm

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
	"drawbridge/bridge/seal"
	"drawbridge/bridge/seal/sealtest"
)

// TestSealed starts the switch after another program was at its state. Nothing
// that it can do brings a deny back to allow.
func TestSealed(t *testing.T) {
	path := func(dir string) string { return filepath.Join(dir, StateFile) }
	for name, c := range map[string]struct {
		forge func(dir string, allowed []byte) error
		want  Mode // where the configuration says allow
		last  Mode // what was in force when the program ended
	}{
		"nothing":            {func(string, []byte) error { return nil }, Deny, Deny},
		"nothing, at allow":  {func(string, []byte) error { return nil }, Allow, Allow},
		"removed":            {func(dir string, _ []byte) error { return os.Remove(path(dir)) }, Deny, Deny},
		"removed, at allow":  {func(dir string, _ []byte) error { return os.Remove(path(dir)) }, Deny, Allow},
		"an older one":       {func(dir string, allowed []byte) error { return os.WriteFile(path(dir), allowed, 0o600) }, Deny, Deny},
		"one without a seal": {func(dir string, _ []byte) error { return stateFile{dir: dir}.save(State{Mode: Allow}, nil) }, Deny, Deny},
		"edited": {func(dir string, _ []byte) error {
			b, err := os.ReadFile(path(dir))
			if err != nil {
				return err
			}
			return os.WriteFile(path(dir), []byte(strings.Replace(string(b), `"deny"`, `"allow"`, 1)), 0o600)
		}, Deny, Deny},
		"edited hosts, at allow": {func(dir string, _ []byte) error {
			b, err := os.ReadFile(path(dir))
			if err != nil {
				return err
			}
			return os.WriteFile(path(dir), []byte(strings.Replace(string(b), "anthropic", "example", 1)), 0o600)
		}, Deny, Allow},
		"rewritten by an older agent": {func(dir string, _ []byte) error { return stateFile{dir: dir}.save(State{Mode: Allow}, nil) }, Deny, Allow},
	} {
		t.Run(name, func(t *testing.T) {
			dir, keys := t.TempDir(), &sealtest.Keys{}
			open := func(configured Mode) *Switch {
				return openSwitch(t, Options{Dir: dir, Configured: configured, Person: yes(), Seal: seal.New(keys, StateFile)})
			}
			s := open(Allow)
			if s.Denied() {
				t.Fatal("the first start is at deny")
			}
			allowed, err := os.ReadFile(path(dir))
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Deny("client a"); err != nil {
				t.Fatal(err)
			}
			if c.last == Allow {
				if err := s.Allow(t.Context(), "client a"); err != nil {
					t.Fatal(err)
				}
			}
			if err := c.forge(dir, allowed); err != nil {
				t.Fatal(err)
			}
			// An upgrade, which a program can pretend, seals none of it.
			if err := SealSaved(dir, seal.New(keys, StateFile)); err != nil {
				t.Fatal(err)
			}
			if s = open(Allow); s.Denied() != (c.want == Deny) {
				t.Errorf("denied: %v", s.Denied())
			}
			// And so it stays, until a person allows it.
			if s = open(Allow); s.Denied() != (c.want == Deny) {
				t.Errorf("the second time, denied: %v", s.Denied())
			}
			if err := s.Allow(t.Context(), "client b"); err != nil {
				t.Fatal(err)
			}
			if s = open(Allow); s.Denied() {
				t.Error("a person allowed it, and it is denied")
			}
			if s = open(Deny); !s.Denied() {
				t.Error("the configuration denies it, and it is allowed")
			}
		})
	}
}

// TestSealLocked: without its key a state is none, and deny still holds for hosts
// that read the file.
func TestSealLocked(t *testing.T) {
	dir, keys := t.TempDir(), &sealtest.Keys{}
	open := func() *Switch {
		return openSwitch(t, Options{Dir: dir, Configured: Allow, Person: yes(), Seal: seal.New(keys, StateFile)})
	}
	open()
	keys.Lock(true)
	s := open()
	if !s.Denied() {
		t.Error("it is at allow")
	}
	if st, err := (stateFile{dir: dir}).load(); err != nil || st.Mode != Deny {
		t.Errorf("saved is %+v, %v", st, err)
	}
	if err := s.Allow(t.Context(), "client a"); !errors.Is(err, sealtest.ErrLocked) || !s.Denied() {
		t.Errorf("allowed by what cannot be kept: %v", err)
	}
	if err := s.Deny("client a"); !errors.Is(err, sealtest.ErrLocked) || len(s.Warnings()) == 0 {
		t.Errorf("nobody is told: %v", err)
	}
	if err := SealSaved(dir, seal.New(keys, StateFile)); !errors.Is(err, sealtest.ErrLocked) {
		t.Error(err)
	}
	keys.Lock(false)
	if s := open(); !s.Denied() {
		t.Error("a state that was written without its key was believed")
	}
}

// TestSealSaved takes over the state of an agent that made no seals.
func TestSealSaved(t *testing.T) {
	for _, mode := range []Mode{Allow, Deny} {
		dir, keys := t.TempDir(), &sealtest.Keys{}
		if err := (SealSaved(dir, seal.New(keys, StateFile))); err != nil {
			t.Errorf("where there is none: %v", err)
		}
		before := openSwitch(t, Options{Dir: dir, Configured: mode})
		st, _ := before.Watch()
		for range 2 {
			if err := SealSaved(dir, seal.New(keys, StateFile)); err != nil {
				t.Fatal(err)
			}
		}
		got, err := stateFile{dir, seal.New(keys, StateFile)}.load()
		if err != nil || got != st {
			t.Errorf("%+v, %v; want %+v", got, err, st)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, StateFile), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	keys := &sealtest.Keys{}
	if err := SealSaved(dir, seal.New(keys, StateFile)); err != nil {
		t.Errorf("a broken state: %v", err)
	}
	if s := openSwitch(t, Options{Dir: dir, Configured: Allow, Seal: seal.New(keys, StateFile)}); !s.Denied() {
		t.Error("a broken state is at allow")
	}
}

// TestAllowedTillEnd: a yes that is not to outlive the process leaves deny in the
// file.
func TestAllowedTillEnd(t *testing.T) {
	dir, keys := t.TempDir(), &sealtest.Keys{}
	open := func(p Person) *Switch {
		return openSwitch(t, Options{Dir: dir, Configured: Allow, Person: p, Seal: seal.New(keys, StateFile)})
	}
	s := open(person(gate.Answer{Scope: gate.Once, TillEnd: true}))
	if err := s.Deny("client a"); err != nil {
		t.Fatal(err)
	}
	denied, _ := s.Watch()
	if err := s.Allow(t.Context(), "client a"); err != nil || s.Denied() {
		t.Fatalf("allowed, and denied is %v, %v", s.Denied(), err)
	}
	if st, _ := s.Watch(); !strings.Contains(st.By, "until the agent ends") {
		t.Errorf("the state does not say for how long: %+v", st)
	}
	if got, err := (stateFile{dir, seal.New(keys, StateFile)}).load(); err != nil || got != denied {
		t.Errorf("saved is %+v, %v; want %+v", got, err, denied)
	}
	if s = open(yes()); !s.Denied() {
		t.Error("the next start allows it")
	}
	if err := s.Allow(t.Context(), "client a"); err != nil {
		t.Fatal(err)
	}
	if s = open(yes()); s.Denied() {
		t.Error("a native yes did not last")
	}
}

// TestDenyUnsaved: a deny that cannot be saved does not leave the allow before it to
// the next start, and is saved once it can be.
func TestDenyUnsaved(t *testing.T) {
	dir, keys := t.TempDir(), &sealtest.Keys{}
	path := filepath.Join(dir, StateFile)
	open := func() *Switch {
		return openSwitch(t, Options{Dir: dir, Configured: Allow, Person: yes(), Seal: seal.New(keys, StateFile)})
	}
	s := open()
	allowed, err := os.ReadFile(path)
	if err == nil {
		err = errors.Join(os.Remove(path), os.MkdirAll(filepath.Join(path, "x"), 0o700))
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Deny("client a"); err == nil || !strings.Contains(err.Error(), "tried again") || !s.Denied() {
		t.Errorf("denied is %v, %v", s.Denied(), err)
	}
	s.SaveAgain()
	if w := strings.Join(s.Warnings(), "\n"); !strings.Contains(w, "could not be saved, and is tried again") {
		t.Errorf("the warnings are %q", w)
	}
	if err := s.Allow(t.Context(), "client a"); err == nil || !s.Denied() {
		t.Errorf("allowed by what cannot be kept: %v", err)
	}
	if err := errors.Join(os.RemoveAll(path), os.WriteFile(path, allowed, 0o600)); err != nil {
		t.Fatal(err)
	}
	f := stateFile{dir, seal.New(keys, StateFile)}
	if st, err := f.atStart(Allow); err == nil || st.Mode != Deny {
		t.Errorf("the next start has %+v, %v", st, err)
	}
	want, _ := s.Watch()
	s.SaveAgain()
	if got, err := f.load(); err != nil || got != want || len(s.Warnings()) != 0 {
		t.Errorf("saved is %+v, %v, want %+v; the warnings are %q", got, err, want, s.Warnings())
	}
}
