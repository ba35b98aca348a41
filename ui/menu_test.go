package ui

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"

	"drawbridge/bridge/gate"
	"drawbridge/bridge/tally"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// call is a prompt about a call that has two minutes.
func call(id, client, tool, args string, rule bool, conn string) Prompt {
	r := gate.Request{Client: client, Conn: conn, Host: "omp", Tool: tool, Args: json.RawMessage(args)}
	p := &gate.Pending{ID: id, Request: &r, Since: noon, Deadline: noon.Add(2 * time.Minute)}
	if rule {
		p.Rule = &gate.Rule{Tool: tool, Client: client, Host: "omp", Then: gate.ThenAllow}
	}
	return NewPrompt(p, noon.Add(14*time.Second))
}

// loosen is a prompt about one thing that loosens.
func loosen(id, client, text string) Prompt {
	return NewPrompt(&gate.Pending{ID: id, Kind: gate.AskLoosen, Request: &gate.Request{Client: client},
		Items: []gate.Item{{Key: "k", Text: text}}, Since: noon, Deadline: noon.Add(2 * time.Minute)}, noon.Add(14*time.Second))
}

func states() map[string]State {
	bash := call("a-1", "claude", "bash", `{"command":"ls -l","timeout":30}`, true, "k1")
	many := State{Version: "1.2.3"}
	for i := range 15 {
		many.Pending = append(many.Pending, call(fmt.Sprintf("a-%d", i), fmt.Sprintf("client-%d", i), "bash", `{}`, false, ""))
		many.Clients = append(many.Clients, Client{fmt.Sprintf("client-%d", i), 1, i})
		many.Models.Denied, many.Models.By = true, "x"
		many.Models.Hosts = append(many.Models.Hosts, ModelHost{fmt.Sprintf("host-%d", i), i%2 == 0})
		many.Warnings = append(many.Warnings, fmt.Sprintf("warning %d", i))
	}
	again := call("a-2", "claude", "computer", `{"actions":[{"type":"click","x":1,"y":2}]}`, true, "k1")
	again.Again = true
	return map[string]State{
		"ready":   {Version: "1.2.3", Clients: []Client{{"default", 1, 3}}},
		"empty":   {},
		"working": {Version: "1.2.3", Working: []string{"claude"}, Clients: []Client{{"claude", 2, 1}, {"default", 0, 9}}},
		"waiting": {Version: "1.2.3", Pending: []Prompt{bash, again}, Clients: []Client{{"claude", 1, 2}}},
		"paused": {Version: "1.2.3", Paused: true, PausedBy: "the command line",
			Pending: []Prompt{{ID: "a-3", Kind: gate.AskResume, Scopes: []gate.Scope{gate.Deny, gate.Once}}, bash}},
		"permission": {Version: "1.2.3", Permissions: map[string]string{"screen": "missing", "input": "missing", "other": "unknown"},
			Warnings: []string{"port 7317 is taken, so the endpoint is at 127.0.0.1:40001"}},
		"asking": {Version: "1.2.3", Hosts: []Host{{Name: "omp", Kind: "attached", State: "ready", Tools: 12, Asking: "run tests?"}}},
		"accept": {Version: "1.2.3", Pending: []Prompt{{ID: "a-4", Kind: gate.AskAccept, Left: 90 * time.Second, Scopes: []gate.Scope{gate.Deny, gate.Once},
			Items: []string{"new rule in the rules file: {tool: \"*\", then: allow}", "client x may use every action"}}}},
		"loosen": {Version: "1.2.3", Pending: []Prompt{loosen("a-7", "edi\u202etor", "hosts may call their own models again (host_llm: allow)")}},
		"models-denied": {Version: "1.2.3", Working: []string{"claude"}, Models: Models{Denied: true, By: "the tray",
			Hosts: []ModelHost{{"claude-code", true}, {"omp", true}}}},
		"models-nobody": {Version: "1.2.3", Models: Models{Denied: true, By: "configuration"}},
		"models-uncovered": {Version: "1.2.3", Working: []string{"claude"}, Models: Models{Denied: true, By: "client editor",
			Hosts: []ModelHost{{"claude-code", true}, {"o\u202emp", false}, {"pi", true}}}},
		"models-late": {Version: "1.2.3", Models: Models{By: "the tray, allowed by the person at the tray",
			Hosts: []ModelHost{{"omp", true}, {"pi", false}}}},
		"page": {Version: "1.2.3", Pending: []Prompt{{ID: "a-5", Kind: gate.AskPage, Choices: []string{"17", "42", "80"}, Left: time.Minute}}},
		"many": many,
		"rules": {Version: "1.2.3", Login: Login{Known: true, On: true}, Rules: []Rule{
			{Key: "g-1", Text: `client "claude" may run "bash" of host "omp"`, Until: noon.Add(15 * time.Minute), Left: 14*time.Minute + time.Second},
			{Key: "g-2", Text: `client "claude" may run "_x\u202e" of host "omp"`, Lasts: "while its connection lives"},
			{Key: "abc", Text: `{tool: "bash", then: deny}`},
			{Key: "def", Text: `{tool: "*", then: ask}`, Fixed: true}}},
		"refused": {Version: "1.2.3", Login: Login{Known: true}, Requests: []tally.Kind{
			{What: "/activity/answer", Said: "POST", Why: "this page may not answer", Count: 3, Last: noon},
			{What: "status on the control socket", Count: 9, Last: noon},
			{What: "another verb on the control socket", Why: "there is no such verb", Said: "appro\u202eve", Count: 1, Last: noon}}},
		"nasty": {Version: "1.2.3", Pending: []Prompt{call("a-6", "evil\u202e\n", "_rm\x1b[2J", `{"`+strings.Repeat("k", 300)+`":"\u202ehidden\u0007","b":[1,2,3,4,5,6,7,8,9,10,11,12]}`, true, "")}},
	}
}

