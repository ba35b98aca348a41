// Package canvas is a capture source without a screen: displays in memory, on
// which a test paints what a look is to find. It follows the contract of
// capture.Source: frames are blue, green, red and one byte more, a part must
// lie inside its display, and a display that is not there as given has changed.
package canvas

import (
	"context"
	"errors"
	"fmt"
	"image"
	"image/color"
	"slices"
	"sync"

	"drawbridge/capture"
)

// Source is a set of painted displays. Make it with New.
type Source struct {
	// Before, if set, is called before each grab. An error is returned instead
	// of a frame. Set it before the first use.
	Before func(ctx context.Context, d capture.Display, r image.Rectangle) error

	mu       sync.Mutex // guards what follows
	displays []capture.Display
	screens  map[int]*image.RGBA // by display index
	lent     int
	idles    int
}

var _ capture.Source = (*Source)(nil)

// New returns black displays.
func New(displays ...capture.Display) *Source {
	s := &Source{}
	s.SetDisplays(displays...)
	return s
}

// SetDisplays replaces the displays, as when one is unplugged. All are black.
func (s *Source) SetDisplays(displays ...capture.Display) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.displays = slices.Clone(displays)
	s.screens = map[int]*image.RGBA{}
	for _, d := range displays {
		s.screens[d.Index] = image.NewRGBA(image.Rect(0, 0, d.Pixels[0], d.Pixels[1]))
	}
}

// Paint fills r, in pixels, of the display with this index.
func (s *Source) Paint(index int, r image.Rectangle, c color.RGBA) {
	s.mu.Lock()
	defer s.mu.Unlock()
	screen := s.screens[index]
	r = r.Intersect(screen.Bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			screen.SetRGBA(x, y, c)
		}
	}
}

// Lent is the number of frames that were not released yet.
func (s *Source) Lent() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.lent
}

// Idles is how often Idle was called.
func (s *Source) Idles() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.idles
}

// Displays implements capture.Source.
func (s *Source) Displays(ctx context.Context) ([]capture.Display, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.displays), ctx.Err()
}

// Grab implements capture.Source.
func (s *Source) Grab(ctx context.Context, d capture.Display, r image.Rectangle) (*capture.Frame, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if s.Before != nil {
		if err := s.Before(ctx, d, r); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if !slices.Contains(s.displays, d) {
		return nil, fmt.Errorf("display %d: %w", d.Index, capture.ErrDisplayChanged)
	}
	screen := s.screens[d.Index]
	if r.Empty() {
		r = screen.Bounds()
	}
	if !r.In(screen.Bounds()) {
		return nil, errors.New("the part to grab lies outside the display")
	}
	stride := r.Dx() * 4
	pix := make([]byte, stride*r.Dy())
	for y := range r.Dy() {
		for x := range r.Dx() {
			c := screen.RGBAAt(r.Min.X+x, r.Min.Y+y)
			copy(pix[y*stride+x*4:], []byte{c.B, c.G, c.R, 0xff})
		}
	}
	s.lent++
	return capture.NewFrame(pix, stride, r.Dx(), r.Dy(), func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.lent--
	}), nil
}

// Idle implements capture.Source.
func (s *Source) Idle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.idles++
}

// Close implements capture.Source.
func (s *Source) Close() error { return nil }
