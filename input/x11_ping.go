//go:build linux

package input

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// pinger waits until an application has taken the events that it was sent. It
// asks with _NET_WM_PING, which toolkits answer in the order of their events;
// no pause is as exact.
type pinger struct {
	conn            *x11.Conn
	protocols, ping xproto.Atom

	stamp uint32 // of the last ping
	// mute are the windows that speak the protocol and never answered, with the
	// stamp of the ping that they owe. Qt 5 is such a toolkit.
	mute  map[xproto.Window]uint32
	spoke map[xproto.Window]bool // answered at least once

	mu      sync.Mutex
	way     []xproto.Window // from the last window that had the keyboard up to the root; guarded by mu
	last    uint32          // stamp of the last answer; guarded by mu
	changed chan struct{}   // closed and replaced at each answer; guarded by mu
}

func newPinger() *pinger {
	return &pinger{
		stamp:   0x70000000, // far from real timestamps, which window managers use
		mute:    map[xproto.Window]uint32{},
		spoke:   map[xproto.Window]bool{},
		changed: make(chan struct{}),
	}
}

func (p *pinger) setUp(ctx context.Context, c *x11.Conn) error {
	p.conn = c
	for name, a := range map[string]*xproto.Atom{"WM_PROTOCOLS": &p.protocols, "_NET_WM_PING": &p.ping} {
		var err error
		if *a, err = c.Atom(ctx, name); err != nil {
			return err
		}
	}
	// Answers go to the root window, to whoever watches what happens below it.
	return c.Do(ctx, func() error {
		return xproto.ChangeWindowAttributesChecked(c.Conn, c.Root, xproto.CwEventMask,
			[]uint32{xproto.EventMaskSubstructureNotify}).Check()
	})
}

