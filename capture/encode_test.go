package capture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

// desktop paints something like a desktop: flat areas, lines of fake text, and,
// with photo, a little noise over gradients.
func desktop(w, h, pad int, photo bool) *Frame {
	return paint(w, h, pad, photo, 3)
}

func paint(w, h, pad int, photo bool, noise int) *Frame {
	rnd := rand.New(rand.NewPCG(uint64(w), uint64(h)))
	stride := w*4 + pad
	pix := make([]byte, stride*h)
	for y := range h {
		for x := range stride / 4 {
			p := pix[y*stride+4*x:]
			p[0], p[1], p[2], p[3] = 0xf0, 0xe8, 0xe0, byte(rnd.Uint32()) // the fourth byte means nothing
			switch {
			case photo:
				p[0] = byte(x/3 + rnd.IntN(noise))
				p[1] = byte(y/2 + rnd.IntN(noise))
				p[2] = byte(x*y/500 + rnd.IntN(noise))
			case y%17 > 5 && y%17 < 14 && rnd.IntN(3) == 0:
				p[0], p[1], p[2] = 0x20, 0x20, byte(rnd.IntN(3)*40)
			}
		}
	}
	return NewFrame(pix, stride, w, h, nil)
}

func at(f *Frame, x, y int) color.RGBA {
	p := f.Pix[y*f.Stride+4*x:]
	return color.RGBA{p[2], p[1], p[0], 255}
}

// checkPNG decodes b with the standard library and compares every pixel.
func checkPNG(t *testing.T, b []byte, f *Frame) {
	t.Helper()
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatalf("the standard library does not read it: %v", err)
	}
	if img.Bounds() != image.Rect(0, 0, f.Width, f.Height) {
		t.Fatalf("bounds %v, want %dx%d", img.Bounds(), f.Width, f.Height)
	}
	rgba, ok := img.(*image.RGBA)
	if !ok {
		t.Fatalf("it decodes to a %T, want opaque RGB", img)
	}
	for y := range f.Height {
		for x := range f.Width {
			if got, want := rgba.RGBAAt(x, y), at(f, x, y); got != want {
				t.Fatalf("pixel %d,%d is %v, want %v", x, y, got, want)
			}
		}
	}
	if w, h, err := DecodeSize(b); w != f.Width || h != f.Height || err != nil {
		t.Fatalf("DecodeSize = %d, %d, %v", w, h, err)
	}
}

func TestPNGIsPixelEqual(t *testing.T) {
	for _, size := range [][3]int{{1, 1, 0}, {1, 200, 0}, {3, 1, 4}, {17, 129, 0}, {64, 64, 64}, {641, 257, 12}} {
		for _, photo := range []bool{false, true} {
			t.Run(fmt.Sprintf("%dx%d+%d/photo=%v", size[0], size[1], size[2], photo), func(t *testing.T) {
				f := desktop(size[0], size[1], size[2], photo)
				b, err := Encode(f, EncodeOptions{Format: PNG})
				if err != nil {
					t.Fatal(err)
				}
				checkPNG(t, b, f)
			})
		}
	}
}

func FuzzPNG(f *testing.F) {
	f.Add(uint16(1), uint16(1), uint8(0), []byte{1, 2, 3})
	f.Add(uint16(33), uint16(300), uint8(3), []byte("some bytes that repeat"))
	f.Add(uint16(7), uint16(64), uint8(0), []byte{})
	f.Fuzz(func(t *testing.T, w, h uint16, pad uint8, seed []byte) {
		width, height := 1+int(w)%300, 1+int(h)%300
		stride := width*4 + int(pad%8)*4
		pix := make([]byte, stride*height)
		for i := range pix {
			if len(seed) > 0 {
				pix[i] = seed[i%len(seed)] + byte(i/97)
			}
		}
		frame := NewFrame(pix, stride, width, height, nil)
		b, err := Encode(frame, EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		checkPNG(t, b, frame)
	})
}

func FuzzDecodeSize(f *testing.F) {
	b, err := Encode(desktop(5, 4, 0, false), EncodeOptions{})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
	f.Add([]byte(pngSignature))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		w, h, err := DecodeSize(b)
		if err == nil && (w < 1 || h < 1) {
			t.Fatalf("size %dx%d without an error", w, h)
		}
		if c, err2 := png.DecodeConfig(bytes.NewReader(b)); err2 == nil && (err != nil || c.Width != w || c.Height != h) {
			t.Fatalf("DecodeSize = %d, %d, %v; image/png says %dx%d", w, h, err, c.Width, c.Height)
		}
	})
}

func TestPNGSize(t *testing.T) {
	// The strips and the missing filter must not cost much: at most a quarter
	// more than the standard library's fastest.
	for noise, photo := range map[int]bool{1: false, 3: true, 8: true, 40: true} {
		f := paint(640, 400, 0, photo, noise)
		b, err := Encode(f, EncodeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(b))
		if err != nil {
			t.Fatal(err)
		}
		var std bytes.Buffer
		if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&std, img); err != nil {
			t.Fatal(err)
		}
		if len(b) > std.Len()*5/4 {
			t.Errorf("photo=%v, noise %d: %d bytes, the standard library makes %d", photo, noise, len(b), std.Len())
		}
	}
}

