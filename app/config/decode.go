package config

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/gate"
)

// Error is one thing wrong with a configuration file.
type Error struct {
	File string
	Line int // 0 where no line is to blame
	Msg  string
}

func (e *Error) Error() string {
	if e.Line == 0 {
		return e.File + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.File, e.Line, e.Msg)
}

const (
	maxErrors = 10 // reported at once
	maxFile   = 1 << 20
	maxDepth  = 100 // of nested brackets, far beyond any real file
)

// Parse reads a configuration from data; file only names it in errors. It
// returns the defaults with everything written in data put over them, and for
// each written field the line that set it, by the field's path. The error joins
// one *[Error] for each thing that is wrong.
func Parse(data []byte, file string) (Config, map[string]int, error) {
	c := Default()
	d := &decoder{file: file, lines: map[string]int{}}
	if body := d.parse(data); body != nil {
		d.value(place{}, body, reflect.ValueOf(&c).Elem(), 0)
	}
	if len(d.errs) == 0 {
		d.across(&c)
	}
	return c, d.lines, errors.Join(d.errs...)
}

type decoder struct {
	file  string
	lines map[string]int
	errs  []error
}

func (d *decoder) failf(line int, format string, args ...any) {
	if len(d.errs) < maxErrors {
		d.errs = append(d.errs, &Error{File: d.file, Line: line, Msg: fmt.Sprintf(format, args...)})
	}
}

// parse returns the body of the one document in data, nil when it is empty or
// broken.
func (d *decoder) parse(data []byte) (body ast.Node) {
	if len(data) > maxFile {
		d.failf(0, "the file has %d bytes; a configuration has at most %d", len(data), maxFile)
		return nil
	}
	data = bytes.TrimPrefix(data, []byte("\ufeff")) // of some editors
	if line := tooDeep(data); line > 0 {
		d.failf(line, "nested deeper than %d levels", maxDepth)
		return nil
	}
	// Names that are written twice are found below, with a better message.
	f, err := safeParse(data)
	if err != nil {
		line, msg := 0, err.Error()
		var ye yaml.Error
		if errors.As(err, &ye) {
			msg = ye.GetMessage()
			if tk := ye.GetToken(); tk != nil && tk.Position != nil {
				line = tk.Position.Line
			}
		}
		d.failf(line, "not valid YAML: %s", msg)
		return nil
	}
	for _, doc := range f.Docs {
		switch {
		case doc == nil || doc.Body == nil:
		case body != nil:
			d.failf(line(doc.Body), "a second document starts here; a configuration is one document")
			return nil
		default:
			body = doc.Body
		}
	}
	switch body.(type) {
	case nil, *ast.CommentGroupNode, *ast.NullNode:
		return nil
	}
	return body
}

// safeParse turns a panic of the YAML parser over strange input into an error:
// a file must not be able to end the agent.
func safeParse(data []byte) (f *ast.File, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the parser gave up: %v", r)
		}
	}()
	return parser.ParseBytes(data, 0, parser.AllowDuplicateMapKey())
}

// tooDeep returns the line at which data nests deeper than any real file, or 0.
// It counts brackets and indentation marks without regard to quotes, so it may
// be wrong only for files that no person writes; it keeps a hostile file from
// exhausting the stack of the parser.
func tooDeep(data []byte) int {
	depth, dashes, line := 0, 0, 1
	for _, b := range data {
		switch b {
		case '\n':
			line++
			dashes = 0
		case '[', '{':
			depth++
		case ']', '}':
			depth = max(0, depth-1)
		case '-', '?':
			dashes++
		case ' ':
		default:
			dashes = 0
		}
		if depth > maxDepth || dashes > 4*maxDepth {
			return line
		}
	}
	return 0
}

func line(n ast.Node) int {
	if n == nil {
		return 0
	}
	if tk := n.GetToken(); tk != nil && tk.Position != nil {
		return tk.Position.Line
	}
	return 0
}

// kind names what a node is, for people.
func kind(n ast.Node) string {
	switch n := n.(type) {
	case *ast.StringNode:
		return "the text " + strconv.Quote(cut(n.Value))
	case *ast.LiteralNode:
		return "a block of text"
	case *ast.IntegerNode:
		return "the number " + cut(n.Token.Value)
	case *ast.FloatNode:
		return "the number " + cut(n.Token.Value)
	case *ast.InfinityNode, *ast.NanNode:
		return "no finite number"
	case *ast.BoolNode:
		return n.Token.Value
	case *ast.NullNode:
		return "nothing"
	case ast.MapNode:
		return "a section"
	case *ast.SequenceNode:
		return "a list"
	case *ast.AnchorNode, *ast.AliasNode:
		return "an anchor or alias, which are not read here"
	case *ast.TagNode:
		return "a tag, which is not read here"
	}
	return "something else"
}

func cut(s string) string {
	if r := []rune(s); len(r) > 40 {
		return string(r[:40]) + "…"
	}
	return s
}