// TestMenu holds the whole menu in every state.
func TestMenu(t *testing.T) {
	for name, s := range states() {
		m := BuildMenu(s)
		icon, _ := s.Status()
		golden(t, "menu/"+name+".txt", "icon: "+icon.String()+"\n"+render(m))
	}
}

// section is what a section of a menu holds.
func section(m Menu, name string) []Item {
	return m[slices.IndexFunc(m, func(s Section) bool { return s.Name == name })].Items
}

// render writes a menu as a person sees it.
func render(m Menu) string {
	var b strings.Builder
	for _, s := range m {
		if s.Line {
			b.WriteString("----\n")
		}
		for _, it := range s.Items {
			renderItem(&b, it, "")
		}
	}
	return b.String()
}

func renderItem(b *strings.Builder, it Item, indent string) {
	b.WriteString(indent + it.Label)
	if it.Checked {
		b.WriteString("  ✓")
	}
	if it.Disabled {
		b.WriteString("  (off)")
	}
	if a := it.Action; a.Verb != "" {
		fmt.Fprintf(b, "  → %s", a.Verb)
		for _, s := range []string{a.Arg, a.Prompt, a.Answer.Choice} {
			if s != "" {
				b.WriteString(" " + s)
			}
		}
		if a.Verb == VerbAnswer {
			fmt.Fprintf(b, " %s", [...]string{"deny", "once", "connection", "15m", "always"}[a.Answer.Scope])
		}
	}
	b.WriteString("\n")
	for _, s := range it.Sub {
		renderItem(b, s, indent+"    ")
	}
}

// TestMenuShape: every state has the same sections and keeps within their room,
// so that a renderer can make all places up front, and nothing that a program
// said gets through as it is.
func TestMenuShape(t *testing.T) {
	shape := BuildMenu(State{})
	for name, s := range states() {
		m := BuildMenu(s)
		if len(m) != len(shape) {
			t.Fatalf("%s: %d sections", name, len(m))
		}
		for i, sec := range m {
			if sec.Name != shape[i].Name || sec.Room != shape[i].Room || sec.SubRoom != shape[i].SubRoom || sec.Line != shape[i].Line {
				t.Errorf("%s: section %q differs", name, sec.Name)
			}
			if len(sec.Items) > sec.Room {
				t.Errorf("%s: %d items in %q, which has room for %d", name, len(sec.Items), sec.Name, sec.Room)
			}
			keys := map[string]bool{}
			for _, it := range sec.Items {
				if keys[it.Key] || it.Key == "" {
					t.Errorf("%s: key %q in %q", name, it.Key, sec.Name)
				}
				keys[it.Key] = true
				if len(it.Sub) > sec.SubRoom {
					t.Errorf("%s: %q has %d sub-items, room for %d", name, it.Label, len(it.Sub), sec.SubRoom)
				}
				for _, x := range append(slices.Clone(it.Sub), it) {
					if strings.ContainsFunc(x.Label, func(r rune) bool { return unicode.IsControl(r) || unicode.Is(unicode.Cf, r) }) {
						t.Errorf("%s: %q", name, x.Label)
					}
					if len(x.Label) > 400 {
						t.Errorf("%s: %d bytes of label", name, len(x.Label))
					}
				}
			}
		}
		// A line before a section with nothing in it would be two in a row.
		for i, sec := range m {
			if sec.Line && len(sec.Items) == 0 {
				t.Errorf("%s: a line before nothing at %d", name, i)
			}
		}
	}
}

