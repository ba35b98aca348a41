package ui

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/gate"
)

// TestPanelView: what each kind of prompt says, and that the last answer denies.
func TestPanelView(t *testing.T) {
	call := []gate.Scope{gate.Deny, gate.Once, gate.ForConn, gate.For15m, gate.Always}
	other := []gate.Scope{gate.Deny, gate.Once}
	for name, c := range map[string]struct {
		p                  Prompt
		title, about, text string
		rule               bool
		answers            []string
	}{
		"call": {Prompt{Client: "claude", Tool: "bash", Host: "om\u202ep", Args: []string{"{", `  "a": 1`, "}"}, Scopes: call, Rule: "{tool: bash}", Again: true},
			"claude wants to run bash", "You allowed it; the screen around its targets has changed since. A tool of om⟨U+202E⟩p.", "{\n  \"a\": 1\n}", true,
			[]string{"Allow once", "Allow bash for this connection", "Allow bash for 15 minutes", "Always: write that rule", "Deny"}},
		"call without a connection": {Prompt{Client: "claude", Tool: "bash", Host: "omp", Args: []string{"{}"}, Scopes: []gate.Scope{gate.Deny, gate.Once, gate.For15m}},
			"claude wants to run bash", "A tool of omp.", "{}", false, []string{"Allow once", "Allow bash for 15 minutes", "Deny"}},
		"resume": {Prompt{Kind: gate.AskResume, Scopes: other}, "Everything is paused", "Go on?", "", false, []string{"Go on", "Stay paused"}},
		"accept": {Prompt{Kind: gate.AskAccept, Scopes: other, Items: []string{"more\nis", "allowed"}},
			"Allow more than before?", "2 changes. A yes counts once the end of the text was in view.", "1. more⟨U+000A⟩is\n\n2. allowed", false, []string{"Accept all of this", "Keep it as it is"}},
		"loosen": {Prompt{Kind: gate.AskLoosen, Scopes: other, Client: "claude", Items: []string{"models"}},
			"claude asks to allow more", "1 change. A yes counts once the end of the text was in view.", "models", false, []string{"Allow this", "Keep it as it is"}},
		"page": {Prompt{Kind: gate.AskPage, Scopes: other, Choices: []string{"17", "42"}},
			"A page asks to answer for you", "If you opened it: which number does it show?", "", false, []string{"17", "42", "None of these"}},
	} {
		v := newPanelView(&c.p)
		var labels []string
		for _, a := range v.answers {
			labels = append(labels, a.label)
		}
		if v.title != c.title || v.about != c.about || v.text != c.text || (v.rule != "") != c.rule || !slices.Equal(labels, c.answers) {
			t.Errorf("%s: %+v", name, v)
		}
		if last := v.answers[len(v.answers)-1].answer; last != (gate.Answer{}) {
			t.Errorf("%s: the last answer is %+v", name, last)
		}
	}
}

func TestPanelStanding(t *testing.T) {
	now := time.Now()
	for _, c := range []struct {
		left time.Duration
		more int
		want string
	}{
		{2 * time.Minute, 0, "2:00 left"}, {61*time.Second - time.Millisecond, 1, "1:01 left, and 1 more question"},
		{-time.Second, 12, "0:00 left, and 12 more questions"},
	} {
		if got := standing(now.Add(c.left), now, c.more); got != c.want {
			t.Errorf("%s: %q, want %q", c.left, got, c.want)
		}
	}
	if got := standing(time.Time{}, now, 0); got != "It stands until you answer" {
		t.Error(got)
	}
}

// TestWholeArguments: a place that can be scrolled shows what others leave out.
func TestWholeArguments(t *testing.T) {
	long := strings.Repeat("x", 5000)
	args, err := json.Marshal(map[string]any{"a": long, "b": make([]int, 500)})
	if err != nil {
		t.Fatal(err)
	}
	p := &gate.Pending{Request: &gate.Request{Args: args, Extra: json.RawMessage(`{"answers":[1]}`)}}
	text := strings.Join(argumentLines(p, whole), "\n")
	if !strings.Contains(text, long) || strings.Contains(text, "left out") || !strings.Contains(text, "sends along") {
		t.Errorf("%.200s", text)
	}
	if short := strings.Join(argumentLines(p, brief), "\n"); !strings.Contains(short, "characters left out") || !strings.Contains(short, "lines left out") {
		t.Errorf("%.200s", short)
	}
}

func TestOnboardingView(t *testing.T) {
	list := func(states ...string) (out []Grant) {
		for i, s := range states {
			out = append(out, Grant{Title: string(rune('A' + i)), Purpose: "For it.", State: s, Detail: "Do this."})
		}
		return out
	}
	for name, c := range map[string]struct {
		grants   []Grant
		measures []Measure
		measured bool
		err      error
		title    string
		step     int
		done     bool
		result   string
	}{
		"nothing given": {list(missing, missing), nil, false, nil, "0 of 2 grants given. Next: A", 0, false, ""},
		"one of two":    {list(granted, "unknown"), nil, false, nil, "1 of 2 grants given. Next: B", 1, false, ""},
		"the settings do not open": {list(missing), nil, false, errors.New("no settings"),
			"0 of 1 grant given. Next: A", 0, false, "✗ no settings"},
		"all given": {list(granted), []Measure{{Title: "wheel", State: "running"}, {Title: "typing"}}, false, nil,
			"Everything is granted. This Mac is being measured; leave mouse and keyboard alone.", -1, false, "… wheel\n· typing"},
		"measured": {list(granted), []Measure{{Title: "wheel", State: "done", Detail: "as everywhere"}}, true, nil,
			"Drawbridge is ready.", -1, true, "✓ wheel: as everywhere"},
		"not measured": {list(granted), []Measure{{Title: "wheel", State: "failed"}}, true, errors.New("it did not turn"),
			"Everything is granted, and something could not be measured.", -1, true, "✗ wheel\n✗ it did not turn"},
		"taken away again": {list(missing), nil, true, nil, "0 of 1 grant given. Next: A", 0, false, ""},
	} {
		v := newOnboardingView(c.grants, c.measures, c.measured, c.err)
		if v.title != c.title || v.step != c.step || v.done != c.done || v.result != c.result || len(v.grants) != len(c.grants) {
			t.Errorf("%s: %+v", name, v)
		}
	}
	v := newOnboardingView(list(granted, missing, "unknown"), nil, false, nil)
	for i, want := range []string{"✓ given", "not given yet", "cannot be told yet"} {
		if v.grants[i].state != want || v.grants[i].text != "For it. Do this." {
			t.Errorf("%+v", v.grants[i])
		}
	}
}
