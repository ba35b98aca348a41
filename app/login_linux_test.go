//go:build linux && !standin

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/kardianos/service"
	"github.com/rs/zerolog"

	"drawbridge/ui"
)

// forced is a system that the library takes, whatever the machine has.
type forced struct{ service.System }

func (forced) Detect() bool { return true }

// TestLoginFromTray: the menu's check item has the agent start at login, and not,
// and shows what is so; where that cannot be changed from here there is none.
func TestLoginFromTray(t *testing.T) {
	chosen := service.ChosenSystem()
	t.Cleanup(func() { service.ChooseSystem(chosen) })
	for _, s := range service.AvailableSystems() {
		if s.String() == "linux-systemd" {
			service.ChooseSystem(forced{s})
		}
	}
	fake, err := filepath.Abs("../packaging/login/testdata/fake")
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", fake+":/usr/bin:/bin")
	t.Setenv("FAKE_STATE", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	c := &cli{stdio: stdio{getenv: os.Getenv}}
	a := &agent{cli: c, log: zerolog.Nop()}
	tray := &surfaces{agent: a, ctx: t.Context(), notes: ui.NewNotifications(ui.NotificationOptions{Log: a.log})}
	a.readLogin(t.Context())
	if got := *a.login.Load(); got != (ui.Login{Known: true}) {
		t.Fatalf("at first: %+v", got)
	}
	for _, on := range []bool{true, true, false} {
		arg := map[bool]string{true: "on", false: "off"}[on]
		if err := tray.Do(ui.VerbLogin, arg); err != nil {
			t.Error(err)
		}
		tray.ended.Wait()
		if got := *a.login.Load(); got != (ui.Login{Known: true, On: on}) {
			t.Errorf("after %s: %+v", arg, got)
		}
	}
	// An agent with places of its own is not what a login item starts.
	c.flags.state = t.TempDir()
	a.readLogin(t.Context())
	if got := *a.login.Load(); got != (ui.Login{}) {
		t.Errorf("with a state directory of its own: %+v", got)
	}
}
