//go:build linux

package doctor

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/input"
	"drawbridge/internal/x11"
)

// x11Size is the size asked for; a window manager may give another.
const x11Width, x11Height = 420, 260

// doubleClickTime is how far apart, in the server's milliseconds, two presses
// may be to count as a double click; GTK's default.
const doubleClickTime = 400

// A window manager may hold each press back until it has looked at it (a
// synchronous grab, to raise and focus what is clicked). Everything else
// overtakes the press meanwhile, pings too, and nothing tells when it is over. So
// what is seen counts once it has been quiet for a moment, and what is missed is
// waited for.
const (
	quietTime = 60 * time.Millisecond
	graceTime = 2 * time.Second
)

// x11Window is a plain managed window that notes what arrives in it. It does
// what an application does: it reads keys by the keymap in force, follows the
// keymap's changes, answers _NET_WM_PING in the order of its events, and pastes
// on Ctrl+V.
//
// Events come in on the connection's goroutine, which must not wait for the
// server, and are worked on by another, in their order.
type x11Window struct {
	conn   *x11.Conn
	id     xproto.Window
	gc     xproto.Gcontext
	hasGC  bool
	atoms  x11Atoms
	events *eventQueue
	done   chan struct{} // closed when the worker has ended
	grace  time.Duration // how long Seen waits for what is missed

	// The worker's own.
	keys    keymap
	pressed *xproto.ButtonPressEvent
	path    []input.Point
	last    lastClick
	paste   *paste

	mu      sync.Mutex // guards all below
	seen    Seen
	focused bool
	visible bool
	pasting bool
	fence   uint32        // the last fence that the worker reached
	changed chan struct{} // closed and replaced when one of the above changes
}

type x11Atoms struct {
	protocols, ping, fence, clipboard, utf8, incr, paste, active, check xproto.Atom
}

// lastClick is what the next press is compared with.
type lastClick struct {
	button xproto.Button
	at     input.Point
	time   xproto.Timestamp
	count  int
}

// paste is a transfer from the clipboard in parts.
type paste struct{ data []byte }

