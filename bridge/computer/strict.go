package computer

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"unicode/utf8"
)

// Limits on the arguments of one call, far above what a batch needs.
const (
	maxArguments = 8 << 20 // bytes
	maxDepth     = 12
	maxValues    = 100_000
)

// kind is the kind of a JSON value.
type kind uint8

const (
	kindNull kind = iota
	kindBool
	kindNumber
	kindString
	kindArray
	kindObject
)

var kindNames = [...]string{"null", "a boolean", "a number", "a string", "an array", "an object"}

func (k kind) String() string { return kindNames[k] }

// value is one JSON value, with everything that a lenient decoder would lose:
// the order and spelling of names and the text of numbers.
type value struct {
	kind   kind
	text   string // of a string, or of a number as written
	items  []value
	fields []field
}

type field struct {
	name  string
	value value
}

func (v value) get(name string) (value, bool) {
	for _, f := range v.fields {
		if f.name == name {
			return f.value, true
		}
	}
	return value{}, false
}

// parseStrict reads raw as exactly one JSON value. It refuses what two readers
// could take for two different values: a key given twice, bytes that are no
// UTF-8, and half a surrogate pair.
func parseStrict(raw []byte) (value, error) {
	if len(raw) > maxArguments {
		return value{}, fmt.Errorf("arguments are %d bytes; at most %d are taken", len(raw), maxArguments)
	}
	if !utf8.Valid(raw) {
		return value{}, errors.New("arguments are not valid UTF-8")
	}
	if i := loneSurrogate(raw); i >= 0 {
		return value{}, fmt.Errorf("arguments hold half a surrogate pair at byte %d; write both halves, or the character itself", i)
	}
	p := parser{dec: json.NewDecoder(bytes.NewReader(raw))}
	p.dec.UseNumber()
	v, err := p.value(0)
	if err != nil {
		return value{}, err
	}
	if _, err := p.dec.Token(); !errors.Is(err, io.EOF) {
		return value{}, errors.New("arguments hold more than one JSON value")
	}
	return v, nil
}

type parser struct {
	dec    *json.Decoder
	values int
}

func (p *parser) token() (json.Token, error) {
	t, err := p.dec.Token()
	if err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("arguments are not valid JSON at byte %d: %w", p.dec.InputOffset(), err)
	}
	return t, nil
}

func (p *parser) value(depth int) (value, error) {
	if depth > maxDepth {
		return value{}, fmt.Errorf("arguments are nested deeper than %d", maxDepth)
	}
	if p.values++; p.values > maxValues {
		return value{}, fmt.Errorf("arguments hold more than %d values", maxValues)
	}
	t, err := p.token()
	if err != nil {
		return value{}, err
	}
	switch t := t.(type) {
	case nil:
		return value{kind: kindNull}, nil
	case bool:
		return value{kind: kindBool}, nil
	case json.Number:
		return value{kind: kindNumber, text: t.String()}, nil
	case string:
		return value{kind: kindString, text: t}, nil
	case json.Delim:
		if t == '[' {
			return p.array(depth)
		}
		return p.object(depth)
	}
	return value{}, fmt.Errorf("arguments hold an unexpected %v at byte %d", t, p.dec.InputOffset())
}

func (p *parser) array(depth int) (value, error) {
	v := value{kind: kindArray}
	for p.dec.More() {
		item, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.items = append(v.items, item)
	}
	_, err := p.token() // the closing bracket
	return v, err
}

func (p *parser) object(depth int) (value, error) {
	v := value{kind: kindObject}
	seen := map[string]bool{}
	for p.dec.More() {
		t, err := p.token()
		if err != nil {
			return value{}, err
		}
		name, ok := t.(string)
		if !ok {
			return value{}, fmt.Errorf("arguments hold a name that is no string at byte %d", p.dec.InputOffset())
		}
		if seen[name] {
			return value{}, fmt.Errorf("the key %s is given twice at byte %d", quote(name), p.dec.InputOffset())
		}
		seen[name] = true
		member, err := p.value(depth + 1)
		if err != nil {
			return value{}, err
		}
		v.fields = append(v.fields, field{name, member})
	}
	_, err := p.token() // the closing brace
	return v, err
}

// loneSurrogate finds an escape of half a surrogate pair, which the standard
// decoder would replace silently, and returns its place, or -1.
func loneSurrogate(raw []byte) int {
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		u, ok := escapedUnit(raw[i:])
		if !ok {
			i++ // some other escape: skip the escaped byte
			continue
		}
		switch {
		case u >= 0xdc00 && u <= 0xdfff:
			return i
		case u >= 0xd800 && u <= 0xdbff:
			if low, ok := escapedUnit(raw[i+6:]); !ok || low < 0xdc00 || low > 0xdfff {
				return i
			}
			i += 6
		}
		i += 5
	}
	return -1
}

// escapedUnit reads a \uXXXX at the start of b.
func escapedUnit(b []byte) (unit rune, ok bool) {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0, false
	}
	for _, c := range b[2:6] {
		unit <<= 4
		switch {
		case '0' <= c && c <= '9':
			unit |= rune(c - '0')
		case 'a' <= c && c <= 'f':
			unit |= rune(c-'a') + 10
		case 'A' <= c && c <= 'F':
			unit |= rune(c-'A') + 10
		default:
			return 0, false
		}
	}
	return unit, true
}
