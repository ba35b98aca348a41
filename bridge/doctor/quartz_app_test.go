//go:build standin

package doctor

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// editorFixture is an application with one text that can be scrolled. What it has
// to tell to Accessibility it tells by properties, for the stand-in.
type editorFixture struct {
	t      *testing.T
	conn   *x11.Conn
	win    xproto.Window
	text   strings.Builder
	scroll int // in thousandths of the way
}

func openEditor(t *testing.T, display string) *editorFixture {
	t.Helper()
	f := &editorFixture{t: t, scroll: 1000}
	events := make(chan xgb.Event, 1<<14)
	var err error
	if f.conn, err = x11.Dial(t.Context(), display, func(ev xgb.Event) { events <- ev }); err != nil {
		t.Fatal(err)
	}
	c := f.conn.Conn
	if f.win, err = xproto.NewWindowId(c); err != nil {
		t.Fatal(err)
	}
	ask := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ask(xproto.CreateWindowChecked(c, f.conn.Screen.RootDepth, f.win, f.conn.Root, 200, 400, 400, 300, 0, xproto.WindowClassInputOutput, f.conn.Screen.RootVisual,
		xproto.CwBackPixel|xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{0xffffff, 1,
			xproto.EventMaskButtonPress | xproto.EventMaskKeyPress | xproto.EventMaskExposure}).Check())
	f.tell("WM_CLASS", "editor\x00Editor\x00")
	f.tell("_AX_ROLE", "AXTextArea")
	f.told()
	ask(xproto.MapWindowChecked(c, f.win).Check())
	for {
		if _, ok := (<-events).(xproto.ExposeEvent); ok {
			break
		}
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for ev := range events {
			f.event(ev)
		}
	}()
	t.Cleanup(func() {
		f.conn.Close()
		close(events)
		<-ended
	})
	return f
}

// tell sets a property; the server takes requests in their order.
func (f *editorFixture) tell(name, value string) {
	a, err := xproto.InternAtom(f.conn.Conn, false, uint16(len(name)), name).Reply()
	if err == nil {
		xproto.ChangeProperty(f.conn.Conn, xproto.PropModeReplace, f.win, a.Atom, xproto.AtomString, 8, uint32(len(value)), []byte(value))
	}
}

func (f *editorFixture) told() {
	f.tell("_AX_VALUE", f.text.String())
	f.tell("_AX_SCROLL", strconv.Itoa(f.scroll))
}

func (f *editorFixture) event(ev xgb.Event) {
	switch e := ev.(type) {
	case xproto.ButtonPressEvent:
		const up, down, step = 4, 5, 50
		switch e.Detail {
		case up:
			f.scroll = max(0, f.scroll-step)
		case down:
			f.scroll = min(1000, f.scroll+step)
		}
	case xproto.KeyPressEvent:
		m, err := xproto.GetKeyboardMapping(f.conn.Conn, e.Detail, 1).Reply()
		if err != nil {
			return
		}
		const ret = 0xff0d
		switch sym := m.Keysyms[e.State&xproto.ModMaskShift]; {
		case sym == ret:
			f.text.WriteByte('\n')
		case sym < 0x100:
			f.text.WriteRune(rune(sym))
		}
	}
	f.told()
}

// TestQuartzApp clicks, types and scrolls in another application. open(1) is faked:
// it gives that the keyboard, as the command brings an application to the front.
func TestQuartzApp(t *testing.T) {
	s, d := openMac(t)
	dir := t.TempDir()
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	opened := filepath.Join(dir, "opened")
	script := "#!/bin/sh\necho \"$@\" >" + opened + "\n[ \"$2\" != Nothing ] || { echo 'Unable to find application named' >&2; exit 1; }\n"
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	run := func(name string, f *editorFixture) Report {
		t.Helper()
		os.Remove(opened)
		came := make(chan struct{})
		go func() {
			defer close(came)
			for end := time.Now().Add(time.Minute); f != nil && time.Now().Before(end); time.Sleep(time.Millisecond) {
				if _, err := os.Stat(opened); err == nil {
					xproto.SetInputFocusChecked(f.conn.Conn, xproto.InputFocusPointerRoot, f.win, 0).Check()
					return
				}
			}
		}()
		defer func() { <-came }()
		return Run(t.Context(), Options{Desk: d, App: name})
	}
	bad := func(r Report) (names []string) {
		for _, c := range r.Checks {
			if !c.OK {
				names = append(names, c.Name+": "+c.Detail)
			}
		}
		return names
	}
	r := run("editor", openEditor(t, s.X()))
	if got := bad(r); got != nil || len(r.Checks) != 3 || !r.OK {
		t.Errorf("failed %q of %+v", got, r.Checks)
	}
	if b, err := os.ReadFile(opened); err != nil || string(b) != "-a editor\n" {
		t.Errorf("opened %q, %v", b, err)
	}
	// The wheel turns the other way: that is seen, and said.
	if err := s.Set("reversed", "1"); err != nil {
		t.Fatal(err)
	}
	if got := bad(run("Editor", openEditor(t, s.X()))); len(got) != 1 || !strings.Contains(got[0], "nothing was scrolled") && !strings.Contains(got[0], "scrolled down") {
		t.Errorf("failed %q", got)
	}
	if err := s.Set("reversed", "0"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Posted(); err != nil {
		t.Fatal(err)
	}
	// Nothing is sent to one that does not have the keyboard, or is not there.
	for _, name := range []string{"Other", "Nothing"} {
		if got := bad(run(name, nil)); len(got) != 3 || !strings.Contains(got[0], "not tried") {
			t.Errorf("%s: %q", name, got)
		}
	}
	log, err := s.Posted()
	if log = slices.DeleteFunc(log, func(e string) bool { return strings.HasPrefix(e, "capture ") }); err != nil || len(log) > 0 {
		t.Errorf("posted %q, %v", log, err)
	}
}
