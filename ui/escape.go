// Package ui is where a person meets Drawbridge: prompts, tray, activity page.
package ui

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// marksKept is how many combining marks in a row are shown as they are; scripts
// need up to three, and a pile of them hides the lines around it.
const marksKept = 3

// Escape makes text that came from a program safe to show to a person who is to
// decide on it. Whatever is invisible, moves the cursor, changes the direction of
// writing, or only looks like a space is shown by its number, as ⟨U+202E⟩; a byte
// that is no UTF-8 as ⟨0xFF⟩; and the brackets ⟨⟩ themselves by number too, so
// that nothing in a text can pass for our own marks. With max above 0, of a text
// of more than max characters the middle is left out, and it says how much.
func Escape(s string, max int) string {
	head, tail, left := s, "", 0
	if n := utf8.RuneCountInString(s); max > 0 && n > max {
		left = n - max
		head, tail = s[:runes(s, max-max/3)], s[runes(s, n-max/3):]
	}
	var b strings.Builder
	b.Grow(len(head) + len(tail) + 32)
	escape(&b, head)
	if left > 0 {
		fmt.Fprintf(&b, "⟨… %d characters left out …⟩", left)
		escape(&b, tail)
	}
	return b.String()
}

// EscapeControls makes a program's text of several lines safe for a terminal:
// characters that steer one, or the direction of writing, and bytes that are no
// UTF-8 are shown by number. Line ends, tabs and all else stay.
func EscapeControls(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, "⟨0x%02X⟩", s[i])
		case r != '\n' && r != '\t' && unicode.In(r, unicode.Cc, unicode.Bidi_Control, unicode.Zl, unicode.Zp):
			fmt.Fprintf(&b, "⟨U+%04X⟩", r)
		default:
			b.WriteString(s[i : i+n])
		}
		i += n
	}
	return b.String()
}

// runes returns how many bytes the first n characters of s take.
func runes(s string, n int) int {
	at := 0
	for range n {
		_, size := utf8.DecodeRuneInString(s[at:])
		at += size
	}
	return at
}

func escape(b *strings.Builder, s string) {
	marks := 0
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		if r == utf8.RuneError && n == 1 {
			fmt.Fprintf(b, "⟨0x%02X⟩", s[i])
			i++
			continue
		}
		if unicode.Is(unicode.M, r) {
			marks++
		} else {
			marks = 0
		}
		if hidden(r) || marks > marksKept {
			fmt.Fprintf(b, "⟨U+%04X⟩", r)
		} else {
			b.WriteString(s[i : i+n])
		}
		i += n
	}
}

// hidden tells whether a person could overlook or misread r.
func hidden(r rune) bool {
	switch {
	case ' ' <= r && r <= '~':
		return false
	case r == '⟨' || r == '⟩':
		return true
	case !unicode.IsPrint(r): // control, format (bidi, joiners, tags), private, unassigned, all other spaces
		return true
	case unicode.Is(unicode.Variation_Selector, r):
		return true
	}
	switch r {
	case '\u034F', // combining grapheme joiner
		'\u115F', '\u1160', '\u3164', '\uFFA0', // Hangul fillers: letters that show nothing
		'\u17B4', '\u17B5', // Khmer vowels that show nothing
		'\u2800': // the empty Braille pattern
		return true
	}
	return false
}
