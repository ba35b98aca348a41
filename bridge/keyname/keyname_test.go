package keyname

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/input"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// The names of the three vocabularies, as their documents give them.
func TestResolve(t *testing.T) {
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
			if got, ok := Resolve(name); !ok || got != want {
				t.Errorf("%q is %q, %v; want %q", name, got, ok, want)
			}
		}
	}
	for i := 1; i <= 24; i++ {
		if got, ok := Resolve(fmt.Sprintf("F%d", i)); !ok || got != input.Key(fmt.Sprintf("f%d", i)) {
			t.Errorf("F%d is %q, %v", i, got, ok)
		}
	}
	for _, name := range []string{"", "F0", "F25", "hyper", "AltGr", "ctrlc", "\x07", "\xff", "👍🏽"} {
		if got, ok := Resolve(name); ok {
			t.Errorf("%q is %q; want none", name, got)
		}
	}
}

func TestNamesGolden(t *testing.T) {
	var b strings.Builder
	for _, name := range Names {
		fmt.Fprintf(&b, "%s\t%s\n", name, aliases[name])
	}
	golden := filepath.Join("testdata", "keys.golden")
	if *update {
		if err := os.WriteFile(golden, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("differs from %s; look at it, and run with -update if it is right:\n%s", golden, b.String())
	}
}

// Every key that types, by its names and as itself, and some of those that do not.
func TestTypes(t *testing.T) {
	for name := range strings.FieldsSeq("a A 7 é 日 space minus - plus quotedbl Digit5 KeyQ section KP_1 Numpad9 KP_Add KP_Decimal KP_Equal") {
		if k, ok := Resolve(name); !ok || !Types(k) {
			t.Errorf("%s types nothing", name)
		}
	}
	for name := range strings.FieldsSeq("Return KP_Enter Tab Escape BackSpace Delete Left F1 F24 Shift_L ctrl alt cmd fn Menu VolumeUp Page_Down CapsLock") {
		if k, ok := Resolve(name); !ok || Types(k) {
			t.Errorf("%s types something", name)
		}
	}
}
