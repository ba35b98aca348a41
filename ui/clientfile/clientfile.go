// Package clientfile puts one entry into the configuration file of another
// program. Everything else in the file stays as it is, to the byte: other entries,
// unknown fields, comments, the order of things. What was merged is read again
// before it is handed out, and where it does not say exactly what the file said,
// with the one entry, it is refused.
package clientfile

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Format is how a file is written.
type Format uint8

// The formats.
const (
	JSON Format = iota // with comments and trailing commas where the file has them
	TOML
	YAML
)

// Field is one field of an entry.
type Field struct {
	Name  string
	Value any  // string, bool, int, []string, Fields or Absent
	Keep  bool // a value that the file has stays
}

// Absent is the value of a field that an older entry may have, and that goes.
type Absent struct{}

// Fields are the fields of an entry, in order. Fields in Fields are merged in the
// same way.
type Fields []Field

// Entry is what is put into a file.
type Entry struct {
	Path   []string // where: such as mcpServers, drawbridge
	Fields Fields
	// Not are fields that an older entry may have and that would contradict this
	// one. Other fields of an older entry stay.
	Not []string
}

// Error is what is wrong with a file, and where.
type Error struct {
	Line int // from 1; 0: not at any one
	Text string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Text
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Text)
}

func errorf(line int, format string, args ...any) error {
	return &Error{line, fmt.Sprintf(format, args...)}
}

// Merge returns the content of a file with an entry put in. A file that says the
// same already comes back as it is. old may be empty.
func Merge(f Format, old []byte, e Entry) ([]byte, error) {
	if len(e.Path) != 2 {
		return nil, errors.New("an entry is named by two keys")
	}
	text := string(old)
	bom := ""
	if strings.HasPrefix(text, "\ufeff") {
		bom, text = "\ufeff", text[len("\ufeff"):]
	}
	// Merging is done with lines that end in a newline alone.
	crlf := false
	if lf := strings.ReplaceAll(text, "\r\n", "\n"); lf != text {
		if crlf = strings.ReplaceAll(lf, "\n", "\r\n") == text; !crlf {
			return nil, errorf(0, "some of its lines end in another way than others: put the entry in by hand")
		}
		text = lf
	}
	merge, read := mergeJSON, readJSON
	switch f {
	case TOML:
		merge, read = mergeTOML, readTOML
	case YAML:
		merge, read = mergeYAML, readYAML
	}
	before, err := read(text)
	if err != nil {
		return nil, err
	}
	had, err := lookup(before, e.Path)
	if err != nil {
		return nil, err
	}
	want := e.Fields.over(had, e.Not)
	if had != nil && reflect.DeepEqual(normal(had), normal(want)) {
		return old, nil
	}
	merged, err := merge(text, e, had)
	if err != nil {
		return nil, err
	}
	after, err := read(merged)
	if err == nil {
		var now map[string]any
		if now, err = lookup(after, e.Path); err == nil && !reflect.DeepEqual(normal(now), normal(want)) {
			err = errors.New("the entry reads otherwise")
		}
	}
	if err == nil && !reflect.DeepEqual(without(before, e.Path), without(after, e.Path)) {
		err = errors.New("something else reads otherwise")
	}
	if err != nil {
		return nil, errorf(0, "it is written in a way that cannot be changed safely from here (%v): put the entry in by hand", err)
	}
	if crlf {
		merged = strings.ReplaceAll(merged, "\n", "\r\n")
	}
	return []byte(bom + merged), nil
}

// lookup returns the entry that a file has, nil where it has none.
func lookup(doc map[string]any, path []string) (map[string]any, error) {
	at := doc
	for i, key := range path {
		v, ok := at[key]
		if !ok || v == nil {
			return nil, nil
		}
		next, ok := v.(map[string]any)
		if !ok {
			is := "text, a number or the like"
			if reflect.ValueOf(v).Kind() == reflect.Slice {
				is = "a list"
			}
			return nil, errorf(0, "%s is %s, where named entries must stand: make it {} if nothing in it is needed, or put the entry in by hand", strings.Join(path[:i+1], "."), is)
		}
		at = next
	}
	return at, nil
}

// without is a document without the entry, and without what holds nothing but it.
func without(doc map[string]any, path []string) map[string]any {
	out := map[string]any{}
	for k, v := range doc {
		if k != path[0] {
			out[k] = normal(v)
			continue
		}
		rest := map[string]any{}
		if m, ok := v.(map[string]any); ok {
			for k, v := range m {
				if k != path[1] {
					rest[k] = normal(v)
				}
			}
		}
		if len(rest) > 0 {
			out[k] = rest
		}
	}
	return out
}

// over is what an entry says that is put over an older one.
func (f Fields) over(had map[string]any, not []string) map[string]any {
	out := map[string]any{}
	for k, v := range had {
		if !slices.Contains(not, k) {
			out[k] = v
		}
	}
	for _, x := range f {
		old, there := out[x.Name]
		switch v := x.Value.(type) {
		case Absent:
			delete(out, x.Name)
		case Fields:
			m, _ := old.(map[string]any)
			if sub := v.over(m, nil); len(sub) > 0 {
				out[x.Name] = sub
			} else {
				delete(out, x.Name)
			}
		default:
			if !there || !x.Keep {
				out[x.Name] = v
			}
		}
	}
	return out
}

// merged are the fields of f put over an older entry: first those of f, then what
// else it has, by name.
func (f Fields) merged(had map[string]any, not []string) Fields {
	all := f.over(had, not)
	var out Fields
	for _, x := range f {
		v, there := all[x.Name]
		if !there {
			continue
		}
		if sub, ok := x.Value.(Fields); ok {
			m, _ := had[x.Name].(map[string]any)
			v = sub.merged(m, nil)
		}
		out = append(out, Field{Name: x.Name, Value: v})
		delete(all, x.Name)
	}
	for _, k := range sortedKeys(all) {
		out = append(out, Field{Name: k, Value: all[k]})
	}
	return out
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// normal makes what the readers return comparable: numbers by their text, lists
// and fields by what is in them.
func normal(v any) any {
	r := reflect.ValueOf(v)
	switch r.Kind() {
	case reflect.Map:
		out := map[string]any{}
		for _, k := range r.MapKeys() {
			out[fmt.Sprint(k.Interface())] = normal(r.MapIndex(k).Interface())
		}
		return out
	case reflect.Slice:
		out := make([]any, r.Len())
		for i := range out {
			out[i] = normal(r.Index(i).Interface())
		}
		return out
	case reflect.Int, reflect.Int64, reflect.Uint64, reflect.Float64:
		return fmt.Sprint(v)
	}
	if n, ok := v.(number); ok {
		return string(n)
	}
	return v
}

// number is a number as a file writes it.
type number string

// lineAt is the line, from 1, of a place in a text.
func lineAt(text string, at int) int { return 1 + strings.Count(text[:min(at, len(text))], "\n") }