// answer takes a message to the root window. The connection's goroutine calls it.
func (p *pinger) answer(e xproto.ClientMessageEvent) {
	if e.Format != 32 || e.Data.Data32[0] != uint32(p.ping) {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	// Stamps only grow, and applications answer in order.
	if n := e.Data.Data32[1]; n > p.last && n <= 0x7fffffff {
		p.last = n
		close(p.changed)
		p.changed = make(chan struct{})
	}
}

func (p *pinger) answered() (uint32, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.last, p.changed
}

// target is the window that has the keyboard.
type target struct {
	window xproto.Window // its top level that speaks the protocol; 0: none does
	class  string        // WM_CLASS of the top level
	named  xproto.Window // the window that has it
	client uint32        // identifies the program's connection
}

// level is a window on the way from the one with the keyboard up to the root. It is
// asked about all at once.
type level struct {
	window           xproto.Window
	protocols, class xproto.GetPropertyCookie
	tree             xproto.QueryTreeCookie
}

func (p *pinger) askLevel(w xproto.Window) level {
	c := p.conn.Conn
	return level{w,
		xproto.GetProperty(c, false, w, p.protocols, xproto.AtomAtom, 0, 64),
		xproto.GetProperty(c, false, w, xproto.AtomWmClass, xproto.GetPropertyTypeAny, 0, maxTitle),
		xproto.QueryTree(c, w)}
}

// focus looks for the window that has the keyboard. Windows come and go, so one
// that vanishes while we look counts as none. The keyboard is mostly where it was: the
// windows of that way are asked together with who has it, and what they say counts
// only where the way is the same.
func (p *pinger) focus(ctx context.Context) (target, error) {
	mask := xproto.Setup(p.conn.Conn).ResourceIdMask
	p.mu.Lock()
	before := p.way
	p.mu.Unlock()
	type found struct {
		target
		way []xproto.Window
	}
	t, err := x11.Await(ctx, p.conn, func() (found, error) {
		has := xproto.GetInputFocus(p.conn.Conn)
		known := make([]level, len(before))
		for i, w := range before {
			known[i] = p.askLevel(w)
		}
		f, err := has.Reply()
		if err != nil {
			return found{}, err
		}
		var t found
		if f.Focus > xproto.InputFocusPointerRoot {
			t.client = uint32(f.Focus) &^ mask
		}
		for w := f.Focus; w > xproto.InputFocusPointerRoot && w != p.conn.Root; {
			var at level
			if len(known) > 0 && known[0].window == w {
				at, known = known[0], known[1:]
			} else {
				at, known = p.askLevel(w), nil
			}
			speaks, e1 := at.protocols.Reply()
			named, e2 := at.class.Reply()
			above, e3 := at.tree.Reply()
			if err := errors.Join(e1, e2, e3); isServerError(err) {
				return found{}, nil
			} else if err != nil {
				return found{}, err
			}
			if t.window == 0 && hasAtom(speaks, p.ping) {
				t.window = w
			}
			if t.class == "" {
				t.class, t.named = className(named), w
			}
			t.way = append(t.way, w)
			w = above.Parent
		}
		return t, nil
	})
	if err == nil {
		p.mu.Lock()
		p.way = t.way
		p.mu.Unlock()
	}
	return t.target, err
}

func isServerError(err error) bool {
	var e xgb.Error
	return errors.As(err, &e)
}

func hasAtom(p *xproto.GetPropertyReply, a xproto.Atom) bool {
	if p.Format != 32 {
		return false
	}
	for v := p.Value; len(v) >= 4; v = v[4:] {
		if xgb.Get32(v) == uint32(a) {
			return true
		}
	}
	return false
}

// wait returns true once the application with the focus has taken its events,
// false when it does not say so in time or cannot say.
func (p *pinger) wait(ctx context.Context, timeout time.Duration) (bool, error) {
	t, err := p.focus(ctx)
	if err != nil || t.window == 0 {
		return false, err
	}
	return p.waitFor(ctx, t.window, timeout)
}

func (p *pinger) waitFor(ctx context.Context, w xproto.Window, timeout time.Duration) (bool, error) {
	if owed, ok := p.mute[w]; ok {
		if last, _ := p.answered(); last < owed {
			return false, ctx.Err()
		}
		delete(p.mute, w) // it was only slow
		p.spoke[w] = true
	}
	p.stamp++
	stamp := p.stamp
	ev := xproto.ClientMessageEvent{Format: 32, Window: w, Type: p.protocols,
		Data: xproto.ClientMessageDataUnionData32New([]uint32{uint32(p.ping), stamp, uint32(w), 0, 0})}
	err := p.conn.Do(ctx, func() error {
		return xproto.SendEventChecked(p.conn.Conn, false, w, 0, string(ev.Bytes())).Check()
	})
	if isServerError(err) {
		return false, nil // the window is gone
	}
	if err != nil {
		return false, err
	}
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for {
		last, changed := p.answered()
		if last >= stamp {
			p.spoke[w] = true
			return true, nil
		}
		select {
		case <-changed:
		case <-timer.C:
			if !p.spoke[w] {
				p.mute[w] = stamp
			}
			return false, nil
		case <-ctx.Done():
			return false, ctx.Err()
		case <-p.conn.Dead():
			return false, x11.ErrClosed
		}
	}
}

// drained waits until the keys sent so far have been translated: only then may
// keycodes get another meaning. Where the window cannot tell, a pause for each
// key must do.
func (p *pinger) drained(ctx context.Context, keys int) error {
	if keys == 0 {
		return nil
	}
	pause := min(time.Duration(keys)*mutePause, mutePauseMax)
	t, err := p.focus(ctx)
	if err != nil {
		return err
	}
	if t.window != 0 {
		timeout := pause
		if p.spoke[t.window] {
			timeout = drainTimeout
		}
		start := time.Now()
		ok, err := p.waitFor(ctx, t.window, timeout)
		if ok || err != nil {
			return err
		}
		if p.spoke[t.window] {
			return errBusy
		}
		pause -= time.Since(start)
	}
	return sleep(ctx, pause)
}

// Times for drained: what a toolkit needs for a key at the worst, and a bound.
const (
	mutePause    = 3 * time.Millisecond
	mutePauseMax = 1500 * time.Millisecond
	drainTimeout = 10 * time.Second
)

var errBusy = errors.New("the application does not take its keys; typing on would garble the text")

func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
