package computer

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"drawbridge/bridge"
	"drawbridge/capture"
	"drawbridge/input"
)

func display(w, h int, scale float64, x, y float64) capture.Display {
	return capture.Display{
		Name: "test", Points: [2]float64{float64(w) / scale, float64(h) / scale}, Pixels: [2]int{w, h},
		Origin: [2]float64{x, y}, Scale: scale,
	}
}

// Worked by hand: a Retina display of 1470x956 points, and one left of it.
func TestPoint(t *testing.T) {
	tests := []struct {
		name          string
		d             capture.Display
		width, height int
		at            [2]float64
		want          input.Point
	}{
		{"one to one", display(1920, 1080, 1, 0, 0), 1920, 1080, [2]float64{10.5, 20.25}, input.Point{X: 10.5, Y: 20.25}},
		{"retina, whole", display(2940, 1912, 2, 0, 0), 2940, 1912, [2]float64{100, 50}, input.Point{X: 50, Y: 25}},
		{"retina, half", display(2940, 1912, 2, 0, 0), 1470, 956, [2]float64{100, 50}, input.Point{X: 100, Y: 50}},
		{"left of and above the main one", display(1000, 500, 1, -1000, -200), 500, 250, [2]float64{0, 249.5}, input.Point{X: -1000, Y: 299}},
		{"each axis by itself", display(1000, 500, 1, 0, 0), 500, 500, [2]float64{10, 10}, input.Point{X: 20, Y: 10}},
	}
	for _, tt := range tests {
		g := geometry{display: tt.d, width: tt.width, height: tt.height}
		if got := g.point(tt.at); got != tt.want {
			t.Errorf("%s: %v, want %v", tt.name, got, tt.want)
		}
	}
}

// Image to point to image comes back within a pixel, also when the platform
// rounds the point, and never leaves the display.
func TestRoundTrip(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	c := DefaultConfig().Picture
	for _, scale := range []float64{1, 1.25, 1.5, 2, 0.999, 3} {
		for range 2000 {
			w, h := 300+rnd.IntN(8000), 300+rnd.IntN(5000)
			d := display(w, h, scale, float64(rnd.IntN(8000)-4000), float64(rnd.IntN(8000)-4000))
			g := geometry{display: d}
			g.width, g.height = c.fit(w, h)
			at := [2]float64{rnd.Float64() * float64(g.width), rnd.Float64() * float64(g.height)}
			p := g.point(at)
			if p.X < d.Origin[0] || p.Y < d.Origin[1] || p.X > d.Origin[0]+d.Points[0] || p.Y > d.Origin[1]+d.Points[1] {
				t.Fatalf("%v on %+v is at %v, outside the display", at, g, p)
			}
			back := g.place(p)
			for i := range 2 {
				if math.Abs(back[i]-at[i]) > 1e-6 {
					t.Fatalf("%v came back as %v", at, back)
				}
			}
			// A point is at least half a picture's pixel where pictures are not
			// enlarged, so rounding to whole points costs a pixel at scale 1.
			if scale == 1 {
				rounded := g.place(input.Point{X: math.Round(p.X), Y: math.Round(p.Y)})
				for i := range 2 {
					if math.Abs(rounded[i]-at[i]) > 1 {
						t.Fatalf("%v came back as %v from whole points", at, rounded)
					}
				}
			}
			if px := g.pixel(at); px.X < 0 || px.Y < 0 || px.X >= w || px.Y >= h {
				t.Fatalf("%v is pixel %v of %dx%d", at, px, w, h)
			}
		}
	}
}

