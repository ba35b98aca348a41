//go:build standin

package ui

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
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

// TestCocoaNoNotices: a person who wants no notifications gets none, and the panel
// all the same.
func TestCocoaNoNotices(t *testing.T) {
	m := openMac(t)
	if err := errors.Join(m.Set("bundle", "1"), m.Set("notices", "0")); err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := errors.Join(m.Set("bundle", "0"), m.Set("notices", "1")); err != nil {
			t.Error(err)
		}
	}()
	r := newPanelRig(t, PanelOptions{}, gate.Options{})
	v := r.ask(nil)
	r.pick("Deny")
	r.verdict(v)
	r.gone(t, panelClassName)
	all, err := m.Posted()
	if err != nil || slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, "notice ") && !strings.HasSuffix(s, " removed") }) {
		t.Errorf("%q, %v", all, err)
	}
}

// centreEnv has the test below ask for the notification centre, as a program
// without a bundle must not.
const centreEnv = "DRAWBRIDGE_TEST_CENTRE"

// TestCocoaCentreWithoutBundle: the stand-in ends a process that asks for the
// centre without a bundle, as macOS does. Ours does not ask: TestCocoaNoBundle.
func TestCocoaCentreWithoutBundle(t *testing.T) {
	if os.Getenv(centreEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCocoaCentreWithoutBundle$")
		cmd.Env = append(os.Environ(), centreEnv+"=1")
		if out, err := cmd.CombinedOutput(); err == nil || !strings.Contains(string(out), "bundleProxyForCurrentProcess is nil") {
			t.Errorf("%v\n%.500s", err, out)
		}
		return
	}
	if err := errors.Join(quartz.Load(), cocoa.Load("UserNotifications")); err != nil {
		t.Fatal(err)
	}
	cocoa.Class("UNUserNotificationCenter").Send(cocoa.Sel("currentNotificationCenter"))
}

// TestCocoaNoBundle: without a bundle the panel is alone.
func TestCocoaNoBundle(t *testing.T) {
	r := newPanelRig(t, PanelOptions{}, gate.Options{})
	if r.panels.Tell("something") {
		t.Error("something was told without a bundle")
	}
}
