//go:build standin

package ui

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/ebitengine/purego/objc"
	"github.com/jezek/xgb/xproto"

	"drawbridge/capture"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
	"drawbridge/internal/x11"
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
	once    sync.Once
	err     error
	dir     string
	display string
	x       *x11.Conn
	*standin.Desk
	*person.Person
}

var mac macDesk

// The size of the X display, which is the one display of the Mac, one pixel to a
// point.
const macWidth, macHeight = 1280, 800

// errNoXvfb: the X server that stands in for the screen is not installed.
var errNoXvfb = errors.New("Xvfb is not installed (Debian package xvfb)")

// open starts an X server with no window manager, as macOS has none: jwm keeps
// the press of a button from a window that has no focus until its release.
func (m *macDesk) open() error {
	server, err := exec.LookPath("Xvfb")
	if err != nil {
		return errNoXvfb
	}
	if m.dir, err = os.MkdirTemp("", "drawbridge-ui-"); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(server, "-displayfd", "3", "-screen", "0", fmt.Sprintf("%dx%dx24", macWidth, macHeight), "-nolisten", "tcp", "-noreset", "-ac")
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // of the first thread, which lives as long as the process
	if err := quartz.Load(); err != nil {
		return err
	}
	var startErr error
	if err := quartz.OnMain(context.Background(), func() { startErr = cmd.Start() }); err != nil {
		return err
	}
	if startErr != nil {
		return startErr
	}
	w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return fmt.Errorf("Xvfb did not start: %w", err)
	}
	m.display = ":" + strings.TrimSpace(number)
	os.Setenv("DISPLAY", m.display)
	m.Desk, err = standin.Open(m.display, "", fmt.Sprintf("1:0,0,%d,%d,1,0,0", macWidth, macHeight), filepath.Join(m.dir, "posted"))
	if err != nil {
		return err
	}
	if m.x, err = x11.Dial(context.Background(), m.display, nil); err != nil {
		return err
	}
	m.Person, err = person.Open(context.Background(), m.display)
	return err
}

// close leaves the X server to end with this process: Xlib ends a process whose
// server went away first.
func (m *macDesk) close() {
	if m.Person != nil {
		m.Person.Close()
		m.x.Close()
	}
	os.RemoveAll(m.dir)
}

