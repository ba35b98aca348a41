//go:build linux

package input

import (
	"context"
	"unicode"

	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// The keycodes of a display of our own that Type binds to what the keymap
// lacks. They are media keys and gaps there, and together, so that one request
// changes them all: each change costs every application a reload.
const (
	poolFirst = 208
	poolLast  = 255
)

// stroke is how the keymap enters a keysym.
type stroke struct {
	code   byte
	shift  bool
	level3 bool // AltGr
	// letter marks a key with the two cases of one letter, which Caps Lock swaps.
	letter bool
	// keypad marks a key whose levels Num Lock swaps.
	keypad bool
}

// groups is how many layouts the core protocol shows: a person may switch
// between them.
const groups = 2

// keymap is the keyboard as the server has it.
type keymap struct {
	min, max byte
	perCode  int
	syms     []xproto.Keysym
	strokes  [groups]map[xproto.Keysym]stroke
	level3   byte // keycode of AltGr; 0 where there is none
}

func (m *keymap) row(code byte) []xproto.Keysym {
	i := (int(code) - int(m.min)) * m.perCode
	return m.syms[i : i+m.perCode]
}

// loadKeymap reads the keymap. With own set the pool's keycodes are left out.
func loadKeymap(ctx context.Context, c *x11.Conn, own bool) (*keymap, error) {
	setup := xproto.Setup(c.Conn)
	m := &keymap{min: byte(setup.MinKeycode), max: byte(setup.MaxKeycode)}
	r, err := x11.Await(ctx, c, func() (*xproto.GetKeyboardMappingReply, error) {
		return xproto.GetKeyboardMapping(c.Conn, setup.MinKeycode, m.max-m.min+1).Reply()
	})
	if err != nil {
		return nil, err
	}
	m.perCode, m.syms = int(r.KeysymsPerKeycode), r.Keysyms
	if want := m.perCode * (int(m.max) - int(m.min) + 1); len(m.syms) < want {
		m.syms = append(m.syms, make([]xproto.Keysym, want-len(m.syms))...)
	}
	m.index(own)
	return m, nil
}

// index finds the strokes. A row holds the plain and the Shift level of the
// first layout, then of the second; AltGr levels of the first come after.
func (m *keymap) index(own bool) {
	at := func(row []xproto.Keysym, i int) xproto.Keysym {
		if i < len(row) {
			return row[i]
		}
		return 0
	}
	codes := func(f func(code byte, row []xproto.Keysym)) {
		// Keycode 8 is special to some clients.
		for code := max(int(m.min), 9); code <= int(m.max); code++ {
			if !own || code < poolFirst || code > poolLast {
				f(byte(code), m.row(byte(code)))
			}
		}
	}
	codes(func(code byte, row []xproto.Keysym) {
		if m.level3 == 0 && at(row, 0) == symLevel3 {
			m.level3 = code
		}
	})
	for g := range m.strokes {
		strokes := map[xproto.Keysym]stroke{}
		m.strokes[g] = strokes
		add := func(sym xproto.Keysym, s stroke) {
			if _, ok := strokes[sym]; !ok && sym != 0 {
				strokes[sym] = s
			}
		}
		// Plain keys win over shifted ones, those over AltGr.
		pair := func(row []xproto.Keysym) (plain, shifted xproto.Keysym, letter, keypad bool) {
			plain, shifted = at(row, 2*g), at(row, 2*g+1)
			if plain == 0 && shifted == 0 {
				// A key that is the same in every layout.
				plain, shifted = at(row, 0), at(row, 1)
			}
			letter = isLetterPair(plain, shifted)
			keypad = isKeypadDigit(shifted)
			return
		}
		codes(func(code byte, row []xproto.Keysym) {
			plain, _, letter, keypad := pair(row)
			add(plain, stroke{code: code, letter: letter, keypad: keypad})
		})
		codes(func(code byte, row []xproto.Keysym) {
			_, shifted, letter, keypad := pair(row)
			add(shifted, stroke{code: code, shift: true, letter: letter, keypad: keypad})
		})
		if g == 0 && m.level3 != 0 {
			codes(func(code byte, row []xproto.Keysym) { add(at(row, 4), stroke{code: code, level3: true}) })
			codes(func(code byte, row []xproto.Keysym) { add(at(row, 5), stroke{code: code, level3: true, shift: true}) })
		}
	}
}

// isKeypadDigit tells whether a keysym is what Num Lock makes of a keypad key.
func isKeypadDigit(s xproto.Keysym) bool {
	return s >= symKP0 && s <= symKP0+9 || s == symKPDecimal || s == symKPSeparator
}

// isLetterPair tells whether Caps Lock swaps a key's levels. The server decides
// so for the older keysyms only.
func isLetterPair(plain, shifted xproto.Keysym) bool {
	if plain >= symUnicode || shifted >= symUnicode {
		return false
	}
	l, u := runeOf(plain), runeOf(shifted)
	return l != 0 && l != u && unicode.ToUpper(l) == u && unicode.ToLower(u) == l
}

// find looks a keysym up in one layout.
func (m *keymap) find(group int, syms ...xproto.Keysym) (stroke, bool) {
	if group >= groups {
		return stroke{}, false
	}
	for _, sym := range syms {
		if s, ok := m.strokes[group][sym]; ok {
			return s, true
		}
	}
	return stroke{}, false
}

// locks is the keyboard's state that changes what a key enters.
type locks struct {
	caps, num bool
	group     int
}

// readLocks asks the server for the state of the keyboard.
func readLocks(ctx context.Context, c *x11.Conn) (locks, error) {
	p, err := x11.Await(ctx, c, func() (*xproto.QueryPointerReply, error) {
		return xproto.QueryPointer(c.Conn, c.Root).Reply()
	})
	if err != nil {
		return locks{}, err
	}
	return locks{
		caps:  p.Mask&xproto.KeyButMaskLock != 0,
		num:   p.Mask&xproto.KeyButMaskMod2 != 0,
		group: int(p.Mask >> 13 & 3),
	}, nil
}

// shifted tells whether Shift is needed for s under these locks.
func (l locks) shifted(s stroke) bool {
	return s.shift != (s.letter && l.caps) != (s.keypad && l.num)
}
