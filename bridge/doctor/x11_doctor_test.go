//go:build linux

package doctor

import (
	"context"
	"testing"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
)

// TestX11 breaks one thing after the other on a real X server with a window
// manager.
func TestX11(t *testing.T) {
	t.Parallel()
	v := startVirtual(t)
	source, err := capture.OpenX11(v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	driver, err := input.OpenX11(v.Display(), true)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { driver.Close() })
	testBreakages(t, computer.Desk{
		Backend: "virtual", Own: true, Display: v.Display(), Input: driver, Source: source,
		Permissions: func(context.Context) map[string]computer.Permission {
			return map[string]computer.Permission{computer.PermAccessibility: computer.Granted, computer.PermScreenRecording: computer.Granted}
		},
	})
}

// TestX11ByPaste types as on a person's display, where the keymap is not ours.
func TestX11ByPaste(t *testing.T) {
	t.Parallel()
	v := startVirtual(t)
	source, err := capture.OpenX11(v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { source.Close() })
	driver, err := input.OpenX11(v.Display(), false)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { driver.Close() })
	desk := &computer.Desk{Backend: "native", Display: v.Display(), Input: driver, Source: source}
	r := Run(t.Context(), Options{Desk: desk, TestInput: true})
	if got := failed(t, r); got != nil || !r.OK {
		t.Errorf("failed: %q; %+v", got, r)
	}
}
