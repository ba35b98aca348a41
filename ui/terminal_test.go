package ui

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"drawbridge/bridge/gate"
)

func TestParseAnswer(t *testing.T) {
	all := []gate.Scope{gate.Deny, gate.Once, gate.ForConn, gate.For15m, gate.Always}
	for _, tt := range []struct {
		line   string
		scopes []gate.Scope
		want   gate.Answer
		ok     bool
	}{
		{"allow badefo", all, gate.Answer{Scope: gate.Once}, true},
		{"  allow   badefo  ", all, gate.Answer{Scope: gate.Once}, true},
		{"conn badefo", all, gate.Answer{Scope: gate.ForConn}, true},
		{"15m badefo", all, gate.Answer{Scope: gate.For15m}, true},
		{"always badefo", all, gate.Answer{Scope: gate.Always}, true},
		{"always badefo", all[:2], gate.Answer{}, false},
		{"allow", all, gate.Answer{}, false},
		{"badefo", all, gate.Answer{}, false},
		{"allow badef", all, gate.Answer{}, false},
		{"allow BADEFO", all, gate.Answer{}, false},
		{"y", all, gate.Answer{}, false},
		{"", all, gate.Answer{}, true},
		{"deny", all, gate.Answer{}, true},
		{"deny not now", all, gate.Answer{Reason: "not now"}, true},
		{"denied", all, gate.Answer{}, false},
	} {
		got, problem := parseAnswer(tt.line, "badefo", tt.scopes, nil)
		if got != tt.want || (problem == "") != tt.ok {
			t.Errorf("%q: %+v, %q", tt.line, got, problem)
		}
	}
}

func TestParseChoice(t *testing.T) {
	for line, want := range map[string]string{"17": "17", " 80 ": "80", "allow 17": "", "81": "", "deny": "", "": ""} {
		got, problem := parseAnswer(line, "badefo", []gate.Scope{gate.Deny, gate.Once}, []string{"17", "42", "80"})
		if got.Choice != want || (got.Scope == gate.Once) != (want != "") || (problem == "") != (want != "" || line == "deny" || line == "") {
			t.Errorf("%q: %+v, %q", line, got, problem)
		}
	}
}

func TestArguments(t *testing.T) {
	long := strings.Repeat("x", 3000)
	for _, tt := range []struct{ in, want string }{
		{``, "(no arguments)"},
		{`{}`, "{}"},
		{`{"a":[1e300,true,null,"\u0072m"],"b":{}}`, "{\n  \"a\": [\n    1e300,\n    true,\n    null,\n    \"rm\"\n  ],\n  \"b\": {}\n}"},
		{`"<b>&\n\u001b"`, `"<b>&\n\u001b"`},
		{"\"\u202e\"", `"⟨U+202E⟩"`},
		{`{"a":1,"a":2}`, "{\n  \"a\": 1,\n  \"a\": 2\n}"},
		{`{"a":`, `(no JSON) {"a":`},
		{`1 2`, `(no JSON) 1 2`},
		{`"` + long + `"`, `"` + strings.Repeat("x", 666) + "⟨… 2002 characters left out …⟩" + strings.Repeat("x", 332) + `"`},
	} {
		if got := strings.Join(arguments([]byte(tt.in)), "\n"); got != tt.want {
			t.Errorf("%.80q:\n%s\nwant\n%s", tt.in, got, tt.want)
		}
	}
	many := arguments([]byte("[" + strings.Repeat("1,", 999) + "1]"))
	if len(many) != mostLines+1 || !strings.Contains(strings.Join(many, "\n"), fmt.Sprintf("⟨… %d lines left out …⟩", 1002-mostLines)) {
		t.Errorf("%d lines", len(many))
	}
	if deep := arguments([]byte(strings.Repeat("[", 5000) + strings.Repeat("]", 5000))); len(deep) != 1 {
		t.Errorf("%d lines of nothing but brackets", len(deep))
	}
}

func FuzzArguments(f *testing.F) {
	f.Add([]byte(`{"a":[1,"\u202e"]}`))
	f.Add([]byte("\xff"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		lines := arguments(raw)
		if len(lines) == 0 || len(lines) > mostLines+1 {
			t.Fatalf("%d lines", len(lines))
		}
		for _, l := range lines {
			if strings.ContainsAny(l, "\n\r\x1b\u202e") {
				t.Fatalf("%q", l)
			}
		}
	})
}

// TestPromptOffersEveryVerdict holds the whole prompt, and that the rule that it
// shows is the one that is stored.
func TestPromptOffersEveryVerdict(t *testing.T) {
	rule := gate.Rule{Tool: "bash", Client: "claude", Host: "omp", Then: gate.ThenAllow}
	p := &gate.Pending{Kind: gate.AskCall, Rule: &rule, Request: &gate.Request{
		Client: "claude", Conn: "k1", Host: "omp", Tool: "bash", Args: json.RawMessage(`{"command":"ls"}`)}}
	got := (&Terminal{queue: []*gate.Pending{p, nil, nil}}).text(p, sheetOf(p, 80, 24), "badefo")
	want := `
────────────────────────────────────────────────────────────
Client claude wants to run bash of host omp.
  {
    "command": "ls"
  }
(2 more wait after this.)
Type one of:
  allow   badefo     this call, once
  conn    badefo     this and further calls of bash, with any arguments, until this connection ends
  15m     badefo     this and further calls of bash by client claude, with any arguments, for 15 minutes
  always  badefo     this and all further ones, by this rule in the rules file: {tool: "bash", client: "claude", host: "omp", then: allow}
  deny [why]         no; Enter alone means the same
This question stands until it is answered.
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	p = &gate.Pending{Kind: gate.AskPage, Choices: []string{"17", "42", "80"}}
	if got := (&Terminal{}).text(p, sheetOf(p, 80, 24), "badefo"); !strings.Contains(got, "  42 ") || strings.Contains(got, "badefo") {
		t.Errorf("got\n%s", got)
	}
	p = &gate.Pending{Kind: gate.AskAccept, Items: []gate.Item{{Key: "k", Text: "more \x1b of this"}}}
	if got := (&Terminal{}).text(p, sheetOf(p, 80, 24), "badefo"); !strings.Contains(got, "  more ⟨U+001B⟩ of this\n") || strings.Contains(got, "15m") || strings.Contains(got, "more wait") {
		t.Errorf("got\n%s", got)
	}
	const till = "A yes at a terminal holds until the agent ends"
	for _, kind := range []gate.Kind{gate.AskAccept, gate.AskLoosen, gate.AskResume} {
		p := &gate.Pending{Kind: kind, Items: []gate.Item{{Key: "k", Text: "more"}}, Request: &gate.Request{Client: "claude"}}
		for _, is := range []bool{true, false} {
			if got := (&Terminal{TillEnd: is}).text(p, sheetOf(p, 80, 24), "badefo"); strings.Contains(got, till) != (is && kind != gate.AskResume) {
				t.Errorf("%d, till the end %v: got\n%s", kind, is, got)
			}
		}
	}
}
