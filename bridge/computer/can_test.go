package computer

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge"
)

// TestCan refuses before anything happens what a backend of few abilities cannot
// do, and does not offer it.
func TestCan(t *testing.T) {
	cfg := DefaultConfig()
	tool := New(Options{Desk: &Desk{Backend: "few", Can: &Can{
		Actions: []ActionType{Screenshot, Click, Type}, PlainClicks: true, ASCII: true, MainDisplay: true,
	}}, Config: cfg})
	defer tool.Close()
	if d := string(tool.Tools("c")[0].Definition); strings.Contains(d, `"const":"drag"`) || !strings.Contains(d, `"const":"click"`) {
		t.Errorf("the definition offers %s", d)
	}
	refused := func(actions string) string {
		_, a := tool.Prepare(t.Context(), &bridge.Call{Arguments: json.RawMessage(`{"actions":` + actions + `}`)})
		if a == nil {
			return ""
		}
		return string(a.Result)
	}
	for actions, want := range map[string]string{
		`[{"type":"type","text":"caf\u00e9"}]`:                                  "actions[0] (type): text: byte 3 is no ASCII",
		`[{"type":"click","x":1,"y":1,"button":"right"}]`:                       "button: only left",
		`[{"type":"screenshot"},{"type":"click","x":1,"y":1,"keys":["SHIFT"]}]`: "actions[1] (click): keys: none can be held",
		`[{"type":"scroll","x":1,"y":1,"scroll_y":1}]`:                          "is not allowed here",
	} {
		if got := refused(actions); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", actions, got, want)
		}
	}
	if got := refused(`[{"type":"type","text":"plain\n"}]`); got != "" {
		t.Errorf("plain text is refused: %s", got)
	}
	cfg.Display = 1
	tool.SetConfig(cfg)
	if got := refused(`[{"type":"screenshot"}]`); !strings.Contains(got, "display 1 is not the main one") {
		t.Errorf("another display: %s", got)
	}
	if !slices.Equal((&Tool{desk: &Desk{}}).allowed(&cfg, Limits{}), ActionTypes) {
		t.Error("a desk that can do everything may not")
	}
}
