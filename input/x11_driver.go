//go:build linux

package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"
	"github.com/jezek/xgb/xtest"

	"drawbridge/internal/x11"
)

// x11Driver posts events through the XTEST extension.
type x11Driver struct {
	conn    *x11.Conn
	display string
	own     bool

	remapped atomic.Bool // the keymap changed and must be read again
	rewired  atomic.Bool // the same for the pointer's buttons
	buttons  []byte      // what each button of the device counts as
	keys     *keymap
	original *keymap // as it was before we bound anything
	pool     pool
	bound    bool // pool was used
	// undrained counts the keys that were typed and perhaps not yet taken.
	undrained int
	pressed   uint16 // bits of the buttons that Button pressed
	held      map[Key]heldKey
	wheel     wheel
	ping      *pinger
	clip      *clipboard // made when first needed
	parts     *parts

	wayLock sync.Mutex
	way     []xproto.Window // from below the root to the last window that was found at a place; guarded by wayLock

	posting sync.Mutex // keeps the events of one post together
	ledger  ledger
}

var (
	_ Driver    = (*x11Driver)(nil)
	_ Inspector = (*x11Driver)(nil)
	_ Watched   = (*x11Driver)(nil)
	_ Grabber   = (*x11Driver)(nil)
	_ Waker     = (*x11Driver)(nil)
)

// heldKey is what a Key call pressed, so that its release lets go of the same,
// even when the layout changed meanwhile.
type heldKey struct {
	codes []byte // in the order pressed
}

// OpenX11 drives an X display; an empty name means $DISPLAY. own says that the
// display belongs to the agent alone: then characters that its keymap lacks are
// bound to spare keycodes until Close. On a person's display they go through
// the clipboard, whose content is put back.
//
// A point is a pixel of the root window, whose top left corner is the origin.
func OpenX11(display string, own bool) (Driver, error) {
	d := &x11Driver{display: display, own: own, held: map[Key]heldKey{}}
	d.ping, d.parts = newPinger(), newParts()
	ctx := context.Background()
	var err error
	if d.conn, err = x11.Dial(ctx, display, d.event); err != nil {
		return nil, err
	}
	if err := d.setUp(ctx); err != nil {
		d.conn.Close()
		return nil, d.fail("open the X display for input", err)
	}
	return d, nil
}

// setUpTimeout bounds what has no context of its caller's.
const setUpTimeout = 10 * time.Second

func (d *x11Driver) setUp(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, setUpTimeout)
	defer cancel()
	ok, err := d.conn.Extension(ctx, "XTEST")
	if err != nil {
		return err
	}
	if !ok {
		return errors.New("the X server has no XTEST extension, so no event can be posted; start it with XTEST enabled")
	}
	if err := d.ping.setUp(ctx, d.conn); err != nil {
		return err
	}
	if d.keys, err = loadKeymap(ctx, d.conn, d.own); err != nil {
		return err
	}
	if d.keys.max < poolLast {
		d.own = false // no room to bind anything
	}
	d.original = d.keys
	d.rewired.Store(true)
	return nil
}

// event is called by the connection's goroutine.
func (d *x11Driver) event(ev xgb.Event) {
	switch e := ev.(type) {
	case xproto.MappingNotifyEvent:
		if e.Request == xproto.MappingPointer {
			d.rewired.Store(true)
		} else {
			d.remapped.Store(true)
		}
	case xproto.ClientMessageEvent:
		d.ping.answer(e)
	}
}

// fail gives an error the name of what was tried, and the end of the connection
// this package's name.
func (d *x11Driver) fail(what string, err error) error {
	return fmt.Errorf("%s: %w", what, gone(err))
}

