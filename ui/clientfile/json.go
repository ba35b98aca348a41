package clientfile

import (
	"encoding/json"
	"strings"
)

// mostDeep is how deep a file's values may lie in each other.
const mostDeep = 200

// value is a JSON value and where it stands.
type value struct {
	start, end int
	isObject   bool
	members    []member // of an object
	read       any
}

type member struct {
	name       string
	start, end int // from the name to the end of the value
	value      value
}

// scanner reads JSON as editors write it: with comments and trailing commas.
type scanner struct {
	text string
	at   int
}

func (s *scanner) fail(format string, args ...any) error {
	return errorf(lineAt(s.text, s.at), format, args...)
}

// space goes over spaces and comments.
func (s *scanner) space() error {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch {
		case strings.IndexByte(" \t\r\n", rest[0]) >= 0:
			s.at++
		case strings.HasPrefix(rest, "//"):
			if n := strings.IndexByte(rest, '\n'); n >= 0 {
				s.at += n
			} else {
				s.at = len(s.text)
			}
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest[2:], "*/")
			if n < 0 {
				return s.fail("a comment has no end")
			}
			s.at += n + 4
		default:
			return nil
		}
	}
	return nil
}

// next goes over space and looks at the next character; 0 is the end.
func (s *scanner) next() (byte, error) {
	if err := s.space(); err != nil {
		return 0, err
	}
	if s.at == len(s.text) {
		return 0, nil
	}
	return s.text[s.at], nil
}

func (s *scanner) value(depth int) (value, error) {
	c, err := s.next()
	v := value{start: s.at}
	switch {
	case err != nil:
	case depth > mostDeep:
		err = s.fail("its values lie too deep in each other")
	case c == '{':
		err = s.object(&v, depth)
	case c == '[':
		err = s.array(&v, depth)
	case c == '"':
		var text string
		text, err = s.string()
		v.read = text
	case c == 0:
		err = s.fail("a value is missing at the end")
	default:
		n := strings.IndexAny(s.text[s.at:], " \t\r\n,]}/:\"")
		if n < 0 {
			n = len(s.text) - s.at
		}
		word := s.text[s.at : s.at+n]
		d := json.NewDecoder(strings.NewReader(word))
		d.UseNumber()
		if n == 0 || d.Decode(&v.read) != nil || d.More() {
			return v, s.fail("%.40q is no value", s.text[s.at:min(s.at+max(n, 1), len(s.text))])
		}
		if n, ok := v.read.(json.Number); ok {
			v.read = number(n)
		}
		s.at += n
	}
	v.end = s.at
	return v, err
}

func (s *scanner) string() (string, error) {
	for i := s.at + 1; i < len(s.text) && s.text[i] != '\n'; i++ {
		switch s.text[i] {
		case '\\':
			i++
		case '"':
			var text string
			if err := json.Unmarshal([]byte(s.text[s.at:i+1]), &text); err != nil {
				return "", s.fail("a string cannot be read: %v", err)
			}
			s.at = i + 1
			return text, nil
		}
	}
	return "", s.fail("a string has no end")
}

func (s *scanner) object(v *value, depth int) error {
	v.isObject = true
	read := map[string]any{}
	v.read = read
	s.at++
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		if c == '}' {
			s.at++
			return nil
		}
		if c != '"' {
			return s.fail("the name of a field, or }, is missing")
		}
		m := member{start: s.at}
		if m.name, err = s.string(); err != nil {
			return err
		}
		if _, twice := read[m.name]; twice {
			return s.fail("the field %q is there twice", m.name)
		}
		if c, err = s.next(); err != nil {
			return err
		}
		if c != ':' {
			return s.fail("a colon is missing after %q", m.name)
		}
		s.at++
		if m.value, err = s.value(depth + 1); err != nil {
			return err
		}
		m.end = s.at
		v.members = append(v.members, m)
		read[m.name] = m.value.read
		if c, err = s.next(); err != nil {
			return err
		}
		switch c {
		case ',':
			s.at++
		case '}':
		default:
			return s.fail("a comma or } is missing")
		}
	}
}

func (s *scanner) array(v *value, depth int) error {
	read := []any{}
	s.at++
	for {
		c, err := s.next()
		if err != nil {
			return err
		}
		if c == ']' {
			s.at++
			v.read = read
			return nil
		}
		e, err := s.value(depth + 1)
		if err != nil {
			return err
		}
		read = append(read, e.read)
		if c, err = s.next(); err != nil {
			return err
		}
		switch c {
		case ',':
			s.at++
		case ']':
		default:
			return s.fail("a comma or ] is missing")
		}
	}
}

// scan reads a whole file, which must be an object. One without anything is an
// empty one.
func scan(text string) (value, error) {
	s := &scanner{text: text}
	if c, err := s.next(); c == 0 {
		return value{start: -1, read: map[string]any{}}, err
	}
	v, err := s.value(0)
	if err != nil {
		return v, err
	}
	if !v.isObject {
		return v, errorf(1, "it holds no object")
	}
	if c, err := s.next(); err != nil || c != 0 {
		if err == nil {
			err = s.fail("something follows after the object")
		}
		return v, err
	}
	return v, nil
}

