// Package capture knows the displays and takes pictures of them. It knows
// nothing of MCP.
//
// Three spaces meet here. A display's *pixels* are its backing store; its
// *points* are where events go (a Retina display has two pixels a point); an
// *image* is what was finally encoded, perhaps smaller than the pixels.
package capture

import (
	"context"
	"errors"
	"image"
)

// Display is one display as it is now.
type Display struct {
	Index  int        // 0 is the main display
	Name   string     // the platform's name for it ("eDP-1"), for people
	Points [2]float64 // width, height in points
	Pixels [2]int     // width, height of the backing store
	Origin [2]float64 // of its top left corner in the global point space; may be negative
	Scale  float64    // pixels a point: 1 on X11, 2 on Retina
}

// Main reports whether d is the main display.
func (d Display) Main() bool { return d.Index == 0 }

// Frame is a picture in memory: four bytes a pixel, blue, green, red and one
// that is ignored, rows from the top, Stride bytes apart.
type Frame struct {
	Pix           []byte
	Stride        int
	Width, Height int

	release func()
}

// NewFrame wraps pix. release, which may be nil, is called once by Release.
func NewFrame(pix []byte, stride, width, height int, release func()) *Frame {
	return &Frame{Pix: pix, Stride: stride, Width: width, Height: height, release: release}
}

// Release gives the memory back to whoever lent it. Pix must not be used
// afterwards. Calling it again does nothing.
func (f *Frame) Release() {
	if f == nil || f.release == nil {
		return
	}
	r := f.release
	f.release, f.Pix = nil, nil
	r()
}

// Source looks at displays. Its methods may be called by several goroutines.
type Source interface {
	// Displays lists the displays as they are now, the main one first.
	Displays(ctx context.Context) ([]Display, error)
	// Grab takes the pixels of a display: all of them when r is empty, else the
	// part r, in pixels from the display's top left corner, which must lie
	// inside. It fails with ErrDisplayChanged when d is no longer as given.
	Grab(ctx context.Context, d Display, r image.Rectangle) (*Frame, error)
	// Idle gives back memory that is only kept to make the next Grab fast.
	Idle()
	Close() error
}

// Errors that a source returns by kind; test with errors.Is.
var (
	// ErrDisplayChanged: the display is gone, or has another size or place.
	ErrDisplayChanged = errors.New("the display changed")
	// ErrPermission: the platform shows us nothing until a person grants it.
	ErrPermission = errors.New("permission to record the screen is missing")
	// ErrLocked, ErrLoginWindow and ErrAsleep: there is nothing to see.
	ErrLocked      = errors.New("the screen is locked")
	ErrLoginWindow = errors.New("the login window is showing")
	ErrAsleep      = errors.New("the display is asleep")
	// ErrGone: the display server went away.
	ErrGone = errors.New("the display is gone")
)
