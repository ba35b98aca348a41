// Package readme holds what the two README files must have in common: the English
// one is the source, and the Chinese one says the same.
package readme

import (
	"regexp"
	"slices"
	"strings"
)

// Shape is what a page has whatever its language: a line for each heading,
// paragraph, row of a table, item of a list, quotation, picture and line of code,
// with what is in it that no translation changes.
func Shape(page string) []string {
	type part struct{ kind, text string }
	var parts []part
	goesOn := false // the last part may be wrapped over lines
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		kind, rest := kindOf(line)
		switch {
		case kind == "":
			goesOn = false
		case goesOn && (kind == "text" || kind == "quote" && parts[len(parts)-1].kind == "quote"):
			parts[len(parts)-1].text += " " + strings.TrimSpace(rest)
		default:
			parts = append(parts, part{kind, rest})
			goesOn = kind == "text" || kind == "quote" || kind == "item"
		}
	}
	var out []string
	for _, p := range parts {
		if p.kind == "code" {
			out = append(out, "code "+uncommented(p.text))
			continue
		}
		all := constant.FindAllString(p.text, -1)
		slices.Sort(all) // the order of words is the language's
		out = append(out, strings.Join(append([]string{p.kind}, all...), " "))
	}
	return out
}

var marks = []struct {
	kind  string
	begin *regexp.Regexp
}{
	{"code", regexp.MustCompile(`^ {4}`)},
	{"heading1", regexp.MustCompile(`^# `)},
	{"heading2", regexp.MustCompile(`^## `)},
	{"heading3", regexp.MustCompile(`^### `)},
	{"row", regexp.MustCompile(`^\|`)},
	{"item", regexp.MustCompile(`^(-|\d+\.) `)},
	{"quote", regexp.MustCompile(`^> ?`)},
	{"picture", regexp.MustCompile(`^!\[`)},
}

func kindOf(line string) (kind, rest string) {
	if strings.TrimSpace(line) == "" {
		return "", ""
	}
	for _, m := range marks {
		if at := m.begin.FindStringIndex(line); at != nil {
			return m.kind, line[at[1]:]
		}
	}
	return "text", line
}

// uncommented is a line of code without what it is said to do.
func uncommented(line string) string {
	if i := strings.LastIndex(line, " # "); i >= 0 && strings.TrimSpace(line[:i]) != "" {
		return strings.TrimRight(line[:i], " ")
	}
	return line
}

// constant is what stands in every language: what is set as code, where a link
// or a picture leads, and numbers.
var constant = regexp.MustCompile("`[^`]+`|src(?:set)?=\"[^\"]+\"|\\]\\([^)]+\\)|[0-9][0-9.,:/×-]*[0-9]|[0-9]")