// openX11Window opens the window on an X display.
func openX11Window(ctx context.Context, display string) (Window, error) {
	ctx, cancel := context.WithTimeout(ctx, checkTime)
	defer cancel()
	w := &x11Window{grace: graceTime, events: newEventQueue(), done: make(chan struct{}), changed: make(chan struct{})}
	conn, err := x11.Dial(ctx, display, w.events.put)
	if err != nil {
		return nil, err
	}
	w.conn = conn
	if err := w.open(ctx); err != nil {
		w.events.close()
		conn.Close()
		return nil, fmt.Errorf("open a test window on X display %q: %w", display, err)
	}
	go w.work()
	if err := w.takeFocus(ctx); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

// open creates and maps the window.
func (w *x11Window) open(ctx context.Context) error {
	for name, a := range map[string]*xproto.Atom{
		"WM_PROTOCOLS": &w.atoms.protocols, "_NET_WM_PING": &w.atoms.ping, "_DRAWBRIDGE_FENCE": &w.atoms.fence,
		"CLIPBOARD": &w.atoms.clipboard, "UTF8_STRING": &w.atoms.utf8, "INCR": &w.atoms.incr,
		"_DRAWBRIDGE_PASTE": &w.atoms.paste, "_NET_ACTIVE_WINDOW": &w.atoms.active,
		"_NET_SUPPORTING_WM_CHECK": &w.atoms.check,
	} {
		var err error
		if *a, err = w.conn.Atom(ctx, name); err != nil {
			return err
		}
	}
	name, err := w.conn.Atom(ctx, "_NET_WM_NAME")
	if err != nil {
		return err
	}
	pid, err := w.conn.Atom(ctx, "_NET_WM_PID")
	if err != nil {
		return err
	}
	state, err := w.conn.Atom(ctx, "_NET_WM_STATE")
	if err != nil {
		return err
	}
	above, err := w.conn.Atom(ctx, "_NET_WM_STATE_ABOVE")
	if err != nil {
		return err
	}
	if w.keys, err = x11.Await(ctx, w.conn, w.readKeymap); err != nil {
		return err
	}
	const title = "Drawbridge test window"
	return w.conn.Do(ctx, func() error {
		c, screen := w.conn.Conn, w.conn.Screen
		id, err := xproto.NewWindowId(c)
		if err != nil {
			return err
		}
		w.id = id
		x := max(0, int(screen.WidthInPixels)-x11Width) / 2
		y := max(0, int(screen.HeightInPixels)-x11Height) / 3
		err = xproto.CreateWindowChecked(c, screen.RootDepth, id, screen.Root, int16(x), int16(y), x11Width, x11Height, 0,
			xproto.WindowClassInputOutput, screen.RootVisual, xproto.CwBackPixel|xproto.CwEventMask, []uint32{screen.WhitePixel,
				xproto.EventMaskButtonPress | xproto.EventMaskButtonRelease | xproto.EventMaskPointerMotion |
					xproto.EventMaskKeyPress | xproto.EventMaskKeyRelease | xproto.EventMaskExposure |
					xproto.EventMaskFocusChange | xproto.EventMaskVisibilityChange | xproto.EventMaskPropertyChange}).Check()
		if err != nil {
			return err
		}
		property := func(p, typ xproto.Atom, format byte, data []byte) {
			xproto.ChangeProperty(c, xproto.PropModeReplace, id, p, typ, format, uint32(len(data)/int(format/8)), data)
		}
		property(xproto.AtomWmName, xproto.AtomString, 8, []byte(title))
		property(name, w.atoms.utf8, 8, []byte(title))
		property(xproto.AtomWmClass, xproto.AtomString, 8, []byte("drawbridge-doctor\x00Drawbridge\x00"))
		property(pid, xproto.AtomCardinal, 32, words(uint32(os.Getpid())))
		property(w.atoms.protocols, xproto.AtomAtom, 32, words(uint32(w.atoms.ping)))
		property(state, xproto.AtomAtom, 32, words(uint32(above)))
		// WM_HINTS: the input field (flag 1) is set, so that we are given the focus.
		property(xproto.AtomWmHints, xproto.AtomWmHints, 32, words(1, 1, 0, 0, 0, 0, 0, 0, 0))
		// WM_NORMAL_HINTS: position (4) and size (8) were asked for by the program.
		hints := make([]uint32, 18)
		hints[0] = 4 | 8
		property(xproto.AtomWmNormalHints, xproto.AtomWmSizeHints, 32, words(hints...))
		w.openFont()
		return xproto.MapWindowChecked(c, id).Check()
	})
}

// openFont prepares the writing in the window. A server without the font shows
// the window without it: the title says the same.
func (w *x11Window) openFont() {
	c := w.conn.Conn
	font, err := xproto.NewFontId(c)
	if err != nil {
		return
	}
	if xproto.OpenFontChecked(c, font, 5, "fixed").Check() != nil {
		return
	}
	gc, err := xproto.NewGcontextId(c)
	if err != nil {
		return
	}
	err = xproto.CreateGCChecked(c, gc, xproto.Drawable(w.id), xproto.GcForeground|xproto.GcBackground|xproto.GcFont,
		[]uint32{w.conn.Screen.BlackPixel, w.conn.Screen.WhitePixel, uint32(font)}).Check()
	w.gc, w.hasGC = gc, err == nil
}

func words(v ...uint32) []byte {
	var b []byte
	for _, n := range v {
		b = binary.LittleEndian.AppendUint32(b, n) // the order that xgb announces
	}
	return b
}

// takeFocus waits until the window is in sight and has the keyboard. A window
// manager gives a new window the focus, or is asked to; without one we take it.
func (w *x11Window) takeFocus(ctx context.Context) error {
	if err := w.wait(ctx, func() bool { return w.visible }); err != nil {
		return fmt.Errorf("the test window does not come into sight: %w", err)
	}
	managed, err := x11.Await(ctx, w.conn, func() (bool, error) {
		r, err := xproto.GetProperty(w.conn.Conn, false, w.conn.Root, w.atoms.check, xproto.AtomWindow, 0, 1).Reply()
		return err == nil && len(r.Value) == 4, err
	})
	if err != nil {
		return err
	}
	err = w.conn.Do(ctx, func() error {
		c := w.conn.Conn
		if !managed {
			return xproto.SetInputFocusChecked(c, xproto.InputFocusParent, w.id, xproto.TimeCurrentTime).Check()
		}
		// Source 2: asked for by the person, who called for the doctor.
		ask := xproto.ClientMessageEvent{Format: 32, Window: w.id, Type: w.atoms.active,
			Data: xproto.ClientMessageDataUnionData32New([]uint32{2, 0, 0, 0, 0})}
		return xproto.SendEventChecked(c, false, w.conn.Root,
			xproto.EventMaskSubstructureNotify|xproto.EventMaskSubstructureRedirect, string(ask.Bytes())).Check()
	})
	if err == nil {
		err = w.wait(ctx, func() bool { return w.focused })
	}
	if err != nil {
		return fmt.Errorf("the test window does not get the keyboard: %w", err)
	}
	return nil
}

// wait returns once ok does, which is called with mu held, at each change.
func (w *x11Window) wait(ctx context.Context, ok func() bool) error {
	for {
		w.mu.Lock()
		done, changed := ok(), w.changed
		w.mu.Unlock()
		if done {
			return nil
		}
		select {
		case <-changed:
		case <-w.conn.Dead():
			return x11.ErrClosed
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// update changes what mu guards and wakes those who wait for it.
func (w *x11Window) update(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// Close destroys the window.
func (w *x11Window) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	err := w.conn.Do(ctx, func() error { return xproto.DestroyWindowChecked(w.conn.Conn, w.id).Check() })
	w.conn.Close()
	w.events.close()
	<-w.done
	return err
}

// place is where the window's top left corner is on the display now.
func (w *x11Window) place(ctx context.Context) (x, y float64, err error) {
	r, err := x11.Await(ctx, w.conn, func() (*xproto.TranslateCoordinatesReply, error) {
		return xproto.TranslateCoordinates(w.conn.Conn, w.id, w.conn.Root, 0, 0).Reply()
	})
	if err != nil {
		return 0, 0, err
	}
	return float64(r.DstX), float64(r.DstY), nil
}

// Spots are in the lower part, under the writing. Where the window is gone they
// are nowhere, and Ready says so.
func (w *x11Window) Spots() Spots {
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	x, y, err := w.place(ctx)
	if err != nil {
		x, y = math.Inf(-1), math.Inf(-1)
	}
	at := func(dx, dy float64) input.Point { return input.Point{X: x + dx, Y: y + dy} }
	return Spots{Click: at(210, 130), Scroll: at(210, 170), Drag: [2]input.Point{at(60, 120), at(360, 210)}}
}

// Ready looks at what lies under the points, or at who has the keyboard.
func (w *x11Window) Ready(ctx context.Context, at ...input.Point) error {
	for _, p := range at {
		ours, err := x11.Await(ctx, w.conn, func() (bool, error) { return w.under(p) })
		if err != nil {
			return err
		}
		if !ours {
			return fmt.Errorf("the test window is covered at %g, %g, so a press would go to another one", p.X, p.Y)
		}
	}
	if len(at) > 0 {
		return nil
	}
	focus, err := x11.Await(ctx, w.conn, func() (*xproto.GetInputFocusReply, error) {
		return xproto.GetInputFocus(w.conn.Conn).Reply()
	})
	if err != nil {
		return err
	}
	if focus.Focus != w.id {
		return errors.New("the test window has lost the keyboard, so keys would go to another one")
	}
	return nil
}

// under reports whether our window is the one that a press at p goes to.
func (w *x11Window) under(p input.Point) (bool, error) {
	if math.IsInf(p.X, 0) {
		return false, errors.New("the test window is gone")
	}
	for at := w.conn.Root; ; {
		r, err := xproto.TranslateCoordinates(w.conn.Conn, w.conn.Root, at, int16(p.X), int16(p.Y)).Reply()
		if err != nil {
			return false, err
		}
		if r.Child == 0 {
			return at == w.id, nil
		}
		at = r.Child
	}
}

// Begin lets what is still on its way arrive before it forgets.
func (w *x11Window) Begin(ctx context.Context) error { return w.catchUp(ctx, true) }

func (w *x11Window) Seen(ctx context.Context, enough func(Seen) bool) (Seen, error) {
	if err := w.catchUp(ctx, false); err != nil {
		return Seen{}, err
	}
	grace := time.NewTimer(w.grace)
	defer grace.Stop()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		w.mu.Lock()
		seen, changed := w.seen, w.changed
		seen.Clicks, seen.Chords = slices.Clone(seen.Clicks), slices.Clone(seen.Chords)
		w.mu.Unlock()
		select {
		case <-changed:
			quiet.Reset(quietTime)
		case <-quiet.C:
			if enough(seen) {
				return seen, nil
			}
		case <-grace.C:
			return seen, nil
		case <-w.conn.Dead():
			return Seen{}, fmt.Errorf("read back from the test window: %w", x11.ErrClosed)
		case <-ctx.Done():
			return Seen{}, fmt.Errorf("read back from the test window: %w", ctx.Err())
		}
	}
}

// catchUp sends a message to the window and waits until it has come back through
// the queue of its events, behind all that the server had for it before.
func (w *x11Window) catchUp(ctx context.Context, forget bool) error {
	flag := uint32(0)
	if forget {
		flag = 1
	}
	w.mu.Lock()
	number := w.fence + 1
	w.mu.Unlock()
	err := w.conn.Do(ctx, func() error {
		m := xproto.ClientMessageEvent{Format: 32, Window: w.id, Type: w.atoms.fence,
			Data: xproto.ClientMessageDataUnionData32New([]uint32{number, flag, 0, 0, 0})}
		return xproto.SendEventChecked(w.conn.Conn, false, w.id, 0, string(m.Bytes())).Check()
	})
	if err == nil {
		err = w.wait(ctx, func() bool { return w.fence == number && !w.pasting })
	}
	if err != nil {
		return fmt.Errorf("read back from the test window: %w", err)
	}
	return nil
}

// work takes the events one after the other until the queue is closed.
func (w *x11Window) work() {
	defer close(w.done)
	for {
		ev, ok := w.events.next()
		if !ok {
			return
		}
		w.handle(ev)
	}
}

func (w *x11Window) handle(ev xgb.Event) {
	switch e := ev.(type) {
	case xproto.ExposeEvent:
		w.write()
	case xproto.VisibilityNotifyEvent:
		w.update(func() { w.visible = e.State != xproto.VisibilityFullyObscured })
	case xproto.FocusInEvent:
		w.update(func() { w.focused = true })
	case xproto.FocusOutEvent:
		w.update(func() { w.focused = false })
	case xproto.MappingNotifyEvent:
		if e.Request == xproto.MappingKeyboard {
			// A failure can only be the server's death, which others report.
			if keys, err := x11.Await(context.Background(), w.conn, w.readKeymap); err == nil {
				w.keys = keys
			}
		}
	case xproto.ButtonPressEvent:
		w.press(e)
	case xproto.ButtonReleaseEvent:
		w.release(e)
	case xproto.MotionNotifyEvent:
		if w.pressed != nil {
			w.path = append(w.path, point(e.RootX, e.RootY))
		}
	case xproto.KeyPressEvent:
		w.key(e)
	case xproto.ClientMessageEvent:
		w.message(e)
	case xproto.SelectionNotifyEvent:
		w.pasted(e)
	case xproto.PropertyNotifyEvent:
		if e.Atom == w.atoms.paste && e.State == xproto.PropertyNewValue && w.paste != nil {
			w.pastePart()
		}
	}
}

func (w *x11Window) write() {
	if !w.hasGC {
		return
	}
	for i, s := range []string{
		"Drawbridge test window",
		"drawbridge doctor --test-input is trying the mouse",
		"and the keyboard in here. Please wait a moment.",
	} {
		xproto.ImageText8(w.conn.Conn, byte(len(s)), xproto.Drawable(w.id), w.gc, 24, int16(32+20*i), s)
	}
}

func point(x, y int16) input.Point { return input.Point{X: float64(x), Y: float64(y)} }

// wheels says which way the buttons of the wheel scroll.
var wheels = map[xproto.Button][2]float64{4: {0, -1}, 5: {0, 1}, 6: {-1, 0}, 7: {1, 0}}

var x11Buttons = map[xproto.Button]input.Button{1: input.Left, 2: input.Middle, 3: input.Right, 8: input.Back, 9: input.Forward}

func (w *x11Window) press(e xproto.ButtonPressEvent) {
	if by, ok := wheels[e.Detail]; ok {
		w.update(func() {
			w.seen.Scroll[0] += by[0]
			w.seen.Scroll[1] += by[1]
		})
		return
	}
	if w.pressed != nil {
		return
	}
	at := point(e.RootX, e.RootY)
	count := 1
	if l := w.last; l.button == e.Detail && near(l.at, at) && e.Time-l.time < doubleClickTime {
		count = l.count + 1
	}
	w.last = lastClick{e.Detail, at, e.Time, count}
	w.pressed, w.path = &e, []input.Point{at}
}

func (w *x11Window) release(e xproto.ButtonReleaseEvent) {
	p := w.pressed
	if p == nil || p.Detail != e.Detail {
		return
	}
	w.pressed = nil
	start, end := point(p.RootX, p.RootY), point(e.RootX, e.RootY)
	path := w.path
	w.update(func() {
		if len(path) > 1 {
			w.seen.Drag = path
		}
		if near(start, end) {
			w.seen.Clicks = append(w.seen.Clicks, Click{x11Buttons[e.Detail], w.last.count})
		}
	})
}

func (w *x11Window) key(e xproto.KeyPressEvent) {
	sym := w.keys.sym(e.Detail, e.State)
	mods := modifiers(e.State)
	if len(mods) == 0 {
		if s := symText(sym); s != "" {
			w.update(func() { w.seen.Text += s })
		}
		return
	}
	plain := symText(w.keys.sym(e.Detail, 0))
	if plain == "v" && e.State&xproto.ModMaskControl != 0 {
		w.startPaste(e.Time)
		return
	}
	if plain == "" {
		return // a modifier, or a key that the checks do not use
	}
	if e.State&xproto.ModMaskShift != 0 {
		mods = append(mods, input.Shift)
	}
	w.update(func() { w.seen.Chords = append(w.seen.Chords, Chord{mods, input.Key(plain)}) })
}

// modifiers lists the held ones that make a key a chord: not Shift, not a lock.
func modifiers(state uint16) []input.Key {
	var mods []input.Key
	for _, m := range []struct {
		mask uint16
		key  input.Key
	}{{xproto.ModMaskControl, input.Control}, {xproto.ModMask1, input.Alt}, {xproto.ModMask4, input.Command}} {
		if state&m.mask != 0 {
			mods = append(mods, m.key)
		}
	}
	return mods
}

// message answers a ping, or notes a fence.
func (w *x11Window) message(e xproto.ClientMessageEvent) {
	if e.Format != 32 {
		return
	}
	switch data := e.Data.Data32; {
	case e.Type == w.atoms.fence:
		forget := data[1] == 1
		if forget { // also the press that a next one could make a double click of
			w.last = lastClick{}
		}
		w.update(func() {
			w.fence = data[0]
			if forget {
				w.seen = Seen{}
			}
		})
	case e.Type == w.atoms.protocols && data[0] == uint32(w.atoms.ping):
		e.Window = w.conn.Root
		xproto.SendEvent(w.conn.Conn, false, w.conn.Root,
			xproto.EventMaskSubstructureNotify|xproto.EventMaskSubstructureRedirect, string(e.Bytes()))
	}
}

func (w *x11Window) startPaste(t xproto.Timestamp) {
	w.paste = nil
	w.update(func() { w.pasting = true })
	xproto.ConvertSelection(w.conn.Conn, w.id, w.atoms.clipboard, w.atoms.utf8, w.atoms.paste, t)
}

func (w *x11Window) pasted(e xproto.SelectionNotifyEvent) {
	if e.Property == 0 { // nobody has such text
		w.update(func() { w.pasting = false })
		return
	}
	typ, data := w.takeProperty()
	if typ == w.atoms.incr { // it comes in parts; deleting the property asked for the first
		w.paste = &paste{}
		return
	}
	w.update(func() { w.seen.Text += string(data); w.pasting = false })
}

func (w *x11Window) pastePart() {
	_, data := w.takeProperty()
	if len(data) > 0 {
		w.paste.data = append(w.paste.data, data...)
		return
	}
	all := string(w.paste.data)
	w.paste = nil
	w.update(func() { w.seen.Text += all; w.pasting = false })
}

// takeProperty reads and deletes what was put on the window for a paste. A
// failure can only be the server's death, which others report.
func (w *x11Window) takeProperty() (typ xproto.Atom, data []byte) {
	r, err := x11.Await(context.Background(), w.conn, func() (*xproto.GetPropertyReply, error) {
		return xproto.GetProperty(w.conn.Conn, true, w.id, w.atoms.paste, xproto.GetPropertyTypeAny, 0, 1<<24).Reply()
	})
	if err != nil {
		return 0, nil
	}
	return r.Type, r.Value
}

// eventQueue holds events between the connection's goroutine, which must not
// wait, and the worker.
type eventQueue struct {
	mu     sync.Mutex // guards the rest
	some   *sync.Cond
	list   []xgb.Event
	closed bool
}

func newEventQueue() *eventQueue {
	q := &eventQueue{}
	q.some = sync.NewCond(&q.mu)
	return q
}

func (q *eventQueue) put(e xgb.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.list = append(q.list, e)
	q.some.Signal()
}

// next waits for an event; false: the queue is closed.
func (q *eventQueue) next() (xgb.Event, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.closed {
		q.some.Wait()
	}
	if q.closed {
		return nil, false
	}
	e := q.list[0]
	q.list = q.list[1:]
	return e, true
}

func (q *eventQueue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.some.Broadcast()
}
