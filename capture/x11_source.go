//go:build linux

package capture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"slices"
	"sync"

	"github.com/jezek/xgb/randr"
	"github.com/jezek/xgb/shm"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// x11Source takes pictures of an X server's root window.
type x11Source struct {
	conn  *x11.Conn
	randr bool // has RandR 1.5, so knows its monitors

	mu     sync.Mutex
	shared bool       // guarded by mu; false: pictures come through the socket
	free   []*segment // guarded by mu
	gen    int        // guarded by mu; Idle and Close count it up
	closed bool       // guarded by mu
}

// OpenX11 looks at an X display; an empty name means $DISPLAY. Points of the
// global space are pixels of the root window, so origins are never negative and
// Scale is always 1. The pointer is not in the pictures.
func OpenX11(display string) (Source, error) {
	ctx := context.Background()
	c, err := x11.Dial(ctx, display, nil)
	if err != nil {
		return nil, err
	}
	s := &x11Source{conn: c}
	if err := s.setUp(ctx); err != nil {
		c.Close()
		return nil, fmt.Errorf("capture on the X display: %w", gone(err))
	}
	return s, nil
}

func (s *x11Source) setUp(ctx context.Context) error {
	if err := checkVisual(xproto.Setup(s.conn.Conn), s.conn.Screen); err != nil {
		return err
	}
	ok, err := s.conn.Extension(ctx, "RANDR")
	if err != nil {
		return err
	}
	if ok {
		v, err := x11.Await(ctx, s.conn, func() (*randr.QueryVersionReply, error) {
			return randr.QueryVersion(s.conn.Conn, 1, 5).Reply()
		})
		if err != nil {
			return err
		}
		s.randr = v.MajorVersion > 1 || v.MajorVersion == 1 && v.MinorVersion >= 5
	}
	if s.conn.Local {
		if s.shared, err = s.conn.Extension(ctx, "MIT-SHM"); err != nil {
			return err
		}
	}
	return nil
}

// checkVisual refuses screens whose pixels are not blue, green, red and a
// filler byte.
func checkVisual(setup *xproto.SetupInfo, screen *xproto.ScreenInfo) error {
	if screen.RootDepth != 24 && screen.RootDepth != 32 {
		return fmt.Errorf("the screen has a depth of %d bits; only 24 and 32 can be captured: start the X server with -depth 24", screen.RootDepth)
	}
	if setup.ImageByteOrder != xproto.ImageOrderLSBFirst {
		return errors.New("the X server sends pictures with the most significant byte first, which cannot be captured")
	}
	for _, f := range setup.PixmapFormats {
		if f.Depth == screen.RootDepth && f.BitsPerPixel != 32 {
			return fmt.Errorf("the X server sends %d bits a pixel; only 32 can be captured", f.BitsPerPixel)
		}
	}
	for _, d := range screen.AllowedDepths {
		for _, v := range d.Visuals {
			if v.VisualId == screen.RootVisual && (v.RedMask != 0xff0000 || v.GreenMask != 0xff00 || v.BlueMask != 0xff) {
				return fmt.Errorf("the screen orders its colours otherwise (red %#x, green %#x, blue %#x), which cannot be captured",
					v.RedMask, v.GreenMask, v.BlueMask)
			}
		}
	}
	return nil
}

