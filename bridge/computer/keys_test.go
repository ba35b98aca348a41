package computer

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"drawbridge/input"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// golden compares got with a file in testdata, or rewrites it.
func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("differs from %s; look at it, and run with -update if it is right:\n%s", path, got)
	}
}

// The names of the three vocabularies, as their documents give them.
func TestKeyNames(t *testing.T) {
	tests := map[input.Key]string{
		input.Command:    "META CMD COMMAND SUPER WIN Meta super Super_L Super_R MetaLeft",
		input.Alt:        "ALT OPTION OPT alt Alt Alt_L AltRight",
		input.Control:    "CTRL CONTROL Control ctrl Control_L ControlRight",
		input.Shift:      "SHIFT Shift shift Shift_L ShiftRight",
		input.Fn:         "FN fn Fn",
		input.Enter:      "ENTER RETURN Return Enter",
		input.Escape:     "ESC ESCAPE Escape",
		input.Backspace:  "BACKSPACE BackSpace Backspace",
		input.Delete:     "DELETE DEL Delete",
		input.Tab:        "TAB Tab",
		input.Space:      "SPACE space",
		input.Insert:     "INSERT Insert",
		input.Home:       "HOME Home",
		input.End:        "END End",
		input.PageUp:     "PAGEUP Page_Up Prior PageUp",
		input.PageDown:   "PAGEDOWN Page_Down Next PageDown",
		input.ArrowLeft:  "ARROWLEFT Left LEFT ArrowLeft",
		input.ArrowRight: "ARROWRIGHT Right ArrowRight",
		input.ArrowUp:    "ARROWUP Up ArrowUp",
		input.ArrowDown:  "ARROWDOWN Down ArrowDown",
		input.CapsLock:   "CAPSLOCK Caps_Lock CapsLock",
		input.KPEnter:    "KP_Enter NumpadEnter",
		input.KPAdd:      "KP_Add NumpadAdd",
		input.KPDivide:   "KP_Divide NumpadDivide",
		input.Menu:       "Menu ContextMenu",
		"f1":             "F1 f1",
		"f2":             "F2",
		"f4":             "F4",
		"f24":            "F24",
		"kp7":            "KP_7 Numpad7",
		"-":              "minus - MINUS",
		"/":              "slash / SLASH",
		"+":              "plus +",
		"=":              "equal =",
		",":              "comma , COMMA",
		".":              "period .",
		"[":              "bracketleft [ BracketLeft",
		`\`:              `backslash \ BACKSLASH`,
		"`":              "grave ` Backquote",
		"'":              "apostrophe ' Quote",
		";":              "semicolon ;",
		"!":              "exclam !",
		"a":              "a A KeyA",
		"5":              "5 Digit5",
		"é":              "é É",
		"日":              "日",
	}
	for want, names := range tests {
		for name := range strings.FieldsSeq(names) {
			if got, ok := resolveKey(name); !ok || got != want {
				t.Errorf("%q is %q, %v; want %q", name, got, ok, want)
			}
		}
	}
	for i := 1; i <= 24; i++ {
		if got, ok := resolveKey(fmt.Sprintf("F%d", i)); !ok || got != input.Key(fmt.Sprintf("f%d", i)) {
			t.Errorf("F%d is %q, %v", i, got, ok)
		}
	}
	for _, name := range []string{"", "F0", "F25", "hyper", "AltGr", "ctrlc", "\x07", "\xff", "👍🏽"} {
		if got, ok := resolveKey(name); ok {
			t.Errorf("%q is %q; want none", name, got)
		}
	}
}

func TestKeysGolden(t *testing.T) {
	var b strings.Builder
	for _, name := range keyNames {
		fmt.Fprintf(&b, "%s\t%s\n", name, keyAliases[name])
	}
	golden(t, "keys.golden", []byte(b.String()))
}

func TestParseChord(t *testing.T) {
	tests := []struct {
		in   string // words, divided by spaces
		mods string
		key  input.Key
	}{
		{"CTRL C", "control", "c"},
		{"C CTRL", "control", "c"},
		{"ctrl+c", "control", "c"},
		{"CTRL+SHIFT+T", "control shift", "t"},
		{"ctrl++", "control", "+"},
		{"ctrl +", "control", "+"},
		{"+", "", "+"},
		{"plus", "", "+"},
		{"ctrl+plus", "control", "+"},
		{"ENTER", "", input.Enter},
		{"super", "command", ""},
		{"ctrl alt", "control alt", ""},
		{"CTRL Control_L x", "control", "x"},
		{"CMD+SHIFT ArrowLeft", "command shift", input.ArrowLeft},
		{"alt+F4", "alt", "f4"},
	}
	for _, tt := range tests {
		mods, key, err := parseChord(strings.Fields(tt.in))
		var want []input.Key
		for m := range strings.FieldsSeq(tt.mods) {
			want = append(want, input.Key(m))
		}
		if err != nil || !slices.Equal(mods, want) || key != tt.key {
			t.Errorf("%q: %q, %q, %v; want %q, %q", tt.in, mods, key, err, want, tt.key)
		}
	}
	for _, in := range []string{"", "a b", "ctrl+a+b", "ctrl+", "+a", "+++", "ctrl+nope"} {
		if mods, key, err := parseChord(strings.Fields(in)); err == nil {
			t.Errorf("%q was taken as %q, %q", in, mods, key)
		}
	}
}

func FuzzParseChord(f *testing.F) {
	for _, s := range []string{"ctrl+c", "CTRL\nC", "+", "++", "ctrl++", "F24", "KP_Add", "Super_L\né", "\x00", "ⓐ"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, in string) {
		mods, key, err := parseChord(strings.Split(in, "\n"))
		if err != nil {
			return
		}
		if key == "" && len(mods) == 0 {
			t.Errorf("%q is no key at all", in)
		}
		for _, m := range mods {
			if !m.Modifier() {
				t.Errorf("%q holds the modifier %q", in, m)
			}
		}
		if key == "" {
			return
		}
		r, n := utf8.DecodeRuneInString(string(key))
		printable := n == len(key) && unicode.IsPrint(r)
		if !printable && !isNamed(key) {
			t.Errorf("%q is the key %q, which is neither a name nor a character", in, key)
		}
	})
}

func isNamed(k input.Key) bool {
	for _, named := range keyAliases {
		if named == k {
			return true
		}
	}
	return false
}

func TestNearest(t *testing.T) {
	known := []string{"scroll_x", "scroll_y", "keys", "button"}
	for word, want := range map[string]string{
		"scrollY": "scroll_y", "SCROLL_X": "scroll_x", "key": "keys", "buton": "button", "btuton": "button",
		"colour": "", "z": "", strings.Repeat("scroll_y", 100): "",
	} {
		if got := nearest(word, known); got != want {
			t.Errorf("nearest to %q is %q, want %q", word, got, want)
		}
	}
}
