package input

import (
	"fmt"
	"unicode"
	"unicode/utf8"

	"github.com/rivo/uniseg"
)

// isControl tells whether r is a control character that no key enters as text.
func isControl(r rune) bool {
	return unicode.IsControl(r) && r != '\n' && r != '\t' && r != '\r'
}

// checkText refuses what cannot be typed as it is. It does not quote the text.
func checkText(text string) error {
	for i, r := range text {
		if r == utf8.RuneError {
			if _, n := utf8.DecodeRuneInString(text[i:]); n == 1 {
				return fmt.Errorf("type: byte %d of the text is not valid UTF-8", i)
			}
		}
		if isControl(r) {
			return fmt.Errorf("type: byte %d of the text is the control character U+%04X; press its key instead", i, r)
		}
	}
	return nil
}

// split cuts text into graphemes.
func split(text string) []string {
	var gs []string
	state := -1
	for text != "" {
		var g string
		g, text, _, state = uniseg.FirstGraphemeClusterInString(text, state)
		gs = append(gs, g)
	}
	return gs
}