// gone is fail for what the hand gives its name.
func gone(err error) error {
	if errors.Is(err, x11.ErrClosed) {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	return err
}

// fake is one XTEST event.
type fake struct {
	kind, detail byte
	x, y         int16
}

func press(code byte) fake   { return fake{kind: xproto.KeyPress, detail: code} }
func release(code byte) fake { return fake{kind: xproto.KeyRelease, detail: code} }

func (f fake) isRelease() bool {
	return f.kind == xproto.KeyRelease || f.kind == xproto.ButtonRelease
}

// post sends events in order and returns when the server has taken them. When
// ctx ends on the way, only releases still go out, so that nothing stays down.
func (d *x11Driver) post(ctx context.Context, events ...fake) error {
	if len(events) == 0 {
		return nil
	}
	return d.conn.Do(ctx, func() error {
		// A call that was given up while the server was stuck may be at it yet.
		d.posting.Lock()
		defer d.posting.Unlock()
		for _, e := range events[:len(events)-1] {
			if ctx.Err() == nil || e.isRelease() {
				d.send(e)
			}
		}
		e := events[len(events)-1]
		if err := ctx.Err(); err != nil && !e.isRelease() {
			return err
		}
		return d.sendChecked(e).Check()
	})
}

// send posts one event; the caller holds posting.
func (d *x11Driver) send(e fake) {
	d.ledger.note(e)
	xtest.FakeInput(d.conn.Conn, e.kind, e.detail, 0, d.conn.Root, e.x, e.y, 0)
}

func (d *x11Driver) sendChecked(e fake) xtest.FakeInputCookie {
	d.ledger.note(e)
	return xtest.FakeInputChecked(d.conn.Conn, e.kind, e.detail, 0, d.conn.Root, e.x, e.y, 0)
}

// notches posts n turns of the wheel's button b, each whole or not at all.
//
// Where a window manager grabs every press, the server holds the notches back and
// plays them on as the manager lets them go. It drops a release, and the press
// after it, that is played on while the device is down in the middle of a later
// notch. So no request of another program may come between a press and its
// release.
func (d *x11Driver) notches(ctx context.Context, b byte, n int) error {
	if n == 0 {
		return nil
	}
	return d.conn.Do(ctx, func() error {
		d.posting.Lock()
		defer d.posting.Unlock()
		c := d.conn.Conn
		var last xtest.FakeInputCookie
		for i := range n {
			if err := ctx.Err(); err != nil {
				return err
			}
			xproto.GrabServer(c)
			d.send(fake{kind: xproto.ButtonPress, detail: b})
			up := fake{kind: xproto.ButtonRelease, detail: b}
			if i < n-1 {
				d.send(up)
			} else {
				last = d.sendChecked(up)
			}
			xproto.UngrabServer(c)
		}
		return last.Check()
	})
}

func (d *x11Driver) Move(ctx context.Context, p Point) error {
	e, err := motion(p)
	if err != nil {
		return err
	}
	d.wheel = wheel{}
	err = d.post(ctx, e)
	if err == nil && d.pressed != 0 {
		// Of the motions that wait in a frozen pointer's queue the server keeps
		// the last one only, and a drag is nothing without its way.
		err = d.taken(ctx, takenTimeout, func(p *xproto.QueryPointerReply) bool { return p.RootX == e.x && p.RootY == e.y })
	}
	if err != nil {
		return gone(err)
	}
	return nil
}

// motion is the event that moves the pointer to p, on the nearest pixel.
func motion(p Point) (fake, error) {
	x, y := math.Round(p.X), math.Round(p.Y)
	if !(math.Abs(x) <= math.MaxInt16 && math.Abs(y) <= math.MaxInt16) {
		return fake{}, fmt.Errorf("(%g, %g) is no place on an X display", p.X, p.Y)
	}
	return fake{kind: xproto.MotionNotify, x: int16(x), y: int16(y)}, nil
}

// x11Buttons are the button numbers that applications expect. 4 to 7 are the
// wheel.
var x11Buttons = map[Button]byte{Left: 1, Middle: 2, Right: 3, Back: 8, Forward: 9}

// buttonMasks are the bits of the buttons in the pointer's state; 8 and 9 have
// none.
var buttonMasks = map[Button]uint16{Left: xproto.KeyButMaskButton1, Middle: xproto.KeyButMaskButton2, Right: xproto.KeyButMaskButton3}

func (d *x11Driver) Button(ctx context.Context, b Button, down bool, _ int) error {
	n, ok := x11Buttons[b]
	if !ok {
		return fmt.Errorf("there is no button %s", b)
	}
	kind := byte(xproto.ButtonPress)
	if !down {
		kind = xproto.ButtonRelease
	}
	d.wheel = wheel{}
	n, err := d.device(ctx, n)
	if err == nil {
		err = d.post(ctx, fake{kind: kind, detail: n})
	}
	if err == nil {
		if mask := buttonMasks[b]; down {
			d.pressed |= mask
		} else {
			d.pressed &^= mask
			err = d.taken(ctx, takenTimeout, func(p *xproto.QueryPointerReply) bool { return p.Mask&mask == 0 })
		}
	}
	if err != nil {
		return gone(err)
	}
	return nil
}

// takenTimeout bounds the wait for a frozen pointer: more than a busy window
// manager needs for a press. It is spent in vain only where the person holds the
// button or moves the pointer themselves, which ends a batch anyway.
// notchTimeout is added for each notch of a wheel. cancelTimeout is for who wants
// to end.
const (
	takenTimeout  = time.Second
	notchTimeout  = 20 * time.Millisecond
	cancelTimeout = 250 * time.Millisecond
)

// taken waits until the pointer is as an event that was posted leaves it.
//
// A window manager that raises windows on a click grabs the press: the server
// then holds back everything of the pointer that follows, releases and motions,
// until the manager has replayed the press to the application. Keys and messages
// are not held back: what is typed right after a click would overtake it.
func (d *x11Driver) taken(ctx context.Context, timeout time.Duration, ok func(*xproto.QueryPointerReply) bool) error {
	wait, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 5*time.Millisecond) {
		p, err := x11.Await(wait, d.conn, func() (*xproto.QueryPointerReply, error) {
			return xproto.QueryPointer(d.conn.Conn, d.conn.Root).Reply()
		})
		if err == nil && ok(p) {
			return nil
		}
		if err == nil {
			err = sleep(wait, pause)
		}
		if wait.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			return err
		}
	}
}

