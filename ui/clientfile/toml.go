package clientfile

import (
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/BurntSushi/toml"
)

func readTOML(text string) (map[string]any, error) {
	doc := map[string]any{}
	_, err := toml.Decode(text, &doc)
	var bad toml.ParseError
	if errors.As(err, &bad) {
		return nil, errorf(bad.Position.Line, "%s", bad.Message)
	}
	if err != nil {
		return nil, errorf(0, "it cannot be read: %v", err)
	}
	return doc, nil
}

func mergeTOML(text string, e Entry, had map[string]any) (string, error) {
	key := func(name string) string { return `["']?` + regexp.QuoteMeta(name) + `["']?` }
	// A table may not be added to one that is written inline, or with dots, which
	// not every reader notices.
	if doc, _ := readTOML(text); doc[e.Path[0]] != nil && !regexp.MustCompile(`(?m)^\s*\[\s*`+key(e.Path[0])+`\s*[.\]]`).MatchString(text) {
		return "", errorf(0, "%s is not written as tables: put the entry in by hand", e.Path[0])
	}
	block := tables(e.Path[0]+"."+e.Path[1], e.Fields.merged(had, e.Not))
	if had == nil {
		if text = strings.TrimRight(text, " \t\r\n"); text != "" {
			text += "\n\n"
		}
		return text + block, nil
	}
	ours := regexp.MustCompile(`^\s*\[\s*` + key(e.Path[0]) + `\s*\.\s*` + key(e.Path[1]) + `\s*[.\]]`)
	var out strings.Builder
	inside, written := false, false
	var after strings.Builder // blank lines and comments: they belong to what follows
	for line := range strings.Lines(text) {
		t := strings.TrimSpace(line)
		if strings.HasPrefix(t, "[") {
			inside = ours.MatchString(line)
			if inside && !written {
				written = true
				out.WriteString(block)
			}
		}
		switch {
		case !inside:
			out.WriteString(after.String())
			after.Reset()
			out.WriteString(line)
		case t == "" || strings.HasPrefix(t, "#"):
			after.WriteString(line)
		default:
			after.Reset()
		}
	}
	if !written {
		return "", errorf(0, "%s.%s is not a table of its own: put the entry in by hand", e.Path[0], e.Path[1])
	}
	out.WriteString(after.String())
	return out.String(), nil
}

// tables writes fields as a table, and those that hold fields as tables below it.
func tables(name string, fields Fields) string {
	var b, below strings.Builder
	fmt.Fprintf(&b, "[%s]\n", name)
	for _, f := range fields {
		if sub, ok := f.Value.(Fields); ok {
			if len(sub) > 0 {
				below.WriteString("\n" + tables(name+"."+tomlKey(f.Name), sub))
			}
			continue
		}
		fmt.Fprintf(&b, "%s = %s\n", tomlKey(f.Name), formatTOML(f.Value))
	}
	return b.String() + below.String()
}

var bare = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)

func tomlKey(name string) string {
	if bare.MatchString(name) {
		return name
	}
	return formatJSON(name, "", "")
}

func formatTOML(v any) string {
	var parts []string
	switch v := v.(type) {
	case string:
		return formatJSON(v, "", "") // a JSON string is one of TOML
	case []string:
		for _, x := range v {
			parts = append(parts, formatTOML(x))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case []any:
		for _, x := range v {
			parts = append(parts, formatTOML(x))
		}
		return "[" + strings.Join(parts, ", ") + "]"
	case map[string]any:
		for _, k := range sortedKeys(v) {
			parts = append(parts, tomlKey(k)+" = "+formatTOML(v[k]))
		}
		return "{ " + strings.Join(parts, ", ") + " }"
	}
	return fmt.Sprint(v) // numbers and booleans; what is neither reads otherwise, and is refused
}
