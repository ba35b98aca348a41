package gate

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestGlob(t *testing.T) {
	tests := []struct {
		glob, text string
		want       bool
	}{
		{"computer", "computer", true},
		{"computer", "Computer", false},
		{"computer", "omp_computer", false},
		{"*", "", true},
		{"*", "any/thing\nat all", true},
		{"", "", true},
		{"", "a", false},
		{"omp_*", "omp_read", true},
		{"omp_*", "omp_", true},
		{"*_read", "omp_read", true},
		{"*_read", "omp_read_all", false},
		{"a*b*c", "a-b-b-c", true},
		{"a*b*c", "a-c-b", false},
		{"*a*a*a*b", strings.Repeat("a", 50), false},
		{"?", "é", true},
		{"?", "", false},
		{"??", "é", false},
		{"[a-c]x", "bx", true},
		{"[a-c]x", "dx", false},
		{"[^a-c]", "d", true},
		{"[!a-c]", "b", false},
		{"[!a-c]", "", false},
		{"[]]", "]", true},
		{"[]-]", "-", true},
		{"[a-]", "-", true},
		{`[\]]`, "]", true},
		{"[é-ü]", "ö", true},
		{`\*`, "*", true},
		{`\*`, "x", false},
		{`\[a]`, "[a]", true},
		{"/etc/**", "/etc/a/b", true},
		{"a?c", "a\xffc", true},
	}
	for _, tt := range tests {
		g, err := ParseGlob(tt.glob)
		if err != nil {
			t.Errorf("%q: %v", tt.glob, err)
		} else if got := g.Match(tt.text); got != tt.want {
			t.Errorf("%q on %q: %v, want %v", tt.glob, tt.text, got, tt.want)
		}
	}
	for _, bad := range []string{"[", "[a", "[]", `a\`, "[z-a]", `[\`, "[a-"} {
		if _, err := ParseGlob(bad); err == nil {
			t.Errorf("%q was taken", bad)
		}
	}
	if !(Glob{}).Match("x") || (Glob{}).String() != "*" {
		t.Error("the zero glob must fit everything")
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("a*[b-d]?", `x\*`)
	f.Add("[!a]", "\xff")
	f.Fuzz(func(t *testing.T, pattern, text string) {
		if len(pattern) > 100 || len(text) > 1000 {
			return
		}
		if g, err := ParseGlob(pattern); err == nil {
			g.Match(text)
		}
		g, err := ParseGlob(exactly(text))
		if err != nil || !g.Match(text) || g.Match(text+"x") || g.Match("x"+text) {
			t.Fatalf("exactly(%q) does not fit it alone: %v", text, err)
		}
		if text != "" && len(text) <= maxToolName {
			// What Always would write must be read again.
			if _, err := ParseNames(NamedTool, exactly(text)); err != nil {
				t.Fatalf("the tool %q cannot be named: %v", text, err)
			}
		}
	})
}

func TestWhen(t *testing.T) {
	const click = `{"actions":[{"type":"click","x":1,"y":2},{"type":"click","x":1e2,"y":2}]}`
	const mixed = `{"actions":[{"type":"click"},{"type":"type","text":"a"}]}`
	tests := []struct {
		name, args string
		when       map[string]string
		allow, any bool // whether an allow and a deny with it fit
	}{
		{"all fit", click, map[string]string{"/actions/*/type": "click"}, true, true},
		{"one fits", mixed, map[string]string{"/actions/*/type": "click"}, false, true},
		{"none fits", click, map[string]string{"/actions/*/type": "type"}, false, false},
		{"an element without it", `{"actions":[{"type":"click"},{"kind":"type"}]}`, map[string]string{"/actions/*/type": "click"}, false, true},
		{"no elements", `{"actions":[]}`, map[string]string{"/actions/*/type": "*"}, false, false},
		{"no arguments", ``, map[string]string{"/actions/*/type": "*"}, false, false},
		{"numbers as sent", click, map[string]string{"/actions/1/x": "1e2"}, true, true},
		{"numbers are not computed", click, map[string]string{"/actions/1/x": "100"}, false, false},
		{"two conditions hold", click, map[string]string{"/actions/*/type": "click", "/actions/0/y": "2"}, true, true},
		{"one of two holds", click, map[string]string{"/actions/*/type": "click", "/actions/0/y": "3"}, false, false},
		{"a star over members", `{"a":"x","b":"x"}`, map[string]string{"/*": "x"}, true, true},
		{"strings by content", `{"a":"\u0072m"}`, map[string]string{"/a": "rm"}, true, true},
		{"words", `{"a":true,"b":null}`, map[string]string{"/a": "true", "/b": "null"}, true, true},
		{"a whole object", `{"a": {"b": 1}}`, map[string]string{"/a": `{"b": 1}`}, true, true},
		{"escapes", `{"a/b":{"c~d":"x"}}`, map[string]string{"/a~1b/c~0d": "x"}, true, true},
		{"the document", `"x"`, map[string]string{"": "x"}, true, true},
		{"through a text", `{"a":"x"}`, map[string]string{"/a/b": "*"}, false, false},
		{"past the end", `{"a":[1]}`, map[string]string{"/a/1": "*"}, false, false},
		{"twice", `{"a":"x","a":"y"}`, map[string]string{"/a": "x"}, false, true},
		{"twice the same", `{"a":"x","a":"x"}`, map[string]string{"/a": "x"}, false, true},
		{"another case", `{"A":"y"}`, map[string]string{"/a": "x"}, false, true},
		{"another case besides", `{"a":"x","A":"y"}`, map[string]string{"/a": "x"}, false, true},
		{"twice, and not asked for", `{"a":"x","b":1,"b":2}`, map[string]string{"/a": "x"}, true, true},
		{"no JSON", `{"a":`, map[string]string{"/a": "nothing like it"}, false, true},
	}
	for _, tt := range tests {
		for then, want := range map[Then]bool{ThenAllow: tt.allow, ThenAsk: tt.any, ThenDeny: tt.any} {
			c, err := compileRule(Rule{Tool: "*", When: tt.when, Then: then})
			if err != nil {
				t.Fatalf("%s: %v", tt.name, err)
			}
			if got := c.match(&Request{Tool: "t", Args: json.RawMessage(tt.args)}); got != want {
				t.Errorf("%s: %s fits: %v, want %v", tt.name, then, got, want)
			}
		}
	}
	for _, bad := range []string{"actions", "/a~2", "/a~"} {
		if err := (Rule{Tool: "*", When: map[string]string{bad: "*"}, Then: ThenDeny}).Check(); err == nil {
			t.Errorf("pointer %q was taken", bad)
		}
	}
}

// FuzzWhen checks that no arguments break the matcher, and that a rule that
// allows is never easier to fit than one that denies.
func FuzzWhen(f *testing.F) {
	f.Add("/actions/*/type", "click", []byte(`{"actions":[{"type":"click"}]}`))
	f.Add("/*/*/0", "*", []byte(`[[["a"]],{"b":[1]}]`))
	f.Add("", "", []byte(` `))
	f.Fuzz(func(t *testing.T, at, glob string, args []byte) {
		if len(glob) > 100 || len(args) > 4096 {
			return
		}
		when := map[string]string{at: glob}
		allow, err := compileRule(Rule{Tool: "*", When: when, Then: ThenAllow})
		if err != nil {
			return
		}
		deny, err := compileRule(Rule{Tool: "*", When: when, Then: ThenDeny})
		if err != nil {
			t.Fatal(err)
		}
		r := &Request{Args: args}
		if allow.match(r) && !deny.match(r) {
			t.Fatalf("%q %q fits an allow and not a deny: %q", at, glob, args)
		}
	})
}

func TestParseRules(t *testing.T) {
	got, err := ParseRules([]byte(`# mine
- tool: computer
  client: claude*
  when:
    "/actions/*/type": screenshot
    /n: 3
    /b: true
  then: allow
- {tool: "*", host: omp, then: deny} # no omp

`), "rules.yaml")
	want := []Rule{
		{Tool: "computer", Client: "claude*", When: map[string]string{"/actions/*/type": "screenshot", "/n": "3", "/b": "true"}, Then: ThenAllow},
		{Tool: "*", Host: "omp", Then: ThenDeny},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v, %v; want %v", got, err, want)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "[]"} {
		if got, err := ParseRules([]byte(empty), "r"); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}

	for _, tt := range []struct{ text, want string }{
		{"- tol: x\n  then: deny", `rules.yaml:1: unknown field "tol": did you mean "tool"?`},
		{"- tool: x\n  Then: deny", `rules.yaml:2: unknown field "Then": did you mean "then"?`},
		{"- tool: x\n  colour: red\n  then: ask", `rules.yaml:2: unknown field "colour": a rule has tool, client, host, when, then`},
		{"- tool: x\n  then: deny\n- tool: y\n  then: maybe", `rules.yaml:3: then is "maybe": it must be allow, ask or deny`},
		{"- tool: x", `rules.yaml:1: then is "": it must be`},
		{"- then: deny", `rules.yaml:1: a rule needs a tool`},
		{"- tool: [a]\n  then: deny", `rules.yaml:1: tool must be text, and is a list`},
		{"- tool: 'a['\n  then: deny", `rules.yaml:1: tool: pattern "a["`},
		{"- tool: a\n  when: x\n  then: deny", `rules.yaml:2: when must be a mapping, and is text`},
		{"- tool: a\n  when:\n    a: x\n  then: deny", `rules.yaml:1: when: pointer "a" must begin with a slash`},
		{"- tool: a\n  when:\n    /a: [x]\n  then: deny", `rules.yaml:3: /a must be text, and is a list`},
		{"- tool: a\n  tool: b\n  then: deny", `rules.yaml:2: `},
		{"tool: a\nthen: deny", `rules.yaml:1: must be a list of rules`},
		{"- a", `rules.yaml:1: a rule must be a mapping, and is text`},
		{"- tool: ~\n  then: deny", `rules.yaml:1: tool must be text, and is empty`},
		{"- tool: &a x\n  client: *a\n  then: deny", `rules.yaml:1: tool must be text, and is an anchor`},
		{"- tool: x\n  then: deny\n---\n- tool: y\n  then: deny", `rules.yaml:4: holds a second document`},
		{"- {tool: x", `rules.yaml:1: `},
		{"\t- a", `rules.yaml:1: `},
	} {
		if _, err := ParseRules([]byte(tt.text), "rules.yaml"); err == nil || !strings.HasPrefix(err.Error(), tt.want) {
			t.Errorf("%q:\n got %v\nwant %s…", tt.text, err, tt.want)
		}
	}
}

// FuzzParseRules checks that no file breaks the parser, and that what it reads
// can be written and read again.
func FuzzParseRules(f *testing.F) {
	for _, s := range []string{
		"- tool: a\n  then: deny\n", "- {tool: '*', when: {/a/*: \"x\"}, then: allow}", "- tool: |\n    x\n  then: ask\n",
		"[{tool: a, then: ask}]", "- ? a\n  : b", "- <<: *a", "---\n...\n---\n", "- tool: !!str a\n  then: deny", "{", "- - -", "%YAML 1.2\n---\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > 4096 {
			return
		}
		rules, err := ParseRules(text, "f")
		if err != nil {
			return
		}
		var b strings.Builder
		for _, r := range rules {
			fmt.Fprintf(&b, "- %s\n", r)
		}
		again, err := ParseRules([]byte(b.String()), "f")
		if err != nil || fmt.Sprint(again) != fmt.Sprint(rules) {
			t.Fatalf("%q\nread  %v\nwrote %s\nread  %v, %v", text, rules, b.String(), again, err)
		}
	})
}

func TestRulesFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "rules.yaml")
	f := RulesFile{Path: path}
	if rules, err := f.Load(); err != nil || rules != nil {
		t.Fatalf("no file: %v, %v", rules, err)
	}
	a := Rule{Tool: "a", Then: ThenAllow}
	b := Rule{Tool: "b", Client: "c", When: map[string]string{"/x": "say \"é\"\\*"}, Then: ThenDeny}
	for _, r := range []Rule{a, b} {
		if _, err := f.Add(r); err != nil {
			t.Fatal(err)
		}
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if rules, err := f.Load(); err != nil || len(rules) != 2 || !rules[0].Equal(a) || !rules[1].Equal(b) {
		t.Errorf("%v, %v", rules, err)
	}

	// What a person wrote stays as it was.
	text := "# top\n- tool: one\n  then: ask # why\n\n# about two\n- tool: two\n  when:\n    /a: b\n  then: deny\n# about three\n- {tool: three, then: allow}\n# end"
	os.WriteFile(path, []byte(text), 0o600)
	if _, err := f.Add(a); err != nil {
		t.Fatal(err)
	}
	gone, rest, err := f.Remove("2")
	if err != nil || gone.Tool != "two" || len(rest) != 3 {
		t.Fatalf("%v, %v, %v", gone, rest, err)
	}
	got, _ := os.ReadFile(path)
	want := "# top\n- tool: one\n  then: ask # why\n\n# about two\n# about three\n- {tool: three, then: allow}\n# end\n- {tool: \"a\", then: allow}\n"
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if gone, _, err := f.Remove(a.Key()); err != nil || !gone.Equal(a) {
		t.Errorf("by key: %v, %v", gone, err)
	}
	for _, no := range []string{"0", "9", "x", ""} {
		if _, _, err := f.Remove(no); err == nil {
			t.Errorf("%q was revoked", no)
		}
	}

	// A layout that cannot be changed by lines is left alone.
	os.WriteFile(path, []byte("[{tool: a, then: ask}, {tool: b, then: ask}]\n"), 0o600)
	if _, _, err := f.Remove("1"); err == nil || !strings.Contains(err.Error(), "by hand") {
		t.Errorf("%v", err)
	}
	if rules, err := f.Load(); err != nil || len(rules) != 2 {
		t.Errorf("%v, %v", rules, err)
	}

	os.Chmod(path, 0o666)
	if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "written by others") {
		t.Errorf("%v", err)
	}
	os.Remove(path)
	os.Symlink("/dev/null", path)
	if _, err := f.Load(); err == nil || !strings.Contains(err.Error(), "symbolic link") {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(path + ".*"); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestNearest(t *testing.T) {
	known := []string{"max_actions_per_call", "tool", "then", "display"}
	for in, want := range map[string]string{"maxActionsPerCall": "max_actions_per_call", "tol": "tool", "dispaly": "display", "zebra": "", "Then": "then"} {
		if got := Nearest(in, known); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}
