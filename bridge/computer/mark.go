package computer

import (
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"drawbridge/capture"
)

// Lengths in units of a mark's size.
const (
	crossArm    = 10
	arrowLength = 36
	arrowHead   = 9
	mostQuoted  = 24 // characters of a text
)

// mark draws into f what the batch does: a cross where it clicks or moves to, the
// path of a drag, an arrow the way a scroll moves on, and keys and text in words
// beside the place that was pointed at last. Each has the number of its action.
func (v *view) mark(f *capture.Frame) {
	w, _ := v.cfg.Picture.fit(f.Width, f.Height)
	size := (f.Width + w - 1) / w // keeps the marks readable once scaled down
	m := marks{bgrx: bgrx{f}, size: size}
	pointed := image.Pt(0, f.Height) // where words go before anything was pointed at
	for i := range v.batch.actions {
		a := &v.batch.actions[i]
		if words := a.words(); words != "" {
			m.label(pointed.Add(image.Pt(crossArm*size, 3*crossArm*size)), fmt.Sprintf("%d: %s", i, words))
			continue
		}
		targets := a.targets()
		var last image.Point
		for j, at := range targets {
			p := v.geo.pixel(at)
			if j > 0 {
				m.line(last, p, size)
			}
			if j == 0 || j == len(targets)-1 {
				m.cross(p, size)
			}
			if j == 0 {
				m.arrow(p, a.scroll)
				m.number(p, i)
			}
			last = p
		}
		if targets != nil {
			pointed = last
		}
	}
}

// words are what an action does that has no place, for the picture. A text is cut,
// since the arguments beside the picture hold all of it; empty: it has a place, or
// does nothing.
func (a *action) words() string {
	switch a.spec.typ {
	case Type:
		text, more := a.text, ""
		if n := utf8.RuneCountInString(text); n > mostQuoted {
			text, more = string([]rune(text)[:mostQuoted]), fmt.Sprintf("... (%d characters)", n)
		}
		return a.spec.verb + " " + strconv.QuoteToASCII(text) + more
	case Keypress:
		var names []string
		for _, k := range a.mods {
			names = append(names, string(k))
		}
		if a.key != "" {
			names = append(names, string(a.key))
		}
		return a.spec.verb + " " + strings.Trim(strconv.QuoteToASCII(strings.Join(names, "+")), `"`)
	}
	return ""
}

// marks draws marks and keeps their labels from covering each other.
type marks struct {
	bgrx
	size  int
	taken []image.Rectangle // by labels
}

// arrow points from p the way that a scroll moves on. by is zero where there is
// none.
func (m *marks) arrow(p image.Point, by [2]float64) {
	length := math.Hypot(by[0], by[1])
	if length == 0 {
		return
	}
	dx, dy := by[0]/length, by[1]/length
	at := func(along, aside float64) image.Point {
		s := float64(m.size)
		return p.Add(image.Pt(int(math.Round(s*(along*dx-aside*dy))), int(math.Round(s*(along*dy+aside*dx)))))
	}
	tip := at(arrowLength, 0)
	m.line(p, tip, m.size)
	for _, side := range []float64{-1, 1} {
		m.line(tip, at(arrowLength-arrowHead, side*arrowHead), m.size)
	}
}

// bgrx draws into a frame, in one colour with a light edge that shows on any
// ground.
type bgrx struct{ *capture.Frame }

var (
	markColor = color.RGBA{R: 0xe0, G: 0x10, B: 0x60, A: 0xff}
	edgeColor = color.RGBA{R: 0xff, G: 0xff, B: 0xff, A: 0xff}
)

// fill paints r, as far as it lies inside.
func (c bgrx) fill(r image.Rectangle, k color.RGBA) {
	r = r.Intersect(image.Rect(0, 0, c.Width, c.Height))
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			copy(c.Pix[y*c.Stride+x*4:], []byte{k.B, k.G, k.R, k.A})
		}
	}
}

func (c bgrx) cross(p image.Point, size int) {
	for _, pass := range []struct {
		width int
		color color.RGBA
	}{{2 * size, edgeColor}, {size, markColor}} {
		w, long := pass.width, crossArm*size
		c.fill(image.Rect(p.X-long, p.Y-w, p.X+long+1, p.Y+w+1), pass.color)
		c.fill(image.Rect(p.X-w, p.Y-long, p.X+w+1, p.Y+long+1), pass.color)
	}
}

func (c bgrx) line(a, b image.Point, size int) {
	steps := max(abs(b.X-a.X), abs(b.Y-a.Y), 1)
	for i := range steps + 1 {
		p := image.Pt(a.X+(b.X-a.X)*i/steps, a.Y+(b.Y-a.Y)*i/steps)
		c.fill(image.Rect(p.X-size, p.Y-size, p.X+size+1, p.Y+size+1), markColor)
	}
}

func abs(n int) int { return max(n, -n) }

// number writes an action's number beside the cross at p.
func (m *marks) number(p image.Point, n int) {
	text, off := fmt.Sprint(n), 6*m.size
	at := p.Add(image.Pt(off, -off))
	if w := width(text) * m.size; at.X+w > m.Width { // on the other side
		at.X = p.X - off - w
	}
	m.label(at, text)
}

// width is how wide a text is, in units of a mark's size.
func width(text string) int { return len(text) * basicfont.Face7x13.Advance }

// label writes text with its lower left corner at p, moved inside and off other
// labels where needed.
func (m *marks) label(p image.Point, text string) {
	face, size := basicfont.Face7x13, m.size
	w, h := width(text)*size, face.Height*size
	p.X = min(max(p.X, 0), max(m.Width-w, 0))
	p.Y = min(max(p.Y, h), m.Height)
	box := func() image.Rectangle { return image.Rect(p.X-size, p.Y-h, p.X+w+size, p.Y) }
	// Down while there is room, else up from the bottom.
	step := h + size
	for range m.Height / step {
		if !slices.ContainsFunc(m.taken, box().Overlaps) {
			break
		}
		if p.Y+step > m.Height {
			step = -step
		}
		p.Y += step
	}
	m.taken = append(m.taken, box())
	m.fill(box(), edgeColor)
	dot := fixed.P(0, face.Ascent)
	for _, r := range text {
		at, mask, maskAt, advance, ok := face.Glyph(dot, r)
		if !ok {
			continue
		}
		glyph := image.NewAlpha(image.Rect(0, 0, at.Dx(), at.Dy()))
		draw.Draw(glyph, glyph.Bounds(), mask, maskAt, draw.Src)
		for y := range at.Dy() {
			for x := range at.Dx() {
				if glyph.AlphaAt(x, y).A > 0 {
					q := image.Pt(p.X+(at.Min.X+x)*size, p.Y-h+(at.Min.Y+y)*size)
					m.fill(image.Rect(q.X, q.Y, q.X+size, q.Y+size), markColor)
				}
			}
		}
		dot.X += advance
	}
}
