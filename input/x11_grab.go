//go:build linux

package input

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// x11Grab keeps one chord by grabs on a connection of its own: what others hold
// or type does not delay it. It hears of the chord by the raw events of the devices:
// a grab tells nothing while a menu has grabbed the whole keyboard, nor while a batch
// holds one more modifier.
type x11Grab struct {
	conn    *x11.Conn
	raw     *x11.RawConn // nil: the server has no such events, and the grab must tell
	mods    []Key
	key     Key
	pressed func()

	signal  chan struct{} // a press that was not told yet
	changed chan struct{} // the keymap is another
	stop    context.CancelFunc
	ended   sync.WaitGroup

	// Of whoever takes: the setup, then the goroutine that follows the keymap.
	code byte
	held []uint16 // the states of the modifiers that are grabbed with it

	mu    sync.Mutex // guards what follows
	chord rawChord
}

// rawChord is a chord by the codes of its keys.
type rawChord struct {
	code byte
	mods [][]byte // of each modifier, the keys that make it
}

// pressed tells whether the chord is whole, its last key having been pressed.
func (c rawChord) pressed(down map[deviceKey]bool) bool {
	for _, codes := range c.mods {
		held := false
		for k := range down {
			held = held || slices.Contains(codes, k.code)
		}
		if !held {
			return false
		}
	}
	return true
}

// deviceKey is a key of one device: what a batch lets go of, the person may hold.
type deviceKey struct {
	device uint16
	code   byte
}

// Grab implements Grabber.
func (d *x11Driver) Grab(ctx context.Context, mods []Key, k Key, pressed func()) (io.Closer, error) {
	what := fmt.Sprintf("keep the chord of %s", k)
	g := &x11Grab{mods: mods, key: k, pressed: pressed, signal: make(chan struct{}, 1), changed: make(chan struct{}, 1)}
	var err error
	if g.conn, err = x11.Dial(ctx, d.display, g.event); err != nil {
		return nil, err
	}
	g.raw, err = x11.DialRaw(ctx, d.display)
	if errors.Is(err, x11.ErrNoXInput) {
		g.raw, err = nil, nil
	}
	if err == nil {
		err = g.take(ctx)
	}
	if err != nil {
		if g.raw != nil {
			g.raw.Close()
		}
		g.conn.Close()
		return nil, d.fail(what, err)
	}
	own, stop := context.WithCancel(context.Background())
	g.stop = stop
	g.ended.Go(func() { g.tell(own) })
	g.ended.Go(func() { g.follow(own) })
	if g.raw != nil {
		g.ended.Go(g.hear)
	}
	return g, nil
}

// hear follows what the keys do, until its connection ends.
func (g *x11Grab) hear() {
	for down := map[deviceKey]bool{}; ; {
		e, err := g.raw.Next()
		if err != nil {
			return
		}
		switch k := (deviceKey{e.Source, byte(e.Detail)}); e.Kind {
		case x11.RawKeyRelease:
			delete(down, k)
		case x11.RawKeyPress:
			repeated := down[k]
			down[k] = true
			g.mu.Lock()
			chord := g.chord
			g.mu.Unlock()
			if !repeated && k.code == chord.code && chord.pressed(down) {
				notify(g.signal)
			}
		}
	}
}

func notify(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// event is called by the connection's goroutine, which must not wait.
func (g *x11Grab) event(ev xgb.Event) {
	switch e := ev.(type) {
	case xproto.KeyPressEvent:
		if g.raw == nil {
			notify(g.signal)
		}
	case xproto.MappingNotifyEvent:
		if e.Request != xproto.MappingPointer {
			notify(g.changed)
		}
	}
}

func (g *x11Grab) tell(ctx context.Context) {
	for {
		select {
		case <-g.signal:
			g.pressed()
		case <-ctx.Done():
			return
		}
	}
}

// follow takes the chord where the keys are after the keymap changed. A chord
// that cannot be taken there stays where it was.
func (g *x11Grab) follow(ctx context.Context) {
	for {
		select {
		case <-g.changed:
			_ = g.take(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// take grabs the chord.
func (g *x11Grab) take(ctx context.Context) error {
	keys, err := loadKeymap(ctx, g.conn, false)
	if err != nil {
		return err
	}
	s, ok := keys.find(0, keysymsOf(g.key)...)
	if !ok {
		return fmt.Errorf("%q: %w", string(g.key), ErrNoKey)
	}
	m, err := x11.Await(ctx, g.conn, func() (*xproto.GetModifierMappingReply, error) {
		return xproto.GetModifierMapping(g.conn.Conn).Reply()
	})
	if err != nil {
		return err
	}
	var state uint16
	if s.shift {
		state = xproto.ModMaskShift
	}
	chord := rawChord{code: s.code}
	for _, k := range g.mods {
		var codes []byte
		for code := int(keys.min); code <= int(keys.max); code++ {
			if slices.ContainsFunc(keys.row(byte(code)), func(sym xproto.Keysym) bool { return slices.Contains(keysymsOf(k), sym) }) {
				codes = append(codes, byte(code))
			}
		}
		chord.mods = append(chord.mods, codes)
		bit, ok := modifierBit(keys, m, keysymsOf(k)...)
		if !ok {
			return fmt.Errorf("%q is no modifier on this keyboard: %w", string(k), ErrNoKey)
		}
		state |= bit
	}
	// A grab holds for exactly one state, and the locks are part of it.
	held := []uint16{state, state | xproto.ModMaskLock}
	if bit, ok := modifierBit(keys, m, symNumLock); ok {
		held = append(held, state|bit, state|bit|xproto.ModMaskLock)
	}
	if s.code == g.code && slices.Equal(held, g.held) {
		g.hearFor(chord)
		return nil
	}
	err = g.conn.Do(ctx, func() error {
		for _, state := range held {
			err := xproto.GrabKeyChecked(g.conn.Conn, false, g.conn.Root, state, xproto.Keycode(s.code),
				xproto.GrabModeAsync, xproto.GrabModeAsync).Check()
			if e := (xproto.AccessError{}); errors.As(err, &e) {
				return errors.New("another program has taken it; choose another chord")
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	if g.code != 0 {
		for _, state := range g.held {
			xproto.UngrabKey(g.conn.Conn, xproto.Keycode(g.code), g.conn.Root, state)
		}
	}
	g.code, g.held = s.code, held
	g.hearFor(chord)
	return nil
}

func (g *x11Grab) hearFor(c rawChord) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.chord = c
}

// modifierBit finds the bit of a modifier in the keyboard's state.
func modifierBit(keys *keymap, m *xproto.GetModifierMappingReply, syms ...xproto.Keysym) (uint16, bool) {
	per := int(m.KeycodesPerModifier)
	for i := range 8 {
		if len(m.Keycodes) < (i+1)*per {
			break
		}
		for _, code := range m.Keycodes[i*per : (i+1)*per] {
			if byte(code) < keys.min || byte(code) > keys.max {
				continue // none
			}
			for _, sym := range keys.row(byte(code)) {
				if slices.Contains(syms, sym) {
					return 1 << i, true
				}
			}
		}
	}
	return 0, false
}

// Close gives the chord back and waits until pressed has returned.
func (g *x11Grab) Close() error {
	g.stop()
	if g.raw != nil {
		g.raw.Close()
	}
	g.conn.Close()
	g.ended.Wait()
	return nil
}
