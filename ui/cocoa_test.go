//go:build standin

package ui

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ebitengine/purego/objc"

	"drawbridge/capture"
	"drawbridge/input/virtual"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
	"drawbridge/internal/x11/person"
	"drawbridge/packaging/standin"
)

func init() {
	runtime.LockOSThread()
	onFirstThread = func(run func() int) (code int) {
		quartz.Loop(func() {
			code = run()
			mac.close()
		})
		return code
	}
}

// macDesk is the desktop of all tests of this file: AppKit knows one display in
// its life. A person sits in front of it.
type macDesk struct {
	once sync.Once
	err  error
	v    *virtual.Virtual
	dir  string
	*standin.Desk
	*person.Person
}

var mac macDesk

// The size of the X display, which is the one display of the Mac, one pixel to a
// point.
const macWidth, macHeight = 1280, 800

func (m *macDesk) open() error {
	if err := virtual.Available(); err != nil {
		return err
	}
	var err error
	if m.dir, err = os.MkdirTemp("", "drawbridge-ui-"); err != nil {
		return err
	}
	m.v, err = virtual.Start(context.Background(), virtual.Options{Width: macWidth, Height: macHeight, Dir: filepath.Join(m.dir, "desktop")})
	if err != nil {
		return err
	}
	var cookie string
	for _, e := range m.v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	os.Setenv("XAUTHORITY", cookie) // the person's
	os.Setenv("DISPLAY", m.v.Display())
	m.Desk, err = standin.Open(m.v.Display(), cookie, fmt.Sprintf("1:0,0,%d,%d,1,0,0", macWidth, macHeight), filepath.Join(m.dir, "posted"))
	if err != nil {
		return err
	}
	m.Person, err = person.Open(context.Background(), m.v.Display())
	return err
}

// close leaves the X server to end with this process: Xlib ends a process whose
// server went away first.
func (m *macDesk) close() {
	if m.Person != nil {
		m.Person.Close()
	}
	os.RemoveAll(m.dir)
}

// picture takes a picture of a part of the display.
func (m *macDesk) picture(t *testing.T, r image.Rectangle) []byte {
	t.Helper()
	s, err := capture.OpenX11(m.v.Display())
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	all, err := s.Displays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Grab(t.Context(), all[0], r)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	png, err := capture.Encode(f, capture.EncodeOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return png
}

// openMac sits the person down in front of a Mac.
func openMac(t *testing.T) *macDesk {
	t.Helper()
	mac.once.Do(func() { mac.err = mac.open() })
	if errors.Is(mac.err, virtual.ErrMissing) {
		t.Skip(mac.err)
	}
	if mac.err != nil {
		t.Fatal(mac.err)
	}
	if err := cocoa.Start(); err != nil {
		t.Fatal(err)
	}
	return &mac
}

// main does something on the main thread.
func (m *macDesk) main(t *testing.T, f func()) {
	t.Helper()
	if err := cocoa.Main(f); err != nil {
		t.Fatal(err)
	}
}

// until waits for something; the limit is that of a machine that hangs.
func until(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !so(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not within 30 s: %s", what)
		}
	}
}

// on is where a view is on the X display.
func (m *macDesk) on(t *testing.T, view objc.ID) (x, y, w, h int) {
	t.Helper()
	m.main(t, func() {
		r := objc.Send[quartz.CGRect](view, cocoa.Sel("convertRect:toView:"), objc.Send[quartz.CGRect](view, cocoa.Sel("bounds")), objc.ID(0))
		f := objc.Send[quartz.CGRect](view.Send(cocoa.Sel("window")), cocoa.Sel("frame"))
		x, w, h = int(f.Origin.X+r.Origin.X), int(r.Size.Width), int(r.Size.Height)
		y = macHeight - int(f.Origin.Y+r.Origin.Y) - h
	})
	return x, y, w, h
}

// moveTo moves the person's mouse.
func (m *macDesk) moveTo(t *testing.T, x, y int) {
	t.Helper()
	if err := errors.Join(m.Move(-2*macWidth, -2*macHeight), m.Move(x, y)); err != nil {
		t.Fatal(err)
	}
}

func (m *macDesk) button(t *testing.T, down bool) {
	t.Helper()
	if err := m.Button(1, down); err != nil {
		t.Fatal(err)
	}
}

// click clicks into the middle of a view.
func (m *macDesk) click(t *testing.T, view objc.ID) {
	t.Helper()
	x, y, w, h := m.on(t, view)
	m.moveTo(t, x+w/2, y+h/2)
	m.button(t, true)
	m.button(t, false)
}
