package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/private"
)

// TestOldState starts the agent on what agents of each older format wrote: nothing
// of it is lost, and a copy is kept.
func TestOldState(t *testing.T) {
	for format, models := range map[int]string{0: "allow", 1: "deny"} {
		dir := oldState(t, format)
		before := contents(t, dir)
		home := t.TempDir()
		agent := self(home, "--state", dir, "run", "--backend", "simulated", "--no-tray", "--listen", "127.0.0.1:0")
		var out bytes.Buffer
		agent.Stderr = &out
		if err := agent.Start(); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 1)
		go func() { ended <- agent.Wait() }()
		for deadline := time.Now().Add(60 * time.Second); ; {
			if _, err := control.Dial(t.Context(), dir); err == nil {
				break
			}
			select {
			case err := <-ended:
				t.Fatalf("format %d: %v\n%s", format, err, &out)
			case <-time.After(20 * time.Millisecond):
			}
			if time.Now().After(deadline) {
				t.Fatalf("format %d: no agent serves", format)
			}
		}
		run := func(args ...string) []byte {
			t.Helper()
			b, err := self(home, append([]string{"--state", dir}, args...)...).CombinedOutput()
			if err != nil {
				t.Errorf("format %d: %v: %v\n%s", format, args, err, b)
			}
			return b
		}
		var s bridge.Status
		if err := json.Unmarshal(run("status", "--json"), &s); err != nil || s.HostLLM != models {
			t.Errorf("format %d: models at %q, %v", format, s.HostLLM, err)
		}
		run("tools") // with the token that was there
		run("audit", "verify")
		run("stop", "--quit")
		if err := <-ended; err != nil {
			t.Errorf("format %d: %v\n%s", format, err, &out)
		}
		backup := filepath.Join(dir, "backup-format-"+strconv.Itoa(format))
		if !strings.Contains(out.String(), "was of an older format") || !strings.Contains(out.String(), backup) {
			t.Errorf("format %d: nobody is told\n%s", format, &out)
		}
		sameContents(t, "the copy", contents(t, backup), before)
		if err := private.Dir(backup); err != nil {
			t.Error(err)
		}
		after := contents(t, dir)
		for _, name := range []string{"tokens.json", "default.token", "rules.yaml", "gateway.json"} {
			if before[name] != "" && after[name] != before[name] {
				t.Errorf("format %d: %s was %q and is %q", format, name, before[name], after[name])
			}
		}
		if after[formatName] != "2\n" || after[underWay] != "" {
			t.Errorf("format %d: is now %q, under way %q", format, after[formatName], after[underWay])
		}
		if told, err := openState(dir); told != "" || err != nil {
			t.Errorf("format %d: again: %q, %v", format, told, err)
		}
	}
}
