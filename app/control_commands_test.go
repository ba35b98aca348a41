package main

import (
	"encoding/json"
	"strings"
	"testing"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/hostllm"
)

// TestTerminalIsSafe has hosts and files say what would write over the
// terminal of the person who looks.
func TestTerminalIsSafe(t *testing.T) {
	const evil = "\x1b[2Jevil\u202e\nagent  pid 1"
	definition, err := json.Marshal(map[string]string{"name": evil, "description": "\x1b[2Jevil\u202e"})
	if err != nil {
		t.Fatal(err)
	}
	l := listing{Tools: []listed{{Host: "h", Definition: definition}}}
	for name, write := range map[string]func(*strings.Builder) error{
		"status": func(b *strings.Builder) error { return writeStatus(b, bridge.Status{Warnings: []string{evil}}) },
		"tools":  func(b *strings.Builder) error { return writeTools(b, l) },
		"rules": func(b *strings.Builder) error {
			return writeRules(b, ruleList{Rules: listRules([]gate.Rule{{Tool: "a\u202e\u200b", Then: gate.ThenAllow}}, nil, nil), Warnings: []string{evil}})
		},
		"config": func(b *strings.Builder) error { return writeConfig(b, "hosts:\n  \x1b\u202e\u200b: {}\n") },
		"host-llm": func(b *strings.Builder) error {
			return writeHostLLM(b, hostllm.Report{By: evil, Hosts: []hostllm.HostReport{{Residuals: []string{evil}}}})
		},
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if s := b.String(); !strings.Contains(s, "⟨U+001B⟩") || strings.ContainsAny(s, "\x1b\u202e\u200b") || strings.Contains(s, "\nagent  pid 1") {
			t.Errorf("%s: %q", name, s)
		}
	}
}
