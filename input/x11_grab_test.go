//go:build linux

package input

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"
)

// The codes of the keys on Xvfb's keyboard (evdev).
const (
	codeEscape   = 9
	codeControl  = 37
	codeAlt      = 64
	codeCapsLock = 66
	codeNumLock  = 77
)

func TestGrab(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	l := newLogger(t, v)
	p := sitDown(t, v)
	pressed := make(chan time.Time, 16)
	g, err := d.Grab(t.Context(), []Key{Control, Alt}, Escape, func() { pressed <- time.Now() })
	if err != nil {
		t.Fatal(err)
	}
	keys := func(codes ...byte) {
		t.Helper()
		for _, c := range codes {
			if err := p.Key(c, true); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range slices.Backward(codes) {
			if err := p.Key(c, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	chord := func(lock byte) {
		t.Helper()
		if lock != 0 {
			keys(lock)
			defer keys(lock)
		}
		l.take(t)
		keys(codeControl, codeAlt, codeEscape)
		select {
		case <-pressed:
		case <-time.After(limit):
			t.Fatalf("the chord was not heard, with lock %d", lock)
		}
		for _, ev := range l.take(t) {
			if strings.HasPrefix(ev, "K9/") {
				t.Errorf("a window got the chord: %s", ev)
			}
		}
	}
	chord(0)
	chord(codeCapsLock)
	chord(codeNumLock)

	// Fewer keys, and more, are not the chord.
	l.take(t)
	keys(codeControl, codeEscape)
	keys(codeEscape)
	if got := strings.Join(l.take(t), " "); strings.Count(got, "K9/") != 2 {
		t.Errorf("other chords did not arrive: %s", got)
	}

	// It is heard while the keyboard is another program's, as under an open menu, and
	// while a batch holds one more modifier.
	if r, err := xproto.GrabKeyboard(l.conn.Conn, false, l.win, xproto.TimeCurrentTime, xproto.GrabModeAsync, xproto.GrabModeAsync).Reply(); err != nil || r.Status != xproto.GrabStatusSuccess {
		t.Fatalf("grab the keyboard: %+v, %v", r, err)
	}
	heard := func(what string) {
		t.Helper()
		select {
		case <-pressed:
		case <-time.After(limit):
			t.Fatalf("the chord was not heard %s", what)
		}
	}
	keys(codeControl, codeAlt, codeEscape)
	heard("under a menu")
	if err := xproto.UngrabKeyboardChecked(l.conn.Conn, xproto.TimeCurrentTime).Check(); err != nil {
		t.Fatal(err)
	}
	if err := d.Key(t.Context(), Shift, true); err != nil {
		t.Fatal(err)
	}
	keys(codeControl, codeAlt, codeEscape)
	heard("with Shift held")
	if err := d.Key(t.Context(), Shift, false); err != nil {
		t.Fatal(err)
	}
	// What a batch lets go of, the person still holds.
	if err := p.Key(codeControl, true); err != nil {
		t.Fatal(err)
	}
	for _, down := range []bool{true, false} {
		if err := d.Key(t.Context(), Control, down); err != nil {
			t.Fatal(err)
		}
	}
	keys(codeAlt, codeEscape)
	heard("after a batch's own Control")
	if err := p.Key(codeControl, false); err != nil {
		t.Fatal(err)
	}
	select {
	case <-pressed:
		t.Error("the chord was heard twice")
	default:
	}

	// What another program has taken cannot be had.
	if _, err := openDriver(t, v, true).Grab(t.Context(), []Key{Control, Alt}, Escape, func() {}); err == nil || !strings.Contains(err.Error(), "another program has taken it") {
		t.Errorf("taken twice: %v", err)
	}
	// The keys move: the chord moves with them.
	const spare = 200
	if err := xproto.ChangeKeyboardMappingChecked(l.conn.Conn, 1, codeEscape, 1, []xproto.Keysym{0}).Check(); err != nil {
		t.Fatal(err)
	}
	if err := xproto.ChangeKeyboardMappingChecked(l.conn.Conn, 1, spare, 1, []xproto.Keysym{0xff1b}).Check(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the chord is heard at its new place", func() bool {
		keys(codeControl, codeAlt, spare)
		select {
		case <-pressed:
			return true
		case <-time.After(50 * time.Millisecond):
			return false
		}
	})

	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	l.take(t)
	keys(codeControl, codeAlt, spare)
	if got := strings.Join(l.take(t), " "); !strings.Contains(got, "K200/") {
		t.Errorf("after Close the chord does not arrive: %s", got)
	}
}

func TestGrabRefuses(t *testing.T) {
	v := startDesk(t)
	d := openDriver(t, v, true)
	if _, err := d.Grab(t.Context(), []Key{Control}, "fnord", func() {}); err == nil {
		t.Error("a key that does not exist was taken")
	}
}
