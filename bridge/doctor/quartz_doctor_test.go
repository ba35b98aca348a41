//go:build standin

package doctor

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
	"drawbridge/internal/quartz"
	"drawbridge/packaging/standin"
)

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	code := 1
	quartz.Loop(func() { code = m.Run() })
	os.Exit(code)
}

var macScreen = sync.OnceValues(func() (string, error) { return standin.Screen(1280, 800) })

// openMac is macOS's desktop over the stand-in, with every grant.
func openMac(t *testing.T) (*standin.Desk, *computer.Desk) {
	t.Helper()
	display, err := macScreen()
	if errors.Is(err, standin.ErrNoXvfb) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := standin.Open(display, "", "1:0,0,1280,800,1,0,0", filepath.Join(t.TempDir(), "posted"))
	if err != nil {
		t.Fatal(err)
	}
	d, err := desk.Open(t.Context(), desk.Options{Backend: desk.Native, Log: zerolog.Nop()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return s, d
}

// TestQuartzDoctor makes every gesture in a window of AppKit's and reads it back.
func TestQuartzDoctor(t *testing.T) {
	s, d := openMac(t)
	r := Run(t.Context(), Options{Desk: d, TestInput: true})
	if got := failed(t, r); got != nil || !r.OK {
		t.Errorf("failed: %q; %+v", got, r.Checks)
	}
	if m := r.Measured; m == nil || m.System != "15.1 (24B83)" || m.WheelReversed || !m.Typing || m.Watch != "by a tap on their events" {
		t.Errorf("measured %+v", m)
	}
	// A wheel that turns the other way is found out, and turned from then on.
	set := func(name, value string) {
		t.Helper()
		if err := s.Set(name, value); err != nil {
			t.Fatal(err)
		}
	}
	set("reversed", "1")
	set("tap", "deaf")
	r = Run(t.Context(), Options{Desk: d, TestInput: true})
	if m := r.Measured; failed(t, r) != nil || m == nil || !m.WheelReversed || m.Watch != "by counters of their events" {
		t.Errorf("failed %q, measured %+v", failed(t, r), m)
	}
	set("reversed", "0")
	set("counters", "none")
	r = Run(t.Context(), Options{Desk: d, TestInput: true})
	if m := r.Measured; !slices.Equal(failed(t, r), []string{"person"}) || m == nil || m.WheelReversed || m.Watch != "" {
		t.Errorf("failed %q, measured %+v", failed(t, r), m)
	}
	set("tap", "ok")
	set("counters", "ok")
	names := []string{"accessibility", "input_monitoring", "post_events", "screen_recording"}
	for i, p := range r.Permissions {
		if i >= len(names) || p.Name != names[i] || p.State != computer.Granted || !strings.Contains(p.How, "System Settings") {
			t.Errorf("permission %+v", p)
		}
	}
	// What one can do without, if worse, is no failure.
	set("listen", "0")
	r = Run(t.Context(), Options{Desk: d})
	i := slices.IndexFunc(r.Permissions, func(p Permission) bool { return p.Name == computer.PermInputMonitoring })
	if !r.OK || r.Permissions[i].State != computer.Missing || r.Permissions[i].Needed {
		t.Errorf("without Input Monitoring: %+v", r)
	}
	// Each of the others is, by name.
	for setting, name := range map[string]string{"trusted": "accessibility", "post": "post_events", "screen": "screen_recording"} {
		if err := s.Set(setting, "0"); err != nil {
			t.Fatal(err)
		}
		r := Run(t.Context(), Options{Desk: d})
		i := slices.IndexFunc(r.Permissions, func(p Permission) bool { return p.Name == name })
		if r.OK || r.Permissions[i].State != computer.Missing || !strings.Contains(r.Permissions[i].How, "tccutil reset ") {
			t.Errorf("without %s: %+v", name, r.Permissions)
		}
		if err := s.Set(setting, "1"); err != nil {
			t.Fatal(err)
		}
	}
}
