package simulated

import (
	"testing"

	"drawbridge/input"
)

func TestNames(t *testing.T) {
	d := New(Options{})
	ctx := t.Context()
	if w, err := d.Focused(ctx); w != nil || err != nil {
		t.Errorf("without a focus: %+v, %v", w, err)
	}
	if w, err := d.Under(ctx, input.Point{X: 39, Y: 39}); w != nil || err != nil {
		t.Errorf("beside the window: %+v, %v", w, err)
	}
	want := input.Window{App: "Simulated", Title: "Practice window", Role: Press, Bounds: input.Rect{X: 40, Y: 40, Width: 720, Height: 530}}
	at := layout[Press].at(input.Point{X: 40, Y: 40}).Center()
	if w, err := d.Under(ctx, at); err != nil || w == nil || *w != want {
		t.Errorf("over the button: %+v, %v", w, err)
	}
	if err := d.Focus(Field); err != nil {
		t.Fatal(err)
	}
	if w, err := d.Focused(ctx); err != nil || w == nil || w.Role != Field || w.App != "Simulated" {
		t.Errorf("with the focus in the field: %+v, %v", w, err)
	}
}
