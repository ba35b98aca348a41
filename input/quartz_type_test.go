//go:build darwin || standin

package input

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// usTranslate plays UCKeyTranslate for three keys of a US layout, and a dead one.
func usTranslate(code uint16, mods int, deadToo bool) (string, bool) {
	keys := map[uint16][4]string{0: {"a", "A", "å", "Å"}, 6: {"z", "Z", "Ω", ""}, 18: {"1", "!", "¡", "⁄"}, 50: {"`", "~", "", ""}, kVK_Space: {" ", " ", "\u00a0", ""}, kVK_Tab: {"\t", "\t", "\t", "\t"}}
	level := 0
	if mods&shiftKey != 0 {
		level++
	}
	if mods&optionKey != 0 {
		level += 2
	}
	if code == 33 && level == 0 { // a dead key
		if deadToo {
			return "^", false
		}
		return "", true
	}
	return keys[code][level], false
}

func TestReadLayout(t *testing.T) {
	l := readLayout("test", usTranslate)
	for r, want := range map[rune]string{
		'a': "0 []", 'A': "0 [shift]", 'å': "0 [alt]", 'Å': "0 [shift alt]", '!': "18 [shift]", '^': "33 []", ' ': "49 []", '\u00a0': "49 [alt]",
	} {
		if s, ok := l.chord[r]; !ok || fmt.Sprint(s.code, s.mods) != want {
			t.Errorf("chord %q: %v %v, want %s", r, s.code, s.mods, want)
		}
	}
	if _, ok := l.chord['\t']; ok {
		t.Error("a control character is looked up in the layout")
	}
	// Text takes no dead key and no Option, which may be another character.
	for _, r := range "^å" {
		if s, ok := l.text[r]; ok {
			t.Errorf("text has %q at %v", r, s)
		}
	}
	if s := l.text['!']; s.code != 18 || !slices.Equal(s.mods, []Key{Shift}) {
		t.Errorf("text has ! at %v", s)
	}
}

func TestQuartzPieces(t *testing.T) {
	l := readLayout("test", usTranslate)
	show := func(all []quartzPiece) string {
		var s []string
		for _, p := range all {
			if p.units != nil {
				s = append(s, fmt.Sprintf("%q/%d", string(utf16.Decode(p.units)), p.bytes))
			} else {
				s = append(s, fmt.Sprintf("%d%v/%d", p.stroke.code, p.stroke.mods, p.bytes))
			}
		}
		return strings.Join(s, " ")
	}
	family := "👨‍👩‍👧‍👦" // 11 units
	tower := "e" + strings.Repeat("\u0301", 30)
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"aA", "0[]/1 0[shift]/1"},
		{"a\r\nb\t\n", `0[]/1 36[]/2 "b"/1 48[]/1 36[]/1`},
		{"ä^é", `"ä^é"/5`}, // a dead key is no key for text
		{"aäa", `0[]/1 "ä"/2 0[]/1`},
		{"a\u0301", "\"a\u0301\"/3"}, // a grapheme of two characters is one
		{family + family, fmt.Sprintf("%q/%d %q/%d", family, len(family), family, len(family))},
		{strings.Repeat("é", 21), fmt.Sprintf(`%q/40 "é"/2`, strings.Repeat("é", 20))},
		{"é" + tower + "é", fmt.Sprintf("\"é\"/2 %q/39 %q/22 \"é\"/2", "e"+strings.Repeat("\u0301", 19), strings.Repeat("\u0301", 11))},
	} {
		got := show(quartzPieces(c.text, l))
		if c.text == "é"+tower+"é" {
			// The last é may join the rest of the tower: it is whole either way.
			got = strings.Replace(got, strings.Repeat("\u0301", 11)+`é"/24`, strings.Repeat("\u0301", 11)+`"/22 "é"/2`, 1)
		}
		if got != c.want {
			t.Errorf("%q:\n%s\nwant\n%s", c.text, got, c.want)
		}
	}
	if got := show(quartzPieces("aA", nil)); got != `"aA"/2` {
		t.Errorf("without a layout: %s", got)
	}
}

// FuzzQuartzPieces: whatever the text, all of it is sent, in order, in strings
// that an event can carry, and no grapheme that fits is cut.
func FuzzQuartzPieces(f *testing.F) {
	for _, s := range []string{"", "plain\n", "👨‍👩‍👧‍👦🇩🇪é", "e" + strings.Repeat("\u0301", 50), "\r\n\r", "한국어"} {
		f.Add(s)
	}
	l := readLayout("test", usTranslate)
	f.Fuzz(func(t *testing.T, text string) {
		if checkText(text) != nil || !utf8.ValidString(text) {
			return
		}
		var got strings.Builder
		bytes := 0
		ends := map[int]bool{}
		for _, p := range quartzPieces(text, l) {
			if len(p.units) > mostUnits {
				t.Fatalf("%d units in one event", len(p.units))
			}
			if p.units != nil {
				got.WriteString(string(utf16.Decode(p.units)))
			} else {
				got.WriteString(text[bytes : bytes+p.bytes])
			}
			bytes += p.bytes
			ends[bytes] = true
		}
		if bytes != len(text) || got.String() != text {
			t.Fatalf("%q became %q", text, got.String())
		}
		at, state := 0, -1
		for rest := text; rest != ""; {
			var g string
			g, rest, _, state = uniseg.FirstGraphemeClusterInString(rest, state)
			if len(utf16.Encode([]rune(g))) <= mostUnits {
				for i := at + 1; i < at+len(g); i++ {
					if ends[i] {
						t.Fatalf("%q is cut at %d", g, i-at)
					}
				}
			}
			at += len(g)
		}
	})
}
