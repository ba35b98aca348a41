//go:build linux

package input

import (
	"math"
	"strings"
	"testing"

	"github.com/jezek/xgb/xproto"
)

func TestWindows(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	ctx := t.Context()
	if w, err := d.Focused(ctx); w != nil || err != nil {
		t.Errorf("on an empty desk the keyboard is with %+v, %v", w, err)
	}
	if w, err := d.Under(ctx, Point{5, 5}); w != nil || err != nil {
		t.Errorf("on an empty desk lies %+v, %v", w, err)
	}
	editor(t, v, d)
	x, y := textOrigin(t, v, d)
	for name, f := range map[string]func() (*Window, error){
		"Focused": func() (*Window, error) { return d.Focused(ctx) },
		"Under":   func() (*Window, error) { return d.Under(ctx, Point{x, y}) },
	} {
		w, err := f()
		if err != nil || w == nil || w.App != "Mousepad" || !strings.Contains(w.Title, "text.txt") || w.Role != "normal" {
			t.Errorf("%s: %+v, %v", name, w, err)
		}
	}
	if w, err := d.Under(ctx, Point{1270, 790}); w != nil || err != nil {
		t.Errorf("beside the window lies %+v, %v", w, err)
	}
	if _, err := d.Under(ctx, Point{math.NaN(), 0}); err == nil {
		t.Error("a window lies nowhere")
	}

	// Whatever a program calls itself comes as text.
	l := newLogger(t, v)
	set := func(a xproto.Atom, b string) {
		if err := xproto.ChangePropertyChecked(l.conn.Conn, xproto.PropModeReplace, l.win, a, xproto.AtomString, 8, uint32(len(b)), []byte(b)).Check(); err != nil {
			t.Fatal(err)
		}
	}
	set(xproto.AtomWmName, "a\xffb")
	set(xproto.AtomWmClass, "only one part")
	if w, err := d.Focused(ctx); w != nil || err != nil {
		t.Errorf("a window without a class: %+v, %v", w, err)
	}
	set(xproto.AtomWmClass, "log\x00Log\xfe\x00")
	if w, err := d.Focused(ctx); err != nil || w == nil || w.App != "Log\uFFFD" || w.Title != "a\uFFFDb" ||
		w.Bounds != (Rect{100, 100, 600, 400}) {
		t.Errorf("a window with odd names: %+v, %v", w, err)
	}
}
