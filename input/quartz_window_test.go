//go:build standin

package input

import (
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"
)

// tells gives the logger's window a property, for the stand-in's Accessibility.
func (l *logger) tells(t *testing.T, name, value string) {
	t.Helper()
	a, err := xproto.InternAtom(l.conn.Conn, false, uint16(len(name)), name).Reply()
	do(t, err)
	if value == "" {
		do(t, xproto.DeletePropertyChecked(l.conn.Conn, l.win, a.Atom).Check())
		return
	}
	do(t, xproto.ChangePropertyChecked(l.conn.Conn, xproto.PropModeReplace, l.win, a.Atom, xproto.AtomString, 8, uint32(len(value)), []byte(value)).Check())
}

// Accessibility tells what a thing is for; a field for passwords by name.
func TestQuartzRoles(t *testing.T) {
	m := openMac(t, onePlain)
	l := newLogger(t, m.v)
	l.tells(t, "WM_CLASS", "fixture\x00Fixture\x00")
	ask := func(want string) {
		t.Helper()
		for _, f := range []func() (*Window, error){
			func() (*Window, error) { return m.d.Under(t.Context(), Point{300, 300}) },
			func() (*Window, error) { return m.d.Focused(t.Context()) },
		} {
			for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
				// On a busy machine an answer may come too late to be told.
				w, err := f()
				if w != nil && w.App == "Fixture" && w.Role == want {
					break
				}
				if time.Now().After(end) {
					t.Fatalf("it is %+v, %v, its role is to be %q", w, err, want)
				}
			}
		}
	}
	ask("AXWindow")
	l.tells(t, "_AX_ROLE", "AXTextField")
	ask("AXTextField")
	l.tells(t, "_AX_SUBROLE", "AXSecureTextField")
	ask("AXSecureTextField")
}

// An application that answers nobody is named all the same, and is not waited for.
func TestQuartzHangs(t *testing.T) {
	m := openMac(t, onePlain)
	l := newLogger(t, m.v)
	l.tells(t, "WM_CLASS", "fixture\x00Fixture\x00")
	l.tells(t, "_AX_HANGS", "1")
	for end := time.Now().Add(limit); ; time.Sleep(time.Millisecond) {
		if w, err := m.d.Focused(t.Context()); w != nil && w.App == "Fixture" && w.Role == "" {
			break
		} else if time.Now().After(end) {
			t.Fatalf("the keyboard is with %+v, %v", w, err)
		}
	}
	for _, ax := range []string{"ok", "hang"} {
		m.set(t, "ax", ax)
		for range 3 {
			w, err := m.d.Under(t.Context(), Point{300, 300})
			if err != nil || w == nil || w.App != "Fixture" || w.Role != "" {
				t.Errorf("%s: %+v, %v", ax, w, err)
			}
		}
	}
	// The question of the first is still open, and the next ones did not queue up.
	if len(m.d.ax.turn) != 1 {
		t.Error("the answer was waited for")
	}
	m.d.ax.turn <- struct{}{} // until it ends
	<-m.d.ax.turn
}
