package recorder_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"drawbridge/input"
	"drawbridge/input/recorder"
)

func TestRecords(t *testing.T) {
	var out strings.Builder
	d := &recorder.Driver{Out: &out, Drift: input.Point{X: 3}}
	ctx := context.Background()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(d.Move(ctx, input.Point{X: 1, Y: 2.5}))
	must(d.Key(ctx, input.Shift, true))
	must(d.Button(ctx, input.Left, true, 1))
	must(d.Move(ctx, input.Point{X: -4, Y: 2}))
	if got, want := d.Held(), []string{"shift", "left"}; !slices.Equal(got, want) {
		t.Errorf("held %q, want %q", got, want)
	}
	must(d.Button(ctx, input.Left, false, 1))
	must(d.Scroll(ctx, 0, 480))
	n, err := d.Type(ctx, "aé")
	must(err)
	if n != 3 {
		t.Errorf("type sent %d bytes, want 3", n)
	}
	must(d.Sync(ctx))
	if p, err := d.Pointer(ctx); err != nil || p != (input.Point{X: -1, Y: 2}) {
		t.Errorf("pointer %v, %v; want the last motion and the drift", p, err)
	}
	must(d.ReleaseStray(ctx))
	if len(d.Held()) != 0 {
		t.Errorf("held %q after ReleaseStray", d.Held())
	}
	must(d.Close())
	want := []string{"move 1,2.5", "key shift down", "left down 1", "drag -4,2", "left up 1",
		"scroll 0,480", `type "aé"`, "sync", "stray", "close"}
	if got := d.Lines(); !slices.Equal(got, want) {
		t.Errorf("lines\n%q\nwant\n%q", got, want)
	}
	if got := strings.Split(strings.TrimSpace(out.String()), "\n"); !slices.Equal(got, want) {
		t.Errorf("out\n%q\nwant\n%q", got, want)
	}
}

func TestRefuses(t *testing.T) {
	broken := errors.New("broken")
	d := &recorder.Driver{Before: func(_ context.Context, line string) error {
		if line == "key a down" {
			return broken
		}
		return nil
	}}
	if err := d.Key(context.Background(), "a", true); !errors.Is(err, broken) {
		t.Errorf("got %v, want the error of Before", err)
	}
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if err := d.Move(ended, input.Point{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's end", err)
	}
	if len(d.Lines())+len(d.Held()) != 0 {
		t.Errorf("recorded %q, held %q; want nothing", d.Lines(), d.Held())
	}
}

func TestNames(t *testing.T) {
	ctx := context.Background()
	d := &recorder.Driver{}
	if w, err := d.Focused(ctx); w != nil || err != nil {
		t.Errorf("without names: %+v, %v", w, err)
	}
	d.Window = func(_ context.Context, p *input.Point) (*input.Window, error) {
		if p == nil {
			return &input.Window{App: "focused"}, nil
		}
		return &input.Window{App: "under", Title: fmt.Sprint(*p)}, nil
	}
	if w, err := d.Focused(ctx); err != nil || w == nil || w.App != "focused" {
		t.Errorf("Focused: %+v, %v", w, err)
	}
	if w, err := d.Under(ctx, input.Point{X: 1, Y: 2}); err != nil || w == nil || w.Title != "{1 2}" {
		t.Errorf("Under: %+v, %v", w, err)
	}
}

func TestParts(t *testing.T) {
	d := &recorder.Driver{}
	ctx := context.Background()
	if p, err := d.PartFocused(ctx); p != nil || err != nil {
		t.Errorf("without parts: %+v, %v", p, err)
	}
	d.Part = func(_ context.Context, p *input.Point) (*input.Part, error) {
		if p == nil {
			return &input.Part{Role: "text"}, nil
		}
		return &input.Part{Role: fmt.Sprint(p.X)}, nil
	}
	if p, err := d.PartFocused(ctx); err != nil || p.Role != "text" {
		t.Errorf("the one with the keys: %+v, %v", p, err)
	}
	if p, err := d.PartUnder(ctx, input.Point{X: 7}); err != nil || p.Role != "7" {
		t.Errorf("the one at a point: %+v, %v", p, err)
	}
}
