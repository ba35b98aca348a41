package clientfile

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
)

// mostBrackets is how many may be open at once: the parser calls itself for each.
const mostBrackets = 100

func readYAML(text string) (doc map[string]any, err error) {
	// A strange file must not be able to end the program.
	defer func() {
		if r := recover(); r != nil {
			doc, err = nil, errorf(0, "it cannot be read: the parser gave up (%v)", r)
		}
	}()
	open, marks := 0, 0
	for i, c := range []byte(text) {
		switch c {
		case '[', '{':
			open++
		case ']', '}':
			open = max(0, open-1)
		case '-', '?':
			marks++
		case ' ':
		default:
			marks = 0
		}
		if open > mostBrackets || marks > 4*mostBrackets {
			return nil, errorf(lineAt(text, i), "its values lie too deep in each other")
		}
	}
	doc = map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		var at yaml.Error
		if errors.As(err, &at) && at.GetToken() != nil {
			return nil, errorf(at.GetToken().Position.Line, "%s", at.GetMessage())
		}
		return nil, errorf(0, "it cannot be read: %v", err)
	}
	return doc, nil
}

// pairs are the fields of a mapping; none of what is no mapping.
func pairs(n ast.Node) []*ast.MappingValueNode {
	switch n := n.(type) {
	case *ast.MappingNode:
		return n.Values
	case *ast.MappingValueNode:
		return []*ast.MappingValueNode{n}
	}
	return nil
}

// keyed returns the index of a field, below 0 where it is not.
func keyed(all []*ast.MappingValueNode, name string) int {
	return slices.IndexFunc(all, func(p *ast.MappingValueNode) bool { return p.Key.GetToken().Value == name })
}

func lineOf(p *ast.MappingValueNode) int { return p.Key.GetToken().Position.Line }

func mergeYAML(text string, e Entry, had map[string]any) (string, error) {
	file, err := parser.ParseBytes([]byte(text), 0)
	if err != nil {
		return "", errorf(0, "it cannot be read: %v", err)
	}
	if len(file.Docs) > 1 || strings.HasPrefix(text, "...") || strings.Contains(text, "\n...") {
		return "", errorf(0, "it holds more than one document: put the entry in by hand")
	}
	var top []*ast.MappingValueNode
	if len(file.Docs) == 1 {
		top = pairs(file.Docs[0].Body)
	}
	fields := e.Fields.merged(had, e.Not)
	entry := func(indent string) string {
		return indent + yamlKey(e.Path[1]) + ":\n" + formatFields(fields, indent+"  ")
	}
	lines := slices.Collect(strings.Lines(text))
	for _, p := range top {
		for _, q := range append(pairs(p.Value), p) {
			if n := lineOf(q); n < 1 || n > len(lines) {
				return "", errorf(0, "the parser loses count of its lines: put the entry in by hand")
			}
		}
	}
	at := keyed(top, e.Path[0])
	if at < 0 {
		return joinLines(lines, len(lines), len(lines), e.Path[0]+":\n"+entry("  ")), nil
	}
	outer := top[at]
	// The lines of the mapping end before the next field of the document, or with
	// it.
	end := len(lines)
	if at+1 < len(top) {
		end = lineOf(top[at+1]) - 1
	}
	inner := pairs(outer.Value)
	if len(inner) == 0 {
		if outer.Value.Type() != ast.NullType && outer.Value.String() != "{}" {
			return "", errorf(lineOf(outer), "%s holds no fields: put the entry in by hand", e.Path[0])
		}
		first := lineOf(outer) - 1
		head := strings.TrimRight(strings.Replace(lines[first], "{}", "", 1), " \t\r\n")
		return joinLines(lines, first, first+1, head+"\n"+entry("  ")), nil
	}
	if m, ok := outer.Value.(*ast.MappingNode); ok && m.IsFlowStyle {
		return "", errorf(lineOf(outer), "%s is written in one line: put the entry in by hand", e.Path[0])
	}
	indent := strings.Repeat(" ", inner[0].Key.GetToken().Position.Column-1)
	from, to := end, end
	if i := keyed(inner, e.Path[1]); i >= 0 {
		from = lineOf(inner[i]) - 1
		if i+1 < len(inner) {
			to = lineOf(inner[i+1]) - 1
		}
	}
	// Blank lines and comments at the end belong to what follows.
	for to > 0 && (to > from || from == end) {
		if t := strings.TrimSpace(lines[to-1]); t != "" && !strings.HasPrefix(t, "#") {
			break
		}
		to--
	}
	return joinLines(lines, min(from, to), to, entry(indent)), nil
}

// joinLines puts text in the place of some lines.
func joinLines(lines []string, from, to int, text string) string {
	head := strings.Join(lines[:from], "")
	if head != "" && !strings.HasSuffix(head, "\n") {
		head += "\n"
	}
	return head + text + strings.Join(lines[to:], "")
}

func formatFields(fields Fields, indent string) string {
	var b strings.Builder
	for _, f := range fields {
		switch v := f.Value.(type) {
		case Fields:
			fmt.Fprintf(&b, "%s%s:\n%s", indent, yamlKey(f.Name), formatFields(v, indent+"  "))
		case []string:
			fmt.Fprintf(&b, "%s%s:\n", indent, yamlKey(f.Name))
			for _, x := range v {
				fmt.Fprintf(&b, "%s  - %s\n", indent, formatJSON(x, "", ""))
			}
		case string:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, yamlKey(f.Name), yamlString(v))
		default:
			fmt.Fprintf(&b, "%s%s: %s\n", indent, yamlKey(f.Name), strings.Join(strings.Fields(formatJSON(plain(v), "", "")), " "))
		}
	}
	return b.String()
}

// plain makes what the library reads fit for JSON, which YAML takes too.
func plain(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := map[string]any{}
		for k, x := range v {
			out[k] = plain(x)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, x := range v {
			out[i] = plain(x)
		}
		return out
	}
	return v
}

var word = regexp.MustCompile(`^[a-z][a-z_]*[a-z]$`)

// yamlString writes what cannot be taken for anything else as it is.
func yamlString(s string) string {
	switch s {
	case "true", "false", "null", "yes", "no", "on", "off":
	default:
		if word.MatchString(s) {
			return s
		}
	}
	return formatJSON(s, "", "")
}

func yamlKey(s string) string {
	if regexp.MustCompile(`^[A-Z][A-Z_]*[A-Z]$`).MatchString(s) {
		return s
	}
	return yamlString(s)
}