var durationType = reflect.TypeFor[time.Duration]()

// value puts node into v, which is the field at path.
func (d *decoder) value(p place, node ast.Node, v reflect.Value, at int) {
	if l := line(node); l > 0 {
		at = l
	}
	if _, null := node.(*ast.NullNode); null {
		switch v.Kind() {
		case reflect.Struct, reflect.Map, reflect.Slice, reflect.Pointer:
			// A section whose lines are all commented out, or an explicit null:
			// what holds by default.
			return
		}
	}
	before := len(d.errs)
	switch v.Kind() {
	case reflect.Struct:
		d.section(p, node, v, at)
	case reflect.Map:
		d.named(p, node, v, at)
	case reflect.Slice:
		d.list(p, node, v, at)
	case reflect.Pointer:
		target := reflect.New(v.Type().Elem())
		d.scalar(p, node, target.Elem(), at)
		v.Set(target)
	default:
		d.scalar(p, node, v, at)
	}
	d.lines[p.path] = at
	if check := p.option().check; check != nil && len(d.errs) == before {
		if msg := check(v); msg != "" {
			d.failf(at, "%s must be %s", p, msg)
		}
	}
}

// entries calls yield for each key of a mapping, and refuses what is none, keys
// that are no plain text, and keys that are written twice.
func (d *decoder) entries(p place, node ast.Node, at int, yield func(key string, at int, value ast.Node)) {
	m, ok := node.(ast.MapNode)
	if !ok {
		d.failf(at, "%s must be a section (name: value lines), not %s", p, p.kind(node))
		return
	}
	seen := map[string]int{}
	for it := m.MapRange(); it.Next(); {
		key, ok := keyText(it.Key())
		l := line(it.Key())
		if !ok {
			d.failf(l, "%s: names are plain text here, without anchors, merges or tags", p)
			continue
		}
		if first, twice := seen[key]; twice {
			d.failf(l, "%s is written twice; the first is in line %d", p.field(key), first)
			continue
		}
		seen[key] = l
		yield(key, l, it.Value())
	}
}

func keyText(k ast.MapKeyNode) (string, bool) {
	switch k := k.(type) {
	case *ast.StringNode:
		return k.Value, true
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return k.GetToken().Value, true
	}
	return "", false
}

func (d *decoder) section(p place, node ast.Node, v reflect.Value, at int) {
	fields := map[string]reflect.Value{}
	names := []string{}
	for i := range v.NumField() {
		name := fieldName(v.Type().Field(i))
		fields[name] = v.Field(i)
		names = append(names, name)
	}
	d.entries(p, node, at, func(key string, at int, value ast.Node) {
		field, ok := fields[key]
		if !ok {
			d.failf(at, "%s", unknown(p.path, key, names))
			return
		}
		d.value(p.field(key), value, field, at)
	})
}

// unknown says that a name is not known, and which one was probably meant: one
// of the same section, else of any other.
func unknown(path, key string, names []string) string {
	where := "at the top level"
	if path != "" {
		where = "in " + path
	}
	if why, ok := retired[squash(key)]; ok {
		return fmt.Sprintf("unknown field %q %s: %s", key, where, why)
	}
	hint := nearest(key, names)
	if hint == "" {
		for p := range options {
			if squash(p[strings.LastIndexByte(p, '.')+1:]) == squash(key) && (hint == "" || p < hint) {
				hint = p
			}
		}
	}
	return fmt.Sprintf("unknown field %q %s%s; known are %s", key, where, suggestion(hint), strings.Join(names, ", "))
}

func (d *decoder) named(p place, node ast.Node, v reflect.Value, at int) {
	o := p.option()
	out := reflect.MakeMap(v.Type())
	d.entries(p, node, at, func(key string, at int, value ast.Node) {
		if o.name != nil {
			if msg := o.name(reflect.ValueOf(key)); msg != "" {
				d.failf(at, "%s: each name must be %s", p, msg)
				return
			}
		}
		e := reflect.New(v.Type().Elem()).Elem()
		d.element(p.entry(key), value, e, at, o)
		out.SetMapIndex(reflect.ValueOf(key), e)
	})
	v.Set(out)
}

func (d *decoder) list(p place, node ast.Node, v reflect.Value, at int) {
	seq, ok := node.(*ast.SequenceNode)
	if !ok {
		d.failf(at, "%s must be a list, such as [a, b], not %s", p, p.kind(node))
		return
	}
	o := p.option()
	out := reflect.MakeSlice(v.Type(), len(seq.Values), len(seq.Values))
	for i, n := range seq.Values {
		d.element(p.entry(strconv.Itoa(i)), n, out.Index(i), at, o)
	}
	v.Set(out)
}