func TestEncodeJPEG(t *testing.T) {
	f := NewFrame(bytes.Repeat([]byte{200, 100, 50, 9}, 40*30), 160, 40, 30, nil)
	b, err := Encode(f, EncodeOptions{Format: JPEG, Quality: 95, Width: 20, Height: 15})
	if err != nil {
		t.Fatal(err)
	}
	img, err := jpeg.Decode(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	if img.Bounds() != image.Rect(0, 0, 20, 15) {
		t.Fatalf("bounds %v", img.Bounds())
	}
	r, g, bl, _ := img.At(10, 7).RGBA()
	for i, c := range []struct{ got, want uint32 }{{r >> 8, 50}, {g >> 8, 100}, {bl >> 8, 200}} {
		if math.Abs(float64(c.got)-float64(c.want)) > 4 {
			t.Errorf("channel %d is %d, want about %d", i, c.got, c.want)
		}
	}
}

func TestEncodeRefuses(t *testing.T) {
	ok := desktop(4, 4, 0, false)
	released := NewFrame(make([]byte, 64), 16, 4, 4, func() {})
	released.Release()
	for _, c := range []struct {
		name string
		f    *Frame
		o    EncodeOptions
		want string
	}{
		{"nothing", nil, EncodeOptions{}, "empty or was released"},
		{"released", released, EncodeOptions{}, "empty or was released"},
		{"no width", NewFrame(make([]byte, 64), 16, 0, 4, nil), EncodeOptions{}, "0x4"},
		{"short", NewFrame(make([]byte, 63), 16, 4, 4, nil), EncodeOptions{}, "63 bytes"},
		{"stride", NewFrame(make([]byte, 64), 12, 4, 4, nil), EncodeOptions{}, "rows of 12"},
		{"format", ok, EncodeOptions{Format: "gif"}, `unknown format "gif"; known are "png" and "jpeg"`},
		{"size", ok, EncodeOptions{Width: -1}, "-1x4"},
		{"huge", ok, EncodeOptions{Width: 1 << 20, Height: 1}, "no size"},
		{"quality", ok, EncodeOptions{Format: JPEG, Quality: 101}, "quality 101"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Encode(c.f, c.o)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// average is the plain definition that scale is held against.
func average(f *Frame, w, h, x, y, channel int) float64 {
	sx, sy := float64(f.Width)/float64(w), float64(f.Height)/float64(h)
	x0, x1, y0, y1 := float64(x)*sx, float64(x+1)*sx, float64(y)*sy, float64(y+1)*sy
	var sum float64
	for py := int(y0); float64(py) < y1 && py < f.Height; py++ {
		wy := min(y1, float64(py+1)) - max(y0, float64(py))
		for px := int(x0); float64(px) < x1 && px < f.Width; px++ {
			wx := min(x1, float64(px+1)) - max(x0, float64(px))
			sum += wx * wy * float64(f.Pix[py*f.Stride+4*px+channel])
		}
	}
	return sum / (sx * sy)
}

func TestScaleIsAreaAverage(t *testing.T) {
	for _, c := range []struct {
		from, to  [2]int
		tolerance float64
	}{
		{[2]int{200, 120}, [2]int{100, 60}, 0.51}, // the exact path
		{[2]int{192, 108}, [2]int{143, 80}, 2},
		{[2]int{101, 77}, [2]int{100, 76}, 2},
		{[2]int{300, 200}, [2]int{37, 19}, 2},
		{[2]int{640, 480}, [2]int{7, 5}, 3},
		{[2]int{50, 40}, [2]int{50, 10}, 2},
		{[2]int{20, 10}, [2]int{33, 25}, 2}, // larger
		{[2]int{9, 1}, [2]int{1, 1}, 3},
	} {
		t.Run(fmt.Sprint(c.from, c.to), func(t *testing.T) {
			f := desktop(c.from[0], c.from[1], 8, true)
			g := scale(f, c.to[0], c.to[1])
			defer g.Release()
			worst := 0.0
			for y := range g.Height {
				for x := range g.Width {
					for ch := range 3 {
						got := float64(g.Pix[y*g.Stride+4*x+ch])
						worst = max(worst, math.Abs(got-average(f, g.Width, g.Height, x, y, ch)))
					}
				}
			}
			if worst > c.tolerance {
				t.Errorf("up to %.2f levels from the average, allowed %.2f", worst, c.tolerance)
			}
		})
	}
}

func TestScaleKeepsFlatColours(t *testing.T) {
	for _, v := range []byte{0, 1, 127, 128, 254, 255} {
		f := NewFrame(bytes.Repeat([]byte{v, 255 - v, v, 0}, 97*61), 97*4, 97, 61, nil)
		for _, size := range [][2]int{{1, 1}, {40, 60}, {96, 7}, {200, 100}} {
			g := scale(f, size[0], size[1])
			for y := range g.Height {
				for x := range g.Width {
					if got, want := at(g, x, y), (color.RGBA{v, 255 - v, v, 255}); got != want {
						t.Fatalf("%v at %d,%d of %v, want %v", got, x, y, size, want)
					}
				}
			}
			g.Release()
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	for _, size := range [][2]int{{1920, 1080}, {3840, 2160}} {
		for _, photo := range []bool{false, true} {
			f := desktop(size[0], size[1], 0, photo)
			for _, o := range []EncodeOptions{
				{Format: PNG},
				{Format: PNG, Width: 1428, Height: 803},
				{Format: PNG, Width: size[0] / 2, Height: size[1] / 2},
				{Format: JPEG, Width: 1428, Height: 803},
			} {
				b.Run(fmt.Sprintf("%d/photo=%v/%s/%d", size[1], photo, o.Format, o.Width), func(b *testing.B) {
					b.ReportAllocs()
					n := 0
					for b.Loop() {
						out, err := Encode(f, o)
						if err != nil {
							b.Fatal(err)
						}
						n = len(out)
					}
					b.ReportMetric(float64(n)/1000, "KB")
				})
			}
		}
	}
}

func BenchmarkScale1080pTo1428(b *testing.B) {
	f := desktop(1920, 1080, 0, true)
	for b.Loop() {
		scale(f, 1428, 803).Release()
	}
}
