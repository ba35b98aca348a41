//go:build linux

package person_test

import (
	"context"
	"testing"

	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/person"
)

// What the person does comes from the server's own devices.
func TestPerson(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(context.Background(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	raw, err := x11.DialRaw(t.Context(), v.Display())
	if err != nil {
		t.Fatal(err)
	}
	defer raw.Close()
	p, err := person.Open(t.Context(), v.Display())
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for _, c := range []struct {
		do     func() error
		kind   x11.RawKind
		detail uint32
		device string
		axes   map[int]float64
	}{
		{func() error { return p.Move(3, -4) }, x11.RawMotion, 0, "Xvfb mouse", map[int]float64{0: 3, 1: -4}},
		{func() error { return p.Button(3, true) }, x11.RawButtonPress, 3, "Xvfb mouse", nil},
		{func() error { return p.Button(3, false) }, x11.RawButtonRelease, 3, "Xvfb mouse", nil},
		{func() error { return p.Key(38, true) }, x11.RawKeyPress, 38, "Xvfb keyboard", nil},
		{func() error { return p.Key(38, false) }, x11.RawKeyRelease, 38, "Xvfb keyboard", nil},
	} {
		if err := c.do(); err != nil {
			t.Fatal(err)
		}
		e, err := raw.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.Kind != c.kind || e.Detail != c.detail || e.Device.Name != c.device || e.Device.XTest || len(e.Axes) != len(c.axes) {
			t.Errorf("%+v, want %+v", e, c)
		}
		for i, v := range c.axes {
			if e.Axes[i].Given != v {
				t.Errorf("axis %d: %+v, want %g", i, e.Axes[i], v)
			}
		}
	}
}
