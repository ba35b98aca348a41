package gate

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"
	"golang.org/x/sys/unix"

	"drawbridge/bridge/private"
)

const (
	maxRulesFile = 1 << 20
	maxRules     = 1000
)

// ParseRules reads a rules file: a YAML list of rules with the fields tool,
// client, host, when and then. Errors name the file, the line, and for an unknown
// field the nearest known one.
func ParseRules(text []byte, file string) ([]Rule, error) {
	rules, _, err := parseRules(text, file, nil)
	return rules, err
}

// parseRules also returns the line on which each rule begins. check, if any, must
// find each rule good too.
func parseRules(text []byte, file string, check func(Rule) error) (rules []Rule, lines []int, err error) {
	if len(text) > maxRulesFile {
		return nil, nil, fmt.Errorf("%s: is over %d bytes", file, maxRulesFile)
	}
	doc, err := parser.ParseBytes(text, 0)
	if err != nil {
		var ye yaml.Error
		if errors.As(err, &ye) && ye.GetToken() != nil {
			return nil, nil, fmt.Errorf("%s:%d: %s", file, ye.GetToken().Position.Line, ye.GetMessage())
		}
		return nil, nil, fmt.Errorf("%s: %w", file, err)
	}
	var body ast.Node
	for _, d := range doc.Docs {
		if _, null := d.Body.(*ast.NullNode); d.Body == nil || null {
			continue
		}
		if body != nil {
			return nil, nil, fmt.Errorf("%s:%d: holds a second document: put all rules into one list", file, line(d.Body))
		}
		body = d.Body
	}
	if body == nil {
		return nil, nil, nil
	}
	list, ok := body.(*ast.SequenceNode)
	if !ok {
		return nil, nil, fmt.Errorf("%s:%d: must be a list of rules: begin each with - tool: NAME", file, line(body))
	}
	if len(list.Values) > maxRules {
		return nil, nil, fmt.Errorf("%s: holds %d rules, and at most %d are read", file, len(list.Values), maxRules)
	}
	for _, n := range list.Values {
		r, err := parseRule(n)
		if err == nil {
			err = r.Check()
		}
		if err == nil && check != nil {
			err = check(r)
		}
		var at *atLine
		if errors.As(err, &at) {
			return nil, nil, fmt.Errorf("%s:%d: %s", file, at.line, at.text)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("%s:%d: %w", file, line(n), err)
		}
		rules = append(rules, r)
		lines = append(lines, line(n))
	}
	return rules, lines, nil
}

// atLine is an error in a line of a file that its caller names.
type atLine struct {
	line int
	text string
}

func (e *atLine) Error() string { return e.text }

func errAt(n ast.Node, format string, args ...any) error {
	return &atLine{line(n), fmt.Sprintf(format, args...)}
}

// line returns where a node begins.
func line(n ast.Node) int {
	if m, ok := n.(*ast.MappingNode); ok && len(m.Values) > 0 && !m.IsFlowStyle {
		n = m.Values[0].Key // a mapping's own token is its first colon
	}
	if n == nil || n.GetToken() == nil || n.GetToken().Position == nil {
		return 1
	}
	return n.GetToken().Position.Line
}

var ruleFields = []string{"tool", "client", "host", "when", "then"}

func parseRule(n ast.Node) (Rule, error) {
	var r Rule
	err := eachMember(n, "a rule", func(key string, at, v ast.Node) error {
		var err error
		switch key {
		case "tool":
			r.Tool, err = scalar(v, key)
		case "client":
			r.Client, err = scalar(v, key)
		case "host":
			r.Host, err = scalar(v, key)
		case "then":
			var s string
			s, err = scalar(v, key)
			r.Then = Then(s)
		case "when":
			r.When = map[string]string{}
			err = eachMember(v, "when", func(pointer string, _, v ast.Node) error {
				r.When[pointer], err = scalar(v, pointer)
				return err
			})
		default:
			if near := Nearest(key, ruleFields); near != "" {
				return errAt(at, "unknown field %q: did you mean %q?", key, near)
			}
			return errAt(at, "unknown field %q: a rule has %s", key, strings.Join(ruleFields, ", "))
		}
		return err
	})
	return r, err
}

// eachMember calls fn with the members of a mapping that is written out plainly.
func eachMember(n ast.Node, what string, fn func(key string, at, v ast.Node) error) error {
	var members []*ast.MappingValueNode
	switch n := n.(type) {
	case *ast.MappingNode:
		members = n.Values
	case *ast.MappingValueNode:
		members = []*ast.MappingValueNode{n}
	default:
		return errAt(n, "%s must be a mapping, and is %s", what, typeName(n))
	}
	seen := map[string]bool{}
	for _, m := range members {
		key, err := scalar(m.Key, "a field's name")
		if err != nil {
			return err
		}
		if seen[key] {
			return errAt(m.Key, "%q stands here twice", key)
		}
		seen[key] = true
		if err := fn(key, m.Key, m.Value); err != nil {
			return err
		}
	}
	return nil
}

// scalar returns the text of a plain value.
func scalar(n ast.Node, what string) (string, error) {
	switch n := n.(type) {
	case *ast.StringNode:
		return n.Value, nil
	case *ast.LiteralNode:
		return n.Value.Value, nil
	case *ast.IntegerNode, *ast.FloatNode, *ast.BoolNode:
		return n.GetToken().Value, nil // as written: values are compared as text
	case nil:
		return "", fmt.Errorf("%s has no value", what)
	default:
		return "", errAt(n, "%s must be text, and is %s", what, typeName(n))
	}
}

