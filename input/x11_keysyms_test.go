//go:build linux

package input

import (
	"bufio"
	"os"
	"regexp"
	"strconv"
	"testing"

	"github.com/jezek/xgb/xproto"
)

// TestKeysymsAgainstHeader holds our tables against X's own list.
func TestKeysymsAgainstHeader(t *testing.T) {
	f, err := os.Open("/usr/include/X11/keysymdef.h")
	if err != nil {
		t.Skip("keysymdef.h is missing: apt-get install x11proto-dev")
	}
	defer f.Close()
	// Parentheses mark characters that a keysym stands for only roughly.
	line := regexp.MustCompile(`^#define XK_(\w+)\s+0x([0-9a-f]+)(?:\s+/\*\s(U\+([0-9A-F]+) .*)?)?`)
	values := map[string]xproto.Keysym{}
	runes := map[xproto.Keysym]rune{}
	for s := bufio.NewScanner(f); s.Scan(); {
		m := line.FindStringSubmatch(s.Text())
		if m == nil {
			continue
		}
		v, err := strconv.ParseUint(m[2], 16, 32)
		if err != nil {
			t.Fatal(err)
		}
		values[m[1]] = xproto.Keysym(v)
		if m[4] != "" {
			r, err := strconv.ParseUint(m[4], 16, 32)
			if err != nil {
				t.Fatal(err)
			}
			runes[xproto.Keysym(v)] = rune(r)
		}
	}
	if len(runes) < 500 {
		t.Fatalf("only %d characters were read from the header", len(runes))
	}
	for r, s := range legacyKeysyms {
		if runes[s] != r {
			t.Errorf("%q has the keysym %#x, which the header gives to %q", r, s, runes[s])
		}
	}
	for k, name := range map[Key]string{
		Shift: "Shift_L", Control: "Control_L", Alt: "Alt_L", Command: "Super_L", Enter: "Return", Tab: "Tab",
		Space: "space", Escape: "Escape", Backspace: "BackSpace", Delete: "Delete", Insert: "Insert", Home: "Home",
		End: "End", PageUp: "Prior", PageDown: "Next", ArrowLeft: "Left", ArrowRight: "Right", ArrowUp: "Up",
		ArrowDown: "Down", CapsLock: "Caps_Lock", NumLock: "Num_Lock", ScrollLock: "Scroll_Lock", PrintScreen: "Print",
		Pause: "Pause", Menu: "Menu", KPEnter: "KP_Enter", KPAdd: "KP_Add", KPSubtract: "KP_Subtract",
		KPMultiply: "KP_Multiply", KPDivide: "KP_Divide", KPDecimal: "KP_Decimal", KPEqual: "KP_Equal",
		"kp0": "KP_0", "kp9": "KP_9", "f1": "F1", "f9": "F9", "f10": "F10", "f24": "F24",
		"a": "a", "A": "A", "/": "slash", "é": "eacute", "ÿ": "ydiaeresis",
	} {
		if got := keysymsOf(k); len(got) == 0 || got[0] != values[name] || values[name] == 0 {
			t.Errorf("%s: keysyms %#x, the header has %#x for %s", k, got, values[name], name)
		}
	}
}

func TestKeysymsOf(t *testing.T) {
	for k, want := range map[Key]xproto.Keysym{
		// XF86keysym.h
		VolumeUp: 0x1008ff13, VolumeDown: 0x1008ff11, VolumeMute: 0x1008ff12, MediaPlay: 0x1008ff14,
		MediaNext: 0x1008ff17, MediaPrev: 0x1008ff16, BrightnessUp: 0x1008ff02, BrightnessDn: 0x1008ff03,
		"中": 0x01004e2d, "😀": 0x0101f600, "ж": 0x01000436,
	} {
		if got := keysymsOf(k); len(got) == 0 || got[0] != want {
			t.Errorf("%s: %#x, want %#x", k, got, want)
		}
	}
	for _, k := range []Key{Fn, "", "ab", "f25", "f0", "\x00", "\x1b", "\xff", "nonsense"} {
		if got := keysymsOf(k); got != nil {
			t.Errorf("%q has the keysyms %#x", k, got)
		}
	}
	for _, r := range "aé€жΩ中😀" {
		for _, s := range keysymsOfRune(r) {
			if runeOf(s) != r {
				t.Errorf("%q became %#x, which is %q", r, s, runeOf(s))
			}
		}
	}
}
