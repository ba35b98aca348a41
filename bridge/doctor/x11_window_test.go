//go:build linux

package doctor

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
)

// startVirtual starts Xvfb and jwm for a test.
func startVirtual(t *testing.T) *virtual.Virtual {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(t.Context(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	return v
}

// startServer starts Xvfb with no window manager, and returns the display.
func startServer(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("Xvfb")
	if err != nil {
		t.Skip(err)
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	server := exec.Command(path, "-displayfd", "3", "-screen", "0", "1280x800x24", "-nolisten", "tcp", "-noreset")
	server.ExtraFiles = []*os.File{w}
	err = server.Start()
	w.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		server.Process.Kill()
		server.Wait()
	})
	var number int
	if _, err := fmt.Fscan(r, &number); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(":%d", number)
}

// tool runs a program on a display; the test is skipped where it is missing.
func tool(t *testing.T, env []string, stdin string, name string, args ...string) {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		t.Skipf("%s is missing: %v", name, err)
	}
	cmd := exec.CommandContext(t.Context(), path, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s %q: %v\n%s", name, args, err, out)
	}
}

// openX11 opens a window that waits for what is missed as long as it takes.
func openX11(t *testing.T, display string) *x11Window {
	t.Helper()
	win, err := openX11Window(t.Context(), display)
	if err != nil {
		t.Fatal(err)
	}
	w := win.(*x11Window)
	w.grace = time.Minute
	t.Cleanup(func() {
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestX11WindowSees plays a person with a program that is not ours, and holds
// what the window notes against that. There is no window manager: behind the grab
// of one the server may drop a click that follows another too fast, and xdotool
// does not wait.
func TestX11WindowSees(t *testing.T) {
	t.Parallel()
	display := startServer(t)
	w := openX11(t, display)
	spots := w.Spots()
	env := []string{"DISPLAY=" + display, "XAUTHORITY="}
	xdotool := func(args ...string) { t.Helper(); tool(t, env, "", "xdotool", args...) }
	move := func(p input.Point) []string {
		return []string{"mousemove", fmt.Sprint(p.X), fmt.Sprint(p.Y)}
	}
	at := func(p input.Point, args ...string) { t.Helper(); xdotool(append(move(p), args...)...) }
	from, to := spots.Drag[0], spots.Drag[1]
	tests := []struct {
		name string
		do   func()
		want Seen
	}{
		{"nothing", func() {}, Seen{}},
		{"click", func() { at(spots.Click, "click", "1") }, Seen{Clicks: []Click{{input.Left, 1}}}},
		{"other buttons", func() { at(spots.Click, "click", "2", "click", "3", "click", "8", "click", "9") },
			Seen{Clicks: []Click{{input.Middle, 1}, {input.Right, 1}, {input.Back, 1}, {input.Forward, 1}}}},
		{"double click", func() { at(spots.Click, "click", "--repeat", "2", "--delay", "1", "1") },
			Seen{Clicks: []Click{{input.Left, 1}, {input.Left, 2}}}},
		{"two clicks", func() { at(spots.Click, "click", "1", "sleep", "0.6", "click", "1") },
			Seen{Clicks: []Click{{input.Left, 1}, {input.Left, 1}}}},
		{"two places", func() {
			at(spots.Click, append([]string{"click", "1"}, append(move(spots.Scroll), "click", "1")...)...)
		}, Seen{Clicks: []Click{{input.Left, 1}, {input.Left, 1}}}},
		{"drag", func() {
			at(from, "mousedown", "1", "mousemove", fmt.Sprint(from.X+50), fmt.Sprint(from.Y+20),
				"mousemove", fmt.Sprint(to.X), fmt.Sprint(to.Y), "mouseup", "1")
		}, Seen{Drag: []input.Point{from, to}}},
		{"down", func() { at(spots.Scroll, "click", "5", "click", "5") }, Seen{Scroll: [2]float64{0, 2}}},
		{"up", func() { at(spots.Scroll, "click", "4") }, Seen{Scroll: [2]float64{0, -1}}},
		{"left", func() { at(spots.Scroll, "click", "6") }, Seen{Scroll: [2]float64{-1, 0}}},
		{"right", func() { at(spots.Scroll, "click", "7") }, Seen{Scroll: [2]float64{1, 0}}},
		{"text", func() { xdotool("key", "a", "A", "exclam", "space", "period", "Tab", "Return") }, Seen{Text: "aA! .\t\n"}},
		{"caps lock", func() { xdotool("key", "Caps_Lock", "a", "1", "shift+b", "Caps_Lock", "c") }, Seen{Text: "A1bc"}},
		{"chords", func() { xdotool("key", "ctrl+shift+a", "alt+x", "super+q") }, Seen{Chords: []Chord{
			{[]input.Key{input.Control, input.Shift}, "a"}, {[]input.Key{input.Alt}, "x"}, {[]input.Key{input.Command}, "q"}}}},
		{"modifiers alone", func() { xdotool("key", "ctrl", "shift", "alt") }, Seen{}},
		// Key 250 is bound anew for characters that no key has.
		{"new keymap", func() {
			conn := dial(t, display, nil)
			syms := []xproto.Keysym{unicodeSyms + '日', unicodeSyms + '😀'}
			if err := xproto.ChangeKeyboardMappingChecked(conn.Conn, 1, 250, 2, syms).Check(); err != nil {
				t.Fatal(err)
			}
			xdotool("key", "250", "shift+250")
		}, Seen{Text: "日😀"}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if err := w.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			tt.do()
			// The server merges motions that a window manager holds back, so of a
			// path only the ends are certain.
			ends := func(s Seen) Seen {
				if n := len(s.Drag); n > 2 {
					s.Drag = []input.Point{s.Drag[0], s.Drag[n-1]}
				}
				return s
			}
			got, err := w.Seen(t.Context(), func(s Seen) bool { return reflect.DeepEqual(ends(s), tt.want) })
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(ends(got), tt.want) {
				t.Errorf("seen %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestX11WindowPastes(t *testing.T) {
	t.Parallel()
	v := startVirtual(t)
	w := openX11(t, v.Display())
	conn := dial(t, v.Display(), nil)
	clipboard, err := conn.Atom(t.Context(), "CLIPBOARD")
	if err != nil {
		t.Fatal(err)
	}
	owner := func() xproto.Window {
		r, err := xproto.GetSelectionOwner(conn.Conn, clipboard).Reply()
		if err != nil {
			t.Fatal(err)
		}
		return r.Owner
	}
	for _, tt := range []struct{ name, keys, text string }{
		{"short", "ctrl+v", "日本語 👩‍💻\n\tend"},
		{"as in a terminal", "ctrl+shift+v", "é"},
		{"in parts", "ctrl+v", strings.Repeat("0123456789 äöü ", 40_000)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if err := w.Begin(t.Context()); err != nil {
				t.Fatal(err)
			}
			// xclip leaves a child behind that owns the clipboard; with its output
			// elsewhere it does not hold ours open. It ends with the display.
			before := owner()
			tool(t, v.Env(), tt.text, "sh", "-c", "command -v xclip >/dev/null || exit 0; exec xclip -selection clipboard -in >/dev/null 2>&1")
			if _, err := exec.LookPath("xclip"); err != nil {
				t.Skip(err)
			}
			// The child takes the clipboard when it gets to it.
			for end := time.Now().Add(time.Minute); owner() == before || owner() == 0; time.Sleep(time.Millisecond) {
				if time.Now().After(end) {
					t.Fatal("xclip does not take the clipboard")
				}
			}
			tool(t, v.Env(), "", "xdotool", "key", tt.keys)
			got, err := w.Seen(t.Context(), func(s Seen) bool { return s.Text == tt.text })
			if err != nil {
				t.Fatal(err)
			}
			if got.Text != tt.text || len(got.Chords) != 0 {
				t.Errorf("pasted %d bytes, want %d; chords %v", len(got.Text), len(tt.text), got.Chords)
			}
		})
	}
	t.Run("nobody has text", func(t *testing.T) {
		if err := w.Begin(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := xproto.SetSelectionOwnerChecked(conn.Conn, 0, clipboard, xproto.TimeCurrentTime).Check(); err != nil {
			t.Fatal(err)
		}
		tool(t, v.Env(), "", "xdotool", "key", "ctrl+v")
		w.grace = graceTime // nothing will come
		if got, err := w.Seen(t.Context(), func(s Seen) bool { return s.Text != "" }); err != nil || got.Text != "" {
			t.Errorf("seen %v, %v", got, err)
		}
	})
}

func dial(t *testing.T, display string, handle func(xgb.Event)) *x11.Conn {
	t.Helper()
	conn, err := x11.Dial(t.Context(), display, handle)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	return conn
}

// TestX11WindowReady covers the window, and takes the keyboard away from it.
func TestX11WindowReady(t *testing.T) {
	v := startVirtual(t)
	w := openX11(t, v.Display())
	spots := w.Spots()
	if err := w.Ready(t.Context(), spots.Click, spots.Scroll, spots.Drag[0], spots.Drag[1]); err != nil {
		t.Errorf("a new window is not ready for the pointer: %v", err)
	}
	if err := w.Ready(t.Context()); err != nil {
		t.Errorf("a new window is not ready for keys: %v", err)
	}
	conn := dial(t, v.Display(), nil)
	other, err := xproto.NewWindowId(conn.Conn)
	if err != nil {
		t.Fatal(err)
	}
	p := spots.Click
	err = xproto.CreateWindowChecked(conn.Conn, conn.Screen.RootDepth, other, conn.Root, int16(p.X)-5, int16(p.Y)-5, 10, 10, 0,
		xproto.WindowClassInputOutput, conn.Screen.RootVisual, xproto.CwOverrideRedirect, []uint32{1}).Check()
	if err == nil {
		err = xproto.MapWindowChecked(conn.Conn, other).Check()
	}
	if err == nil {
		err = xproto.SetInputFocusChecked(conn.Conn, xproto.InputFocusParent, other, xproto.TimeCurrentTime).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Ready(t.Context(), spots.Click); err == nil {
		t.Error("a covered window says it is ready for a click there")
	}
	if err := w.Ready(t.Context(), spots.Drag[0]); err != nil {
		t.Errorf("beside the cover: %v", err)
	}
	if err := w.Ready(t.Context()); err == nil {
		t.Error("a window without the keyboard says it is ready for keys")
	}
}

// TestX11WindowAnswersPingsInOrder: whoever has the answer knows that the keys
// before it have been taken.
func TestX11WindowAnswersPingsInOrder(t *testing.T) {
	v := startVirtual(t)
	w := openX11(t, v.Display())
	answers := make(chan uint32, 10)
	conn := dial(t, v.Display(), func(ev xgb.Event) {
		if e, ok := ev.(xproto.ClientMessageEvent); ok && e.Type == w.atoms.protocols {
			answers <- e.Data.Data32[1]
		}
	})
	err := xproto.ChangeWindowAttributesChecked(conn.Conn, conn.Root, xproto.CwEventMask, []uint32{xproto.EventMaskSubstructureNotify}).Check()
	if err != nil {
		t.Fatal(err)
	}
	tool(t, v.Env(), "", "xdotool", "key", "q")
	ping := xproto.ClientMessageEvent{Format: 32, Window: w.id, Type: w.atoms.protocols,
		Data: xproto.ClientMessageDataUnionData32New([]uint32{uint32(w.atoms.ping), 4711, uint32(w.id), 0, 0})}
	xproto.SendEvent(conn.Conn, false, w.id, 0, string(ping.Bytes()))
	select {
	case stamp := <-answers:
		if stamp != 4711 {
			t.Errorf("the answer carries %d, want 4711", stamp)
		}
	case <-time.After(time.Minute):
		t.Fatal("the ping is not answered")
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.seen.Text != "q" {
		t.Errorf("when the answer came the window had seen %q, want q", w.seen.Text)
	}
}

func TestX11WindowOutlivesNoServer(t *testing.T) {
	v := startVirtual(t)
	w, err := openX11Window(t.Context(), v.Display())
	if err != nil {
		t.Fatal(err)
	}
	v.Close()
	if _, err := w.Seen(t.Context(), func(Seen) bool { return true }); err == nil {
		t.Error("Seen reports no error without a server")
	}
	if err := w.Ready(t.Context(), w.Spots().Click); err == nil {
		t.Error("Ready reports no error without a server")
	}
	if err := w.Close(); err == nil {
		t.Error("Close reports no error without a server")
	}
	if w, err := openX11Window(context.Background(), v.Display()); err == nil {
		t.Error("a window opens without a server")
		w.Close()
	}
}

// TestX11WindowWithoutAWindowManager: nobody gives the window the keyboard, so
// it takes it.
func TestX11WindowWithoutAWindowManager(t *testing.T) {
	win, err := openX11Window(t.Context(), startServer(t))
	if err != nil {
		t.Fatal(err)
	}
	defer win.Close()
	if err := win.Ready(t.Context(), win.Spots().Click); err != nil {
		t.Error(err)
	}
	if err := win.Ready(t.Context()); err != nil {
		t.Error(err)
	}
}
