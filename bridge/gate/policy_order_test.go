package gate

import (
	"strings"
	"testing"
)

// TestLoosensInOrder: what lets calls run unasked is read first, of that what has a
// wildcard, wherever it stands in the files.
func TestLoosensInOrder(t *testing.T) {
	p := Policy{
		Rules:       []Rule{{Tool: "a", Then: ThenAsk}, {Tool: "b", Then: ThenAllow}, {Tool: "c*", Then: ThenAllow}},
		ConfigRules: []Rule{{Tool: "d", Then: ThenAllow}, {Tool: "*", Then: ThenAllow}},
		TrustHints:  []string{"e"},
	}
	items, err := p.Loosens()
	if err != nil {
		t.Fatal(err)
	}
	want := []string{`"c*"`, `"*"`, `"b"`, `"d"`, "host e", `"a"`}
	if len(items) != len(want) {
		t.Fatalf("%d items: %v", len(items), items)
	}
	for i, w := range want {
		if !strings.Contains(items[i].Text, w) {
			t.Errorf("%d is %q, want that about %s", i, items[i].Text, w)
		}
	}
}
