package computer

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"sync"

	"golang.org/x/image/font/basicfont"
	"golang.org/x/image/math/fixed"

	"drawbridge/capture"
)

const (
	aroundTarget = 24  // points on each side of a target that are compared
	mostAround   = 32  // targets that are compared
	nearWidth    = 480 // pixels of the piece around the first target
	nearHeight   = 320
	muchChanged  = 0.05 // the part of pixels that must differ: more than a text cursor
)

// view is what a person is shown of a batch, and what is compared once the
// person has answered.
type view struct {
	tool    *Tool
	cfg     *Config
	batch   *batch
	geo     *geometry // nil when the batch has no coordinates
	display int
	around  []image.Rectangle // in the display's pixels

	mu   sync.Mutex // guards what follows
	seen [][]byte   // the pixels of around when they were last shown; nil: never
	near []byte     // around the first target as preview last showed it, as PNG
}

func (t *Tool) newView(cfg *Config, b *batch, geo *geometry, display int) *view {
	v := &view{tool: t, cfg: cfg, batch: b, geo: geo, display: display}
	if geo == nil {
		return v
	}
	whole := image.Rect(0, 0, geo.display.Pixels[0], geo.display.Pixels[1])
	half := max(1, int(aroundTarget*geo.display.Scale))
	for i := range b.actions {
		targets := b.actions[i].targets()
		if len(targets) > 2 {
			targets = [][2]float64{targets[0], targets[len(targets)-1]}
		}
		for _, at := range targets {
			p := geo.pixel(at)
			r := image.Rect(p.X-half, p.Y-half, p.X+half, p.Y+half).Intersect(whole)
			if !r.Empty() && len(v.around) < mostAround {
				v.around = append(v.around, r)
			}
		}
	}
	return v
}

// remember takes what is around the targets now as what was shown.
func (v *view) remember(ctx context.Context) {
	now, err := v.pixels(ctx)
	if err != nil {
		v.tool.log.Debug().Err(err).Msg("look around the targets")
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.seen = now
}

func (v *view) pixels(ctx context.Context) ([][]byte, error) {
	var all [][]byte
	for _, r := range v.around {
		f, err := v.tool.desk.Source.Grab(ctx, v.geo.display, r)
		if err != nil {
			return nil, fmt.Errorf("look around the targets: %w", err)
		}
		pix := make([]byte, 0, f.Width*f.Height*4)
		for y := range f.Height {
			pix = append(pix, f.Pix[y*f.Stride:][:f.Width*4]...)
		}
		f.Release()
		all = append(all, pix)
	}
	return all, nil
}

// changed reports whether the picture around the targets is another than the
// one that was shown. What it sees counts as shown from then on.
func (v *view) changed(ctx context.Context) (bool, error) {
	now, err := v.pixels(ctx)
	if errors.Is(err, capture.ErrDisplayChanged) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	before := v.seen
	v.seen = now
	if before == nil {
		return true, nil // it never could be looked at: show it now
	}
	for i := range now {
		if differ(before[i], now[i]) {
			return true, nil
		}
	}
	return false, nil
}

// differ compares two pictures of four bytes a pixel.
func differ(a, b []byte) bool {
	if len(a) != len(b) {
		return true
	}
	n := 0
	for i := 0; i < len(a); i += 4 {
		if a[i] != b[i] || a[i+1] != b[i+1] || a[i+2] != b[i+2] {
			n++
		}
	}
	return float64(n) > muchChanged*float64(len(a)/4)
}

// preview makes the picture that a person is shown, as PNG: the display as it is
// now, with each target marked and numbered as the actions are.
func (v *view) preview(ctx context.Context) ([]byte, error) {
	cfg := *v.cfg
	cfg.Picture.Format = "png"
	var s shot
	err := v.tool.shoot(ctx, &cfg, v.display, &s, func(d capture.Display) (*capture.Frame, error) {
		f, err := v.tool.desk.Source.Grab(ctx, d, image.Rectangle{})
		if err != nil {
			return nil, err
		}
		if v.geo != nil && sameDisplay(d, v.geo.display) {
			v.mark(f)
			v.keepNear(f)
		}
		return f, nil
	})
	if err != nil {
		return nil, err
	}
	if v.geo != nil {
		v.remember(ctx)
	}
	return s.data, nil
}

// keepNear keeps a piece of f around the first target, in full size.
func (v *view) keepNear(f *capture.Frame) {
	if len(v.around) == 0 {
		return
	}
	r := v.around[0]
	at := r.Min.Add(r.Max).Div(2)
	w, h := min(nearWidth, f.Width), min(nearHeight, f.Height)
	x, y := min(max(at.X-w/2, 0), f.Width-w), min(max(at.Y-h/2, 0), f.Height-h)
	piece := capture.NewFrame(f.Pix[y*f.Stride+x*4:(y+h-1)*f.Stride+(x+w)*4], f.Stride, w, h, nil)
	data, err := capture.Encode(piece, capture.EncodeOptions{Format: "png"})
	if err != nil {
		v.tool.log.Debug().Err(err).Msg("the piece around the first target")
		return
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.near = data
}

// closeup returns what preview showed last around the first target.
func (v *view) closeup() []byte {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.near
}

// mark draws the targets into f.
func (v *view) mark(f *capture.Frame) {
	w, _ := v.cfg.Picture.fit(f.Width, f.Height)
	size := (f.Width + w - 1) / w // keeps the marks readable once scaled down
	canvas := bgrx{f}
	for i := range v.batch.actions {
		targets := v.batch.actions[i].targets()
		var last image.Point
		for j, at := range targets {
			p := v.geo.pixel(at)
			if j > 0 {
				canvas.line(last, p, size)
			}
			if j == 0 || j == len(targets)-1 {
				canvas.cross(p, size)
			}
			if j == 0 {
				canvas.label(p.Add(image.Pt(6*size, -6*size)), fmt.Sprint(i), size)
			}
			last = p
		}
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
		w, long := pass.width, 10*size
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

// label writes text with its lower left corner at p, moved inside where needed.
func (c bgrx) label(p image.Point, text string, size int) {
	face := basicfont.Face7x13
	w, h := len(text)*face.Advance*size, face.Height*size
	p.X = min(max(p.X, 0), max(c.Width-w, 0))
	p.Y = min(max(p.Y, h), c.Height)
	c.fill(image.Rect(p.X-size, p.Y-h, p.X+w+size, p.Y), edgeColor)
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
					c.fill(image.Rect(q.X, q.Y, q.X+size, q.Y+size), markColor)
				}
			}
		}
		dot.X += advance
	}
}