// gone gives the end of the connection this package's name.
func gone(err error) error {
	if errors.Is(err, x11.ErrClosed) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

func (s *x11Source) Displays(ctx context.Context) ([]Display, error) {
	ds, err := s.displays(ctx)
	if err != nil {
		return nil, fmt.Errorf("list the X monitors: %w", gone(err))
	}
	return ds, nil
}

func (s *x11Source) displays(ctx context.Context) ([]Display, error) {
	if s.randr {
		ds, err := x11.Await(ctx, s.conn, s.monitors)
		if err != nil || len(ds) > 0 {
			return ds, err
		}
	}
	// No RandR, or every monitor is switched off: the root window is what there is.
	g, err := x11.Await(ctx, s.conn, func() (*xproto.GetGeometryReply, error) {
		return xproto.GetGeometry(s.conn.Conn, xproto.Drawable(s.conn.Root)).Reply()
	})
	if err != nil {
		return nil, err
	}
	return []Display{display("screen", 0, 0, g.Width, g.Height)}, nil
}

func display(name string, x, y int16, w, h uint16) Display {
	return Display{
		Name:   name,
		Points: [2]float64{float64(w), float64(h)},
		Pixels: [2]int{int(w), int(h)},
		Origin: [2]float64{float64(x), float64(y)},
		Scale:  1,
	}
}

// monitors lists what RandR calls monitors, the primary one first. It waits for
// replies and so runs inside Await.
func (s *x11Source) monitors() ([]Display, error) {
	r, err := randr.GetMonitors(s.conn.Conn, s.conn.Root, true).Reply()
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(r.Monitors, func(a, b randr.MonitorInfo) int {
		switch {
		case a.Primary == b.Primary:
			return 0
		case a.Primary:
			return -1
		}
		return 1
	})
	var ds []Display
	for _, m := range r.Monitors {
		if m.Width == 0 || m.Height == 0 {
			continue
		}
		// Not a made-up name where this fails: to whoever compares, a server that
		// dies right here would look like another display.
		name, err := xproto.GetAtomName(s.conn.Conn, m.Name).Reply()
		if err != nil {
			return nil, err
		}
		d := display(name.Name, m.X, m.Y, m.Width, m.Height)
		d.Index = len(ds)
		ds = append(ds, d)
	}
	return ds, nil
}

func (s *x11Source) Grab(ctx context.Context, d Display, r image.Rectangle) (*Frame, error) {
	full := image.Rect(0, 0, d.Pixels[0], d.Pixels[1])
	if r.Empty() {
		r = full
	}
	if !r.In(full) {
		return nil, fmt.Errorf("grab %v: it does not lie inside display %d, which is %dx%d", r, d.Index, full.Dx(), full.Dy())
	}
	if err := s.same(ctx, d); err != nil {
		return nil, err
	}
	at := r.Add(image.Pt(int(d.Origin[0]), int(d.Origin[1])))
	f, err := s.grab(ctx, at)
	if err == nil {
		return f, nil
	}
	// A screen that shrank in between makes the request fail; say so by name.
	if changed := s.same(ctx, d); errors.Is(changed, ErrDisplayChanged) {
		return nil, changed
	}
	return nil, fmt.Errorf("grab display %d: %w", d.Index, gone(err))
}

// same checks that d is still as the caller knows it. Asking costs some tens of
// microseconds, so there is no need to trust notifications.
func (s *x11Source) same(ctx context.Context, d Display) error {
	now, err := s.Displays(ctx)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(now, func(n Display) bool {
		return n.Name == d.Name && n.Pixels == d.Pixels && n.Origin == d.Origin
	}) {
		return fmt.Errorf("display %d (%s, %dx%d at %v): %w", d.Index, d.Name, d.Pixels[0], d.Pixels[1], d.Origin, ErrDisplayChanged)
	}
	return nil
}

func (s *x11Source) grab(ctx context.Context, r image.Rectangle) (*Frame, error) {
	seg, err := s.segment(ctx, r.Dx()*r.Dy()*4)
	if err != nil {
		return nil, err
	}
	if seg == nil {
		return s.grabBySocket(ctx, r)
	}
	_, err = x11.Await(ctx, s.conn, func() (*shm.GetImageReply, error) {
		return shm.GetImage(s.conn.Conn, xproto.Drawable(s.conn.Root), int16(r.Min.X), int16(r.Min.Y),
			uint16(r.Dx()), uint16(r.Dy()), 0xffffffff, xproto.ImageFormatZPixmap, seg.id, 0).Reply()
	})
	if err != nil {
		// The server may still write to the segment, so nobody else gets it.
		s.drop(seg)
		return nil, err
	}
	return NewFrame(seg.mem[:r.Dx()*r.Dy()*4], r.Dx()*4, r.Dx(), r.Dy(), func() { s.putBack(seg) }), nil
}

// chunkBytes is how much of a picture comes in one reply through the socket:
// xgb holds a whole reply in memory, and a call can only end between two.
const chunkBytes = 1 << 20

func (s *x11Source) grabBySocket(ctx context.Context, r image.Rectangle) (*Frame, error) {
	stride := r.Dx() * 4
	pix := getPixels(stride * r.Dy())
	rows := max(1, chunkBytes/stride)
	for y := 0; y < r.Dy(); y += rows {
		n := min(rows, r.Dy()-y)
		img, err := x11.Await(ctx, s.conn, func() (*xproto.GetImageReply, error) {
			return xproto.GetImage(s.conn.Conn, xproto.ImageFormatZPixmap, xproto.Drawable(s.conn.Root),
				int16(r.Min.X), int16(r.Min.Y+y), uint16(r.Dx()), uint16(n), 0xffffffff).Reply()
		})
		if err == nil && len(img.Data) < n*stride {
			err = fmt.Errorf("the X server sent %d bytes of a picture, expected %d", len(img.Data), n*stride)
		}
		if err != nil {
			putPixels(pix)
			return nil, err
		}
		copy((*pix)[y*stride:], img.Data[:n*stride])
	}
	return NewFrame(*pix, stride, r.Dx(), r.Dy(), func() { putPixels(pix) }), nil
}

// Idle gives the shared memory back.
func (s *x11Source) Idle() {
	s.mu.Lock()
	free := s.free
	s.free = nil
	s.gen++
	s.mu.Unlock()
	for _, seg := range free {
		s.drop(seg)
	}
}

func (s *x11Source) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.Idle()
	s.conn.Close()
	return nil
}
