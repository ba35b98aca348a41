package config

import (
	"encoding/json"
	"fmt"
	"reflect"
	"regexp"
	"sort"
	"strconv"
	"strings"
	"time"
)

// Example returns a configuration file that holds every option with its default
// and what it means. Options of entries that have no default (clients, rules)
// stand in it as comments.
func Example() string {
	w := &writer{example: true}
	w.b.WriteString("# Drawbridge configuration: every option, with its default.\n" +
		"# Durations are written 10s, 2m, 1h; sizes are bytes.\n")
	w.section(place{}, reflect.ValueOf(Default()), "")
	return w.b.String()
}

// Show returns what is in force as YAML, with where each value came from as a
// comment beside it.
func (l *Loaded) Show() string {
	w := &writer{from: l.From}
	w.section(place{}, reflect.ValueOf(l.Config), "")
	return w.b.String()
}

// Value is one field that is in force.
type Value struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
	From  string `json:"from"`
}

// Values lists what is in force and where each value came from, in the order of
// the example.
func (l *Loaded) Values() []Value {
	var out []Value
	var walk func(p place, v reflect.Value)
	walk = func(p place, v reflect.Value) {
		if v.Kind() != reflect.Struct {
			out = append(out, Value{p.path, plain(p, v), l.From(p.path)})
			return
		}
		for i := range v.NumField() {
			walk(p.field(fieldName(v.Type().Field(i))), v.Field(i))
		}
	}
	walk(place{}, reflect.ValueOf(l.Config))
	return out
}

// secret stands for a value that is not shown.
const secret = "(secret)"

// hide returns what of a secret is shown: that there is one, and its name.
func hide(v reflect.Value) reflect.Value {
	switch {
	case v.Kind() == reflect.String && v.Len() > 0:
		return reflect.ValueOf(secret)
	case v.Kind() == reflect.Map && v.Len() > 0:
		out := reflect.MakeMap(v.Type())
		for _, k := range v.MapKeys() {
			out.SetMapIndex(k, hide(v.MapIndex(k)))
		}
		return out
	}
	return v
}

// plain returns v as JSON shows it: under the names of the file.
func plain(p place, v reflect.Value) any {
	if p.option().secret {
		v = hide(v)
	}
	if v.Type() == durationType {
		return human(time.Duration(v.Int()))
	}
	switch v.Kind() {
	case reflect.Struct:
		m := map[string]any{}
		for i := range v.NumField() {
			name := fieldName(v.Type().Field(i))
			m[name] = plain(p.field(name), v.Field(i))
		}
		return m
	case reflect.Map:
		m := map[string]any{}
		for _, k := range v.MapKeys() {
			m[k.String()] = plain(p.entry(k.String()), v.MapIndex(k))
		}
		return m
	case reflect.Slice:
		if v.IsNil() {
			return nil
		}
		s := make([]any, v.Len())
		for i := range s {
			s[i] = plain(p.entry(strconv.Itoa(i)), v.Index(i))
		}
		return s
	case reflect.Pointer:
		if v.IsNil() {
			return nil
		}
		return plain(p, v.Elem())
	}
	return v.Interface()
}

// writer writes a configuration as YAML.
type writer struct {
	b       strings.Builder
	example bool                     // with what each option means above it
	from    func(path string) string // where a value came from, beside it
}

func (w *writer) section(p place, v reflect.Value, indent string) {
	for i := range v.NumField() {
		w.field(p.field(fieldName(v.Type().Field(i))), v.Field(i), indent)
	}
}

func (w *writer) field(p place, v reflect.Value, indent string) {
	if p.option().secret {
		v = hide(v)
	}
	name := p.key[strings.LastIndexByte(p.key, '.')+1:]
	if w.example {
		if indent == "" {
			w.b.WriteByte('\n')
		}
		fmt.Fprintf(&w.b, "%s# %s\n", indent, options[p.key].doc)
	}
	switch {
	case v.Kind() == reflect.Struct:
		fmt.Fprintf(&w.b, "%s%s:\n", indent, name)
		w.section(p, v, indent+"  ")
	case holdsSections(v) && v.Len() > 0:
		fmt.Fprintf(&w.b, "%s%s:\n", indent, name)
		w.entries(p, v, indent+"  ")
	default:
		fmt.Fprintf(&w.b, "%s%s: %s%s\n", indent, name, scalar(v), w.beside(p))
		if w.example && holdsSections(v) {
			w.commented(p, v.Type())
		}
	}
}

func holdsSections(v reflect.Value) bool {
	k := v.Kind()
	return (k == reflect.Map || k == reflect.Slice) && v.Type().Elem().Kind() == reflect.Struct
}

func (w *writer) beside(p place) string {
	if w.from == nil {
		return ""
	}
	return "  # " + w.from(p.path)
}

func (w *writer) entries(p place, v reflect.Value, indent string) {
	if v.Kind() == reflect.Map {
		for _, name := range sortedKeys(v) {
			fmt.Fprintf(&w.b, "%s%s:\n", indent, quote(name))
			w.section(p.entry(name), v.MapIndex(reflect.ValueOf(name)), indent+"  ")
		}
		return
	}
	for i := range v.Len() {
		fmt.Fprintf(&w.b, "%s-\n", indent)
		w.section(p.entry(strconv.Itoa(i)), v.Index(i), indent+"  ")
	}
}

// commented writes an entry of a map or list that is empty by default, as a
// comment that shows each of its options.
func (w *writer) commented(p place, t reflect.Type) {
	first, rest := "#   - ", "#     "
	if t.Kind() == reflect.Map {
		w.b.WriteString("#   name:\n")
		first = rest
	}
	entry := p.entry("")
	for i := range t.Elem().NumField() {
		name := fieldName(t.Elem().Field(i))
		o := options[entry.field(name).key]
		lead := rest
		if i == 0 {
			lead = first
		}
		if o.instead {
			lead += "# "
		}
		fmt.Fprintf(&w.b, "%s%s: %s # %s\n", lead, name, o.example, o.doc)
	}
}

func sortedKeys(v reflect.Value) []string {
	var names []string
	for _, k := range v.MapKeys() {
		names = append(names, k.String())
	}
	sort.Strings(names)
	return names
}

// scalar writes a value on one line.
func scalar(v reflect.Value) string {
	if v.Type() == durationType {
		return human(time.Duration(v.Int()))
	}
	switch v.Kind() {
	case reflect.String:
		return quote(v.String())
	case reflect.Slice:
		if v.IsNil() {
			return "null"
		}
		parts := make([]string, v.Len())
		for i := range parts {
			parts[i] = scalar(v.Index(i))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case reflect.Struct:
		var parts []string
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				parts = append(parts, fieldName(v.Type().Field(i))+": "+scalar(v.Field(i)))
			}
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Map:
		if v.IsNil() {
			return "null"
		}
		var parts []string
		for _, k := range sortedKeys(v) {
			parts = append(parts, quote(k)+": "+scalar(v.MapIndex(reflect.ValueOf(k))))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case reflect.Pointer:
		if v.IsNil() {
			return "null"
		}
		return scalar(v.Elem())
	}
	return fmt.Sprint(v.Interface())
}

var plainText = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$|^[0-9.]+:[0-9]+$`)

// quote writes text so that YAML reads it back as text.
func quote(s string) string {
	switch strings.ToLower(s) {
	case "true", "false", "null", "yes", "no", "on", "off", "y", "n":
	default:
		if plainText.MatchString(s) {
			return s
		}
	}
	b, err := json.Marshal(s)
	if err != nil {
		return strconv.Quote(s)
	}
	return string(b)
}
