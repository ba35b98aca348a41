package simulated

import (
	"fmt"
	"image"
	"image/color"
	imagedraw "image/draw"
	"math"
	"strings"
	"sync"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomono"
	"golang.org/x/image/font/gofont/goregular"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"

	"drawbridge/capture"
	"drawbridge/input"
)

// Banner stands in every picture of the desktop.
const Banner = "SIMULATED DESKTOP - no real application"

// rgb makes a colour for a picture whose bytes are blue, green, red: an
// image.RGBA drawn with red and blue exchanged is one, without a second pass.
func rgb(hex uint32) color.RGBA {
	return color.RGBA{R: uint8(hex), G: uint8(hex >> 8), B: uint8(hex >> 16), A: 0xff}
}

var (
	colDesktop   = rgb(0x33566f)
	colBanner    = rgb(0xffd75e)
	colInk       = rgb(0x1f2933)
	colMuted     = rgb(0x66727f)
	colWhite     = rgb(0xffffff)
	colWindow    = rgb(0xf3f5f7)
	colTitle     = rgb(0x24405c)
	colLine      = rgb(0xb4bec8)
	colFocus     = rgb(0x1f7ae0)
	colSelection = rgb(0xbcd9fb)
	colButton    = rgb(0xdfe6ee)
	colPressed   = rgb(0xb9c7d6)
	colRow       = rgb(0xf4f8fc)
	colBox       = rgb(0xe8803a)
	colTarget    = rgb(0xd9f0df)
	colTargetOn  = rgb(0x7fcf95)
)

// typeface is one of the two fonts, with its faces by size in pixels. The
// fonts are compiled in, so that a picture needs nothing from the machine.
type typeface struct {
	ttf []byte

	mu    sync.Mutex // guards the rest, and the faces while they draw
	font  *opentype.Font
	faces map[float64]font.Face
}

var (
	sans = &typeface{ttf: goregular.TTF}
	mono = &typeface{ttf: gomono.TTF}
)

// load reads the font at its first use. Called with mu held.
func (t *typeface) load() {
	if t.font != nil {
		return
	}
	parsed, err := opentype.Parse(t.ttf)
	if err != nil {
		panic("the compiled-in font is broken: " + err.Error())
	}
	t.font, t.faces = parsed, map[float64]font.Face{}
}

// draw draws s; a face serves one drawing at a time.
func (t *typeface) draw(d font.Drawer, pixels float64, s string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.load()
	face := t.faces[pixels]
	if face == nil {
		var err error
		face, err = opentype.NewFace(t.font, &opentype.FaceOptions{Size: pixels, DPI: 72, Hinting: font.HintingFull})
		if err != nil {
			panic("the compiled-in font has no face: " + err.Error())
		}
		t.faces[pixels] = face
	}
	d.Face = face
	d.DrawString(s)
}

