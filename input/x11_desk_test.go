//go:build linux

package input

import (
	"context"
	"fmt"
	"image"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"golang.org/x/sys/unix"

	"drawbridge/capture"
	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
)

// What the tests of this layer run on: real X servers, real applications, and a
// window that notes what arrives.

// limit is how long a test waits for what a healthy machine does at once.
const limit = time.Minute

func startDesk(t testing.TB) *virtual.Virtual {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(context.Background(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

func openDriver(t testing.TB, v *virtual.Virtual, own bool) *x11Driver {
	t.Helper()
	d, err := OpenX11(v.Display(), own)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d.(*x11Driver)
}

func need(t testing.TB, program, pkg string) {
	t.Helper()
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("%s is missing: apt-get install %s", program, pkg)
	}
}

// eventually waits until f is true.
func eventually(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(limit); !f(); time.Sleep(2 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited in vain: %s", what)
		}
	}
}

// launch starts an application on the desk and waits until it has the keyboard.
func launch(t testing.TB, v *virtual.Virtual, d *x11Driver, name string, args ...string) {
	t.Helper()
	dir := t.TempDir()
	cmd := exec.Command(name, args...)
	cmd.Env = append(v.Env(), "LANG=C.UTF-8", "LC_ALL=C.UTF-8", "HOME="+dir, "GSETTINGS_BACKEND=memory", "NO_AT_BRIDGE=1",
		"XDG_CONFIG_HOME="+dir, "XDG_DATA_HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_RUNTIME_DIR="+dir,
		"DBUS_SESSION_BUS_ADDRESS=unix:path=/nonexistent")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		cmd.Wait()
	})
	before, err := d.ping.focus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, name+" gets the keyboard", func() bool {
		f, err := d.ping.focus(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return f.class != "" && f.client != before.client && strings.EqualFold(f.class, name)
	})
	f, err := d.ping.focus(t.Context())
	if err != nil || f.window == 0 {
		return // it does not speak the protocol
	}
	if ok, err := d.ping.waitFor(t.Context(), f.window, limit); !ok || err != nil {
		t.Fatalf("%s does not answer: %v", name, err)
	}
}

// editor starts mousepad on an empty file.
func editor(t testing.TB, v *virtual.Virtual, d *x11Driver) (file string) {
	t.Helper()
	need(t, "mousepad", "mousepad")
	file = filepath.Join(t.TempDir(), "text.txt")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	launch(t, v, d, "mousepad", "--disable-server", file)
	// Its window is there before its menu works.
	eventually(t, "the editor edits", func() bool {
		wipe(t, d)
		mustType(t, d, "x")
		chord(t, d, Control, "s")
		b, err := os.ReadFile(file)
		return err == nil && string(b) == "x"
	})
	wipe(t, d)
	if got := saved(t, d, file, ""); got != "" {
		t.Fatalf("the editor holds %q", got)
	}
	return file
}

// chord presses keys as a batch would.
func chord(t testing.TB, d *x11Driver, keys ...Key) {
	t.Helper()
	if err := d.chord(t.Context(), keys); err != nil {
		t.Fatal(err)
	}
	caughtUp(t, d)
}

