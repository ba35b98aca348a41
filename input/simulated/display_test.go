package simulated

import (
	"bytes"
	"errors"
	"image"
	"testing"

	"drawbridge/capture"
	"drawbridge/input"
)

// three displays: Retina left of and above the main one, and one at 1.5.
func three() []capture.Display {
	return []capture.Display{
		Display(0, 1280, 800, 1, input.Point{}),
		Display(1, 1440, 900, 2, input.Point{X: -1440, Y: -300}),
		Display(2, 800, 600, 1.5, input.Point{X: 1280, Y: 100}),
	}
}

func grab(t *testing.T, d *Desktop, display capture.Display, r image.Rectangle) *capture.Frame {
	t.Helper()
	f, err := d.Grab(t.Context(), display, r)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestPicturesHaveTheSizeOfTheBackingStore(t *testing.T) {
	d := New(Options{Displays: three()})
	for i, want := range [][2]int{{1280, 800}, {2880, 1800}, {1200, 900}} {
		f := grab(t, d, three()[i], image.Rectangle{})
		if f.Width != want[0] || f.Height != want[1] || len(f.Pix) != f.Stride*f.Height {
			t.Errorf("display %d: %d×%d, stride %d, %d bytes; want %v", i, f.Width, f.Height, f.Stride, len(f.Pix), want)
		}
		// The banner's ground is 0xffd75e; in memory blue comes first.
		if got := f.Pix[:3]; !bytes.Equal(got, []byte{0x5e, 0xd7, 0xff}) {
			t.Errorf("display %d: the first pixel is % x, want 5e d7 ff", i, got)
		}
		inked := 0
		for x := range f.Width { // the middle of the banner's writing
			y := int(13 * three()[i].Scale)
			if f.Pix[y*f.Stride+4*x+2] < 0x80 {
				inked++
			}
		}
		if inked < 20 {
			t.Errorf("display %d: %d dark pixels across the banner, want writing", i, inked)
		}
	}
}

func TestGrabAPart(t *testing.T) {
	d := New(Options{})
	display := Display(0, 1280, 800, 1, input.Point{})
	whole := grab(t, d, display, image.Rectangle{})
	r := image.Rect(37, 41, 500, 300)
	part := grab(t, d, display, r)
	if part.Width != r.Dx() || part.Height != r.Dy() {
		t.Fatalf("%d×%d, want %v", part.Width, part.Height, r.Size())
	}
	for y := range part.Height {
		from := (r.Min.Y+y)*whole.Stride + 4*r.Min.X
		if !bytes.Equal(part.Pix[y*part.Stride:y*part.Stride+4*part.Width], whole.Pix[from:from+4*part.Width]) {
			t.Fatalf("row %d differs from the whole picture", y)
		}
	}
	if _, err := d.Grab(t.Context(), display, image.Rect(0, 0, 1281, 10)); err == nil {
		t.Error("a part outside the display is given")
	}
}

func TestPicturesShowWhatChanged(t *testing.T) {
	h := newHand(t, Options{})
	display := Display(0, 1280, 800, 1, input.Point{})
	before := grab(t, h.d, display, image.Rectangle{})
	if again := grab(t, h.d, display, image.Rectangle{}); !bytes.Equal(before.Pix, again.Pix) {
		t.Error("two looks at the same desktop differ")
	}
	differ := func(widget string) bool {
		t.Helper()
		r := h.d.State().Widgets[widget]
		part := image.Rect(int(r[0]), int(r[1]), int(r[0]+r[2]), int(r[1]+r[3]))
		after := grab(t, h.d, display, part)
		for y := range after.Height {
			from := (part.Min.Y+y)*before.Stride + 4*part.Min.X
			if !bytes.Equal(after.Pix[y*after.Stride:(y+1)*after.Stride], before.Pix[from:from+after.Stride]) {
				return true
			}
		}
		return false
	}
	if differ(Field) || differ(List) {
		t.Fatal("something changed by itself")
	}
	h.do(h.d.Focus(Field))
	h.enter("日本 é 👩‍💻")
	if !differ(Field) {
		t.Error("typed text does not show")
	}
	h.d.ScrollTo(10, 100)
	if !differ(List) {
		t.Error("the list's scrolling does not show")
	}
}

func TestClickOnADisplayWithANegativeOrigin(t *testing.T) {
	h := newHand(t, Options{Displays: three(), Window: &input.Point{X: -1400, Y: -250}})
	check := h.at(Check)
	if check.X >= 0 || check.Y >= 0 {
		t.Fatalf("the check box is at %v, want it left of and above the main display", check)
	}
	h.click(check, input.Left, 1)
	s := h.d.State()
	if !s.Checked || s.Pointer != [2]float64{check.X, check.Y} {
		t.Errorf("checked %v, pointer %v", s.Checked, s.Pointer)
	}
}

func TestPointerStaysOnADisplay(t *testing.T) {
	h := newHand(t, Options{Displays: three()})
	for _, tt := range []struct{ to, want input.Point }{
		{input.Point{X: 10.25, Y: 20.75}, input.Point{X: 10.25, Y: 20.75}},
		{input.Point{X: 640, Y: 5000}, input.Point{X: 640, Y: 799}},
		{input.Point{X: -5000, Y: -5000}, input.Point{X: -1440, Y: -300}},
		{input.Point{X: -700, Y: 700}, input.Point{X: -700, Y: 599.5}},
	} {
		h.move(tt.to.X, tt.to.Y)
		if got, err := h.d.Pointer(t.Context()); err != nil || got != tt.want {
			t.Errorf("move to %v: pointer at %v (%v), want %v", tt.to, got, err, tt.want)
		}
	}
}

func TestDisplayGoesAway(t *testing.T) {
	h := newHand(t, Options{Displays: three()})
	h.move(1500, 300)
	h.d.SetDisplays(three()[:2]...)
	if _, err := h.d.Grab(t.Context(), three()[2], image.Rectangle{}); !errors.Is(err, capture.ErrDisplayChanged) {
		t.Errorf("Grab of a display that is gone: %v, want ErrDisplayChanged", err)
	}
	if p, err := h.d.Pointer(t.Context()); err != nil || p.X != 1279 {
		t.Errorf("pointer at %v (%v), want it on the main display's edge", p, err)
	}
	h.d.SetDisplays(Display(0, 1024, 768, 1, input.Point{}))
	if _, err := h.d.Grab(t.Context(), three()[0], image.Rectangle{}); !errors.Is(err, capture.ErrDisplayChanged) {
		t.Errorf("Grab of a display with another size: %v, want ErrDisplayChanged", err)
	}
	if got, err := h.d.Displays(t.Context()); err != nil || len(got) != 1 || got[0].Pixels != [2]int{1024, 768} {
		t.Errorf("Displays: %v, %v", got, err)
	}
}

func BenchmarkTypeAndGrab(b *testing.B) {
	d := New(Options{})
	if err := d.Focus(Field); err != nil {
		b.Fatal(err)
	}
	display := Display(0, 1280, 800, 1, input.Point{})
	for b.Loop() {
		if _, err := d.Type(b.Context(), "x"); err != nil {
			b.Fatal(err)
		}
		if _, err := d.Grab(b.Context(), display, image.Rectangle{}); err != nil {
			b.Fatal(err)
		}
		d.Reset()
		_ = d.Focus(Field)
	}
}
