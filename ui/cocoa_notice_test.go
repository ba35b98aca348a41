//go:build standin

package ui

import (
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
)

// TestCocoaNotices: from a bundle a notification tells that a prompt waits, and
// goes with it. It holds no arguments, and nothing of it answers.
func TestCocoaNotices(t *testing.T) {
	m := openMac(t)
	if err := m.Set("bundle", "1"); err != nil {
		t.Fatal(err)
	}
	defer m.Set("bundle", "0")
	if _, err := m.Posted(); err != nil {
		t.Fatal(err)
	}
	r := newPanelRig(t, PanelOptions{}, gate.Options{})
	v := r.ask(nil)
	r.pick("Deny")
	r.verdict(v)
	if !r.panels.Tell("too late,\nnothing was run") {
		t.Error("nothing can be told")
	}
	var got []string
	until(t, "the notifications are told, and gone", func() bool {
		all, err := m.Posted()
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, all...)
		return slices.Contains(got, "notice told: Drawbridge / too late,⟨U+000A⟩nothing was run") &&
			slices.ContainsFunc(got, func(s string) bool { return strings.HasSuffix(s, " removed") })
	})
	slices.Sort(got)
	want := []string{
		"notice a-1 removed",
		"notice a-1: claude wants to run bash / Answer in Drawbridge's panel or in its menu.",
		"notice told: Drawbridge / too late,⟨U+000A⟩nothing was run",
		"notices requested 6",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
}

// TestCocoaNoBundle: without a bundle the panel is alone.
func TestCocoaNoBundle(t *testing.T) {
	r := newPanelRig(t, PanelOptions{}, gate.Options{})
	if r.panels.Tell("something") {
		t.Error("something was told without a bundle")
	}
}