// caughtUp waits until the application has taken all events: longer than Sync
// would, since a test knows that it answers.
func caughtUp(t testing.TB, d *x11Driver) {
	t.Helper()
	f, err := d.ping.focus(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if !d.ping.spoke[f.window] {
		return // a window of ours, or a terminal
	}
	if ok, err := d.ping.waitFor(t.Context(), f.window, limit); !ok || err != nil {
		t.Fatalf("the application does not catch up: %v", err)
	}
}

// saved saves in the editor and returns what the file holds once it is what the
// test wants, or stays another.
func saved(t testing.TB, d *x11Driver, file, want string) string {
	t.Helper()
	chord(t, d, Control, "s")
	var got string
	for end := time.Now().Add(limit); time.Now().Before(end); time.Sleep(2 * time.Millisecond) {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if got = string(b); got == want {
			break
		}
	}
	return got
}

// wipe empties the editor.
func wipe(t testing.TB, d *x11Driver) {
	t.Helper()
	chord(t, d, Control, "a")
	chord(t, d, Delete)
}

func mustType(t testing.TB, d *x11Driver, text string) {
	t.Helper()
	n, err := d.Type(t.Context(), text)
	if err != nil || n != len(text) {
		t.Fatalf("Type sent %d bytes of %d: %v", n, len(text), err)
	}
}

// diff describes where two texts part.
func diff(got, want string) string {
	g, w := []rune(got), []rune(want)
	for i := range min(len(g), len(w)) {
		if g[i] != w[i] {
			return fmt.Sprintf("%d characters, want %d; number %d is %q, want %q", len(g), len(w), i,
				string(g[i:min(i+20, len(g))]), string(w[i:min(i+20, len(w))]))
		}
	}
	return fmt.Sprintf("%d characters, want %d", len(g), len(w))
}

// logger is a window that notes the events it gets.
type logger struct {
	conn *x11.Conn
	win  xproto.Window
	evs  chan xgb.Event
}

// newLogger opens a window of 600 by 400 at (100, 100) that has the keyboard.
func newLogger(t testing.TB, v *virtual.Virtual) *logger {
	t.Helper()
	l := &logger{evs: make(chan xgb.Event, 1<<16)}
	c, err := x11.Dial(t.Context(), v.Display(), func(ev xgb.Event) { l.evs <- ev })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	l.conn = c
	if l.win, err = xproto.NewWindowId(c.Conn); err != nil {
		t.Fatal(err)
	}
	err = xproto.CreateWindowChecked(c.Conn, c.Screen.RootDepth, l.win, c.Root, 100, 100, 600, 400, 0,
		xproto.WindowClassInputOutput, c.Screen.RootVisual,
		xproto.CwBackPixel|xproto.CwOverrideRedirect|xproto.CwEventMask, []uint32{0xffffff, 1,
			xproto.EventMaskButtonPress | xproto.EventMaskButtonRelease | xproto.EventMaskPointerMotion |
				xproto.EventMaskKeyPress | xproto.EventMaskKeyRelease | xproto.EventMaskExposure}).Check()
	if err != nil {
		t.Fatal(err)
	}
	if err := xproto.MapWindowChecked(c.Conn, l.win).Check(); err != nil {
		t.Fatal(err)
	}
	for ev := range l.evs {
		if _, ok := ev.(xproto.ExposeEvent); ok {
			break
		}
	}
	if err := xproto.SetInputFocusChecked(c.Conn, xproto.InputFocusPointerRoot, l.win, 0).Check(); err != nil {
		t.Fatal(err)
	}
	l.take(t)
	return l
}

// take returns the events so far: P and R are buttons, M motion, K and k keys
// down and up; after the slash the state in hexadecimal. A round trip tells that
// all have arrived: the server sends them in order.
func (l *logger) take(t testing.TB) []string {
	t.Helper()
	a, err := xproto.InternAtom(l.conn.Conn, false, 10, "LOGGER_END").Reply()
	if err != nil {
		t.Fatal(err)
	}
	end := xproto.ClientMessageEvent{Format: 32, Window: l.win, Type: a.Atom, Data: xproto.ClientMessageDataUnionData32New(make([]uint32, 5))}
	if err := xproto.SendEventChecked(l.conn.Conn, false, l.win, 0, string(end.Bytes())).Check(); err != nil {
		t.Fatal(err)
	}
	var out []string
	for ev := range l.evs {
		switch e := ev.(type) {
		case xproto.ButtonPressEvent:
			out = append(out, fmt.Sprintf("P%d@%d,%d/%x", e.Detail, e.RootX, e.RootY, e.State))
		case xproto.ButtonReleaseEvent:
			out = append(out, fmt.Sprintf("R%d/%x", e.Detail, e.State))
		case xproto.MotionNotifyEvent:
			out = append(out, fmt.Sprintf("M%d,%d/%x", e.RootX, e.RootY, e.State))
		case xproto.KeyPressEvent:
			out = append(out, fmt.Sprintf("K%d/%x", e.Detail, e.State))
		case xproto.KeyReleaseEvent:
			out = append(out, fmt.Sprintf("k%d/%x", e.Detail, e.State))
		case xproto.ClientMessageEvent:
			if e.Type == a.Atom {
				return out
			}
		}
	}
	return out
}

func (l *logger) want(t testing.TB, want ...string) {
	t.Helper()
	if got := l.take(t); !slices.Equal(got, want) {
		t.Errorf("events %v\nwant   %v", got, want)
	}
}

// lineHeight is that of the editor's text with the fonts of a bare desk.
const lineHeight = 18

// textOrigin is where the editor's text begins. It looks for the white area,
// because what lies above it depends on who runs the editor.
func textOrigin(t testing.TB, v *virtual.Virtual, d *x11Driver) (x, y float64) {
	t.Helper()
	f, err := d.ping.focus(t.Context())
	if err != nil || f.window == 0 {
		t.Fatalf("no window has the keyboard: %v", err)
	}
	at, err := xproto.TranslateCoordinates(d.conn.Conn, f.window, d.conn.Root, 0, 0).Reply()
	if err != nil {
		t.Fatal(err)
	}
	src, err := capture.OpenX11(v.Display())
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	ds, err := src.Displays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	left, top := int(at.DstX), int(at.DstY)
	eventually(t, "the editor shows its white area", func() bool {
		// A column to the right of all text.
		pic, err := src.Grab(t.Context(), ds[0], image.Rect(left+500, top, left+501, top+400))
		if err != nil {
			t.Fatal(err)
		}
		defer pic.Release()
		white := 0
		for row := range pic.Height {
			if p := pic.Pix[row*pic.Stride:]; p[0] == 255 && p[1] == 255 && p[2] == 255 {
				white++
			} else {
				white = 0
			}
			if white == 200 {
				y = float64(top + row - 199)
				return true
			}
		}
		return false
	})
	return float64(left) + 4, y
}

// serverPID asks the kernel who is behind the display's socket.
func serverPID(t testing.TB, v *virtual.Virtual) int {
	t.Helper()
	c, err := net.Dial("unix", "/tmp/.X11-unix/X"+strings.TrimPrefix(v.Display(), ":"))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	raw, err := c.(*net.UnixConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var cred *unix.Ucred
	var credErr error
	if err := raw.Control(func(fd uintptr) {
		cred, credErr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil || credErr != nil {
		t.Fatal(err, credErr)
	}
	return int(cred.Pid)
}
