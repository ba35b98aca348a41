//go:build standin

package grant

import (
	"path/filepath"
	"slices"
	"testing"

	"drawbridge/bridge/computer"
	"drawbridge/packaging/standin"
)

// TestQuartzGrants: each grant is looked for without a prompt, and asked for with
// one where it is missing.
func TestQuartzGrants(t *testing.T) {
	s, err := standin.Open("", "", "1:0,0,640,400,1,0,0", filepath.Join(t.TempDir(), "posted"))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	settings := map[string]string{
		computer.PermAccessibility: "trusted", computer.PermPostEvents: "post",
		computer.PermScreenRecording: "screen", computer.PermInputMonitoring: "listen",
	}
	if len(List()) != len(settings) {
		t.Errorf("%d grants", len(List()))
	}
	for _, g := range List() {
		for _, missing := range []bool{true, false} {
			value, want, asked := "1", computer.Granted, []string(nil)
			if missing {
				value, want, asked = "0", computer.Missing, []string{"prompt " + settings[g.Name]}
			}
			if err := s.Set(settings[g.Name], value); err != nil {
				t.Fatal(err)
			}
			if got := Look(g.Name); got != want {
				t.Errorf("%s is %s, want %s", g.Name, got, want)
			}
			if log, err := s.Posted(); err != nil || len(log) > 0 {
				t.Errorf("to look at %s asked: %q, %v", g.Name, log, err)
			}
			if err := Request(g.Name); err != nil {
				t.Error(err)
			}
			if log, err := s.Posted(); err != nil || !slices.Equal(log, asked) {
				t.Errorf("to request %s asked %q, %v; want %q", g.Name, log, err, asked)
			}
			if got := Probe(t.Context(), g.Name); got != want {
				t.Errorf("%s is probed as %s, want %s", g.Name, got, want)
			}
			if _, err := s.Posted(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if Look("camera") != computer.Unknown || Request("camera") == nil {
		t.Error("the camera has a grant")
	}
	// macOS may show pictures before it says so.
	if err := s.Set("preflight", "0"); err != nil {
		t.Fatal(err)
	}
	if got := Look(computer.PermScreenRecording); got != computer.Missing {
		t.Errorf("before a picture came: %s", got)
	}
	for _, blocked := range []string{"locked", "asleep"} {
		if err := s.Set(blocked, "1"); err != nil {
			t.Fatal(err)
		}
		if got := Probe(t.Context(), computer.PermScreenRecording); got != computer.Missing {
			t.Errorf("%s, and a picture counts as a grant", blocked)
		}
		if err := s.Set(blocked, "0"); err != nil {
			t.Fatal(err)
		}
	}
	if Probe(t.Context(), computer.PermScreenRecording) != computer.Granted || Look(computer.PermScreenRecording) != computer.Granted {
		t.Error("a picture came, and counts for nothing")
	}
}