// picture takes a picture of a part of the display.
func (m *macDesk) picture(t *testing.T, r image.Rectangle) []byte {
	t.Helper()
	s, err := capture.OpenX11(m.display)
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

// picturesEnv names the directory into which the pictures of the documentation go.
const picturesEnv = "DRAWBRIDGE_PICTURES"

// save keeps a part of the display for the documentation.
func (m *macDesk) save(t *testing.T, name string, r image.Rectangle) {
	t.Helper()
	if dir := os.Getenv(picturesEnv); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, name), m.picture(t, r), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// pictureOf keeps a window for the documentation, with its title and its rim.
func (m *macDesk) pictureOf(t *testing.T, name string, window objc.ID) {
	t.Helper()
	var r image.Rectangle
	m.main(t, func() {
		f := objc.Send[quartz.CGRect](window, cocoa.Sel("frame"))
		r = image.Rect(int(f.Origin.X), macHeight-int(f.Origin.Y+f.Size.Height), int(f.Origin.X+f.Size.Width), macHeight-int(f.Origin.Y))
	})
	m.save(t, name, r.Intersect(image.Rect(0, 0, macWidth, macHeight)))
}

// openMac sits the person down in front of a Mac.
func openMac(t *testing.T) *macDesk {
	t.Helper()
	mac.once.Do(func() { mac.err = mac.open() })
	if errors.Is(mac.err, errNoXvfb) {
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

// moveTo moves the person's mouse, as a hand does: until the pointer is there,
// whatever the server's acceleration makes of each motion.
func (m *macDesk) moveTo(t *testing.T, x, y int) {
	t.Helper()
	until(t, fmt.Sprintf("the pointer is at %d,%d", x, y), func() bool {
		at, err := xproto.QueryPointer(m.x.Conn, m.x.Root).Reply()
		if err != nil {
			t.Fatal(err)
		}
		dx, dy := x-int(at.RootX), y-int(at.RootY)
		if dx != 0 || dy != 0 {
			if err := m.Move(dx, dy); err != nil {
				t.Fatal(err)
			}
		}
		return dx == 0 && dy == 0
	})
}

func (m *macDesk) button(t *testing.T, down bool) {
	t.Helper()
	if err := m.Button(1, down); err != nil {
		t.Fatal(err)
	}
}

// click clicks into the middle of a view, and lets go once the press is felt:
// AppKit then follows the mouse.
func (m *macDesk) click(t *testing.T, view objc.ID) {
	t.Helper()
	x, y, w, h := m.on(t, view)
	m.moveTo(t, x+w/2, y+h/2)
	m.press(t)
}

// press presses where the pointer is, and lets go once that is felt.
func (m *macDesk) press(t *testing.T) {
	t.Helper()
	m.button(t, true)
	until(t, "the press is felt", func() bool { return m.mode(t) == "NSEventTrackingRunLoopMode" })
	m.button(t, false)
	until(t, "the release is felt", func() bool { return m.mode(t) == "NSDefaultRunLoopMode" })
}

// mode is the main loop's.
func (m *macDesk) mode(t *testing.T) (mode string) {
	t.Helper()
	m.main(t, func() {
		mode = cocoa.Text(cocoa.Class("NSRunLoop").Send(cocoa.Sel("currentRunLoop")).Send(cocoa.Sel("currentMode")))
	})
	return mode
}

// X keycodes of a plain keyboard.
const (
	keyEscape = 9
	keyReturn = 36
	keyN      = 57
	keyO      = 32
)

// keys types on the person's keyboard.
func (m *macDesk) keys(t *testing.T, codes ...byte) {
	t.Helper()
	for _, c := range codes {
		if err := errors.Join(m.Key(c, true), m.Key(c, false)); err != nil {
			t.Fatal(err)
		}
	}
}

// window waits for the one visible window of a class, and returns it.
func (m *macDesk) window(t *testing.T, class string) (found objc.ID) {
	t.Helper()
	until(t, "a "+class, func() bool {
		all := m.windows(t, class)
		if len(all) == 1 {
			found = all[0]
		}
		return len(all) == 1
	})
	return found
}

// gone waits until no window of a class is visible.
func (m *macDesk) gone(t *testing.T, class string) {
	t.Helper()
	until(t, "no "+class, func() bool { return len(m.windows(t, class)) == 0 })
}

func (m *macDesk) windows(t *testing.T, class string) (found []objc.ID) {
	t.Helper()
	m.main(t, func() {
		all := cocoa.Class("NSApplication").Send(cocoa.Sel("sharedApplication")).Send(cocoa.Sel("windows"))
		cocoa.Each(all, func(w objc.ID) bool {
			if cocoa.Text(w.Send(cocoa.Sel("className"))) == class && objc.Send[bool](w, cocoa.Sel("isVisible")) {
				found = append(found, w)
			}
			return true
		})
	})
	return found
}

// views calls f with every view of a window, and what it says.
func (m *macDesk) views(t *testing.T, window objc.ID, f func(view objc.ID, class, text string)) {
	t.Helper()
	var walk func(objc.ID)
	walk = func(v objc.ID) {
		class, text := cocoa.Text(v.Send(cocoa.Sel("className"))), ""
		switch class {
		case "DrawbridgeButton":
			text = cocoa.Text(v.Send(cocoa.Sel("title")))
		case "NSTextField":
			text = cocoa.Text(v.Send(cocoa.Sel("stringValue")))
		case "NSTextView":
			text = cocoa.Text(v.Send(cocoa.Sel("string")))
		}
		f(v, class, text)
		cocoa.Each(v.Send(cocoa.Sel("subviews")), func(s objc.ID) bool { walk(s); return true })
	}
	m.main(t, func() { walk(cocoa.Content(window)) })
}

// find finds the view of a class that says text; every text fits "".
func (m *macDesk) find(t *testing.T, window objc.ID, class, text string) (found objc.ID) {
	t.Helper()
	var seen []string
	m.views(t, window, func(v objc.ID, c, s string) {
		if s != "" {
			seen = append(seen, c+" "+s)
		}
		if c == class && (s == text || text == "") {
			found = v
		}
	})
	if found == 0 {
		t.Fatalf("no %s says %q; there are\n%s", class, text, strings.Join(seen, "\n"))
	}
	return found
}

// says tells whether a window says something, in a part of a text.
func (m *macDesk) says(t *testing.T, window objc.ID, text string) (yes bool) {
	t.Helper()
	m.views(t, window, func(_ objc.ID, _, s string) { yes = yes || strings.Contains(s, text) })
	return yes
}

// TestCocoaReopen: the person opens the running application again.
func TestCocoaReopen(t *testing.T) {
	m := openMac(t)
	opened := make(chan struct{})
	cocoa.OnReopen(func() { close(opened) })
	defer cocoa.OnReopen(nil)
	m.main(t, func() {
		app := cocoa.Class("NSApplication").Send(cocoa.Sel("sharedApplication"))
		if objc.Send[bool](app.Send(cocoa.Sel("delegate")), cocoa.Sel("applicationShouldHandleReopen:hasVisibleWindows:"), app, false) {
			t.Error("AppKit is to open a window of its own")
		}
	})
	<-opened
}

// quitEnv has the test below end its own process, as macOS does when the person
// logs out.
const quitEnv = "DRAWBRIDGE_TEST_QUIT"

// TestCocoaQuit: macOS asks the application to end; it ends once the agent has.
func TestCocoaQuit(t *testing.T) {
	if os.Getenv(quitEnv) == "" {
		cmd := exec.Command(os.Args[0], "-test.run=^TestCocoaQuit$", "-test.v")
		cmd.Env = append(os.Environ(), quitEnv+"=1")
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "SKIP") {
			t.Skip(errNoXvfb)
		}
		if err != nil || !strings.Contains(string(out), "asked to quit") {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	openMac(t)
	asked := make(chan struct{})
	cocoa.OnQuit(func() { close(asked) })
	go func() {
		// It returns only with the answer, which ends the process.
		_ = cocoa.Main(func() {
			app := cocoa.Class("NSApplication").Send(cocoa.Sel("sharedApplication"))
			app.Send(cocoa.Sel("performSelectorOnMainThread:withObject:waitUntilDone:"), cocoa.Sel("terminate:"), objc.ID(0), false)
		})
	}()
	<-asked
	fmt.Println("asked to quit")
}
