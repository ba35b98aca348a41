package conformance

import (
	"encoding/json"
	"strings"
	"testing"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
)

// call runs one fixture with the given params object.
func call(t *testing.T, f *Fixtures, tool, params string, notes *[]string) bridge.Answer {
	t.Helper()
	c := &bridge.Call{Tool: tool, Params: json.RawMessage(params)}
	if notes != nil {
		c.ProgressToken = json.RawMessage(`7`)
		c.Notify = func(method string, p json.RawMessage) { *notes = append(*notes, method+" "+string(p)) }
	}
	p, a := f.Prepare(t.Context(), c)
	if a != nil {
		return *a
	}
	if p.Default != gate.DefaultAllow {
		t.Fatalf("%s would ask", tool)
	}
	return p.Run(t.Context())
}

func TestFixturesAreWellFormed(t *testing.T) {
	f := NewFixtures()
	for _, tool := range f.Tools("") {
		var def struct {
			Name        string         `json:"name"`
			InputSchema map[string]any `json:"inputSchema"`
		}
		if err := json.Unmarshal(tool.Definition, &def); err != nil || def.Name != tool.Name || def.InputSchema["type"] != "object" {
			t.Errorf("%s: %v: %s", tool.Name, err, tool.Definition)
		}
		a := call(t, f, tool.Name, `{}`, nil)
		if (a.Result == nil) == (a.Error == nil) {
			t.Errorf("%s: wants one of result and error, got %+v", tool.Name, a)
		}
		for _, raw := range []json.RawMessage{a.Result, a.Error} {
			if raw != nil && !json.Valid(raw) {
				t.Errorf("%s: not JSON: %s", tool.Name, raw)
			}
		}
	}
}

func TestProgressRises(t *testing.T) {
	var notes []string
	call(t, NewFixtures(), "test_tool_with_progress", `{}`, &notes)
	want := []string{
		`notifications/progress {"progressToken":7,"progress":0,"total":100}`,
		`notifications/progress {"progressToken":7,"progress":50,"total":100}`,
		`notifications/progress {"progressToken":7,"progress":100,"total":100}`,
	}
	if strings.Join(notes, "\n") != strings.Join(want, "\n") {
		t.Fatalf("got %q", notes)
	}
}

func TestListChanges(t *testing.T) {
	f := NewFixtures()
	told := 0
	f.Changed = func() { told++ }
	before := len(f.Tools(""))
	call(t, f, "test_trigger_tool_change", `{}`, nil)
	if got := len(f.Tools("")); got != before+1 || told != 1 {
		t.Fatalf("%d tools, then %d; told %d times", before, got, told)
	}
	call(t, f, "test_trigger_tool_change", `{}`, nil)
	if got := len(f.Tools("")); got != before || told != 2 {
		t.Fatalf("back to %d tools of %d; told %d times", got, before, told)
	}
}

// The fixtures that ask for input: which call is asked again, finished, refused.
func TestInputRequired(t *testing.T) {
	f := NewFixtures()
	other := NewFixtures()
	state := func(step string) string { return `"requestState":` + quote(f.sign(step)) }
	for _, c := range []struct{ tool, params, want string }{
		{"test_input_required_result_elicitation", `{}`, `"input_required","inputRequests":{"user_name":`},
		{"test_input_required_result_elicitation", `{"inputResponses":{"wrong":{}}}`, `"input_required"`},
		{"test_input_required_result_elicitation", `{"inputResponses":{"user_name":{"action":"accept"},"more":{}}}`, `got {`},
		{"test_input_required_result_elicitation", `{"inputResponses":{"user_name":12345}}`, `-32602`},
		{"test_input_required_result_elicitation", `{"inputResponses":null}`, `-32602`},
		{"test_input_required_result_tampered_state", `{}`, `"requestState":"confirm.`},
		{"test_input_required_result_tampered_state", `{` + state("confirm") + `}`, `state-ok`},
		{"test_input_required_result_tampered_state", `{` + state("step1") + `}`, `-32602`},
		{"test_input_required_result_tampered_state", `{"requestState":` + quote(other.sign("confirm")) + `}`, `-32602`},
		{"test_input_required_result_multi_round", `{}`, `"step1"`},
		{"test_input_required_result_multi_round", `{` + state("step1") + `}`, `"step2"`},
		{"test_input_required_result_multi_round", `{` + state("step2") + `}`, `both steps arrived`},
		{"test_input_required_result_multi_round", `{"requestState":"step2.x"}`, `-32602`},
		{"test_input_required_result_multiple_inputs", `{` + state("three") + `,"inputResponses":{"a":{},"b":{},"c":{}}}`, `all three`},
		{"test_input_required_result_multiple_inputs", `{` + state("three") + `,"inputResponses":{"a":{}}}`, `"input_required"`},
		{"test_missing_capability", `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`, `"ok"`},
		{"test_missing_capability", `{}`, `"requiredCapabilities":{"sampling":{}}`},
	} {
		a := call(t, f, c.tool, c.params, nil)
		if got := string(a.Result) + string(a.Error); !strings.Contains(got, c.want) {
			t.Errorf("%s %s: got %s, want %s", c.tool, c.params, got, c.want)
		}
	}
	got := string(call(t, f, "test_input_required_result_capabilities", `{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"sampling":{}}}}`, nil).Result)
	if !strings.Contains(got, "sampling/createMessage") || strings.Contains(got, "elicitation/create") {
		t.Errorf("a client that can only sample is asked %s", got)
	}
}
