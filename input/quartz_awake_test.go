//go:build standin

package input

import (
	"slices"
	"testing"
)

func TestQuartzKeepAwake(t *testing.T) {
	m := openMac(t, onePlain)
	noted := func(want ...string) {
		t.Helper()
		if got, err := m.Posted(); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q, %v; want %q", got, err, want)
		}
	}
	const held, back = "awake held: " + awakeReason, "awake given back"
	for _, w := range []Waker{m.d, new(appleScript)} {
		first, err := w.KeepAwake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		second, err := w.KeepAwake(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		noted(held, held)
		first()
		second()
		noted(back, back)
		m.set(t, "power", "0")
		release, err := w.KeepAwake(t.Context())
		if err == nil {
			t.Error("macOS refuses, and it is kept awake")
		}
		release()
		noted()
		m.set(t, "power", "1")
	}
}
