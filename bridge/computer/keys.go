package computer

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"drawbridge/input"
)

// keyAliases leads from folded names (see fold) of three vocabularies to keys:
// upper-case ones (ENTER, CTRL, ARROWLEFT), X keysyms (Return, Page_Down,
// Super_L) and the web's key and code names (Control, Meta, Digit1, NumpadAdd).
// A name of one character is not in it: it names the key that types it.
var keyAliases = makeKeyAliases()

// keyNames is keyAliases' names in order, for suggestions.
var keyNames = slices.Sorted(maps.Keys(keyAliases))

func makeKeyAliases() map[string]input.Key {
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
	aliases := map[string]input.Key{}
	for key, names := range table {
		for name := range strings.FieldsSeq(names) {
			aliases[name] = key
			// Either side of the keyboard: Super_L, ControlLeft, left_shift.
			if key.Modifier() && key != input.Fn {
				for _, sided := range []string{name + "l", name + "r", name + "left", name + "right", "l" + name, "r" + name, "left" + name, "right" + name} {
					aliases[sided] = key
				}
			}
		}
	}
	for i := 1; i <= 24; i++ {
		name := fmt.Sprintf("f%d", i)
		aliases[name] = input.Key(name)
	}
	for i := range 10 {
		key := input.Key(fmt.Sprintf("kp%d", i))
		aliases[fmt.Sprintf("kp%d", i)] = key
		aliases[fmt.Sprintf("numpad%d", i)] = key
		aliases[fmt.Sprintf("digit%d", i)] = input.Key(fmt.Sprint(i))
	}
	for c := 'a'; c <= 'z'; c++ {
		aliases["key"+string(c)] = input.Key(string(c))
	}
	return aliases
}

// resolveKey returns the key that name names, in any of the vocabularies.
// Letters name keys, whatever their case: "C" is the C key, not Shift and C.
func resolveKey(name string) (input.Key, bool) {
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
	k, ok := keyAliases[fold(name)]
	return k, ok
}

// splitChord splits a chord written as one word ("ctrl+c", "CTRL++") at its plus
// signs. A word that names a key by itself ("+", "KP_Add") is left whole.
func splitChord(word string) []string {
	if _, ok := resolveKey(word); ok || !strings.Contains(word, "+") {
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

// parseChord reads the keys of a keypress: modifiers in any order and at most
// one other key. key is empty when all are modifiers.
func parseChord(words []string) (mods []input.Key, key input.Key, err error) {
	for _, word := range words {
		for _, name := range splitChord(word) {
			k, err := lookUpKey(name)
			switch {
			case err != nil:
				return nil, "", err
			case k.Modifier():
				if !slices.Contains(mods, k) {
					mods = append(mods, k)
				}
			case key != "" && key != k:
				return nil, "", fmt.Errorf("holds two keys that are no modifiers, %q and %q; one chord takes modifiers and one key, so press them in two actions", key, k)
			default:
				key = k
			}
		}
	}
	if key == "" && len(mods) == 0 {
		return nil, "", errors.New(`is empty; name a key, such as ["ENTER"]`)
	}
	return mods, key, nil
}

// ParseChord reads a chord that is written as one word, such as
// "ctrl+option+escape": modifiers and exactly one key.
func ParseChord(word string) (mods []input.Key, key input.Key, err error) {
	mods, key, err = parseChord([]string{word})
	if err == nil && key == "" {
		err = errors.New("holds modifiers alone; one key besides is needed")
	}
	return mods, key, err
}

// parseModifiers reads the keys of a pointer action.
func parseModifiers(words []string) ([]input.Key, error) {
	if len(words) == 0 {
		return nil, nil
	}
	mods, key, err := parseChord(words)
	if err != nil {
		return nil, err
	}
	if key != "" {
		return nil, fmt.Errorf("holds %q, which is no modifier; a pointer action takes SHIFT, CTRL, ALT, CMD and FN", key)
	}
	return mods, nil
}

func lookUpKey(name string) (input.Key, error) {
	if k, ok := resolveKey(name); ok {
		return k, nil
	}
	if name == "" {
		return "", errors.New(`holds an empty key name; the plus sign is "+" or "plus"`)
	}
	return "", fmt.Errorf("holds %s, which is no key%s; keys are names such as ENTER, CTRL, ArrowLeft, Page_Down, F1 to F24, minus, KP_Add, or one character", quote(name), didYouMean(name, keyNames))
}
