package ui

import (
	"bytes"
	"image"
	"image/color"
	"image/png"
	"math"
)

// Icon is one picture of the status item. They differ in shape, not only in
// colour: a bridge that is down, one with something on it, one that is half up
// before a person, one that is closed, one that is broken, one with a sign that
// lets nothing pass.
type Icon uint8

// The icons.
const (
	IconReady Icon = iota
	IconWorking
	IconWaiting
	IconPaused
	IconProblem
	IconDenied
)

// Icons lists them all.
var Icons = []Icon{IconReady, IconWorking, IconWaiting, IconPaused, IconProblem, IconDenied}

func (i Icon) String() string {
	return [...]string{"ready", "working", "waiting", "paused", "problem", "denied"}[i]
}

// Form is what an icon is drawn for.
type Form uint8

// The forms.
const (
	FormLight    Form = iota // dark lines, for a light bar
	FormDark                 // light lines, for a dark bar
	FormTemplate             // black with an alpha channel, which macOS colours itself
	FormBoth                 // light lines with a dark rim, where the bar's colour is not known
)

// Forms lists them all.
var Forms = []Form{FormLight, FormDark, FormTemplate, FormBoth}

func (f Form) String() string {
	return [...]string{"light", "dark", "template", "both"}[f]
}

// shape tells how far a point is outside; below 0 it is inside. Units are those
// of the 24×24 grid that icons are designed on.
type shape func(x, y float64) float64

func line(x0, y0, x1, y1, width float64) shape {
	return func(x, y float64) float64 {
		dx, dy := x1-x0, y1-y0
		t := max(0, min(1, ((x-x0)*dx+(y-y0)*dy)/(dx*dx+dy*dy)))
		return math.Hypot(x-x0-t*dx, y-y0-t*dy) - width/2
	}
}

func ring(cx, cy, r, width float64) shape {
	return func(x, y float64) float64 { return math.Abs(math.Hypot(x-cx, y-cy)-r) - width/2 }
}

func disc(cx, cy, r float64) shape {
	return func(x, y float64) float64 { return math.Hypot(x-cx, y-cy) - r }
}

// shapes returns the bridge, and what is marked in a colour.
func (i Icon) shapes() (bridge, mark []shape) {
	bridge = []shape{line(4, 6, 4, 20, 2.6), line(20, 6, 20, 20, 2.6)} // the towers
	switch i {
	case IconReady:
		bridge = append(bridge, line(4, 16, 20, 16, 2.4), line(4.5, 7, 12, 15, 1.2), line(19.5, 7, 12, 15, 1.2))
	case IconWorking:
		bridge = append(bridge, line(4, 16, 20, 16, 2.4))
		mark = []shape{disc(12, 10.5, 3.6)}
	case IconWaiting:
		bridge = append(bridge, line(4, 17, 9, 11.5, 2.4), line(20, 17, 15, 11.5, 2.4))
		mark = []shape{line(12, 3.4, 12, 9.4, 2.6), disc(12, 13.6, 1.6)}
	case IconPaused:
		mark = []shape{line(9.6, 7.5, 9.6, 17, 2.8), line(14.4, 7.5, 14.4, 17, 2.8)}
	case IconProblem:
		bridge = append(bridge, line(4, 16, 8.5, 19.5, 2.4), line(20, 16, 15.5, 19.5, 2.4))
		mark = []shape{line(9, 6, 15, 13, 2.4), line(15, 6, 9, 13, 2.4)}
	case IconDenied:
		bridge = append(bridge, line(4, 19, 20, 19, 2.4))
		mark = []shape{ring(12, 10, 5, 2), line(8.8, 6.8, 15.2, 13.2, 2)}
	}
	return bridge, mark
}

var (
	inkDark  = color.NRGBA{0x22, 0x26, 0x2b, 0xff}
	inkLight = color.NRGBA{0xf2, 0xf4, 0xf6, 0xff}
	inkBlack = color.NRGBA{0, 0, 0, 0xff}
)

// accent is the colour of the mark. Templates have none.
func (i Icon) accent(f Form) color.NRGBA {
	if f == FormTemplate {
		return inkBlack
	}
	dark := f == FormLight // the lines are dark, so the mark must be too
	switch i {
	case IconWaiting:
		if dark {
			return color.NRGBA{0xb3, 0x5c, 0x00, 0xff}
		}
		return color.NRGBA{0xff, 0xb3, 0x40, 0xff}
	case IconProblem:
		if dark {
			return color.NRGBA{0xb4, 0x1c, 0x1c, 0xff}
		}
		return color.NRGBA{0xff, 0x6b, 0x6b, 0xff}
	case IconWorking:
		if dark {
			return color.NRGBA{0x15, 0x6b, 0x2e, 0xff}
		}
		return color.NRGBA{0x5f, 0xd8, 0x7c, 0xff}
	}
	if dark {
		return inkDark
	}
	return inkLight
}

// Draw draws the icon with size pixels on each side.
func (i Icon) Draw(f Form, size int) *image.NRGBA {
	bridge, mark := i.shapes()
	ink := map[Form]color.NRGBA{FormLight: inkDark, FormDark: inkLight, FormTemplate: inkBlack, FormBoth: inkLight}[f]
	im := image.NewNRGBA(image.Rect(0, 0, size, size))
	unit := 24 / float64(size)
	for py := range size {
		for px := range size {
			x, y := (float64(px)+0.5)*unit, (float64(py)+0.5)*unit
			var c over
			if f == FormBoth {
				c.paint(inkDark, coverage(append(bridge, mark...), x, y, unit, 1.1))
			}
			c.paint(ink, coverage(bridge, x, y, unit, 0))
			c.paint(i.accent(f), coverage(mark, x, y, unit, 0))
			im.SetNRGBA(px, py, c.color())
		}
	}
	return im
}

// PNG is Draw, encoded.
func (i Icon) PNG(f Form, size int) []byte {
	var b bytes.Buffer
	if err := png.Encode(&b, i.Draw(f, size)); err != nil { // a buffer takes everything
		panic(err)
	}
	return b.Bytes()
}

// coverage is how much of a pixel around (x, y) the shapes cover, grown by grow
// units. One pixel is unit wide.
func coverage(shapes []shape, x, y, unit, grow float64) float64 {
	d := math.Inf(1)
	for _, s := range shapes {
		d = min(d, s(x, y)-grow)
	}
	return max(0, min(1, 0.5-d/unit))
}

// over is a pixel that is painted on, premultiplied.
type over struct{ r, g, b, a float64 }

func (o *over) paint(c color.NRGBA, alpha float64) {
	o.r = o.r*(1-alpha) + float64(c.R)*alpha
	o.g = o.g*(1-alpha) + float64(c.G)*alpha
	o.b = o.b*(1-alpha) + float64(c.B)*alpha
	o.a = o.a*(1-alpha) + alpha
}

func (o *over) color() color.NRGBA {
	if o.a == 0 {
		return color.NRGBA{}
	}
	b := func(v float64) uint8 { return uint8(v/o.a + 0.5) }
	return color.NRGBA{b(o.r), b(o.g), b(o.b), uint8(o.a*255 + 0.5)}
}