func typeName(n ast.Node) string {
	if n == nil {
		return "empty"
	}
	switch n.(type) {
	case *ast.MappingNode, *ast.MappingValueNode:
		return "a mapping"
	case *ast.SequenceNode:
		return "a list"
	case *ast.NullNode:
		return "empty"
	case *ast.AliasNode, *ast.AnchorNode, *ast.MergeKeyNode:
		return "an anchor or alias, which are not read here"
	case *ast.StringNode, *ast.LiteralNode:
		return "text"
	}
	return strings.ToLower(n.Type().String())
}

// Nearest returns the known name that s was probably meant to be, or "".
func Nearest(s string, known []string) string {
	plain := func(s string) string { return strings.ToLower(strings.NewReplacer("_", "", "-", "").Replace(s)) }
	best, bestAt := "", 3 // more than two slips are another word
	for _, k := range known {
		if d := distance(plain(s), plain(k)); d < bestAt && d < len(k) {
			best, bestAt = k, d
		}
	}
	return best
}

// distance counts the letters to be put in, taken out or replaced (Levenshtein).
func distance(a, b string) int {
	if len(a) > 64 {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diag := row[0]
		row[0] = i + 1
		for j := range len(b) {
			next := diag
			if a[i] != b[j] {
				next = 1 + min(diag, row[j], row[j+1])
			}
			diag, row[j+1] = row[j+1], next
		}
	}
	return row[len(b)]
}

// RulesFile is the person's own rules, rules.yaml in the state directory. It
// belongs to the person: an `always` verdict adds lines at its end and a
// revocation takes lines out, and everything else in it, comments included,
// stays as it was written.
type RulesFile struct {
	Path string
	// Check, if set, tells what is wrong with a rule besides: what only whoever
	// knows the tools can tell.
	Check func(Rule) error
}

const rulesHead = `# Rules of this person. They are read before those of the configuration; among
# them deny beats ask beats allow. An answer of "always" adds one at the end.
`

// Load reads the rules; a file that does not exist holds none.
func (f RulesFile) Load() ([]Rule, error) {
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	rules, _, err := f.parse(text)
	return rules, err
}

func (f RulesFile) parse(text []byte) (rules []Rule, lines []int, err error) {
	return parseRules(text, f.Path, f.Check)
}

func (f RulesFile) read() ([]byte, error) {
	file, err := os.OpenFile(f.Path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s is a symbolic link: put a plain file in its place", f.Path)
	}
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no plain file: move it away", f.Path)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return nil, fmt.Errorf("%s can be written by others: chmod 600 it, after a look at what is in it", f.Path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxRulesFile+1))
	if err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return text, nil
}

// Add writes one rule at the end of the file and returns all that are then in it.
func (f RulesFile) Add(r Rule) ([]Rule, error) {
	text, err := f.read()
	if err != nil {
		return nil, err
	}
	old, _, err := f.parse(text)
	if err != nil {
		return nil, err
	}
	if len(text) == 0 {
		text = []byte(rulesHead)
	}
	next := string(text)
	if !strings.HasSuffix(next, "\n") {
		next += "\n"
	}
	next += "- " + r.String() + "\n"
	return f.write(next, append(slices.Clip(old), r))
}

// Remove takes out the rule of that number (from 1) or key, and returns it with
// those that stay.
func (f RulesFile) Remove(which string) (gone Rule, rest []Rule, err error) {
	text, err := f.read()
	if err != nil {
		return gone, nil, err
	}
	rules, lines, err := f.parse(text)
	if err != nil {
		return gone, nil, err
	}
	i := slices.IndexFunc(rules, func(r Rule) bool { return r.Key() == which })
	if n, err := strconv.Atoi(which); i < 0 && err == nil && 1 <= n && n <= len(rules) {
		i = n - 1
	}
	if i < 0 {
		return gone, nil, fmt.Errorf("there is no rule %q in %s: see rules list", which, f.Path)
	}
	gone, rest = rules[i], slices.Delete(slices.Clone(rules), i, i+1)

	all := strings.SplitAfter(string(text), "\n")
	from, to := lines[i]-1, len(all)
	if i+1 < len(lines) {
		to = lines[i+1] - 1
	}
	// Comments before the next rule are the next rule's.
	for to > from+1 && comment(all[to-1]) {
		to--
	}
	rest, err = f.write(strings.Join(slices.Delete(all, from, to), ""), rest)
	return gone, rest, err
}

func comment(line string) bool {
	line = strings.TrimSpace(line)
	return line == "" || line[0] == '#'
}

// write replaces the file, if the new text really says what is wanted: a file
// may be laid out in ways that cannot be changed line by line.
func (f RulesFile) write(text string, want []Rule) ([]Rule, error) {
	got, _, err := f.parse([]byte(text))
	if err != nil || !slices.EqualFunc(got, want, Rule.Equal) {
		return nil, fmt.Errorf("%s is laid out in a way that cannot be changed line by line: begin each rule on a line of its own with a dash, or change it by hand", f.Path)
	}
	if err := private.WriteFile(f.Path, []byte(text)); err != nil {
		return nil, fmt.Errorf("rules: %w", err)
	}
	return got, nil
}
