package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"
)

// MaxDepth is how deep objects and arrays may nest in a message.
const MaxDepth = 256

// Reasons for which a text is not taken. The scanner is stricter than JSON on
// purpose: what it takes has one reading only, so a gate that reads a value here
// and a host that reads it elsewhere see the same call.
var (
	ErrSyntax    = errors.New("not valid JSON")
	ErrUTF8      = errors.New("not valid UTF-8")
	ErrDepth     = errors.New("nested too deep")
	ErrDuplicate = errors.New("a member name appears twice in one object")
	ErrCase      = errors.New("a member name differs from a known one only in case")
	ErrSurrogate = errors.New("a member name holds half of a surrogate pair")
)

// scanError says what is wrong with a text and where.
type scanError struct {
	reason error
	offset int
	detail string
}

func (e *scanError) Error() string {
	if e.detail == "" {
		return fmt.Sprintf("%v, at byte %d", e.reason, e.offset)
	}
	return fmt.Sprintf("%v: %s, at byte %d", e.reason, e.detail, e.offset)
}

func (e *scanError) Unwrap() error { return e.reason }

// Validate reports whether b is one JSON value with a single reading: strict
// syntax and UTF-8, no member name twice in any object, at most MaxDepth deep.
func Validate(b []byte) error {
	s := scanner{b: b}
	s.space()
	if err := s.value(); err != nil {
		return err
	}
	return s.end()
}

// scanner walks one JSON text once, without decoding it.
type scanner struct {
	b     []byte
	i     int
	depth int
	names [][]byte // decoded member names of the open objects, innermost last
}

func (s *scanner) fail(reason error, detail string) error {
	return &scanError{reason, s.i, detail}
}

func (s *scanner) space() {
	for s.i < len(s.b) {
		switch s.b[s.i] {
		case ' ', '\t', '\n', '\r':
			s.i++
		default:
			return
		}
	}
}

// end requires that nothing but white space follows.
func (s *scanner) end() error {
	s.space()
	if s.i < len(s.b) {
		return s.fail(ErrSyntax, "something follows the value")
	}
	return nil
}

// peek returns the next byte, or 0 at the end (no JSON value begins with 0).
func (s *scanner) peek() byte {
	if s.i < len(s.b) {
		return s.b[s.i]
	}
	return 0
}

// value scans the value that begins at the current byte.
func (s *scanner) value() error {
	switch c := s.peek(); {
	case c == '{':
		return s.object(nil)
	case c == '[':
		return s.array()
	case c == '"':
		_, err := s.str()
		return err
	case c == '-' || '0' <= c && c <= '9':
		return s.number()
	case c == 't':
		return s.literal("true")
	case c == 'f':
		return s.literal("false")
	case c == 'n':
		return s.literal("null")
	case c == 0 && s.i >= len(s.b):
		return s.fail(ErrSyntax, "it ends early")
	}
	return s.fail(ErrSyntax, "no value begins like this")
}

func (s *scanner) literal(word string) error {
	if !bytes.HasPrefix(s.b[s.i:], []byte(word)) {
		return s.fail(ErrSyntax, "no value begins like this")
	}
	s.i += len(word)
	return nil
}

func (s *scanner) digits() bool {
	from := s.i
	for s.i < len(s.b) && '0' <= s.b[s.i] && s.b[s.i] <= '9' {
		s.i++
	}
	return s.i > from
}

func (s *scanner) number() error {
	if s.peek() == '-' {
		s.i++
	}
	if s.peek() == '0' {
		s.i++
	} else if !s.digits() {
		return s.fail(ErrSyntax, "a number lacks its digits")
	}
	if s.peek() == '.' {
		s.i++
		if !s.digits() {
			return s.fail(ErrSyntax, "a number lacks its digits")
		}
	}
	if c := s.peek(); c == 'e' || c == 'E' {
		s.i++
		if c := s.peek(); c == '+' || c == '-' {
			s.i++
		}
		if !s.digits() {
			return s.fail(ErrSyntax, "a number lacks its digits")
		}
	}
	return nil
}

// str scans a string and returns its text between the quotes, still escaped.
func (s *scanner) str() ([]byte, error) {
	s.i++ // the quote
	from := s.i
	for s.i < len(s.b) {
		switch c := s.b[s.i]; {
		case c == '"':
			s.i++
			return s.b[from : s.i-1], nil
		case c == '\\':
			if err := s.escape(); err != nil {
				return nil, err
			}
		case c < ' ':
			return nil, s.fail(ErrSyntax, "a control character stands unescaped in a string")
		case c < utf8.RuneSelf:
			s.i++
		default:
			r, n := utf8.DecodeRune(s.b[s.i:])
			if r == utf8.RuneError && n == 1 {
				return nil, s.fail(ErrUTF8, "")
			}
			s.i += n
		}
	}
	return nil, s.fail(ErrSyntax, "a string is not closed")
}

