//go:build linux

package input

import (
	"bytes"
	"context"
	"errors"
	"strings"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// maxTitle is how much of a title is read, in units of four bytes: it is for
// people, and any program may set it to anything.
const maxTitle = 256

// windowRoles are the types of windows that applications and window managers
// agreed on, without their common prefix.
var windowRoles = []string{"normal", "dialog", "menu", "dropdown_menu", "popup_menu", "combo", "tooltip", "notification",
	"toolbar", "utility", "splash", "dock", "desktop", "dnd"}

func (d *x11Driver) Focused(ctx context.Context) (*Window, error) {
	t, err := d.ping.focus(ctx)
	if err == nil && t.class == "" {
		return nil, nil
	}
	var w *Window
	if err == nil {
		w, err = d.describe(ctx, t.named)
	}
	if err != nil {
		return nil, d.fail("name the window with the keyboard", err)
	}
	return w, nil
}

func (d *x11Driver) Under(ctx context.Context, p Point) (*Window, error) {
	found, err := d.windowAt(ctx, p)
	var w *Window
	if err == nil && found != 0 {
		w, err = d.describe(ctx, found)
	}
	if err != nil {
		return nil, d.fail("name the window under the pointer", err)
	}
	return w, nil
}

// windowAt finds the window at p; 0: there is none that names its program.
func (d *x11Driver) windowAt(ctx context.Context, p Point) (xproto.Window, error) {
	at, err := motion(p)
	if err != nil {
		return 0, err
	}
	// Down from the root, as far as the first window that names its program: the
	// window manager's frames have no name. Those on the way that was gone last are
	// asked together, since places are mostly near each other; an answer that leads
	// elsewhere makes those after it worthless.
	type inside struct {
		window xproto.Window
		at     xproto.TranslateCoordinatesCookie
		class  xproto.GetPropertyCookie
	}
	c, root := d.conn.Conn, d.conn.Root
	ask := func(w xproto.Window) inside {
		return inside{w, xproto.TranslateCoordinates(c, root, w, at.x, at.y),
			xproto.GetProperty(c, false, w, xproto.AtomWmClass, xproto.GetPropertyTypeAny, 0, maxTitle)}
	}
	d.wayLock.Lock()
	known := d.way
	d.wayLock.Unlock()
	way, err := x11.Await(ctx, d.conn, func() (way []xproto.Window, err error) {
		way = []xproto.Window{root}
		here := ask(root)
		next := make([]inside, len(known))
		for i, w := range known {
			next[i] = ask(w)
		}
		for {
			r, err := here.at.Reply()
			if isServerError(err) || err == nil && r.Child == 0 {
				return nil, nil
			}
			if err != nil {
				return nil, err
			}
			way = append(way, r.Child)
			if len(next) > 0 && next[0].window == r.Child {
				here, next = next[0], next[1:]
			} else {
				here, next = ask(r.Child), nil
			}
			class, err := here.class.Reply()
			if err != nil && !isServerError(err) {
				return nil, err
			}
			if err == nil && className(class) != "" {
				return way, nil
			}
		}
	})
	if len(way) == 0 || err != nil {
		return 0, err
	}
	d.wayLock.Lock()
	d.way = way[1:]
	d.wayLock.Unlock()
	return way[len(way)-1], nil
}

// describe reads a window's class and title.
func (d *x11Driver) describe(ctx context.Context, w xproto.Window) (*Window, error) {
	name, err := d.conn.Atom(ctx, "_NET_WM_NAME")
	if err != nil {
		return nil, err
	}
	kind, err := d.conn.Atom(ctx, "_NET_WM_WINDOW_TYPE")
	if err != nil {
		return nil, err
	}
	// A window's type is an atom, and atoms are looked up by name only.
	roles := map[xproto.Atom]string{}
	for _, r := range windowRoles {
		a, err := d.conn.Atom(ctx, "_NET_WM_WINDOW_TYPE_"+strings.ToUpper(r))
		if err != nil {
			return nil, err
		}
		roles[a] = r
	}
	return x11.Await(ctx, d.conn, func() (*Window, error) {
		// Asked together, answered in one round trip.
		c := d.conn.Conn
		size, place := xproto.GetGeometry(c, xproto.Drawable(w)), xproto.TranslateCoordinates(c, w, d.conn.Root, 0, 0)
		text := func(name xproto.Atom) xproto.GetPropertyCookie {
			return xproto.GetProperty(c, false, w, name, xproto.GetPropertyTypeAny, 0, maxTitle)
		}
		types := xproto.GetProperty(c, false, w, kind, xproto.AtomAtom, 0, 8)
		called, titled, titledBefore := text(xproto.AtomWmClass), text(name), text(xproto.AtomWmName)
		var described Window
		if g, err := size.Reply(); err == nil {
			if at, err := place.Reply(); err == nil {
				described.Bounds = Rect{float64(at.DstX), float64(at.DstY), float64(g.Width), float64(g.Height)}
			}
		}
		if t, err := types.Reply(); err == nil && t.Format == 32 {
			for v := t.Value; len(v) >= 4 && described.Role == ""; v = v[4:] {
				described.Role = roles[xproto.Atom(xgb.Get32(v))]
			}
		}
		class, e1 := called.Reply()
		title, e2 := titled.Reply()
		older, e3 := titledBefore.Reply()
		if err := errors.Join(e1, e2, e3); isServerError(err) {
			return nil, nil // it is gone
		} else if err != nil {
			return nil, err
		}
		if title.Format != 8 || len(title.Value) == 0 {
			title = older
		}
		described.App = className(class)
		if described.App == "" {
			return nil, nil
		}
		if title.Format == 8 {
			described.Title = strings.ToValidUTF8(string(title.Value), "\uFFFD")
		}
		return &described, nil
	})
}

// className reads the class out of a WM_CLASS property, which holds the instance,
// zero, the class, zero.
func className(p *xproto.GetPropertyReply) string {
	parts := bytes.Split(p.Value, []byte{0})
	if p.Format != 8 || len(parts) < 2 {
		return ""
	}
	return strings.ToValidUTF8(string(parts[1]), "\uFFFD")
}

// property reads a property; nothing when the window is gone or has none.
func property(c *xgb.Conn, w xproto.Window, name xproto.Atom) ([]byte, error) {
	p, err := xproto.GetProperty(c, false, w, name, xproto.GetPropertyTypeAny, 0, maxTitle).Reply()
	if isServerError(err) {
		return nil, nil
	}
	if err != nil || p.Format != 8 {
		return nil, err
	}
	return p.Value, nil
}
