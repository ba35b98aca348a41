package gate

import (
	"strings"
	"testing"
)

func TestParseNames(t *testing.T) {
	long := strings.Repeat("a", 65)
	for _, tt := range []struct {
		what       Named
		text, want string // part of the error; empty: good
	}{
		{NamedTool, "computer", ""},
		{NamedTool, "*", ""},
		{NamedTool, "files_*", ""},
		{NamedTool, "[^c]*", ""}, // ^ and ! negate
		{NamedTool, "[!c]*", ""},
		{NamedTool, "[]^]x", ""},
		{NamedTool, "[a,{ ]x", ""},
		{NamedTool, `\{a\,b\}`, ""},
		{NamedTool, `read\ file`, ""},
		{NamedTool, "ns/tool:v1", ""},
		{NamedTool, "größe", ""},
		{NamedTool, "[ä-ü]*", ""},
		{NamedTool, long, ""},
		{NamedClient, "cl?ude", ""},
		{NamedClient, "a.b_c-d9", ""},
		{NamedClient, "[^a-y]", ""},
		{NamedHost, "drawbridge", ""},
		{NamedHost, "omp-*", ""},

		{NamedTool, "{computer,x}", `pattern "{computer,x}" fits no tool: braces stand for themselves; write one entry for each name`},
		{NamedTool, "a,b", `"," stands for itself`},
		{NamedTool, "a|b", `"|" stands for itself`},
		{NamedTool, "computer ", `it holds " "; take that away`},
		{NamedTool, " computer", `it holds " "`},
		{NamedTool, "com\tputer", `it holds "\t"`},
		{NamedTool, "computer\n", `it holds "\n"`},
		{NamedTool, "a\u00a0b", "it holds"},
		{NamedTool, "", "it is empty"},
		{NamedTool, "[^\x00-\U0010ffff]*", "holds no character of such a name"},
		{NamedTool, strings.Repeat("?", 400), "at most 321"},
		{NamedTool, "[", "is not closed"},
		{NamedTool, "[]", "is not closed"},
		{NamedTool, "[^]", "is not closed"},
		{NamedTool, `a\`, `ends in a lone`},
		{NamedClient, "{a,b}", "braces"},
		{NamedClient, "my client", `holds " "`},
		{NamedClient, "a@b", `no client's name holds '@': it is 1 to 64 of A-Z a-z 0-9 . _ -`},
		{NamedClient, `a\{b`, "no client's name holds '{'"},
		{NamedClient, "[@#]*", "a set [...] in it holds no character"},
		{NamedClient, "[ä]", "a set [...] in it holds no character"},
		{NamedClient, "[^a-zA-Z0-9._-]*", "a set [...] in it holds no character"},
		{NamedClient, long, "at most 64"},
		{NamedHost, "https://x*", "no host's name holds ':'"},
	} {
		g, err := ParseNames(tt.what, tt.text)
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s %q: %v; want %q", tt.what, tt.text, err, tt.want)
		}
		if err == nil && g.String() != tt.text {
			t.Errorf("%q became %q", tt.text, g)
		}
	}
	if g, err := ParseNames(NamedTool, "[^c]*"); err != nil || g.Match("computer") || !g.Match("bash") || !g.Match("^x") {
		t.Errorf("[^c]*: %v", err)
	}
}

// FuzzParseNames holds that a pattern that fits a client's name is never refused
// as one that fits none, but for how it is written.
func FuzzParseNames(f *testing.F) {
	f.Add("cl*", "claude")
	f.Add("[^b-z]?", "a9")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		if len(pattern) > 100 || len(name) > maxName || name == "" || strings.ContainsFunc(name, func(r rune) bool { return !inName(r) }) {
			return
		}
		for _, what := range []Named{NamedTool, NamedClient, NamedHost} {
			g, err := ParseGlob(pattern)
			if err != nil || !g.Match(name) {
				continue
			}
			if err := g.canName(what); err != nil {
				t.Fatalf("%q fits %q, and is refused: %v", pattern, name, err)
			}
			if _, err := ParseNames(what, exactly(name)); err != nil {
				t.Fatalf("the name %q itself is refused: %v", name, err)
			}
		}
	})
}

// TestRuleThatNeverFits has the file's line and what to write instead.
func TestRuleThatNeverFits(t *testing.T) {
	for text, want := range map[string]string{
		"- {tool: bash, then: deny}\n- {tool: \"{bash,sh}\", then: deny}\n": `r.yaml:2: tool: pattern "{bash,sh}" fits no tool: braces`,
		"- {tool: bash, client: \"a b\", then: deny}\n":                     `r.yaml:1: client: pattern "a b" fits no client: it holds " "`,
		"- tool: bash\n  host: x/y\n  then: deny\n":                         `r.yaml:1: host: pattern "x/y" fits no host`,
	} {
		if _, err := ParseRules([]byte(text), "r.yaml"); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v; want %s", text, err, want)
		}
	}
}
