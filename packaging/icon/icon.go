// Package icon draws Drawbridge's pictures from one set of shapes: the icon of
// the app, and the glyph that a menu bar shows. The same input gives the same
// bytes on every machine.
package icon

import (
	"image"
	"image/color"
)

// Glyph draws the bridge between its towers as an n by n mask: opaque where the
// glyph is, which is what a template image of a menu bar wants. With raised the
// two leaves of the bridge stand up: nothing crosses.
func Glyph(n int, raised bool) *image.Alpha {
	m := image.NewAlpha(image.Rect(0, 0, n, n))
	copy(m.Pix, coverage(n, glyph(raised)))
	return m
}

// App draws the icon of the app: the glyph, bridge down, on a rounded plate with
// the margin that macOS icons have.
func App(n int) *image.NRGBA {
	plate := coverage(n, []shape{roundRect{100, 100, 924, 924, 185}})
	mark := coverage(n, glyph(false))
	top, bottom := color.NRGBA{0x3b, 0x7d, 0xd8, 0xff}, color.NRGBA{0x16, 0x2f, 0x6b, 0xff}
	m := image.NewNRGBA(image.Rect(0, 0, n, n))
	for y := range n {
		back := mix(top, bottom, y, n)
		for x := range n {
			i := y*n + x
			c := mix(back, color.NRGBA{0xf7, 0xf4, 0xea, 0xff}, int(mark[i]), 255)
			c.A = plate[i]
			if c.A != 0 { // so that what nobody sees has one value
				m.SetNRGBA(x, y, c)
			}
		}
	}
	return m
}

// mix goes from a to b by part of whole.
func mix(a, b color.NRGBA, part, whole int) color.NRGBA {
	at := func(a, b uint8) uint8 { return uint8((int(a)*(whole-part) + int(b)*part) / whole) }
	return color.NRGBA{at(a.R, b.R), at(a.G, b.G), at(a.B, b.B), 0xff}
}

// glyph is two towers with battlements, the water's edge below them, and the
// bridge between them.
func glyph(raised bool) []shape {
	s := []shape{rect(232, 752, 792, 800)}
	for _, x := range []int{232, 632} {
		s = append(s, rect(x, 330, x+160, 752))
		for i := range 3 {
			s = append(s, rect(x+60*i, 270, x+60*i+40, 330))
		}
	}
	if raised {
		return append(s,
			polygon{{392, 640}, {392, 590}, {462, 400}, {494, 412}},
			polygon{{632, 640}, {632, 590}, {562, 400}, {530, 412}},
		)
	}
	return append(s,
		rect(392, 600, 632, 650),
		// The chains.
		polygon{{392, 400}, {392, 440}, {492, 600}, {518, 600}},
		polygon{{632, 400}, {632, 440}, {532, 600}, {506, 600}},
	)
}
