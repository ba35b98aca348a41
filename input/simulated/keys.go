package simulated

import (
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"drawbridge/input"
)

// modifierOrder is the order in which a chord names its modifiers.
var modifierOrder = []input.Key{input.Control, input.Alt, input.Shift, input.Command, input.Fn}

var namedKeys = func() map[input.Key]bool {
	m := map[input.Key]bool{}
	for _, k := range []input.Key{
		input.Shift, input.Control, input.Alt, input.Command, input.Fn,
		input.Enter, input.Tab, input.Space, input.Escape, input.Backspace, input.Delete, input.Insert,
		input.Home, input.End, input.PageUp, input.PageDown,
		input.ArrowLeft, input.ArrowRight, input.ArrowUp, input.ArrowDown,
		input.CapsLock, input.NumLock, input.ScrollLock, input.PrintScreen, input.Pause, input.Menu,
		input.KPEnter, input.KPAdd, input.KPSubtract, input.KPMultiply, input.KPDivide, input.KPDecimal, input.KPEqual,
		input.VolumeUp, input.VolumeDown, input.VolumeMute, input.MediaPlay, input.MediaNext, input.MediaPrev,
		input.BrightnessUp, input.BrightnessDn,
	} {
		m[k] = true
	}
	for i := 1; i <= 24; i++ {
		m[input.Key("f"+strconv.Itoa(i))] = true
	}
	for i := range 10 {
		m[input.Key("kp"+strconv.Itoa(i))] = true
	}
	return m
}()

// known reports whether this keyboard has k.
func known(k input.Key) bool {
	if namedKeys[k] {
		return true
	}
	r, n := utf8.DecodeRuneInString(string(k))
	return n == len(k) && n > 0 && r != utf8.RuneError && unicode.IsPrint(r)
}

// The keys of a US keyboard that Shift changes, and what it makes of them.
const (
	plain   = "`1234567890-=[]\\;',./"
	shifted = "~!@#$%^&*()_+{}|:\"<>?"
)

// keyText is what k types without Control, Alt or Command; empty when it types
// nothing. Enter and Tab are left to whoever has the focus.
func keyText(k input.Key, shift, caps bool) string {
	switch k {
	case input.Space:
		return " "
	case input.KPAdd:
		return "+"
	case input.KPSubtract:
		return "-"
	case input.KPMultiply:
		return "*"
	case input.KPDivide:
		return "/"
	case input.KPDecimal:
		return "."
	case input.KPEqual:
		return "="
	}
	if digit, ok := strings.CutPrefix(string(k), "kp"); ok && len(digit) == 1 {
		return digit
	}
	if namedKeys[k] {
		return ""
	}
	s := string(k)
	if i := strings.Index(plain, s); i >= 0 && shift {
		return shifted[i : i+1]
	}
	if upper := strings.ToUpper(s); upper != s && shift != caps {
		return upper
	}
	return s
}
