//go:build linux

package input

import (
	"testing"
	"time"

	"github.com/jezek/xgb/dpms"
	"github.com/jezek/xgb/screensaver"
	"github.com/jezek/xgb/xproto"
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
	d := openDriver(t, v, true)
	if asleep, err := d.Asleep(t.Context()); asleep || err != nil {
		t.Errorf("a fresh display: %v, %v", asleep, err)
	}
	if ok, err := d.conn.Extension(t.Context(), "DPMS"); !ok || err != nil {
		t.Logf("this server has no DPMS (%v), so the display cannot be sent to sleep", err)
		return
	}
	dpms.Enable(d.conn.Conn)
	if err := dpms.ForceLevelChecked(d.conn.Conn, dpms.DPMSModeOff).Check(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the display sleeps", func() bool {
		asleep, err := d.Asleep(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return asleep
	})
}