func (s *scanner) escape() error {
	rest := s.b[s.i+1:]
	if len(rest) == 0 {
		return s.fail(ErrSyntax, "a string is not closed")
	}
	switch rest[0] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		s.i += 2
		return nil
	case 'u':
		if len(rest) < 5 {
			return s.fail(ErrSyntax, "a string is not closed")
		}
		for _, c := range rest[1:5] {
			if !('0' <= c && c <= '9' || 'a' <= c && c <= 'f' || 'A' <= c && c <= 'F') {
				return s.fail(ErrSyntax, "\\u is not followed by four hexadecimal digits")
			}
		}
		s.i += 6
		return nil
	}
	return s.fail(ErrSyntax, "no such escape in a string")
}

func (s *scanner) array() error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail(ErrDepth, fmt.Sprintf("at most %d levels", MaxDepth))
	}
	s.i++
	s.space()
	if s.peek() == ']' {
		s.i++
		s.depth--
		return nil
	}
	for {
		s.space()
		if err := s.value(); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case ']':
			s.i++
			s.depth--
			return nil
		default:
			return s.fail(ErrSyntax, "an array lacks a comma or its end")
		}
	}
}

// manyNames is the size from which an object's names are kept in a map, so that
// a hostile object with many members costs linear time.
const manyNames = 16

// object scans an object. For each member it calls member, which must scan the
// value (and may look into it); nil scans it as any value.
func (s *scanner) object(member func(name []byte) error) error {
	if s.depth++; s.depth > MaxDepth {
		return s.fail(ErrDepth, fmt.Sprintf("at most %d levels", MaxDepth))
	}
	s.i++
	s.space()
	if s.peek() == '}' {
		s.i++
		s.depth--
		return nil
	}
	base := len(s.names)
	var many map[string]bool
	for {
		s.space()
		if s.peek() != '"' {
			return s.fail(ErrSyntax, "a member lacks its name")
		}
		at := s.i
		name, err := s.str()
		if err != nil {
			return err
		}
		if name, err = s.unescapeName(name, at); err != nil {
			return err
		}
		twice := false
		switch open := s.names[base:]; {
		case many != nil:
			twice = many[string(name)]
			many[string(name)] = true
		case len(open) < manyNames:
			for _, n := range open {
				if twice = bytes.Equal(n, name); twice {
					break
				}
			}
			s.names = append(s.names, name)
		default:
			many = make(map[string]bool, 2*manyNames)
			for _, n := range open {
				many[string(n)] = true
			}
			twice = many[string(name)]
			many[string(name)] = true
		}
		if twice {
			s.i = at
			return s.fail(ErrDuplicate, quoteName(name))
		}
		s.space()
		if s.peek() != ':' {
			return s.fail(ErrSyntax, "a member lacks its colon")
		}
		s.i++
		s.space()
		if member == nil {
			err = s.value()
		} else {
			err = member(name)
		}
		if err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.i++
		case '}':
			s.i++
			s.depth--
			s.names = s.names[:base]
			return nil
		default:
			return s.fail(ErrSyntax, "an object lacks a comma or its end")
		}
	}
}

// unescapeName decodes a member's name. A name with half a surrogate pair is
// refused: parsers disagree about what it is.
func (s *scanner) unescapeName(name []byte, at int) ([]byte, error) {
	if bytes.IndexByte(name, '\\') < 0 {
		return name, nil
	}
	var text string
	if err := json.Unmarshal(s.b[at:s.i], &text); err != nil {
		return nil, s.fail(ErrSyntax, "a member's name")
	}
	if loneSurrogate(name) {
		s.i = at
		return nil, s.fail(ErrSurrogate, "")
	}
	return []byte(text), nil
}

// loneSurrogate reports whether an escaped string, known to be well-formed,
// holds a \uD800–\uDFFF escape that is no half of a pair.
func loneSurrogate(b []byte) bool {
	unit := func(i int) (rune, bool) {
		if i+6 > len(b) || b[i] != '\\' || b[i+1] != 'u' {
			return 0, false
		}
		var r rune
		for _, c := range b[i+2 : i+6] {
			r <<= 4
			switch {
			case c <= '9':
				r |= rune(c - '0')
			default:
				r |= rune(c|0x20-'a') + 10
			}
		}
		return r, true
	}
	for i := 0; i < len(b); i++ {
		if b[i] != '\\' {
			continue
		}
		r, ok := unit(i)
		if !ok {
			i++ // a two-byte escape
			continue
		}
		i += 5
		switch {
		case 0xDC00 <= r && r <= 0xDFFF:
			return true
		case 0xD800 <= r && r <= 0xDBFF:
			low, ok := unit(i + 1)
			if !ok || low < 0xDC00 || low > 0xDFFF {
				return true
			}
			i += 6
		}
	}
	return false
}

// quoteName shows a stranger's member name in an error, cut where it is long.
func quoteName(name []byte) string {
	if len(name) > 64 {
		return fmt.Sprintf("%q…", bytes.ToValidUTF8(name[:64], nil))
	}
	return fmt.Sprintf("%q", name)
}
