//go:build linux

package input

import (
	"context"
	"errors"
	"image"
	"math"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/atspi"
	"drawbridge/internal/x11"
)

const (
	// partTime is what a question about a part of a window may take in all, the
	// window system's share included.
	partTime = 40 * time.Millisecond
	// dialTime is what connecting to the accessibility bus may take. It happens
	// beside the questions, which go without it meanwhile.
	dialTime = 5 * time.Second
	// redialTime is how long a bus that could not be reached is left alone.
	redialTime = 5 * time.Second
)

// parts keeps the connection to the accessibility bus. There is one once a program
// with accessibility runs, and perhaps another one after it has ended.
type parts struct {
	life  context.Context
	end   context.CancelFunc
	dials sync.WaitGroup

	mu      sync.Mutex // guards what follows
	desktop *atspi.Desktop
	dialing chan struct{} // closed when a dial has ended; nil: none goes on
	tried   string        // the address of the last dial
	at      time.Time     // of its end
}

func newParts() *parts {
	p := &parts{}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

// get returns the connection; nil: there is none. announced is where the display
// says that the bus is; empty: it does not.
func (p *parts) get(ctx context.Context, announced string) *atspi.Desktop {
	desktop, dialing := p.now(announced)
	if dialing == nil {
		return desktop
	}
	select {
	case <-dialing:
	case <-ctx.Done():
		return nil
	}
	return p.open()
}

// open returns the connection that there is.
func (p *parts) open() *atspi.Desktop {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.desktop != nil {
		select {
		case <-p.desktop.Done():
			p.desktop = nil
		default:
		}
	}
	return p.desktop
}

// now is get without waiting.
func (p *parts) now(announced string) (*atspi.Desktop, <-chan struct{}) {
	if d := p.open(); d != nil {
		return d, nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.dialing != nil:
		return nil, p.dialing
	case p.life.Err() != nil, p.tried == announced && time.Since(p.at) < redialTime:
		return nil, nil
	}
	done := make(chan struct{})
	p.dialing = done
	p.dials.Go(func() {
		ctx, cancel := context.WithTimeout(p.life, dialTime)
		defer cancel()
		address := announced
		if address == "" {
			address = atspi.SessionAddress(ctx)
		}
		var desktop *atspi.Desktop
		if address != "" {
			// A bus that cannot be reached is as good as none.
			desktop, _ = atspi.Open(ctx, address)
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		p.desktop, p.dialing, p.tried, p.at = desktop, nil, announced, time.Now()
		close(done)
	})
	return nil, done
}

func (p *parts) close() {
	p.end()
	p.dials.Wait()
	if d := p.open(); d != nil {
		_ = d.Close() // an error says that it was closed already
	}
}

func (d *x11Driver) PartUnder(ctx context.Context, p Point) (*Part, error) {
	part, err := d.part(ctx, func(ctx context.Context) (xproto.Window, error) { return d.windowAt(ctx, p) },
		func(desktop *atspi.Desktop, ctx context.Context, w atspi.Window) (*atspi.Part, error) {
			return desktop.Under(ctx, w, image.Pt(int(math.Round(p.X)), int(math.Round(p.Y))))
		})
	return named(part), err
}

func (d *x11Driver) PartFocused(ctx context.Context) (*Part, error) {
	part, err := d.partFocused(ctx)
	return named(part), err
}

func (d *x11Driver) partFocused(ctx context.Context) (*atspi.Part, error) {
	return d.part(ctx, func(ctx context.Context) (xproto.Window, error) {
		t, err := d.ping.focus(ctx)
		return t.named, err
	}, (*atspi.Desktop).Keyboard)
}

func named(p *atspi.Part) *Part {
	if p == nil {
		return nil
	}
	return &Part{Role: p.Role, Secure: p.Secure}
}

// part asks about a window that find finds.
func (d *x11Driver) part(ctx context.Context, find func(context.Context) (xproto.Window, error),
	ask func(*atspi.Desktop, context.Context, atspi.Window) (*atspi.Part, error)) (*atspi.Part, error) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	desktop := d.parts.open()
	if desktop == nil {
		address, err := d.announced(ctx)
		if err != nil {
			return nil, d.fail("look for the accessibility bus", err)
		}
		if desktop = d.parts.get(ctx, address); desktop == nil {
			return nil, nil
		}
	}
	var w atspi.Window
	found, err := find(ctx)
	if err == nil && found != 0 {
		w, err = d.owner(ctx, found)
	}
	if err != nil {
		return nil, d.fail("find the window to ask about", err)
	}
	if w.PID == 0 {
		return nil, nil
	}
	part, err := ask(desktop, ctx, w)
	if errors.Is(err, atspi.ErrHung) {
		return nil, nil
	}
	return part, err
}

// announced reads where the display says that the accessibility bus is.
func (d *x11Driver) announced(ctx context.Context) (string, error) {
	name, err := d.conn.Atom(ctx, "AT_SPI_BUS")
	if err != nil {
		return "", err
	}
	b, err := x11.Await(ctx, d.conn, func() ([]byte, error) { return property(d.conn.Conn, d.conn.Root, name) })
	return string(b), err
}

// owner reads whose a window is, where, and what it is called.
func (d *x11Driver) owner(ctx context.Context, w xproto.Window) (atspi.Window, error) {
	name, err := d.conn.Atom(ctx, "_NET_WM_PID")
	if err != nil {
		return atspi.Window{}, err
	}
	titled, err := d.conn.Atom(ctx, "_NET_WM_NAME")
	if err != nil {
		return atspi.Window{}, err
	}
	return x11.Await(ctx, d.conn, func() (atspi.Window, error) {
		c := d.conn.Conn
		size, place := xproto.GetGeometry(c, xproto.Drawable(w)), xproto.TranslateCoordinates(c, w, d.conn.Root, 0, 0)
		title := xproto.GetProperty(c, false, w, titled, xproto.GetPropertyTypeAny, 0, maxTitle)
		pid, err := xproto.GetProperty(c, false, w, name, xproto.AtomCardinal, 0, 1).Reply()
		g, e1 := size.Reply()
		at, e2 := place.Reply()
		called, e3 := title.Reply()
		if err = errors.Join(err, e1, e2, e3); isServerError(err) {
			return atspi.Window{}, nil // it is gone
		}
		if err != nil || pid.Format != 32 || len(pid.Value) < 4 {
			return atspi.Window{}, err
		}
		x, y := int(at.DstX), int(at.DstY)
		return atspi.Window{ID: uint32(w), PID: xgb.Get32(pid.Value), At: image.Rect(x, y, x+int(g.Width), y+int(g.Height)),
			Title: string(called.Value)}, nil
	})
}
