package ui

import (
	"context"
	"fmt"
	"image"
	"testing"
	"testing/synctest"

	"drawbridge/bridge/gate"
)

// TestPreviews: the picture of a prompt is made once for all surfaces, is told
// with its call, and is gone with the prompt.
func TestPreviews(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var told []string
		v := &Previews{Made: func(id string, png []byte) { told = append(told, fmt.Sprint(id, len(png) > 0)) }}
		a := newGateAgent(gate.Options{Surfaces: []gate.Surface{&nativeDesk{}}})
		made := 0
		big, near := IconReady.PNG(FormDark, 960), IconPaused.PNG(FormDark, 100)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for _, r := range []*gate.Request{
			{ID: "none", Client: "none"},
			{ID: "whole", Client: "whole", Preview: func(context.Context) ([]byte, error) { made++; return big, nil }},
			{ID: "near", Client: "near", Preview: func(context.Context) ([]byte, error) { made++; return big, nil }, Closeup: func() []byte { return near }},
			{ID: "fails", Client: "fails", Preview: func(context.Context) ([]byte, error) { made++; return nil, context.Canceled }},
		} {
			go a.gate.Decide(ctx, r)
			synctest.Wait()
		}
		for i, want := range []image.Point{{}, {previewWidth, previewWidth}, {100, 100}, {}} {
			p := a.gate.List()[i]
			var size image.Point
			for range 3 {
				if im := v.Small(ctx, p); im != nil {
					size = im.Bounds().Size()
				}
				if got := v.PNG(ctx, p); (len(got) > 0) != (want.X > 0) {
					t.Errorf("%s: %d bytes", p.Request.ID, len(got))
				}
				if got := v.Near(ctx, p); (len(got) > 0) != (p.Request.ID == "near") {
					t.Errorf("%s: %d bytes near", p.Request.ID, len(got))
				}
			}
			if size != want {
				t.Errorf("%s: %v, want %v", p.Request.ID, size, want)
			}
		}
		if made != 3 || fmt.Sprint(told) != "[wholetrue neartrue]" {
			t.Errorf("made %d times, told %v", made, told)
		}
		cancel()
		synctest.Wait()
		if len(v.all) != 0 {
			t.Errorf("%d are left", len(v.all))
		}
	})
}
