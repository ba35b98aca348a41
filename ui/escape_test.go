package ui

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"
)

func TestEscape(t *testing.T) {
	for _, tt := range []struct{ in, want string }{
		{"", ""},
		{"rm -rf \"x\" \\n", "rm -rf \"x\" \\n"},
		{"héllo 你好 😀 ñ", "héllo 你好 😀 ñ"},
		{"a\nb\tc\rd", "a⟨U+000A⟩b⟨U+0009⟩c⟨U+000D⟩d"},
		{"\x1b[2J\x1b]0;t\x07", "⟨U+001B⟩[2J⟨U+001B⟩]0;t⟨U+0007⟩"},
		{"\u009b31m\x7f", "⟨U+009B⟩31m⟨U+007F⟩"},
		{"safe\u202Etxt.exe\u2066\u2069\u200F", "safe⟨U+202E⟩txt.exe⟨U+2066⟩⟨U+2069⟩⟨U+200F⟩"},
		{"a\u200Bb\u200Dc\uFEFFd\u2060", "a⟨U+200B⟩b⟨U+200D⟩c⟨U+FEFF⟩d⟨U+2060⟩"},
		{"a\u00A0b\u3000c\u2028d", "a⟨U+00A0⟩b⟨U+3000⟩c⟨U+2028⟩d"},
		{"x\U000E0041\uE000\u3164\u2800", "x⟨U+E0041⟩⟨U+E000⟩⟨U+3164⟩⟨U+2800⟩"},
		{"❤\uFE0F\U000E0100", "❤⟨U+FE0F⟩⟨U+E0100⟩"},
		{"\xff\xc3(", "⟨0xFF⟩⟨0xC3⟩("},
		{"⟨U+202E⟩", "⟨U+27E8⟩U+202E⟨U+27E9⟩"},
		{"e\u0301\u0301\u0301\u0301\u0301x\u0301", "e\u0301\u0301\u0301⟨U+0301⟩⟨U+0301⟩x\u0301"},
		{"\ufffd", "\ufffd"},
	} {
		if got := Escape(tt.in, 0); got != tt.want {
			t.Errorf("%q:\n got %s\nwant %s", tt.in, got, tt.want)
		}
	}
	for _, tt := range []struct {
		in   string
		max  int
		want string
	}{
		{"123456", 6, "123456"},
		{"1234567", 6, "1234⟨… 1 characters left out …⟩67"},
		{strings.Repeat("é", 100) + "\n", 3, "éé⟨… 98 characters left out …⟩⟨U+000A⟩"},
		{"ab", 1, "a⟨… 1 characters left out …⟩"},
	} {
		if got := Escape(tt.in, tt.max); got != tt.want {
			t.Errorf("%q to %d:\n got %s\nwant %s", tt.in, tt.max, got, tt.want)
		}
	}
}

// FuzzEscape: what comes out shows as it is, and two texts never look the same.
func FuzzEscape(f *testing.F) {
	f.Add("a\x1b[31m\u202e\xff⟨", 3)
	f.Add("", 0)
	f.Fuzz(func(t *testing.T, s string, max int) {
		out := Escape(s, 0)
		if !utf8.ValidString(out) {
			t.Fatalf("not UTF-8: %q", out)
		}
		for _, r := range out {
			if unicode.IsControl(r) || unicode.Is(unicode.Cf, r) || unicode.IsSpace(r) && r != ' ' {
				t.Fatalf("%U got through: %q", r, out)
			}
		}
		if back := unescape(out); back != s {
			t.Fatalf("%q shows as %q, which says %q", s, out, back)
		}
		max %= 1000
		if n := utf8.RuneCountInString(s); max > 0 && n > max && !strings.Contains(Escape(s, max), "characters left out") {
			t.Fatalf("cut to %d without a word", max)
		}
	})
}

// unescape reads our marks back.
func unescape(s string) string {
	var b strings.Builder
	for {
		before, rest, ok := strings.Cut(s, "⟨")
		b.WriteString(before)
		if !ok {
			return b.String()
		}
		mark, after, _ := strings.Cut(rest, "⟩")
		var v rune
		for _, c := range mark[2:] {
			v = v<<4 | rune(strings.IndexRune("0123456789ABCDEF", c))
		}
		if mark[:2] == "U+" {
			b.WriteRune(v)
		} else {
			b.WriteByte(byte(v))
		}
		s = after
	}
}

func TestEscapeControls(t *testing.T) {
	for in, want := range map[string]string{
		"two\n\tlines ⟨as⟩ they are, 日本 👩‍👩‍👧": "two\n\tlines ⟨as⟩ they are, 日本 👩‍👩‍👧",
		"\x1b[2J\x1b]0;t\x07": "⟨U+001B⟩[2J⟨U+001B⟩]0;t⟨U+0007⟩",
		"a\rb\bc\x7f":         "a⟨U+000D⟩b⟨U+0008⟩c⟨U+007F⟩",
		"\u009b2J":            "⟨U+009B⟩2J",
		"\x9b2J":              "⟨0x9B⟩2J",
		"\u202eevil\u2066":    "⟨U+202E⟩evil⟨U+2066⟩",
		"a\u2028b":            "a⟨U+2028⟩b",
	} {
		if got := EscapeControls(in); got != want {
			t.Errorf("%q is shown as %q, want %q", in, got, want)
		}
	}
}
