package ui

import (
	"bytes"
	"context"
	"image"
	"image/png"
	"sync"
	"time"

	"golang.org/x/image/draw"

	"drawbridge/bridge/gate"
)

const (
	previewTime  = 3 * time.Second
	previewWidth = 480 // of the small picture
)

// Previews makes the picture of each prompt once, so that all surfaces show the
// same, and no surface's own window is in it. The zero Previews works.
type Previews struct {
	// Made, if set, is told of each picture and the call that it belongs to.
	Made func(callID string, png []byte)

	mu  sync.Mutex // guards all
	all map[*gate.Pending]*preview
}

type preview struct {
	once sync.Once
	png  []byte
	near []byte // around the first target, in full size
}

// PNG returns a prompt's picture, nil where it has none. It is kept until the
// prompt is over.
func (v *Previews) PNG(ctx context.Context, p *gate.Pending) []byte { return v.get(ctx, p).png }

// Near returns the piece of it around the first target, in full size, nil where
// there is none.
func (v *Previews) Near(ctx context.Context, p *gate.Pending) []byte { return v.get(ctx, p).near }

func (v *Previews) get(ctx context.Context, p *gate.Pending) *preview {
	if p.Request == nil || p.Request.Preview == nil {
		return &preview{}
	}
	v.mu.Lock()
	e := v.all[p]
	if e == nil {
		if v.all == nil {
			v.all = map[*gate.Pending]*preview{}
		}
		e = &preview{}
		v.all[p] = e
		go func() { // ends with the prompt, as each does
			<-p.Done()
			v.mu.Lock()
			defer v.mu.Unlock()
			delete(v.all, p)
		}()
	}
	v.mu.Unlock()
	e.once.Do(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), previewTime)
		defer cancel()
		if data, err := p.Request.Preview(ctx); err == nil {
			e.png = data
			if p.Request.Closeup != nil {
				e.near = p.Request.Closeup()
			}
			if v.Made != nil {
				v.Made(p.Request.ID, data)
			}
		}
	})
	return e
}

// Small returns what fits beside a prompt: the piece around the first target, or
// else the whole picture made small; nil where it has none.
func (v *Previews) Small(ctx context.Context, p *gate.Pending) image.Image {
	e := v.get(ctx, p)
	data := e.near
	if data == nil {
		data = e.png
	}
	im, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	b := im.Bounds()
	if b.Dx() <= previewWidth {
		return im
	}
	small := image.NewRGBA(image.Rect(0, 0, previewWidth, max(1, b.Dy()*previewWidth/b.Dx())))
	draw.ApproxBiLinear.Scale(small, small.Bounds(), im, b, draw.Src, nil)
	return small
}
