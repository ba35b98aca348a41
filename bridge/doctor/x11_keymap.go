//go:build linux

package doctor

import (
	"unicode"

	"github.com/jezek/xgb/xproto"
)

// keymap is the server's table of keys: a row of symbols for each key code.
type keymap struct {
	first xproto.Keycode
	width int
	syms  []xproto.Keysym
}

// readKeymap asks the server for the keymap in force.
func (w *x11Window) readKeymap() (keymap, error) {
	setup := xproto.Setup(w.conn.Conn)
	first, last := setup.MinKeycode, setup.MaxKeycode
	r, err := xproto.GetKeyboardMapping(w.conn.Conn, first, byte(last-first+1)).Reply()
	if err != nil {
		return keymap{}, err
	}
	return keymap{first, int(r.KeysymsPerKeycode), r.Keysyms}, nil
}

// sym is the symbol that a key gives in a state of the modifiers, by the rules
// of the core protocol, with the columns that XKB servers add: group 1, group 2,
// then levels 3 and 4 of group 1.
func (m keymap) sym(code xproto.Keycode, state uint16) xproto.Keysym {
	i := (int(code) - int(m.first)) * m.width
	if i < 0 || i+m.width > len(m.syms) {
		return 0
	}
	row := m.syms[i : i+m.width]
	at := func(i int) xproto.Keysym {
		if i < len(row) {
			return row[i]
		}
		return 0
	}
	column := 0
	switch {
	case state&xproto.ModMask5 != 0:
		column = 4
	case state>>13&3 == 1:
		column = 2
	}
	plain, shifted := at(column), at(column+1)
	if plain == 0 && shifted == 0 {
		plain, shifted = at(0), at(1)
	}
	shift := state&xproto.ModMaskShift != 0
	if shifted == 0 { // a key with one symbol: a letter has its capital, else Shift is ignored
		shifted = capital(plain)
	}
	if state&xproto.ModMaskLock != 0 && capital(plain) == shifted && shifted != plain {
		shift = !shift
	}
	if shift {
		return shifted
	}
	return plain
}

// capital is the symbol of the upper case of a letter, else the same symbol.
func capital(s xproto.Keysym) xproto.Keysym {
	r := symRune(s)
	upper := unicode.ToUpper(r)
	switch {
	case upper == r:
		return s
	case upper <= 0xff:
		return xproto.Keysym(upper)
	}
	return unicodeSyms + xproto.Keysym(upper)
}

// unicodeSyms is where the symbols for Unicode characters begin.
const unicodeSyms = 0x01000000

// symRune is the character of a symbol; 0: none.
func symRune(s xproto.Keysym) rune {
	switch {
	case s >= 0x20 && s <= 0x7e, s >= 0xa0 && s <= 0xff:
		return rune(s) // Latin-1 stands for itself
	case s == 0x20ac:
		return '€' // the one of the older symbols that the test texts need
	case s >= unicodeSyms && s <= unicodeSyms+unicode.MaxRune:
		return rune(s - unicodeSyms)
	case s == 0xff0d:
		return '\n'
	case s == 0xff09:
		return '\t'
	}
	return 0
}

// symText is what a symbol types.
func symText(s xproto.Keysym) string {
	if r := symRune(s); r != 0 {
		return string(r)
	}
	return ""
}
