package canvas_test

import (
	"context"
	"errors"
	"image"
	"image/color"
	"testing"

	"drawbridge/capture"
	"drawbridge/capture/canvas"
)

func TestSource(t *testing.T) {
	d := capture.Display{Index: 1, Name: "left", Points: [2]float64{4, 3}, Pixels: [2]int{8, 6}, Origin: [2]float64{-4, 0}, Scale: 2}
	s := canvas.New(d)
	ctx := context.Background()
	if all, err := s.Displays(ctx); err != nil || len(all) != 1 || all[0] != d {
		t.Fatalf("displays %v, %v", all, err)
	}
	s.Paint(1, image.Rect(2, 2, 4, 4), color.RGBA{R: 1, G: 2, B: 3})

	f, err := s.Grab(ctx, d, image.Rectangle{})
	if err != nil {
		t.Fatal(err)
	}
	if f.Width != 8 || f.Height != 6 || s.Lent() != 1 {
		t.Errorf("%dx%d, %d lent", f.Width, f.Height, s.Lent())
	}
	if p := f.Pix[2*f.Stride+2*4:]; p[0] != 3 || p[1] != 2 || p[2] != 1 {
		t.Errorf("pixel %v, want blue, green, red = 3, 2, 1", p[:3])
	}
	if p := f.Pix[4*f.Stride+2*4:]; p[0] != 0 {
		t.Errorf("painted outside: %v", p[:3])
	}
	f.Release()

	if f, err = s.Grab(ctx, d, image.Rect(3, 3, 5, 4)); err != nil || f.Width != 2 || f.Height != 1 || f.Pix[0] != 3 || f.Pix[4] != 0 {
		t.Errorf("a part: %+v, %v", f, err)
	}
	f.Release()
	if s.Lent() != 0 {
		t.Errorf("%d frames lent after their release", s.Lent())
	}
	if _, err := s.Grab(ctx, d, image.Rect(7, 0, 9, 1)); err == nil {
		t.Error("grabbed outside the display")
	}

	moved := d
	moved.Origin = [2]float64{}
	s.SetDisplays(moved)
	if _, err := s.Grab(ctx, d, image.Rectangle{}); !errors.Is(err, capture.ErrDisplayChanged) {
		t.Errorf("the display moved, got %v", err)
	}
	s.Before = func(context.Context, capture.Display, image.Rectangle) error { return capture.ErrLocked }
	if _, err := s.Grab(ctx, moved, image.Rectangle{}); !errors.Is(err, capture.ErrLocked) {
		t.Errorf("got %v, want the error of Before", err)
	}
	s.Idle()
	if s.Idles() != 1 {
		t.Errorf("%d idles", s.Idles())
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