func TestLine(t *testing.T) {
	g := geometry{display: display(2940, 1912, 2, 0, 0), width: 2940, height: 1912}
	if got, want := g.line([2]int{2940, 1912}), "screenshot 2940x1912 px · display 1470x956 pt · backing scale 2x · 1 screenshot px = 0.5x0.5 display pt"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	g = geometry{display: display(1920, 1080, 1, 0, 0), width: 1429, height: 804}
	if got, want := g.line([2]int{1920, 1080}), "screenshot 1429x804 px · display 1920x1080 pt · backing scale 1x · 1 screenshot px = 1.3436x1.3433 display pt · downscaled from 1920x1080 px"; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

func TestFit(t *testing.T) {
	fit := DefaultConfig().Picture
	original := PictureConfig{Size: "original"}
	open := PictureConfig{Size: "fit", MaxEdge: 9000, MaxPixels: 100_000_000}
	tests := []struct {
		c     PictureConfig
		w, h  int
		wantW int
		wantH int
	}{
		{fit, 1280, 800, 1280, 800},        // 1.02 MP: as it is
		{fit, 1568, 700, 1568, 700},        // exactly the edge
		{fit, 3136, 1400, 1568, 700},       // by the edge
		{fit, 2000, 2000, 1072, 1072},      // by the total: √1,150,000 = 1072.38
		{fit, 10000, 1, 1568, 1},           // never less than a pixel
		{open, 4000, 1000, 2000, 500},      // never over 2000 unless original
		{original, 3840, 2160, 3840, 2160}, // 8.3 MP
		{original, 6400, 3200, 4525, 2262}, // 20.48 MP: by √½
	}
	for _, tt := range tests {
		if w, h := tt.c.fit(tt.w, tt.h); w != tt.wantW || h != tt.wantH {
			t.Errorf("%+v: %dx%d becomes %dx%d, want %dx%d", tt.c, tt.w, tt.h, w, h, tt.wantW, tt.wantH)
		}
	}
}

func TestFitHoldsCaps(t *testing.T) {
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 20_000 {
		c := PictureConfig{Size: "fit", MaxEdge: 1 + rnd.IntN(4000), MaxPixels: 1 + rnd.IntN(4_000_000)}
		limit, pixels := min(c.MaxEdge, maxSide), c.MaxPixels
		if rnd.IntN(4) == 0 {
			c.Size, limit, pixels = "original", math.MaxInt, maxOriginal
		}
		w, h := 1+rnd.IntN(9000), 1+rnd.IntN(9000)
		gotW, gotH := c.fit(w, h)
		// One pixel is the least on a side, so a sliver may miss the total.
		if max(gotW, gotH) > limit || (gotW*gotH > pixels && min(gotW, gotH) > 1) {
			t.Fatalf("%+v: %dx%d becomes %dx%d, over the cap", c, w, h, gotW, gotH)
		}
		if gotW < 1 || gotH < 1 || gotW > w || gotH > h {
			t.Fatalf("%+v: %dx%d becomes %dx%d", c, w, h, gotW, gotH)
		}
		// The ratio is kept within a pixel, by the longer side's scale.
		s := float64(max(gotW, gotH)+1) / float64(max(w, h))
		if short, want := float64(min(gotW, gotH)), float64(min(w, h))*s; math.Abs(short-want) > 2 {
			t.Fatalf("%+v: %dx%d becomes %dx%d, another shape", c, w, h, gotW, gotH)
		}
	}
}

func TestPictures(t *testing.T) {
	var p pictures
	one, two := bridge.Caller{Client: "a", Conn: "1"}, bridge.Caller{Client: "a", Conn: "2"}
	http, other := bridge.Caller{Client: "a"}, bridge.Caller{Client: "b", Conn: "1"}
	is := func(c bridge.Caller, id, want string) {
		t.Helper()
		got := ""
		if g := p.find(c, id); g != nil {
			got = g.id
		}
		if got != want {
			t.Errorf("%+v asking for %q gets %q, want %q", c, id, got, want)
		}
	}
	is(one, "", "")
	p.add(one, &geometry{id: "first"})
	p.add(two, &geometry{id: "second"})
	is(one, "", "first")        // the last one on this connection
	is(two, "", "second")       //
	is(http, "", "second")      // no connection: the client's last one
	is(one, "second", "second") // by name, from any connection of the client
	is(other, "", "")           // another client has its own
	is(other, "first", "")      //
	p.forget(one)
	is(one, "", "second")
	p.add(http, &geometry{id: "third"})
	is(two, "", "second")
	is(one, "", "third")
	for i := range keptPictures {
		p.add(two, &geometry{id: fmt.Sprint(i)})
	}
	is(one, "third", "") // the oldest ones are forgotten
	is(one, "0", "0")
}

func TestPictureIDs(t *testing.T) {
	seen := map[string]bool{}
	for range 1000 {
		id := newPictureID()
		if seen[id] || len(id) != 9 {
			t.Fatalf("id %q", id)
		}
		seen[id] = true
	}
}
