package ui

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
)

// TestClientConfig holds the configuration for every kind of client, with a
// token and without.
func TestClientConfig(t *testing.T) {
	for name, c := range map[string]ClientConfig{
		"default": {Command: "/opt/draw bridge/drawbridge", Args: ConnectArgs("", ""), URL: "ws://127.0.0.1:7317/mcp"},
		"editor":  {Command: "/usr/bin/drawbridge", Args: ConnectArgs("editor", "/home/p/it's"), URL: "ws://127.0.0.1:7317/mcp", Token: "TOKEN"},
	} {
		for _, k := range ClientKinds {
			text, where, err := c.Text(k.Name)
			if err != nil || where == "" {
				t.Fatal(err)
			}
			golden(t, "clients/"+k.Name+"-"+name+".txt", text)
			if strings.Contains(text, "TOKEN") != (c.Token != "") {
				t.Errorf("%s: %s", k.Name, text)
			}
			switch k.Name {
			case "claude-code":
				out, err := exec.Command("sh", "-c", "set -- "+strings.TrimPrefix(strings.TrimSpace(text), "claude mcp add-json drawbridge ")+"; printf %s \"$1\"").Output()
				if err != nil || !json.Valid(out) {
					t.Errorf("%s: a shell reads %q: %v", k.Name, out, err)
				}
			case "codex":
			case "goose":
				var v map[string]any
				if err := yaml.Unmarshal([]byte(text), &v); err != nil {
					t.Errorf("%s: %v", k.Name, err)
				}
			default:
				if !json.Valid([]byte(text)) {
					t.Errorf("%s: no JSON", k.Name)
				}
			}
		}
	}
	if _, _, err := (ClientConfig{}).Text("emacs"); err == nil || !strings.Contains(err.Error(), "claude-code, claude-desktop, codex") {
		t.Error(err)
	}
}
