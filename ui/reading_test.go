package ui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/gate"
)

// acceptances are prompts about one thing and many, long and posing ones.
func acceptances() map[string]*gate.Pending {
	accept := func(texts ...string) *gate.Pending {
		p := &gate.Pending{ID: "a-1", Kind: gate.AskAccept, Since: noon}
		for i, text := range texts {
			p.Items = append(p.Items, gate.Item{Key: fmt.Sprint(i), Text: text})
		}
		return p
	}
	rule := func(tool string) string {
		return "new rule in the rules file: " + gate.Rule{Tool: tool, Then: gate.ThenAllow}.String()
	}
	thirteen := []string{}
	for i := range 12 {
		thirteen = append(thirteen, rule(fmt.Sprintf("harmless_%d", i)))
	}
	thirteen = append(thirteen, rule("*"))
	endless := []string{}
	for i := range 1000 {
		endless = append(endless, rule(fmt.Sprintf("harmless_%d_%s", i, strings.Repeat("x", 50))))
	}
	return map[string]*gate.Pending{
		"three":    accept(rule("*"), "client x may use every action", "tools of host omp that say they are read-only run unasked"),
		"thirteen": accept(thirteen...),
		"long":     accept("host h starts the program \"/bin/echo\" \"" + strings.Repeat("harmless ", 165) + "EVIL " + strings.Repeat("harmless ", 165) + `"`),
		"posing":   accept(rule("соmputer"), "host h starts the program \"/usr/bin/g\u0456t\" \"a\u202eb\" \"http://a.example/?…\"", rule("＊"), rule("x\n4. nothing")),
		"endless":  accept(endless...),
	}
}

// shows tells whether every item of p is to be read in a text, which may be broken
// into lines and columns anywhere.
func shows(text string, p *gate.Pending) bool {
	bare := func(s string) string { return strings.Join(strings.Fields(s), "") }
	text = bare(text)
	return !slices.ContainsFunc(p.Items, func(it gate.Item) bool { return !strings.Contains(text, bare(marked(it.Text))) })
}

// TestAcceptances holds what menu, terminal and panel show of what loosens, and that
// there is a yes only where all of it was shown.
func TestAcceptances(t *testing.T) {
	yes := map[string][]string{
		"menu":     {"three", "thirteen", "long", "posing"},
		"terminal": {"three", "thirteen", "long", "posing"},
		"panel":    {"three", "thirteen", "long", "posing"},
	}
	for name, p := range acceptances() {
		v := NewPrompt(p, noon)
		views := map[string]string{"menu": "", "terminal": "", "panel": ""}
		offered, read := map[string]bool{}, map[string]string{}

		var b strings.Builder
		for _, it := range answers(&v) {
			renderItem(&b, it, "")
			read["menu"] += it.Label
			offered["menu"] = offered["menu"] || it.Action.Verb == VerbAnswer && it.Action.Answer.Scope != gate.Deny
		}
		views["menu"] = b.String()

		sheet := sheetOf(p, 80, 24)
		text := (&Terminal{}).text(p, sheet, "badefo")
		for sheet.more() {
			if slices.Contains(sheet.scopes(p), gate.Once) || strings.Contains(text, "badefo") {
				t.Errorf("%s: the terminal takes a yes before the last page", name)
			}
			sheet.at++
			text = (&Terminal{}).page(p, sheet, "badefo")
			views["terminal"] += text
		}
		sheet.at = 0
		views["terminal"] = (&Terminal{}).text(p, sheet, "badefo") + views["terminal"]
		sheet.at = max(0, len(sheet.pages)-1)
		read["terminal"] = strings.Join(slices.Concat(sheet.pages...), "")
		offered["terminal"] = slices.Contains(sheet.scopes(p), gate.Once)

		panel := newPanelView(&v)
		views["panel"] = strings.Join([]string{panel.title, panel.about, panel.text, ""}, "\n")
		for _, a := range panel.answers {
			views["panel"] += fmt.Sprintf("[%s]\n", a.label)
			offered["panel"] = offered["panel"] || a.answer.Scope != gate.Deny
		}
		read["panel"] = panel.text
		for surface, text := range views {
			golden(t, surface+"/accept-"+name+".txt", text)
			if want := slices.Contains(yes[surface], name); offered[surface] != want {
				t.Errorf("%s, %s: a yes is offered: %v", name, surface, offered[surface])
			}
			if offered[surface] && !shows(read[surface], p) {
				t.Errorf("%s, %s: a yes is offered, and not all is shown:\n%s", name, surface, text)
			}
		}
		page := strings.Join(newPagePrompt(p, noon).Lines, "\n")
		if name != "endless" && !shows(page, p) {
			t.Errorf("%s: the page does not show all:\n%s", name, page)
		}
	}
}

