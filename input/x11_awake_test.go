//go:build linux

package input

import (
	"strconv"
	"testing"
	"time"

	"github.com/jezek/xgb/screensaver"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11/power"
)

func TestKeepAwake(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	p := sitDown(t, v)
	ok, err := l.conn.Extension(t.Context(), "MIT-SCREEN-SAVER")
	if err != nil || !ok {
		t.Skip("the server has no screen saver", err)
	}
	blank := func() bool {
		r, err := screensaver.QueryInfo(l.conn.Conn, xproto.Drawable(l.conn.Root)).Reply()
		if err != nil {
			t.Fatal(err)
		}
		return r.State == screensaver.StateOn
	}
	if err := xproto.SetScreenSaverChecked(l.conn.Conn, 1, 0, xproto.BlankingPreferred, xproto.ExposuresAllowed).Check(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the display blanks after a second", blank)
	release, err := d.KeepAwake(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Move(1, 0); err != nil { // wakes it
		t.Fatal(err)
	}
	for end := time.Now().Add(2500 * time.Millisecond); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if blank() {
			t.Fatal("the display blanks while it is kept awake")
		}
	}
	release()
	eventually(t, "the display blanks again", blank)

	// A process that dies gives it back too.
	other := openDriver(t, v, true)
	if _, err := other.KeepAwake(t.Context()); err != nil {
		t.Fatal(err)
	}
	other.conn.Close()
	if err := p.Move(1, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the display blanks after the death of who kept it awake", blank)
}

func TestAsleep(t *testing.T) {
	v := startDesk(t)
	number, err := strconv.Atoi(v.Display()[1:])
	if err != nil {
		t.Fatal(err)
	}
	s, err := power.Start(t.TempDir(), number)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	driver, err := OpenX11(s.Display(), true)
	if err != nil {
		t.Fatal(err)
	}
	defer driver.Close()
	d := driver.(Sleeper)
	for _, c := range []struct {
		level uint16
		want  bool
	}{{power.On, false}, {power.Standby, true}, {power.Suspend, true}, {power.Off, true}, {power.On, false}} {
		s.Set(c.level)
		if asleep, err := d.Asleep(t.Context()); asleep != c.want || err != nil {
			t.Errorf("level %d: asleep %v, %v", c.level, asleep, err)
		}
	}
}

// The server's own screen saver counts as sleep, on a server without power
// management too.
func TestBlanked(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	p := sitDown(t, v)
	asleep := func() bool {
		asleep, err := d.Asleep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return asleep
	}
	if asleep() {
		t.Error("a fresh display sleeps")
	}
	if err := xproto.ForceScreenSaverChecked(d.conn.Conn, xproto.ScreenSaverActive).Check(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the display is blank", asleep)
	if err := p.Move(1, 0); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the person has woken the display", func() bool { return !asleep() })
}
