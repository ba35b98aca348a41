package computer

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"drawbridge/bridge/keyname"
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
	return slices.ContainsFunc(keyname.Names, func(name string) bool {
		named, _ := keyname.Resolve(name)
		return named == k
	})
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
