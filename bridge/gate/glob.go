package gate

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Glob is a compiled pattern that must fit a whole text:
//
//   - any text, also none, also with slashes and newlines
//     ?      any one character
//     [a-z]  one character of the set; [^a-z] or [!a-z] one that is not in it
//     \c     the character c itself, whatever it means
//
// Everything else stands for itself, braces too; case matters. The zero Glob fits
// every text. Patterns for names are read by [ParseNames].
type Glob struct {
	text  string
	parts []globPart // nil: fits everything
}

type globPart struct {
	kind   byte   // 'l' literal, '?' one, '*' any, '[' set
	lit    string // of a literal
	not    bool   // of a set
	ranges [][2]rune
}

// ParseGlob compiles a pattern.
func ParseGlob(text string) (Glob, error) {
	g := Glob{text: text, parts: []globPart{}}
	var lit strings.Builder
	flush := func() {
		if lit.Len() > 0 {
			g.parts = append(g.parts, globPart{kind: 'l', lit: lit.String()})
			lit.Reset()
		}
	}
	for i := 0; i < len(text); {
		switch c := text[i]; c {
		case '*':
			flush()
			if n := len(g.parts); n == 0 || g.parts[n-1].kind != '*' {
				g.parts = append(g.parts, globPart{kind: '*'})
			}
			i++
		case '?':
			flush()
			g.parts = append(g.parts, globPart{kind: '?'})
			i++
		case '[':
			flush()
			set, n, err := parseSet(text[i:])
			if err != nil {
				return Glob{}, fmt.Errorf("pattern %q: %w", text, err)
			}
			g.parts = append(g.parts, set)
			i += n
		case '\\':
			if i+1 == len(text) {
				return Glob{}, fmt.Errorf(`pattern %q ends in a lone \: write \\ for a backslash`, text)
			}
			_, n := utf8.DecodeRuneInString(text[i+1:])
			lit.WriteString(text[i+1 : i+1+n])
			i += 1 + n
		default:
			lit.WriteByte(c)
			i++
		}
	}
	flush()
	if len(g.parts) == 1 && g.parts[0].kind == '*' {
		g.parts = nil
	}
	return g, nil
}

// parseSet reads [...] and returns how long it is.
func parseSet(s string) (globPart, int, error) {
	p := globPart{kind: '['}
	i := 1
	if i < len(s) && (s[i] == '^' || s[i] == '!') {
		p.not = true
		i++
	}
	one := func() (rune, bool) {
		if i < len(s) && s[i] == '\\' {
			i++
		}
		if i >= len(s) {
			return 0, false
		}
		r, n := utf8.DecodeRuneInString(s[i:])
		i += n
		return r, true
	}
	for first := true; i < len(s); first = false {
		if s[i] == ']' && !first {
			return p, i + 1, nil
		}
		lo, ok := one()
		if !ok {
			break
		}
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			i++
			if hi, ok = one(); !ok {
				break
			}
		}
		if hi < lo {
			return p, 0, fmt.Errorf("the range %c-%c runs backwards", lo, hi)
		}
		p.ranges = append(p.ranges, [2]rune{lo, hi})
	}
	return p, 0, errors.New(`a [ is not closed: write \[ for a bracket`)
}

// String returns the pattern as it was written; "*" for the zero Glob.
func (g Glob) String() string {
	if g.text == "" && g.parts == nil {
		return "*"
	}
	return g.text
}

// Match tells whether s fits. It takes time in proportion to the product of both
// lengths at worst.
func (g Glob) Match(s string) bool {
	if g.parts == nil {
		return true
	}
	// A later star never needs what an earlier one could give back, so one place
	// to go back to is enough.
	part, back, backAt := 0, -1, 0
	for at := 0; at < len(s) || part < len(g.parts); {
		if part < len(g.parts) {
			p := &g.parts[part]
			if p.kind == '*' {
				back, backAt = part, at
				part++
				continue
			}
			if n := p.match(s[at:]); n > 0 {
				at += n
				part++
				continue
			}
		}
		if back < 0 || backAt >= len(s) {
			return false
		}
		_, n := utf8.DecodeRuneInString(s[backAt:])
		backAt += n
		at, part = backAt, back+1
	}
	return true
}

// match returns how many bytes of s the part takes, 0 if it does not fit.
func (p *globPart) match(s string) int {
	if p.kind == 'l' {
		if strings.HasPrefix(s, p.lit) {
			return len(p.lit)
		}
		return 0
	}
	if s == "" {
		return 0
	}
	r, n := utf8.DecodeRuneInString(s)
	if p.kind == '?' {
		return n
	}
	for _, rg := range p.ranges {
		if rg[0] <= r && r <= rg[1] {
			if p.not {
				return 0
			}
			return n
		}
	}
	if p.not {
		return n
	}
	return 0
}

// exactly returns a pattern that fits s alone.
func exactly(s string) string {
	var b strings.Builder
	for i, r := range s {
		if strings.ContainsRune(`\*?[]{},|`, r) || unicode.IsSpace(r) || unicode.IsControl(r) {
			b.WriteByte('\\')
		}
		_, n := utf8.DecodeRuneInString(s[i:])
		b.WriteString(s[i : i+n])
	}
	return b.String()
}
