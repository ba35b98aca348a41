//go:build linux

package input

import (
	"context"
	"fmt"
	"time"

	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

const motionKind = xproto.MotionNotify

// x11Watcher sees the person by the raw events of the server's devices. What
// comes from a device that is not XTEST's is the person's; of XTEST's, what we
// did not post.
type x11Watcher struct {
	*sight
	conn   *x11.RawConn
	screen [2]float64 // in pixels
	ledger *ledger
	ended  chan struct{} // closed when watch has returned

	// Of the goroutine that watches.
	drift  drift
	places map[uint16][2]float64 // of absolute devices, in pixels
}

// Watch implements Watched.
func (d *x11Driver) Watch(ctx context.Context) (Watcher, error) {
	if reason, err := XWayland(ctx, d.display); reason != "" || err != nil {
		if err == nil {
			err = fmt.Errorf("%s, and through XWayland only what the person does in old programs can be seen", reason)
		}
		return nil, err
	}
	c, err := x11.DialRaw(ctx, d.display)
	if err != nil {
		return nil, err
	}
	d.ledger.open()
	w := &x11Watcher{sight: newSight(), conn: c, screen: c.Screen(), ledger: &d.ledger, ended: make(chan struct{}),
		places: map[uint16][2]float64{}}
	go w.watch()
	return w, nil
}

func (w *x11Watcher) watch() {
	defer close(w.ended)
	for {
		e, err := w.conn.Next()
		if err != nil {
			w.blind(fmt.Errorf("the person's input cannot be seen any more: %w", err))
			return
		}
		if what := w.read(e, time.Now()); what != "" {
			w.act(what, time.Now())
		}
	}
}

// read tells what the person did in an event; empty: nothing, or not enough.
func (w *x11Watcher) read(e x11.Raw, now time.Time) string {
	if e.Device.XTest && w.ledger.take(posted(e)) {
		return ""
	}
	switch e.Kind {
	case x11.RawKeyPress, x11.RawKeyRelease:
		return pressedKey
	case x11.RawButtonPress, x11.RawButtonRelease:
		if e.Detail >= 4 && e.Detail <= 7 {
			return turnedWheel
		}
		return pressedButton
	}
	for axis := range e.Axes {
		if axis > 1 {
			return turnedWheel
		}
	}
	if dx, dy := w.moved(e); w.drift.add(dx, dy, now) {
		return movedPointer
	}
	return ""
}

// posted is an event of XTEST as post would have sent it.
func posted(e x11.Raw) fake {
	kinds := map[x11.RawKind]byte{
		x11.RawKeyPress: xproto.KeyPress, x11.RawKeyRelease: xproto.KeyRelease,
		x11.RawButtonPress: xproto.ButtonPress, x11.RawButtonRelease: xproto.ButtonRelease,
	}
	if kind, ok := kinds[e.Kind]; ok {
		return fake{kind: kind, detail: byte(e.Detail)}
	}
	return fake{kind: motionKind, x: int16(e.Axes[0].Given), y: int16(e.Axes[1].Given)}
}

// moved is by how many pixels a motion moves the pointer.
func (w *x11Watcher) moved(e x11.Raw) (dx, dy float64) {
	x, y := e.Axes[0].Moved, e.Axes[1].Moved
	if e.Device.XTest {
		// Somebody else's, and most likely a place.
		px, py := w.ledger.sent()
		return x - px, y - py
	}
	if !e.Device.Absolute {
		return x, y
	}
	last, known := w.places[e.Source]
	now := last
	for i := range now {
		a, ok := e.Axes[i]
		if ok && e.Device.Extent[i] > 0 {
			now[i] = a.Given / e.Device.Extent[i] * w.screen[i]
		}
	}
	w.places[e.Source] = now
	if !known {
		return 0, 0
	}
	return now[0] - last[0], now[1] - last[1]
}

func (w *x11Watcher) Close() error {
	err := w.conn.Close()
	<-w.ended
	w.ledger.close()
	return err
}
