package computer

import (
	"strings"
	"testing"

	"drawbridge/bridge/gate"
)

func TestCheckRule(t *testing.T) {
	for _, tt := range []struct{ pointer, pattern, want string }{ // want: part of the error; empty: good
		{"/actions/*/type", "type", ""},
		{"/actions/*/type", "s*", ""},
		{"/actions/0/type", "*", ""},
		{"/actions/*/text", "sudo *", ""},
		{"/actions/*/keys/*", "CTRL", ""},
		{"/actions/*/keys", "*CTRL*", ""},
		{"/actions/*/path/0/x", "1*", ""},
		{"/actions/*/path/*/1", "1*", ""},
		{"/actions/*/expect/app", "Mail", ""},
		{"/actions/*/button", "right", ""},
		{"/actions/*/*", "x", ""},
		{"/actions", "*type*", ""},
		{"/picture", "p*", ""},
		{"/*/*/type", "type", ""},
		{"", "*", ""},

		{"/action/*/type", "type", `its arguments are actions and picture (did you mean "actions"?), as in "/actions/*/type"`},
		{"/type", "type", `its arguments are actions and picture`},
		{"/actions/type", "type", `"type" is neither * nor a number`},
		{"/actions/-1/type", "type", `"-1" is neither`},
		{"/actions/01/type", "type", `"01" is neither`},
		{"/actions/*/tpye", "type", `no action has a field "tpye" (did you mean "type"?)`},
		{"/actions/*/Text", "x", `did you mean "text"?`},
		{"/actions/*/text/0", "x", `the field text holds no /0`},
		{"/actions/*/path/*/z", "1", `the field path holds no /*/z`},
		{"/actions/*/keys/*/0", "1", `the field keys holds no`},
		{"/actions/*/expect/title", "1", `the field expect holds no /title`},
		{"/picture/id", "1", `picture is a text`},
		{"/actions/*/type", "key_press", `"key_press" is no type (did you mean "keypress"?); it is one of screenshot, click`},
		{"/actions/*/type", "type ", `is no type`},
		{"/actions/*/button", "centre", `is no button`},
	} {
		err := CheckRule(gate.Rule{Tool: "computer", When: map[string]string{tt.pointer: tt.pattern}, Then: gate.ThenDeny})
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
			t.Errorf("%s: %s: %v; want %q", tt.pointer, tt.pattern, err, tt.want)
		}
	}
	for _, tool := range []string{"*", "comp*", "bash", "omp_computer"} {
		if err := CheckRule(gate.Rule{Tool: tool, When: map[string]string{"/command": "rm *"}, Then: gate.ThenDeny}); err != nil {
			t.Errorf("of %s: %v", tool, err)
		}
	}
}