// has reports whether the font can show a grapheme. What is made of several
// characters would need a shaper.
func (t *typeface) has(grapheme string) bool {
	r, n := utf8.DecodeRuneInString(grapheme)
	if n != len(grapheme) {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.load()
	i, err := t.font.GlyphIndex(&sfnt.Buffer{}, r)
	return err == nil && i != 0
}

// canvas draws in points on a part of a display's picture.
type canvas struct {
	img    *image.RGBA
	scale  float64
	origin input.Point // the canvas's zero, in points from the picture's corner
}

// draw draws a whole display.
func draw(img *image.RGBA, d capture.Display, w *window, pointer input.Point, status string) {
	c := canvas{img: img, scale: d.Scale}
	c.fill(Rect{0, 0, d.Points[0], d.Points[1]}, colDesktop)
	c.fill(Rect{0, 0, d.Points[0], 24}, colBanner)
	c.text(sans, 13, 12, 17, colInk, Banner)
	c.text(sans, 13, 300, 17, colInk, fmt.Sprintf("display %d (%s), %g x %g points, scale %g", d.Index, d.Name, d.Points[0], d.Points[1], d.Scale))

	c.origin = input.Point{X: w.corner.X - d.Origin[0], Y: w.corner.Y - d.Origin[1]}
	w.draw(c, status)

	c.origin = input.Point{X: pointer.X - d.Origin[0], Y: pointer.Y - d.Origin[1]}
	c.arrow()
}

// clip is the canvas with its zero at r's corner, where nothing outside r is
// drawn.
func (c canvas) clip(r Rect) canvas {
	c.img = c.img.SubImage(c.pixels(r)).(*image.RGBA)
	c.origin = input.Point{X: c.origin.X + r[0], Y: c.origin.Y + r[1]}
	return c
}

func (c canvas) px(v float64) int { return int(math.Round(v * c.scale)) }

func (c canvas) pixels(r Rect) image.Rectangle {
	x, y := c.origin.X+r[0], c.origin.Y+r[1]
	return image.Rect(c.px(x), c.px(y), c.px(x+r[2]), c.px(y+r[3]))
}

func (c canvas) fill(r Rect, col color.Color) {
	imagedraw.Draw(c.img, c.pixels(r), image.NewUniform(col), image.Point{}, imagedraw.Src)
}

// frame draws r's border, as wide as given, inside r.
func (c canvas) frame(r Rect, width float64, col color.Color) {
	c.fill(Rect{r[0], r[1], r[2], width}, col)
	c.fill(Rect{r[0], r[1] + r[3] - width, r[2], width}, col)
	c.fill(Rect{r[0], r[1], width, r[3]}, col)
	c.fill(Rect{r[0] + r[2] - width, r[1], width, r[3]}, col)
}

// text draws s with the left end of its base line at x, y.
func (c canvas) text(t *typeface, size, x, y float64, col color.Color, s string) {
	t.draw(font.Drawer{
		Dst: c.img, Src: image.NewUniform(col),
		Dot: fixed.P(c.px(c.origin.X+x), c.px(c.origin.Y+y)),
	}, size*c.scale, s)
}

// arrow draws the pointer with its tip at the canvas's zero.
func (c canvas) arrow() {
	const height = 17.0
	for i := range int(height) {
		y := float64(i)
		width := y * 0.7
		if y > 12 {
			width = max(0, (height-y)*1.6)
		}
		c.fill(Rect{0, y, width + 2, 1}, colWhite)
		if y > 1 && y < height-2 {
			c.fill(Rect{1, y, width, 1}, colInk)
		}
	}
}

func (w *window) draw(c canvas, status string) {
	whole := Rect{0, 0, windowSize[0], windowSize[1]}
	c.fill(Rect{4, 4, whole[2], whole[3]}, rgb(0x274459)) // its shadow
	c.fill(whole, colWindow)
	c.fill(Rect{0, 0, whole[2], 32}, colTitle)
	c.text(sans, 15, 16, 21, colWhite, windowTitle)
	for i, col := range []color.RGBA{rgb(0x9db2c6), rgb(0x9db2c6), rgb(0xd9735f)} {
		c.fill(Rect{whole[2] - 68 + 20*float64(i), 11, 11, 11}, col)
	}
	c.frame(whole, 1, colTitle)

	c.text(sans, 13, 20, 59, colMuted, "Text")
	w.drawField(c)
	w.drawCheck(c)
	w.drawButton(c, Press, "Press me")
	w.drawButton(c, Clear, "Clear text")
	n := w.clicks
	c.text(sans, 13, 474, 162, colMuted, fmt.Sprintf("left %d   right %d   middle %d   double %d", n.Left, n.Right, n.Middle, n.Double))
	c.text(sans, 13, 20, 203, colMuted, fmt.Sprintf("List, scrolled by %g, %g", w.offset[0], w.offset[1]))
	w.drawList(c)
	c.text(sans, 13, 474, 203, colMuted, "Drag the box onto the target")
	w.drawDrag(c)

	c.fill(Rect{1, 492, whole[2] - 2, 1}, colLine)
	c.text(sans, 13, 20, 515, colInk, status)
}

// status is the line at the bottom of the window. Called with mu held.
func (d *Desktop) status() string {
	var heldDown []string
	for _, k := range d.keys {
		heldDown = append(heldDown, string(k))
	}
	for _, b := range d.buttons {
		heldDown = append(heldDown, b.String())
	}
	s := fmt.Sprintf("pointer %g, %g", d.pointer.X, d.pointer.Y)
	if d.window.chord != nil {
		s += "    last key " + strings.Join(d.window.chord, "+")
	}
	if heldDown != nil {
		s += "    held " + strings.Join(heldDown, ", ")
	}
	if d.caps {
		s += "    caps lock"
	}
	return s
}

// border draws a widget's edge; the one with the keyboard stands out.
func (w *window) border(c canvas, widget string) {
	if w.focus == widget {
		c.frame(w.rect(widget), 2, colFocus)
		return
	}
	c.frame(w.rect(widget), 1, colLine)
}

func (w *window) drawField(c canvas) {
	r := layout[Field]
	c.fill(r, colWhite)
	t := &w.field
	lines := t.lines()
	from, to := t.selection()
	in := c.clip(Rect{r[0] + fieldPad, r[1] + fieldPad, r[2] - 2*fieldPad, r[3] - 2*fieldPad})
	for i := t.top; i < min(len(lines), t.top+fieldLines); i++ {
		top := float64(i-t.top) * lineHeight
		for _, g := range lines[i].cells {
			x, width := float64(g.column)*cellWidth, float64(g.width)*cellWidth
			if g.at >= from && g.at < to {
				in.fill(Rect{x, top, width, lineHeight}, colSelection)
			}
			in.grapheme(g.grapheme, x, top, width)
		}
	}
	if w.focus == Field {
		row, column := place(lines, t.caret)
		in.fill(Rect{float64(column) * cellWidth, float64(row-t.top)*lineHeight + 2, 1.5, lineHeight - 3}, colFocus)
	}
	w.border(c, Field)
}

// grapheme draws what the font has; a coloured tile stands for the rest, the
// same one for the same grapheme.
func (c canvas) grapheme(g string, x, top, width float64) {
	if strings.TrimSpace(g) == "" {
		return
	}
	if mono.has(g) {
		c.text(mono, 15, x, top+14, colInk, g)
		return
	}
	hash := uint32(2166136261)
	for _, b := range []byte(g) {
		hash = (hash ^ uint32(b)) * 16777619
	}
	tile := Rect{x + 1, top + 2, width - 2, lineHeight - 4}
	c.fill(tile, rgb(hash&0x7f7f7f+0x707070))
	c.frame(tile, 1, colInk)
}

func (w *window) drawCheck(c canvas) {
	r := layout[Check]
	mark := Rect{r[0], r[1] + 3, 18, 18}
	c.fill(mark, colWhite)
	if w.checked {
		c.fill(Rect{mark[0] + 4, mark[1] + 4, 10, 10}, colFocus)
	}
	c.frame(mark, 1, colMuted)
	if w.focus == Check {
		c.frame(mark, 2, colFocus)
	}
	c.text(sans, 14, r[0]+28, r[1]+17, colInk, "Remember this choice")
}

func (w *window) drawButton(c canvas, widget, label string) {
	r := layout[widget]
	col := colButton
	if w.pressed.widget == widget {
		col = colPressed
	}
	c.fill(r, col)
	c.text(sans, 14, r[0]+22, r[1]+23, colInk, label)
	w.border(c, widget)
}

func (w *window) drawList(c canvas) {
	r := layout[List]
	c.fill(r, colWhite)
	in := c.clip(r)
	for row := range listRows {
		top := float64(row)*rowHeight - w.offset[1]
		if top <= -rowHeight || top >= r[3] {
			continue
		}
		switch {
		case row == w.row:
			in.fill(Rect{0, top, r[2], rowHeight}, colSelection)
		case row%2 == 1:
			in.fill(Rect{0, top, r[2], rowHeight}, colRow)
		}
		for column := range 6 {
			s := fmt.Sprintf("column %d", column+1)
			if column == 0 {
				s = fmt.Sprintf("Row %d", row+1)
			}
			in.text(sans, 14, 12+150*float64(column)-w.offset[0], top+17, colInk, s)
		}
	}
	c.thumb(Rect{r[0] + r[2] - 7, r[1], 6, r[3]}, 1, w.offset[1], listRows*rowHeight)
	c.thumb(Rect{r[0], r[1] + r[3] - 7, r[2], 6}, 0, w.offset[0], listWidth)
	w.border(c, List)
}

// thumb draws a scroll bar's handle: axis 0 is along, 1 is down.
func (c canvas) thumb(bar Rect, axis int, offset, content float64) {
	visible := bar[2+axis]
	bar[axis] += offset / content * visible
	bar[2+axis] = visible / content * visible
	c.fill(bar, colLine)
}

func (w *window) drawDrag(c canvas) {
	c.fill(dragPane, colWhite)
	c.frame(dragPane, 1, colLine)
	target := layout[Target]
	col := colTarget
	if w.onTarget() {
		col = colTargetOn
	}
	c.fill(target, col)
	c.frame(target, 2, colTargetOn)
	c.text(sans, 13, target[0]+24, target[1]+46, colInk, "target")
	c.fill(w.box, colBox)
	c.frame(w.box, 1, colInk)
	c.text(sans, 13, w.box[0]+14, w.box[1]+31, colWhite, "box")
}
