package conformance

import (
	"slices"
	"strings"
	"testing"
)

var both = []string{"v1", "v2"}

func TestReadBaselineRefuses(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"no reason", "v1 a:b", `line 1: want a revision, a check and the reason`},
		{"no check", "# x\nv1 a why", `line 2: want scenario:check, got "a"`},
		{"unknown revision", "v3 a:b why", `line 1: unknown revision "v3"; have v1, v2, * and -`},
		{"twice", "* a:b why\nv2 a:b why", `line 2: v2 a:b is there twice`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := ReadBaseline(strings.NewReader(c.in), both)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestJudge(t *testing.T) {
	const text = `
# why things are not as they seem
*  tools:hard   it is hard
v1 tools:never  it was
-  tasks        not ours
`
	for _, c := range []struct {
		name    string
		ran     []Check
		offered []string
		want    []string
	}{
		{
			name:    "as expected",
			ran:     []Check{{"v1", "tools", "hard", "FAILURE", ""}, {"v2", "tools", "hard", "WARNING", ""}, {"v1", "tools", "never", "SKIPPED", ""}, {"v1", "tools", "easy", "SUCCESS", ""}, {"v2", "tools", "easy", "INFO", ""}},
			offered: []string{"tools", "tasks"},
		},
		{
			name:    "regression, in one of several runs of the check",
			ran:     []Check{{"v1", "tools", "hard", "FAILURE", ""}, {"v2", "tools", "hard", "FAILURE", ""}, {"v1", "tools", "never", "FAILURE", ""}, {"v1", "tools", "easy", "FAILURE", "no"}, {"v1", "tools", "easy", "SUCCESS", ""}},
			offered: []string{"tools", "tasks"},
			want:    []string{"v1 tools:easy: FAILURE: no"},
		},
		{
			name:    "a word that the suite did not use before is no success",
			ran:     []Check{{"v1", "tools", "hard", "FAILURE", ""}, {"v2", "tools", "hard", "FAILURE", ""}, {"v1", "tools", "never", "FAILURE", ""}, {"v1", "tools", "easy", "MAYBE", "?"}},
			offered: []string{"tools", "tasks"},
			want:    []string{"v1 tools:easy: MAYBE: ?"},
		},
		{
			name:    "stale entries",
			ran:     []Check{{"v1", "tools", "hard", "SUCCESS", ""}, {"v2", "tools", "hard", "FAILURE", ""}},
			offered: []string{"tools", "tasks"},
			want:    []string{"v1 tools:hard succeeds now: take it out of the baseline", "v1 tools:never is in the baseline and was never checked"},
		},
		{
			name:    "scenarios that run or do not run against the list",
			ran:     []Check{{"v1", "tools", "hard", "FAILURE", ""}, {"v2", "tools", "hard", "FAILURE", ""}, {"v1", "tools", "never", "FAILURE", ""}, {"v1", "tasks", "x", "SUCCESS", ""}, {"v1", "new", "x", "SUCCESS", ""}},
			offered: []string{"tools", "tasks", "silent"},
			want: []string{"scenario tasks ran: take it out of the baseline", "scenario silent did not run and the baseline does not say why",
				"scenario new ran and is not in the suite's list"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			b, err := ReadBaseline(strings.NewReader(text), both)
			if err != nil {
				t.Fatal(err)
			}
			if got := b.Judge(c.ran, c.offered); !slices.Equal(got, c.want) {
				t.Fatalf("got  %q\nwant %q", got, c.want)
			}
		})
	}
}

func TestTable(t *testing.T) {
	b, err := ReadBaseline(strings.NewReader("* tools:hard it is hard\n- tasks not ours"), both)
	if err != nil {
		t.Fatal(err)
	}
	got := b.Table([]Check{
		{"v1", "tools", "hard", "FAILURE", ""}, {"v1", "tools", "easy", "SUCCESS", ""},
		{"v2", "tools", "hard", "WARNING", ""}, {"v1", "ping", "ping", "FAILURE", ""},
	}, []string{"tools", "ping", "tasks"}, both)
	const want = `| scenario | v1 | v2 | not succeeding, because |
|---|---|---|---|
| tools | 1 of 2 | 0 of 1 | it is hard |
| ping | 0 of 1 | – | NOT EXPECTED: ping |
| tasks | – | – | not run: not ours |
`
	if got != want {
		t.Fatalf("got\n%s\nwant\n%s", got, want)
	}
}