func readJSON(text string) (map[string]any, error) {
	v, err := scan(text)
	if err != nil {
		return nil, err
	}
	return v.read.(map[string]any), nil
}

func mergeJSON(text string, e Entry, had map[string]any) (string, error) {
	doc, err := scan(text)
	if err != nil {
		return "", err
	}
	unit := indentOf(text, doc)
	entry := func(depth string) string { return formatJSON(e.Fields.merged(had, e.Not), depth, unit) }
	quotedKey := func(i int) string { return formatJSON(e.Path[i], "", "") }
	if doc.start < 0 { // there is nothing, or comments alone
		head := strings.TrimRight(text, " \t\r\n")
		if head != "" {
			head += "\n"
		}
		return head + "{\n" + unit + quotedKey(0) + ": {\n" + unit + unit + quotedKey(1) + ": " + entry(unit+unit) + "\n" + unit + "}\n}\n", nil
	}
	outer := find(doc, e.Path[0])
	if outer == nil {
		return insert(text, doc, unit, func(depth string) string {
			return quotedKey(0) + ": {\n" + depth + unit + quotedKey(1) + ": " + entry(depth+unit) + "\n" + depth + "}"
		}), nil
	}
	if !outer.value.isObject { // null, as was seen before
		depth := lineIndent(text, outer.start)
		return text[:outer.value.start] + "{\n" + depth + unit + quotedKey(1) + ": " + entry(depth+unit) + "\n" + depth + "}" + text[outer.value.end:], nil
	}
	if inner := find(outer.value, e.Path[1]); inner != nil {
		return text[:inner.value.start] + entry(lineIndent(text, inner.start)) + text[inner.value.end:], nil
	}
	return insert(text, outer.value, unit, func(depth string) string { return quotedKey(1) + ": " + entry(depth) }), nil
}

func find(v value, name string) *member {
	for i := range v.members {
		if v.members[i].name == name {
			return &v.members[i]
		}
	}
	return nil
}

// insert puts a member at the end of an object.
func insert(text string, v value, unit string, member func(depth string) string) string {
	closing := v.end - 1
	outside := lineIndent(text, v.start)
	if len(v.members) == 0 {
		inside := strings.TrimRight(text[v.start+1:closing], " \t\r\n") // comments
		return text[:v.start+1] + inside + "\n" + outside + unit + member(outside+unit) + "\n" + outside + text[closing:]
	}
	first, last := v.members[0], v.members[len(v.members)-1]
	depth := outside + unit
	if own := lineIndent(text, first.start); strings.TrimSpace(text[v.start+1:first.start]) == "" && strings.Contains(text[v.start:first.start], "\n") {
		depth = own
	}
	tail := text[last.end:closing] // a comma perhaps, and comments
	s := &scanner{text: text, at: last.end}
	comma := ","
	if c, _ := s.next(); c == ',' {
		comma = ""
	}
	trailing := ""
	if comma == "" { // whoever wrote one wants one
		trailing = ","
	}
	return text[:last.end] + comma + strings.TrimRight(tail, " \t\r\n") + "\n" + depth + member(depth) + trailing + "\n" + outside + text[closing:]
}

// lineIndent is the white space before the first thing on the line of a place.
func lineIndent(text string, at int) string {
	line := text[strings.LastIndexByte(text[:at], '\n')+1:]
	return line[:len(line)-len(strings.TrimLeft(line, " \t"))]
}

// indentOf is one step of a file's indentation.
func indentOf(text string, doc value) string {
	if len(doc.members) > 0 && strings.Contains(text[doc.start:doc.members[0].start], "\n") {
		if unit := lineIndent(text, doc.members[0].start); unit != "" {
			return unit
		}
	}
	return "  "
}

// Line writes fields as JSON in one line.
func Line(f Fields) string { return formatJSON(f.merged(nil, nil), "", "") }

// formatJSON writes a value, its lines but the first indented by depth; without a
// unit in one line.
func formatJSON(v any, depth, unit string) string {
	list := func(open, close string, parts []string) string {
		if len(parts) == 0 || unit == "" {
			return open + strings.Join(parts, ",") + close
		}
		return open + "\n" + depth + unit + strings.Join(parts, ",\n"+depth+unit) + "\n" + depth + close
	}
	colon := ": "
	if unit == "" {
		colon = ":"
	}
	var parts []string
	switch v := v.(type) {
	case Fields:
		for _, f := range v {
			parts = append(parts, formatJSON(f.Name, "", "")+colon+formatJSON(f.Value, depth+unit, unit))
		}
		return list("{", "}", parts)
	case map[string]any:
		for _, k := range sortedKeys(v) {
			parts = append(parts, formatJSON(k, "", "")+colon+formatJSON(v[k], depth+unit, unit))
		}
		return list("{", "}", parts)
	case []string:
		for _, x := range v {
			parts = append(parts, formatJSON(x, "", ""))
		}
		return list("[", "]", parts)
	case []any:
		for _, x := range v {
			parts = append(parts, formatJSON(x, depth+unit, unit))
		}
		return list("[", "]", parts)
	case number:
		return string(v)
	}
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil { // strings, numbers, booleans and null always encode
		panic(err)
	}
	return strings.TrimSpace(b.String())
}
