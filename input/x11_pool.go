//go:build linux

package input

import (
	"context"

	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// pool binds keysyms that the keymap lacks to keycodes of a display of our own,
// two to a keycode: one plain, one with Shift. Bindings stay until the room is
// needed, so text of one language costs nothing the second time.
type pool struct {
	codes int // keycodes in use, from poolFirst on
	half  bool
	rows  [poolLast - poolFirst + 1][2]xproto.Keysym
	at    map[xproto.Keysym]stroke
}

func (p *pool) find(sym xproto.Keysym) (stroke, bool) {
	s, ok := p.at[sym]
	return s, ok
}

// room is how many more keysyms fit.
func (p *pool) room() int {
	n := 2 * (len(p.rows) - p.codes)
	if p.half {
		n++
	}
	return n
}

// clear forgets all bindings. The keys sent so far must have been taken by then.
func (p *pool) clear() { *p = pool{} }

// bind makes room for keysyms; they must fit. alone gives each the plain level
// of a keycode, so that it can be part of a chord.
func (p *pool) bind(ctx context.Context, c *x11.Conn, syms []xproto.Keysym, alone bool) error {
	next := *p
	next.at = make(map[xproto.Keysym]stroke, len(p.at)+len(syms))
	for sym, s := range p.at {
		next.at[sym] = s
	}
	first := p.codes
	if p.half && !alone {
		first--
	}
	for _, sym := range syms {
		if next.half && !alone {
			next.rows[next.codes-1][1] = sym
			next.at[sym] = stroke{code: byte(poolFirst + next.codes - 1), shift: true}
			next.half = false
			continue
		}
		// Twice, because a lone capital letter is taken for the pair of both cases.
		next.rows[next.codes] = [2]xproto.Keysym{sym, sym}
		next.at[sym] = stroke{code: byte(poolFirst + next.codes)}
		next.codes++
		next.half = !alone
	}
	var flat []xproto.Keysym
	for _, row := range next.rows[first:next.codes] {
		flat = append(flat, row[0], row[1])
	}
	if err := c.Do(ctx, func() error {
		return xproto.ChangeKeyboardMappingChecked(c.Conn, byte(len(flat)/2),
			xproto.Keycode(poolFirst+first), 2, flat).Check()
	}); err != nil {
		return err
	}
	*p = next
	return nil
}
