package desk

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/bridge/computer"
)

// machine describes what a platform has, for the table below.
type machine struct {
	display, native, applescript, installed, virtual error
	mac                                              bool
}

func (m machine) platform() platform {
	p := platform{
		display:   func(Options) (string, error) { return ":7", m.display },
		native:    func(context.Context, Options, string) (*computer.Desk, error) { return &computer.Desk{}, m.native },
		installed: func() error { return m.installed },
		virtual:   func(context.Context, Options) (*computer.Desk, error) { return &computer.Desk{Own: true}, m.virtual },
		simulated: openSimulated,
	}
	if m.mac {
		p.applescript = func(context.Context, Options) (*computer.Desk, error) { return &computer.Desk{}, m.applescript }
	}
	return p
}

func TestSelection(t *testing.T) {
	no := func(s string) error { return errors.New(s) }
	for name, tc := range map[string]struct {
		backend string
		m       machine
		want    string   // the backend, or empty when refused
		says    []string // of the reason, or of the refusal
	}{
		"auto with a display":             {"auto", machine{}, "native", []string{"there is a display, :7"}},
		"empty is auto":                   {"", machine{}, "native", []string{"there is a display"}},
		"auto without a display":          {"auto", machine{display: no("no display")}, "virtual", []string{"no display", "Xvfb is installed"}},
		"auto with a dead display":        {"auto", machine{native: no("does not answer")}, "virtual", []string{"does not answer", "Xvfb is installed"}},
		"auto with nothing":               {"auto", machine{display: no("no display"), installed: no("apt-get install xvfb")}, "", []string{"no display", "apt-get install xvfb", "--backend simulated"}},
		"auto, virtual fails":             {"auto", machine{display: no("no display"), virtual: no("Xvfb died")}, "", []string{"no display", "Xvfb died", "--backend simulated"}},
		"auto on a mac":                   {"auto", machine{mac: true}, "native", []string{"there is a display"}},
		"auto on a mac without framework": {"auto", machine{mac: true, native: no("no framework")}, "applescript", []string{"no framework"}},
		"auto on a mac with nothing":      {"auto", machine{mac: true, native: no("not built"), applescript: no("no osascript")}, "", []string{"not built", "no osascript", "--backend simulated"}},
		"native":                          {"native", machine{}, "native", nil},
		"native refused, Xvfb is there":   {"native", machine{display: no("no display")}, "", []string{"backend native: no display"}},
		"native fails, Xvfb is there":     {"native", machine{native: no("gone")}, "", []string{"backend native: gone"}},
		"virtual":                         {"virtual", machine{}, "virtual", nil},
		"virtual not installed":           {"virtual", machine{installed: no("apt-get install xvfb")}, "", []string{"backend virtual: apt-get install xvfb"}},
		"virtual fails":                   {"virtual", machine{virtual: no("Xvfb died")}, "", []string{"backend virtual: Xvfb died"}},
		"simulated":                       {"simulated", machine{}, "simulated", nil},
		"applescript elsewhere":           {"applescript", machine{}, "", []string{"only on macOS"}},
		"applescript":                     {"applescript", machine{mac: true}, "applescript", nil},
		"unknown":                         {"x12", machine{}, "", []string{`"x12"`, "auto, native, applescript, virtual and simulated"}},
	} {
		t.Run(name, func(t *testing.T) {
			d, err := open(t.Context(), Options{Backend: tc.backend, getenv: os.Getenv}, tc.m.platform())
			if tc.want == "" {
				if err == nil {
					t.Fatalf("opened %s", d.Backend)
				}
				for _, s := range tc.says {
					if !strings.Contains(err.Error(), s) {
						t.Errorf("refused with %q, which does not say %q", err, s)
					}
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if d.Backend != tc.want {
				t.Errorf("backend %s, want %s", d.Backend, tc.want)
			}
			if tc.says == nil && d.Reason != "" {
				t.Errorf("a named backend gives the reason %q", d.Reason)
			}
			for _, s := range tc.says {
				if !strings.Contains(d.Reason, s) {
					t.Errorf("reason %q does not say %q", d.Reason, s)
				}
			}
		})
	}
}

func TestScreencaptureIsForMacs(t *testing.T) {
	if _, err := open(t.Context(), Options{Backend: "native", Capture: "screencapture"}, machine{}.platform()); err == nil || !strings.Contains(err.Error(), "only on macOS") {
		t.Errorf("elsewhere: %v", err)
	}
	if _, err := open(t.Context(), Options{Backend: "native", Capture: "screencapture"}, machine{mac: true}.platform()); err != nil {
		t.Errorf("on a mac: %v", err)
	}
}

func TestSimulated(t *testing.T) {
	dir := t.TempDir()
	d, err := Open(t.Context(), Options{Backend: Simulated, StateDir: dir, Width: 640, Height: 480})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if !d.Own || d.Backend != Simulated {
		t.Errorf("own %v, backend %s", d.Own, d.Backend)
	}
	displays, err := d.Source.Displays(t.Context())
	if err != nil || len(displays) != 1 || displays[0].Pixels != [2]int{640, 480} {
		t.Errorf("displays %+v, %v", displays, err)
	}
	if _, err := os.Stat(filepath.Join(dir, StateFile)); err != nil {
		t.Errorf("state file: %v", err)
	}
	for name, p := range d.Permissions(t.Context()) {
		if p != computer.Granted {
			t.Errorf("permission %s is %s", name, p)
		}
	}
}
