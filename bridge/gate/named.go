package gate

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Named is what a pattern is to name.
type Named string

// What a pattern can name.
const (
	NamedTool   Named = "tool"
	NamedClient Named = "client"
	NamedHost   Named = "host"
)

const (
	maxName     = 64  // characters of a client or host
	maxToolName = 256 // bytes of a host's tool, before a prefix
)

// ParseNames compiles a pattern for names. It refuses one that fits none, or that
// is written as in another language: a rule that silently fits nothing denies
// nothing.
func ParseNames(what Named, text string) (Glob, error) {
	g, err := ParseGlob(text)
	if err != nil {
		return g, err
	}
	err = written(text)
	if err == nil {
		err = g.canName(what)
	}
	if err != nil {
		return Glob{}, fmt.Errorf("pattern %q fits no %s: %w", text, what, err)
	}
	return g, nil
}

// written looks for what means something in other pattern languages and here
// stands for itself. With a \ before it, it is meant.
func written(text string) error {
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == '\\':
			_, after := utf8.DecodeRuneInString(text[i+n:])
			n += after
		case r == '[':
			if _, set, err := parseSet(text[i:]); err == nil { // as ParseGlob found
				n = set
			}
		case r == '{' || r == '}':
			return errors.New(`braces stand for themselves; write one entry for each name, or \{ where a brace is meant`)
		case r == ',' || r == '|':
			return fmt.Errorf(`"%c" stands for itself; write one entry for each name, or \%c where it is meant`, r, r)
		case unicode.IsSpace(r) || unicode.IsControl(r):
			return fmt.Errorf(`it holds %q; take that away, or write \ before it where it is meant`, string(r))
		}
		i += n
	}
	return nil
}

// canName tells why the pattern fits no name of this kind.
func (g Glob) canName(what Named) error {
	if g.parts == nil {
		return nil
	}
	least := 0 // characters, or for tools bytes
	for i := range g.parts {
		p := &g.parts[i]
		switch p.kind {
		case 'l':
			least += len(p.lit)
			for _, r := range p.lit {
				if what != NamedTool && !inName(r) {
					return fmt.Errorf("no %s's name holds %q: it is 1 to %d of A-Z a-z 0-9 . _ -", what, r, maxName)
				}
			}
		case '[':
			least++
			if !p.fitsAny(what) {
				return errors.New("a set [...] in it holds no character of such a name")
			}
		case '?':
			least++
		}
	}
	limit := maxName
	if what == NamedTool {
		limit = maxName + 1 + maxToolName
	}
	switch {
	case len(g.parts) == 0:
		return errors.New("it is empty")
	case least > limit:
		return fmt.Errorf("names have at most %d characters", limit)
	}
	return nil
}

func inName(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r)
}

// fitsAny tells whether a character that a name may hold is in the set.
func (p *globPart) fitsAny(what Named) bool {
	for r := rune('!'); r < utf8.RuneSelf; r++ {
		if (what == NamedTool || inName(r)) && p.match(string(r)) > 0 {
			return true
		}
	}
	if what != NamedTool {
		return false
	}
	// Beyond ASCII the ends of what is named, and what lies beside them, tell.
	for _, rg := range p.ranges {
		for _, r := range []rune{rg[0] - 1, rg[0], rg[1], rg[1] + 1} {
			if r >= utf8.RuneSelf && utf8.ValidRune(r) && p.match(string(r)) > 0 {
				return true
			}
		}
	}
	return false
}