// TestMenuOffersEveryVerdict: what a prompt offers is in the menu, and nothing
// else.
func TestMenuOffersEveryVerdict(t *testing.T) {
	for _, tt := range []struct {
		p    Prompt
		want []gate.Scope
	}{
		{call("a", "c", "t", "{}", true, "k"), []gate.Scope{gate.Once, gate.ForConn, gate.For15m, gate.Always, gate.Deny}},
		{call("a", "c", "t", "{}", false, "k"), []gate.Scope{gate.Once, gate.ForConn, gate.For15m, gate.Deny}},
		{call("a", "c", "t", "{}", false, ""), []gate.Scope{gate.Once, gate.For15m, gate.Deny}},
		{Prompt{Kind: gate.AskResume, Scopes: []gate.Scope{gate.Deny, gate.Once}}, []gate.Scope{gate.Once, gate.Deny}},
		{Prompt{Kind: gate.AskAccept, Scopes: []gate.Scope{gate.Deny, gate.Once}}, []gate.Scope{gate.Once, gate.Deny}},
		{loosen("a", "c", "more"), []gate.Scope{gate.Once, gate.Deny}},
		{Prompt{Kind: gate.AskPage, Choices: []string{"1"}}, []gate.Scope{gate.Once, gate.Deny}},
	} {
		var got []gate.Scope
		for _, it := range answers(&tt.p) {
			if it.Action.Verb == VerbAnswer {
				got = append(got, it.Action.Answer.Scope)
			}
		}
		if !slices.Equal(got, tt.want) {
			t.Errorf("%+v: %v, want %v", tt.p, got, tt.want)
		}
	}
}

func TestCondensed(t *testing.T) {
	long := strings.Repeat("x", 60)
	for _, tt := range []struct{ in, want string }{
		{``, "(no arguments)"},
		{`{}`, "{}"},
		{`{"a":1}`, `{"a": 1}`},
		{`{"actions":[{"type":"click","x":1},{"type":"drag","path":[[1,2],[3,4]]}]}`, "  \"actions\": [\n    {\"type\": \"click\", \"x\": 1},\n    {\"type\": \"drag\", \"path\": [[1, 2], [3, 4]]}"},
		{`{"actions":[{"type":"click","x":1},{"type":"type","text":"` + long[:50] + `"}]}`,
			"  \"actions\": [\n    {\"type\": \"click\", \"x\": 1},\n      \"type\": \"type\",\n      \"text\": \"" + long[:50] + "\""},
		{`["` + long + `","{","}"]`, `  "` + long + "\",\n  \"{\",\n  \"}\""},
	} {
		got := strings.Join(condensed(arguments([]byte(tt.in)), 10), "\n")
		if got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.in, got, tt.want)
		}
	}
	if got := condensed(arguments([]byte("["+strings.Repeat(`"`+long+`",`, 20)+"1]")), 5); len(got) != 5 || got[4] != "… 17 more lines, see Details" {
		t.Errorf("%q", got)
	}
}

func TestRoughly(t *testing.T) {
	for d, want := range map[time.Duration]string{
		time.Millisecond: "15 s left", 15 * time.Second: "15 s left", 16 * time.Second: "30 s left",
		59 * time.Second: "1 min left", 106 * time.Second: "2 min left", 105 * time.Second: "1 min 45 s left",
	} {
		if got := roughly(d); got != want {
			t.Errorf("%s: %q, want %q", d, got, want)
		}
	}
}
