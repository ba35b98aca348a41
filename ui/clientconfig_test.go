package ui

import (
	"encoding/json"
	"os"
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
			text := k.Text(c)
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
	if _, err := Kind("emacs"); err == nil || !strings.Contains(err.Error(), "claude-code, claude-desktop, codex") {
		t.Error(err)
	}
}

// TestClientMerge: the entry is put into a file that is there already, of every
// kind of client, and all else in it stays.
func TestClientMerge(t *testing.T) {
	c := ClientConfig{Command: "/usr/bin/drawbridge", Args: ConnectArgs("editor", ""), URL: "ws://127.0.0.1:7317/mcp", Token: "TOKEN"}
	for _, k := range ClientKinds {
		old, err := os.ReadFile("testdata/clients/merge/" + k.Name + ".before")
		if err != nil {
			t.Fatal(err)
		}
		got, err := k.Merge(c, old)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		golden(t, "clients/merge/"+k.Name+".after", string(got))
		if again, err := k.Merge(c, got); err != nil || string(again) != string(got) {
			t.Errorf("%s: merged again, %v:\n%s", k.Name, err, again)
		}
		// As the default client, which needs no token, none is left.
		c := ClientConfig{Command: c.Command, Args: ConnectArgs("", "")}
		if plain, err := k.Merge(c, got); err != nil || strings.Contains(string(plain), "TOKEN") || !strings.Contains(string(plain), "/usr/bin/drawbridge") {
			t.Errorf("%s: without a token, %v:\n%s", k.Name, err, plain)
		}
	}
}
