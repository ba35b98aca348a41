// Package keyname knows what keys are called: which key a name means, in the
// vocabularies that models use, and which keys type something.
package keyname

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"drawbridge/input"
)

// aliases leads from folded names (see [Fold]) of three vocabularies to keys:
// upper-case ones (ENTER, CTRL, ARROWLEFT), X keysyms (Return, Page_Down,
// Super_L) and the web's key and code names (Control, Meta, Digit1, NumpadAdd).
// A name of one character is not in it: it names the key that types it.
var aliases = makeAliases()

// Names are the names of more than one character in order, for suggestions.
var Names = slices.Sorted(maps.Keys(aliases))

func makeAliases() map[string]input.Key {
	table := map[input.Key]string{
		input.Shift:   "shift",
		input.Control: "control ctrl ctl",
		input.Alt:     "alt option opt",
		input.Command: "command cmd meta super win windows os",

		input.Fn:           "fn function",
		input.Enter:        "enter return linefeed",
		input.Tab:          "tab",
		input.Space:        "space spacebar",
		input.Escape:       "escape esc",
		input.Backspace:    "backspace bksp",
		input.Delete:       "delete del forwarddelete kpdelete",
		input.Insert:       "insert ins kpinsert",
		input.Home:         "home kphome",
		input.End:          "end kpend",
		input.PageUp:       "pageup pgup prior kppageup kpprior",
		input.PageDown:     "pagedown pgdn pgdown next kppagedown kpnext",
		input.ArrowLeft:    "left arrowleft leftarrow kpleft",
		input.ArrowRight:   "right arrowright rightarrow kpright",
		input.ArrowUp:      "up arrowup uparrow kpup",
		input.ArrowDown:    "down arrowdown downarrow kpdown",
		input.CapsLock:     "capslock caps",
		input.NumLock:      "numlock",
		input.ScrollLock:   "scrolllock",
		input.PrintScreen:  "printscreen print prtsc prtscr prtscn sysreq",
		input.Pause:        "pause break",
		input.Menu:         "menu contextmenu apps",
		input.KPEnter:      "kpenter numpadenter",
		input.KPAdd:        "kpadd kpplus numpadadd numpadplus",
		input.KPSubtract:   "kpsubtract kpminus numpadsubtract numpadminus",
		input.KPMultiply:   "kpmultiply numpadmultiply",
		input.KPDivide:     "kpdivide numpaddivide",
		input.KPDecimal:    "kpdecimal numpaddecimal",
		input.KPEqual:      "kpequal numpadequal",
		input.VolumeUp:     "volumeup audiovolumeup xf86audioraisevolume",
		input.VolumeDown:   "volumedown audiovolumedown xf86audiolowervolume",
		input.VolumeMute:   "volumemute mute audiovolumemute xf86audiomute",
		input.MediaPlay:    "mediaplay mediaplaypause playpause xf86audioplay xf86audiopause",
		input.MediaNext:    "medianext mediatracknext nexttrack xf86audionext",
		input.MediaPrev:    "mediaprev mediatrackprevious prevtrack xf86audioprev",
		input.BrightnessUp: "brightnessup xf86monbrightnessup",
		input.BrightnessDn: "brightnessdown xf86monbrightnessdown",

		"-":      "minus dash hyphen",
		"=":      "equal equals",
		"+":      "plus",
		"_":      "underscore",
		"[":      "bracketleft leftbracket openbracket",
		"]":      "bracketright rightbracket closebracket",
		"{":      "braceleft leftbrace",
		"}":      "braceright rightbrace",
		"(":      "parenleft leftparen",
		")":      "parenright rightparen",
		";":      "semicolon",
		":":      "colon",
		"'":      "apostrophe quote singlequote quoteright",
		`"`:      "quotedbl doublequote",
		"`":      "grave backquote backtick quoteleft",
		"~":      "asciitilde tilde",
		`\`:      "backslash",
		"|":      "bar pipe",
		",":      "comma",
		".":      "period dot",
		"<":      "less",
		">":      "greater",
		"/":      "slash",
		"?":      "question questionmark",
		"!":      "exclam exclamation",
		"@":      "at",
		"#":      "numbersign hash",
		"$":      "dollar",
		"%":      "percent",
		"^":      "asciicircum caret",
		"&":      "ampersand",
		"*":      "asterisk star",
		"\u00a7": "section",
	}
	all := map[string]input.Key{}
	for key, names := range table {
		for name := range strings.FieldsSeq(names) {
			all[name] = key
			// Either side of the keyboard: Super_L, ControlLeft, left_shift.
			if key.Modifier() && key != input.Fn {
				for _, sided := range []string{name + "l", name + "r", name + "left", name + "right", "l" + name, "r" + name, "left" + name, "right" + name} {
					all[sided] = key
				}
			}
		}
	}
	for i := 1; i <= 24; i++ {
		name := fmt.Sprintf("f%d", i)
		all[name] = input.Key(name)
	}
	for i := range 10 {
		key := input.Key(fmt.Sprintf("kp%d", i))
		all[fmt.Sprintf("kp%d", i)] = key
		all[fmt.Sprintf("numpad%d", i)] = key
		all[fmt.Sprintf("digit%d", i)] = input.Key(fmt.Sprint(i))
	}
	for c := 'a'; c <= 'z'; c++ {
		all["key"+string(c)] = input.Key(string(c))
	}
	return all
}

// Resolve returns the key that name names, in any of the vocabularies.
// Letters name keys, whatever their case: "C" is the C key, not Shift and C.
func Resolve(name string) (input.Key, bool) {
	if utf8.RuneCountInString(name) == 1 {
		r, _ := utf8.DecodeRuneInString(name)
		switch {
		case r == utf8.RuneError:
			return "", false
		case r == ' ':
			return input.Space, true
		case r == '\n' || r == '\r':
			return input.Enter, true
		case r == '\t':
			return input.Tab, true
		case unicode.IsPrint(r):
			return input.Key(string(unicode.ToLower(r))), true
		}
		return "", false
	}
	k, ok := aliases[Fold(name)]
	return k, ok
}

// Split splits a chord written as one word ("ctrl+c", "CTRL++") at its plus
// signs. A word that names a key by itself ("+", "KP_Add") is left whole.
func Split(word string) []string {
	if _, ok := Resolve(word); ok || !strings.Contains(word, "+") {
		return []string{word}
	}
	rest, last := word, ""
	if strings.HasSuffix(word, "++") {
		rest, last = strings.TrimSuffix(word, "++"), "+"
	}
	parts := strings.Split(rest, "+")
	if last != "" {
		parts = append(parts, last)
	}
	return parts
}

// Types tells whether a key puts a character into a text field.
func Types(k input.Key) bool {
	return utf8.RuneCountInString(string(k)) == 1 || k == input.Space || strings.HasPrefix(string(k), "kp") && k != input.KPEnter
}

// Fold takes away what people spell differently in one name: case and the marks
// between words.
func Fold(s string) string {
	return strings.Map(func(r rune) rune {
		switch r {
		case '_', '-', ' ':
			return -1
		}
		return r
	}, strings.ToLower(s))
}
