package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"drawbridge/app/config"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
)

func TestReadPolicy(t *testing.T) {
	file := gate.RulesFile{Path: filepath.Join(t.TempDir(), rulesName)}
	c := config.Default()
	p, err := readPolicy(c, file)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Rules)+len(p.ConfigRules)+len(p.AllowedActions) != 0 {
		t.Errorf("the defaults say %+v, want nothing", p)
	}
	if items, err := p.Loosens(); err != nil || len(items) != 0 {
		t.Errorf("the defaults ask about %v, %v", items, err)
	}

	own := gate.Rule{Tool: "bash", Then: gate.ThenDeny}
	if _, err := file.Add(own); err != nil {
		t.Fatal(err)
	}
	c.Rules = []gate.Rule{{Tool: "read", Then: gate.ThenAllow}}
	c.Computer.AllowedActions = []computer.ActionType{computer.Screenshot, computer.Wait}
	c.Clients = map[string]config.Client{
		"a": {AllowedActions: []computer.ActionType{computer.Screenshot}},
		"b": {},
	}
	if p, err = readPolicy(c, file); err != nil {
		t.Fatal(err)
	}
	want := gate.Policy{
		Rules: []gate.Rule{own}, ConfigRules: c.Rules,
		AllowedActions: map[string][]string{"": {"screenshot", "wait"}, "a": {"screenshot"}},
		Settings:       config.Settings{Config: c, Granted: holdsGrants()},
	}
	if !reflect.DeepEqual(p, want) {
		t.Errorf("policy %+v, want %+v", p, want)
	}
	if got := toolConfig(c).AllowedActions; got != nil {
		t.Errorf("the tool narrows to %v by itself; what is in force is the gate's to say", got)
	}
}

func TestLeasePath(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	own, err := leasePath("/s", &computer.Desk{Own: true, Display: ":5"})
	if err != nil || own != "/s/desktop.lease" {
		t.Errorf("a desktop of our own: %s, %v", own, err)
	}
	one, err := leasePath("/s", &computer.Desk{Display: ":0"})
	if err != nil {
		t.Fatal(err)
	}
	same, _ := leasePath("/other", &computer.Desk{Display: ":0"})
	another, _ := leasePath("/s", &computer.Desk{Display: ":1"})
	odd, _ := leasePath("/s", &computer.Desk{Display: "unix/../../x:0"})
	if one != same {
		t.Errorf("two agents on one display have the leases %s and %s", one, same)
	}
	if one == another {
		t.Errorf("two displays share the lease %s", one)
	}
	if filepath.Dir(odd) != filepath.Dir(one) {
		t.Errorf("a display's name leads to %s", odd)
	}
	if info, err := os.Stat(filepath.Dir(one)); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory has mode %v, %v", info.Mode(), err)
	}
}

func TestLoadConfigPrecedence(t *testing.T) {
	path := filepath.Join(t.TempDir(), "c.yaml")
	if err := os.WriteFile(path, []byte("listen: 127.0.0.1:1\ncomputer: {backend: virtual}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"DRAWBRIDGE_LISTEN": "127.0.0.1:2", "DRAWBRIDGE_BACKEND": "simulated"}
	c := &cli{stdio: stdio{getenv: func(k string) string { return env[k] }}}
	c.flags.config = path
	l, err := c.loadConfig(runOptions{listen: "127.0.0.1:3"})
	if err != nil {
		t.Fatal(err)
	}
	if l.Listen != "127.0.0.1:3" || l.From("listen") != "flag --listen" {
		t.Errorf("listen %s from %s, want the flag's", l.Listen, l.From("listen"))
	}
	if l.Computer.Backend != "simulated" || l.From("computer.backend") != "environment DRAWBRIDGE_BACKEND" {
		t.Errorf("backend %s from %s, want the environment's", l.Computer.Backend, l.From("computer.backend"))
	}
	env["DRAWBRIDGE_LISTEN"] = "0.0.0.0:1"
	if _, err := c.loadConfig(runOptions{}); err == nil || !strings.Contains(err.Error(), "environment DRAWBRIDGE_LISTEN: must be") {
		t.Errorf("a bad value from the environment: %v", err)
	}
}

// TestHandBack: how batches give way on the person's desktop is held; on one of our
// own there is nobody to be spared.
func TestHandBack(t *testing.T) {
	held, written := config.Default(), config.Default()
	held.HandBack.Quiet, written.HandBack.Quiet = 10*time.Second, 0
	for _, own := range []bool{false, true} {
		a := &agent{desk: &computer.Desk{Own: own}, conf: &config.Loaded{Config: held}, read: &config.Loaded{Config: written}}
		want := held.HandBack.Quiet
		if own {
			want = 0
		}
		if got := a.handBack().Quiet; got != want {
			t.Errorf("own %v: %s, want %s", own, got, want)
		}
	}
}
