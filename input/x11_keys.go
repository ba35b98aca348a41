//go:build linux

package input

import (
	"context"
	"fmt"
	"slices"
)

func (d *x11Driver) Key(ctx context.Context, k Key, down bool) error {
	if !down {
		return d.keyUp(ctx, k)
	}
	if _, ok := d.held[k]; ok {
		return nil
	}
	if err := d.refresh(ctx); err != nil {
		return gone(err)
	}
	s, l, err := d.strokeOfKey(ctx, k)
	if err != nil {
		return gone(err)
	}
	var codes []byte
	// A modifier that the chord holds already is not pressed twice: its release
	// with this key would end the chord.
	hold := func(code byte) {
		if code != 0 && !d.holds(code) {
			codes = append(codes, code)
		}
	}
	// Caps Lock means nothing to a chord's letter, and Shift would mean much.
	if s.keypad && l.shifted(s) || !s.keypad && s.shift {
		shift, ok := d.keys.find(0, symShift)
		if !ok {
			return fmt.Errorf("%w: the keymap has no Shift", ErrNoKey)
		}
		hold(shift.code)
	}
	if s.level3 {
		hold(d.keys.level3)
	}
	codes = append(codes, s.code)
	events := make([]fake, len(codes))
	for i, c := range codes {
		events[i] = press(c)
	}
	// Noted first: on an error nobody can tell whether the key went down.
	d.held[k] = heldKey{codes}
	d.undrained += len(codes)
	if err := d.post(ctx, events...); err != nil {
		return gone(err)
	}
	return nil
}

func (d *x11Driver) holds(code byte) bool {
	for _, h := range d.held {
		if slices.Contains(h.codes, code) {
			return true
		}
	}
	return false
}

func (d *x11Driver) keyUp(ctx context.Context, k Key) error {
	h, ok := d.held[k]
	if !ok {
		// Not pressed by us, or before a ReleaseStray: let go of what it would be.
		s, _, err := d.strokeOfKey(ctx, k)
		if err != nil {
			return gone(err)
		}
		h.codes = []byte{s.code}
	}
	var events []fake
	for _, c := range slices.Backward(h.codes) {
		events = append(events, release(c))
	}
	if err := d.post(ctx, events...); err != nil {
		return gone(err)
	}
	delete(d.held, k)
	return nil
}

// strokeOfKey finds the key in the current layout, else in the first one, where
// applications look for the letters of chords too.
func (d *x11Driver) strokeOfKey(ctx context.Context, k Key) (stroke, locks, error) {
	syms := keysymsOf(k)
	if syms == nil {
		return stroke{}, locks{}, fmt.Errorf("%q: %w", string(k), ErrNoKey)
	}
	l, err := readLocks(ctx, d.conn)
	if err != nil {
		return stroke{}, l, err
	}
	for _, group := range []int{l.group, 0} {
		if s, ok := d.keys.find(group, syms...); ok {
			return s, l, nil
		}
	}
	if !d.own {
		return stroke{}, l, fmt.Errorf("%q is not on this keyboard: %w", string(k), ErrNoKey)
	}
	// A binding of Type's may need Shift, which a chord must not get.
	if s, ok := d.pool.find(syms[0]); ok && !s.shift {
		return s, l, nil
	}
	if d.pool.codes == len(d.pool.rows) {
		if err := d.emptyPool(ctx); err != nil {
			return stroke{}, l, err
		}
	}
	if err := d.bind(ctx, syms[:1], true); err != nil {
		return stroke{}, l, err
	}
	s, _ := d.pool.find(syms[0])
	return s, l, nil
}

// refresh reads the keymap again after somebody changed it.
func (d *x11Driver) refresh(ctx context.Context) error {
	if !d.remapped.Swap(false) {
		return nil
	}
	keys, err := loadKeymap(ctx, d.conn, d.own)
	if err != nil {
		d.remapped.Store(true)
		return err
	}
	d.keys = keys
	return nil
}
