package main

import (
	"context"
	"image"
	"image/color"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/input/simulated"
)

// pictureOf is an answer with a picture at half the size of a display.
func pictureOf(d capture.Display) answer {
	return answer{Structured: computer.Structured{
		Display: computer.DisplayShape{Index: d.Index, Points: d.Points, Pixels: d.Pixels, Origin: d.Origin, Scale: d.Scale},
		Picture: &computer.Picture{Width: int(d.Points[0] / 2), Height: int(d.Points[1] / 2), Scale: [2]float64{2, 2}},
	}}
}

// perform does what the agent does with an action.
func perform(ctx context.Context, h *input.Hand, a answer, act action) error {
	point := func(x, y any) input.Point {
		return input.Point{
			X: a.Structured.Display.Origin[0] + x.(float64)*a.Structured.Picture.Scale[0],
			Y: a.Structured.Display.Origin[1] + y.(float64)*a.Structured.Picture.Scale[1],
		}
	}
	switch act["type"] {
	case "click":
		button := input.Left
		if act["button"] == "right" {
			button = input.Right
		}
		return h.Click(ctx, point(act["x"], act["y"]), button, nil)
	case "double_click":
		return h.DoubleClick(ctx, point(act["x"], act["y"]), nil)
	case "move":
		return h.Move(ctx, point(act["x"], act["y"]), nil)
	case "scroll":
		return h.Scroll(ctx, point(act["x"], act["y"]), float64(act["scroll_x"].(int)), float64(act["scroll_y"].(int)), nil)
	case "drag":
		var path []input.Point
		for _, p := range act["path"].([][2]float64) {
			path = append(path, point(p[0], p[1]))
		}
		return h.Drag(ctx, path, input.Left, nil)
	case "type":
		_, err := h.Type(ctx, act["text"].(string))
		return err
	}
	keys := act["keys"].([]string)
	return h.Chord(ctx, []input.Key{input.Control}, input.Key(strings.ToLower(keys[1])))
}

// TestEffects leaves out one action after the other: the checks must tell.
func TestEffects(t *testing.T) {
	for _, tt := range []struct {
		skip  int // index in the batch; -1: none
		fails []string
	}{
		{-1, nil},
		{0, []string{"click"}},
		{1, []string{"right click"}},
		{2, []string{"click and type", "chord Ctrl+A", "chord Ctrl+C"}}, // the text goes nowhere
		{3, []string{"click and type", "chord Ctrl+A", "chord Ctrl+C"}},
		{4, []string{"drag"}},
		{5, []string{"scroll"}},
		{6, []string{"double click"}},
		{7, []string{"click and type", "chord Ctrl+A", "chord Ctrl+C"}}, // the button has the focus
		{8, []string{"chord Ctrl+A", "chord Ctrl+C"}},
		{9, []string{"chord Ctrl+C"}},
		{10, []string{"move"}},
	} {
		dir := t.TempDir()
		d := simulated.New(simulated.Options{
			StateFile: filepath.Join(dir, "simulated.json"),
			Displays:  []capture.Display{simulated.Display(0, 1280, 800, 1, input.Point{X: 100, Y: -50})},
		})
		displays, err := d.Displays(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		before, err := readState(dir)
		if err != nil {
			t.Fatal(err)
		}
		picture := pictureOf(displays[0])
		batch := demoBatch(picture, before)
		if len(batch) != 11 {
			t.Fatalf("the batch has %d actions; this table knows 11", len(batch))
		}
		hand := input.NewHand(d, input.HandOptions{})
		for i, act := range batch {
			if i == tt.skip {
				continue
			}
			if err := perform(t.Context(), hand, picture, act); err != nil {
				t.Fatal(err)
			}
		}
		if err := d.Sync(t.Context()); err != nil {
			t.Fatal(err)
		}
		after, err := readState(dir)
		if err != nil {
			t.Fatal(err)
		}
		var failed []string
		for _, e := range effects {
			if !e.seen(before, after) {
				name, _, _ := strings.Cut(e.what, ":")
				failed = append(failed, name)
			}
		}
		if !slices.Equal(failed, tt.fails) {
			t.Errorf("without action %d: failed %q, want %q", tt.skip, failed, tt.fails)
		}
	}
}

func TestChanged(t *testing.T) {
	a, b := image.NewRGBA(image.Rect(0, 0, 50, 40)), image.NewRGBA(image.Rect(0, 0, 50, 40))
	if got := changed(a, b); !got.Empty() {
		t.Errorf("between equal pictures: %v", got)
	}
	b.Set(10, 5, color.White)
	b.Set(20, 30, color.White)
	if got, want := changed(a, b), image.Rect(10, 5, 21, 31); got != want {
		t.Errorf("changed %v, want %v", got, want)
	}
}

func TestUnknownDesktop(t *testing.T) {
	if err := run(t.Context(), "drawbridge", "mine"); err == nil || !strings.Contains(err.Error(), "virtual") {
		t.Errorf("desktop mine: %v, want an error that names what there is", err)
	}
}
