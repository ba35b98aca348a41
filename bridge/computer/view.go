package computer

import (
	"context"
	"errors"
	"fmt"
	"image"
	"sync"

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
// now, with what each action does marked and numbered as the actions are.
func (v *view) preview(ctx context.Context) ([]byte, error) {
	cfg := *v.cfg
	cfg.Picture.Format = "png"
	var s shot
	err := v.tool.shoot(ctx, &cfg, v.display, &s, func(d capture.Display) (*capture.Frame, error) {
		f, err := v.tool.desk.Source.Grab(ctx, d, image.Rectangle{})
		if err != nil {
			return nil, err
		}
		if v.geo == nil || sameDisplay(d, v.geo.display) {
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
