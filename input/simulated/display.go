package simulated

import (
	"context"
	"fmt"
	"image"
	"math"
	"slices"

	"drawbridge/capture"
	"drawbridge/input"
)

// picture is a display as it was drawn last.
type picture struct {
	rev   uint64
	shown capture.Display
	img   *image.RGBA // red and blue exchanged: see draw.go
}

// Displays lists the displays as they are now.
func (d *Desktop) Displays(ctx context.Context) ([]capture.Display, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, capture.ErrGone
	}
	return slices.Clone(d.displays), ctx.Err()
}

// SetDisplays changes the displays, as plugging one in or out does. The pointer
// moves to the nearest place that is still there; the window stays where it is.
func (d *Desktop) SetDisplays(displays ...capture.Display) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.displays = slices.Clone(displays)
	d.pointer = d.nearest(d.pointer)
	clear(d.pictures)
	d.rev++
}

// Grab draws a display, or a part of it, and writes the state file.
func (d *Desktop) Grab(ctx context.Context, display capture.Display, r image.Rectangle) (*capture.Frame, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, capture.ErrGone
	}
	if !d.capture {
		return nil, capture.ErrPermission
	}
	if !slices.Contains(d.displays, display) {
		return nil, fmt.Errorf("display %d: %w", display.Index, capture.ErrDisplayChanged)
	}
	whole := image.Rect(0, 0, display.Pixels[0], display.Pixels[1])
	if r.Empty() {
		r = whole
	}
	if !r.In(whole) {
		return nil, fmt.Errorf("part %v lies outside display %d, which is %v", r, display.Index, whole)
	}
	d.catchUp()
	p := d.pictures[display.Index]
	if p.rev != d.rev || p.shown != display {
		if p.img == nil || p.img.Rect != whole {
			p.img = image.NewRGBA(whole)
		}
		p.rev, p.shown = d.rev, display
		draw(p.img, display, &d.window, d.pointer, d.status())
		d.pictures[display.Index] = p
	}
	stride := 4 * r.Dx()
	pix := make([]byte, stride*r.Dy())
	for y := range r.Dy() {
		from := p.img.PixOffset(r.Min.X, r.Min.Y+y)
		copy(pix[y*stride:(y+1)*stride], p.img.Pix[from:from+stride])
	}
	d.save()
	return capture.NewFrame(pix, stride, r.Dx(), r.Dy(), nil), nil
}

// Idle forgets the drawn pictures.
func (d *Desktop) Idle() {
	d.mu.Lock()
	defer d.mu.Unlock()
	clear(d.pictures)
}

// nearest is the place on a display that lies nearest to p, as a display server
// confines its pointer. Called with mu held.
func (d *Desktop) nearest(p input.Point) input.Point {
	best, distance := p, math.Inf(1)
	for _, m := range d.displays {
		// The last place on a display is one pixel inside its far edge.
		edge := 1 / m.Scale
		q := input.Point{
			X: min(max(p.X, m.Origin[0]), m.Origin[0]+m.Points[0]-edge),
			Y: min(max(p.Y, m.Origin[1]), m.Origin[1]+m.Points[1]-edge),
		}
		if within := math.Hypot(q.X-p.X, q.Y-p.Y); within < distance {
			best, distance = q, within
		}
	}
	return best
}