// device returns the button of the device that counts as n: a left-handed person
// has swapped some.
func (d *x11Driver) device(ctx context.Context, n byte) (byte, error) {
	if d.rewired.Swap(false) {
		m, err := x11.Await(ctx, d.conn, func() (*xproto.GetPointerMappingReply, error) {
			return xproto.GetPointerMapping(d.conn.Conn).Reply()
		})
		if err != nil {
			d.rewired.Store(true)
			return 0, err
		}
		d.buttons = m.Map
	}
	if i := bytes.IndexByte(d.buttons, n); i >= 0 {
		return byte(i + 1), nil
	}
	return n, nil
}

func (d *x11Driver) Scroll(ctx context.Context, dx, dy float64) error {
	nx, ny, err := d.wheel.turn(dx, dy)
	if err != nil {
		return err
	}
	for _, w := range []struct {
		n             int
		forward, back byte
	}{{ny, 5, 4}, {nx, 7, 6}} {
		b := w.forward
		if w.n < 0 {
			b, w.n = w.back, -w.n
		}
		if b, err = d.device(ctx, b); err != nil {
			return d.fail("scroll", err)
		}
		if err = d.notches(ctx, b, w.n); err != nil {
			break
		}
	}
	if nx|ny == 0 {
		return nil
	}
	wheelUp := func(p *xproto.QueryPointerReply) bool {
		return p.Mask&(xproto.KeyButMaskButton4|xproto.KeyButMaskButton5) == 0
	}
	if err == nil {
		err = d.taken(ctx, takenTimeout+notchTimeout*time.Duration(max(ny, -ny)), wheelUp)
	}
	if ctx.Err() != nil {
		// What was pressed has been released, but behind a grab the server does not
		// know it yet.
		err = errors.Join(err, d.taken(context.WithoutCancel(ctx), cancelTimeout, wheelUp))
	}
	if err != nil {
		return d.fail("scroll", err)
	}
	return nil
}

func (d *x11Driver) Pointer(ctx context.Context) (Point, error) {
	p, err := x11.Await(ctx, d.conn, func() (*xproto.QueryPointerReply, error) {
		return xproto.QueryPointer(d.conn.Conn, d.conn.Root).Reply()
	})
	if err != nil {
		return Point{}, d.fail("read the pointer's place", err)
	}
	return Point{float64(p.RootX), float64(p.RootY)}, nil
}

// syncTimeout is how long Sync waits for an application: long enough for one
// that works, short enough for one that does not answer.
const syncTimeout = 100 * time.Millisecond

func (d *x11Driver) Sync(ctx context.Context) error {
	ok, err := d.ping.wait(ctx, syncTimeout)
	if err != nil {
		return d.fail("wait for the application", err)
	}
	if ok {
		d.undrained = 0
	}
	return nil
}

// ReleaseStray asks the server what is down and lets go of it. XTEST releases
// only what XTEST pressed, so keys that the person holds stay down.
func (d *x11Driver) ReleaseStray(ctx context.Context) error {
	keys, err := x11.Await(ctx, d.conn, func() (*xproto.QueryKeymapReply, error) {
		return xproto.QueryKeymap(d.conn.Conn).Reply()
	})
	if err != nil {
		return d.fail("release what is held", err)
	}
	var events []fake
	// 8 and 9 have no bit in the pointer's state; to release what is not down
	// does nothing.
	for _, b := range x11Buttons {
		if b, err = d.device(ctx, b); err != nil {
			return d.fail("release what is held", err)
		}
		events = append(events, fake{kind: xproto.ButtonRelease, detail: b})
	}
	for code := 8; code < 256; code++ {
		if keys.Keys[code/8]&(1<<(code%8)) != 0 {
			events = append(events, release(byte(code)))
		}
	}
	if err := d.post(ctx, events...); err != nil {
		return d.fail("release what is held", err)
	}
	clear(d.held)
	d.pressed = 0
	return nil
}

// Close puts the keymap of a display of our own back and ends the connection.
func (d *x11Driver) Close() error {
	var err error
	select {
	case <-d.conn.Dead():
	default:
		ctx, cancel := context.WithTimeout(context.Background(), setUpTimeout)
		defer cancel()
		err = d.restoreKeymap(ctx)
	}
	if d.clip != nil {
		d.clip.close()
	}
	d.parts.close()
	d.conn.Close()
	return err
}

func (d *x11Driver) restoreKeymap(ctx context.Context) error {
	if !d.bound {
		return nil
	}
	m := d.original
	rows := m.syms[(poolFirst-int(m.min))*m.perCode : (poolLast+1-int(m.min))*m.perCode]
	err := d.conn.Do(ctx, func() error {
		return xproto.ChangeKeyboardMappingChecked(d.conn.Conn, poolLast-poolFirst+1, poolFirst,
			byte(m.perCode), rows).Check()
	})
	if err != nil {
		return d.fail("put the keymap back", err)
	}
	return nil
}
