//go:build linux

package input

import (
	"unicode/utf8"

	"github.com/jezek/xgb/xproto"
)

// Keysyms that are used by name (X11/keysymdef.h).
const (
	symReturn      xproto.Keysym = 0xff0d
	symTab         xproto.Keysym = 0xff09
	symShift       xproto.Keysym = 0xffe1
	symLevel3      xproto.Keysym = 0xfe03 // AltGr
	symNumLock     xproto.Keysym = 0xff7f
	symUnicode     xproto.Keysym = 0x01000000
	symKP0         xproto.Keysym = 0xffb0
	symKPSeparator xproto.Keysym = 0xffac
	symKPDecimal   xproto.Keysym = 0xffae
)

// namedKeysyms are the keysyms of the named keys. Where keyboards differ, the
// usual one comes first.
var namedKeysyms = map[Key][]xproto.Keysym{
	Shift:   {symShift},
	Control: {0xffe3},
	Alt:     {0xffe9, 0xffe7}, // Alt_L, Meta_L
	Command: {0xffeb},         // Super_L

	Enter:        {symReturn},
	Tab:          {symTab},
	Space:        {0x20},
	Escape:       {0xff1b},
	Backspace:    {0xff08},
	Delete:       {0xffff},
	Insert:       {0xff63},
	Home:         {0xff50},
	ArrowLeft:    {0xff51},
	ArrowUp:      {0xff52},
	ArrowRight:   {0xff53},
	ArrowDown:    {0xff54},
	PageUp:       {0xff55},
	PageDown:     {0xff56},
	End:          {0xff57},
	CapsLock:     {0xffe5},
	NumLock:      {symNumLock},
	ScrollLock:   {0xff14},
	PrintScreen:  {0xff61},
	Pause:        {0xff13},
	Menu:         {0xff67},
	KPEnter:      {0xff8d},
	KPAdd:        {0xffab},
	KPSubtract:   {0xffad},
	KPMultiply:   {0xffaa},
	KPDivide:     {0xffaf},
	KPDecimal:    {symKPDecimal, symKPSeparator},
	KPEqual:      {0xffbd},
	VolumeDown:   {0x1008ff11},
	VolumeMute:   {0x1008ff12},
	VolumeUp:     {0x1008ff13},
	MediaPlay:    {0x1008ff14},
	MediaPrev:    {0x1008ff16},
	MediaNext:    {0x1008ff17},
	BrightnessUp: {0x1008ff02},
	BrightnessDn: {0x1008ff03},
}

func init() {
	for i := range xproto.Keysym(24) {
		namedKeysyms[Key("f"+decimal(int(i)+1))] = []xproto.Keysym{0xffbe + i}
	}
	for i := range xproto.Keysym(10) {
		namedKeysyms[Key("kp"+decimal(int(i)))] = []xproto.Keysym{symKP0 + i}
	}
}

func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return string([]rune{rune('0' + n/10), rune('0' + n%10)})
}

// keysymsOf lists the keysyms that stand for a key, the usual one first; none
// for a key that X11 has no keysym for.
func keysymsOf(k Key) []xproto.Keysym {
	if s, ok := namedKeysyms[k]; ok {
		return s
	}
	if r, n := utf8.DecodeRuneInString(string(k)); n == len(k) && r != utf8.RuneError && !isControl(r) {
		return keysymsOfRune(r)
	}
	return nil
}

// keysymsOfRune lists the keysyms that enter a character. The Unicode form is
// what we bind; keymaps use the older forms where there is one.
func keysymsOfRune(r rune) []xproto.Keysym {
	switch {
	case r == '\n' || r == '\r':
		return []xproto.Keysym{symReturn}
	case r == '\t':
		return []xproto.Keysym{symTab}
	case r >= 0x20 && r <= 0x7e || r >= 0xa0 && r <= 0xff:
		return []xproto.Keysym{xproto.Keysym(r)}
	}
	syms := []xproto.Keysym{symUnicode + xproto.Keysym(r)}
	if old, ok := legacyKeysyms[r]; ok {
		syms = append(syms, old)
	}
	return syms
}

// runeOf returns the character that a keysym enters, or 0.
func runeOf(s xproto.Keysym) rune {
	switch {
	case s >= 0x20 && s <= 0x7e || s >= 0xa0 && s <= 0xff:
		return rune(s)
	case s > symUnicode && s <= symUnicode+utf8.MaxRune:
		return rune(s - symUnicode)
	}
	return legacyRunes[s]
}

// legacyKeysyms are the pre-Unicode keysyms of letters that keyboard layouts are
// made of: Greek and Cyrillic (in the order of KOI8) and a few signs.
var (
	legacyKeysyms = map[rune]xproto.Keysym{
		'€': 0x20ac, 'Œ': 0x13bc, 'œ': 0x13bd, 'Ÿ': 0x13be, '–': 0xaaa, '—': 0xaa9, '…': 0xaae,
		'‘': 0xad0, '’': 0xad1, '“': 0xad2, '”': 0xad3, '„': 0xafe, '‚': 0xafd, '™': 0xac9,
		'ё': 0x6a3, 'Ё': 0x6b3, 'і': 0x6a6, 'І': 0x6b6, 'ї': 0x6a7, 'Ї': 0x6b7, 'є': 0x6a4, 'Є': 0x6b4,
		'ґ': 0x6ad, 'Ґ': 0x6bd, '№': 0x6b0, 'ў': 0x6ae, 'Ў': 0x6be,
	}
	legacyRunes = map[xproto.Keysym]rune{}
)

func init() {
	for i, r := range []rune("юабцдефгхийклмнопярстужвьызшэщчъЮАБЦДЕФГХИЙКЛМНОПЯРСТУЖВЬЫЗШЭЩЧЪ") {
		legacyKeysyms[r] = 0x6c0 + xproto.Keysym(i)
	}
	for i, r := range []rune("ΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡΣ") {
		legacyKeysyms[r] = 0x7c1 + xproto.Keysym(i)
	}
	for i, r := range []rune("ΤΥΦΧΨΩ") {
		legacyKeysyms[r] = 0x7d4 + xproto.Keysym(i)
	}
	for i, r := range []rune("αβγδεζηθικλμνξοπρσςτυφχψω") {
		legacyKeysyms[r] = 0x7e1 + xproto.Keysym(i)
	}
	for r, s := range legacyKeysyms {
		legacyRunes[s] = r
	}
}
