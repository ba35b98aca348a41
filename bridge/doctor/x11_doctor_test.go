//go:build linux

package doctor

import (
	"context"
	"testing"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
)

// x11Desk is a desk on an Xvfb and a jwm of its own; own says whether its keymap
// may be changed.
func x11Desk(t *testing.T, own bool) *computer.Desk {
	t.Helper()
	v := startVirtual(t)
	source, err := capture.OpenX11(v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	driver, err := input.OpenX11(v.Display(), own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { driver.Close() })
	return &computer.Desk{
		Backend: "virtual", Own: own, Display: v.Display(), Input: driver, Source: source,
		Permissions: func(context.Context) map[string]computer.Permission {
			return map[string]computer.Permission{computer.PermAccessibility: computer.Granted, computer.PermScreenRecording: computer.Granted}
		},
	}
}

// TestX11 breaks one thing after the other on a real X server with a window
// manager.
func TestX11(t *testing.T) {
	testBreakages(t, func(t *testing.T) *computer.Desk { return x11Desk(t, true) })
}

// TestX11ByPaste types as on a person's display, where the keymap is not ours.
func TestX11ByPaste(t *testing.T) {
	t.Parallel()
	r := Run(t.Context(), Options{Desk: x11Desk(t, false), TestInput: true})
	if got := failed(t, r); got != nil || !r.OK {
		t.Errorf("failed: %q; %+v", got, r)
	}
}