func (d *decoder) element(p place, node ast.Node, v reflect.Value, at int, parent option) {
	if l := line(node); l > 0 {
		at = l
	}
	before := len(d.errs)
	d.value(p, node, v, at)
	if parent.elem != nil && len(d.errs) == before {
		if msg := parent.elem(v); msg != "" {
			d.failf(at, "%s must be %s", p, msg)
		}
	}
}

func (d *decoder) scalar(p place, node ast.Node, v reflect.Value, at int) {
	wrong := func(want string) {
		d.failf(at, "%s must be %s, not %s", p, want, p.kind(node))
	}
	switch {
	case v.Type() == durationType:
		s, ok := node.(*ast.StringNode)
		if !ok {
			wrong("a duration with its unit, such as 10s or 2m")
			return
		}
		dur, err := time.ParseDuration(s.Value)
		if err != nil {
			wrong("a duration with its unit, such as 10s or 2m")
			return
		}
		v.SetInt(int64(dur))
	case v.Kind() == reflect.String:
		switch s := node.(type) {
		case *ast.StringNode:
			v.SetString(s.Value)
		case *ast.LiteralNode:
			v.SetString(s.Value.Value)
		case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
			wrong("text; put it in quotes if it is meant")
		default:
			wrong("text")
		}
	case v.Kind() == reflect.Bool:
		b, ok := node.(*ast.BoolNode)
		if !ok {
			wrong("true or false")
			return
		}
		v.SetBool(b.Value)
	case v.CanInt():
		n, ok := node.(*ast.IntegerNode)
		if !ok {
			wrong("a whole number")
			return
		}
		i, ok := integer(n)
		if !ok || v.OverflowInt(i) {
			wrong("a whole number that a computer can count")
			return
		}
		v.SetInt(i)
	}
}

func integer(n *ast.IntegerNode) (int64, bool) {
	switch i := n.Value.(type) {
	case int64:
		return i, true
	case uint64:
		return int64(i), i <= math.MaxInt64
	}
	return 0, false
}

// across checks what concerns several fields at once.
func (d *decoder) across(c *Config) {
	later := func(paths ...string) (l int) {
		for _, p := range paths {
			l = max(l, d.lines[p])
		}
		return l
	}
	if c.Computer.SettleMaxMS < c.Computer.SettleMS {
		d.failf(later("computer.settle_ms", "computer.settle_max_ms"),
			"computer.settle_max_ms (%d) must not be under computer.settle_ms (%d)", c.Computer.SettleMaxMS, c.Computer.SettleMS)
	}
	if c.Limits.ConnectionsPerClient > c.Limits.Connections {
		d.failf(later("limits.connections", "limits.connections_per_client"),
			"limits.connections_per_client (%d) must not be over limits.connections (%d)", c.Limits.ConnectionsPerClient, c.Limits.Connections)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Hosts)) {
		h := c.Hosts[name]
		path := "hosts." + name
		if err := h.Check(); err != nil {
			d.failf(d.lines[path], "%s: %v", path, err)
		}
	}
	for i, r := range c.Rules {
		path := "rules." + strconv.Itoa(i)
		err := r.Check()
		if err == nil {
			err = computer.CheckRule(r)
		}
		if err != nil {
			d.failf(d.lines[path], "%s: %v", path, err)
		}
	}
	d.tools("expose", c.Expose)
	d.tools("hide", c.Hide)
	for _, name := range slices.Sorted(maps.Keys(c.Clients)) {
		d.tools("clients."+name+".expose", c.Clients[name].Expose)
		d.tools("clients."+name+".hide", c.Clients[name].Hide)
	}
}

// tools checks patterns that are to name tools.
func (d *decoder) tools(path string, patterns []string) {
	for i, text := range patterns {
		if _, err := gate.ParseNames(gate.NamedTool, text); err != nil {
			path := path + "." + strconv.Itoa(i)
			d.failf(d.lines[path], "%s: %v", path, err)
		}
	}
}

// place is where a value stands: its path, and the key of its option, in which
// `*` stands for the name or number of an entry.
type place struct{ path, key string }

func (p place) field(name string) place {
	return place{join(p.path, name), join(p.key, name)}
}

func (p place) entry(name string) place {
	return place{join(p.path, name), join(p.key, "*")}
}

func (p place) option() option { return options[p.key] }

// kind is what a node is, without its text where a secret may stand: errors go
// into logs.
func (p place) kind(n ast.Node) string {
	switch p.key {
	case "hosts.*.headers", "hosts.*.headers.*", "hosts.*.env", "hosts.*.env.*":
		if _, ok := n.(ast.ScalarNode); ok {
			return "a plain value"
		}
	}
	return kind(n)
}

func (p place) String() string {
	if p.path == "" {
		return "the configuration"
	}
	return p.path
}

// fieldName is the name that a person writes for a field.
func fieldName(f reflect.StructField) string {
	name, _, _ := strings.Cut(f.Tag.Get("yaml"), ",")
	return name
}

func join(path, key string) string {
	if path == "" {
		return key
	}
	return path + "." + key
}