// TestMenuTooLong: more than the menu has places for is not shown in part, and there
// is no yes; the terminal has it all.
func TestMenuTooLong(t *testing.T) {
	for n, want := range map[int]bool{mostAccept: true, mostAccept + 1: false} {
		p := &gate.Pending{Kind: gate.AskAccept, Items: make([]gate.Item, n)}
		for i := range p.Items {
			p.Items[i].Text = fmt.Sprint("change ", i)
		}
		v := NewPrompt(p, noon)
		items := answers(&v)
		got := slices.ContainsFunc(items, func(it Item) bool { return it.Action.Answer.Scope == gate.Once })
		if got != want || !want && (len(items) > 5 || !strings.Contains(items[1].Label, "at the terminal")) {
			t.Errorf("%d lines: %+v", n, items)
		}
		if s := sheetOf(p, 80, 24); !s.whole {
			t.Errorf("%d lines are too much for the terminal", n)
		}
	}
}

// TestAlwaysIsShownWhole: the rule that Always writes is shown to its last character
// where Always is offered.
func TestAlwaysIsShownWhole(t *testing.T) {
	for n, want := range map[int]bool{10: true, 5000: false} {
		rule := gate.Rule{Tool: strings.Repeat("x", n) + "*", Then: gate.ThenAllow}
		p := &gate.Pending{Request: &gate.Request{Client: "c", Tool: "t"}, Rule: &rule, Deadline: noon.Add(time.Minute)}
		v := NewPrompt(p, noon)
		text, offered := "", false
		for _, it := range answers(&v) {
			text += strings.TrimSpace(it.Label)
			offered = offered || it.Action.Answer.Scope == gate.Always
		}
		bare := strings.ReplaceAll(strings.ReplaceAll(text, " ", ""), "\n", "")
		if offered != want || offered && !strings.Contains(bare, strings.ReplaceAll(rule.String(), " ", "")) {
			t.Errorf("%d: %v, %.300s", n, offered, text)
		}
		panel := newPanelView(&v)
		if got := slices.ContainsFunc(panel.answers, func(a verdict) bool { return a.answer.Scope == gate.Always }); got != want || got != (panel.rule != "") {
			t.Errorf("panel, %d: %v", n, got)
		}
	}
}

func TestMarked(t *testing.T) {
	for in, want := range map[string]string{
		"computer *":            "computer *",
		"соmputer, x":           `соmputer⟨\u0441\u043emputer⟩, x`,
		`{tool: "＊"}`:           `{tool: "＊⟨\uff0a⟩"}`,
		"a\u202eb":              "a⟨U+202E⟩b",
		"é\u200b\xff":           `é⟨U+200B⟩⟨0xFF⟩⟨\u00e9\u200b\xff⟩`,
		"its tools: h_…":        "its tools: h_…",
		"x⟨y":                   "x⟨U+27E8⟩y",
		"/home/josé/bin/a -v":   `/home/josé/bin/a⟨/home/jos\u00e9/bin/a⟩ -v`,
		"tools with \u2217glob": `tools with ∗glob⟨\u2217glob⟩`,
	} {
		if got := marked(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}

// FuzzWrapped: nothing is lost between lines, and each is within its width.
func FuzzWrapped(f *testing.F) {
	f.Add("one two three four", 7)
	f.Add("соmputer 漢字漢字漢字", 5)
	f.Add(strings.Repeat(" ", 50), 9)
	f.Fuzz(func(t *testing.T, s string, width int) {
		if width < 5 || width > 200 {
			return
		}
		s = marked(s)
		lines := wrapped(s, "  ", width)
		for i, l := range lines {
			if columnsIn(l) > width {
				t.Errorf("line %d is wider than %d: %q", i, width, l)
			}
			if i > 0 {
				lines[i] = strings.TrimPrefix(l, "  ")
			}
		}
		if got := strings.Join(lines, ""); got != s {
			t.Errorf("%q became %q", s, got)
		}
	})
}
