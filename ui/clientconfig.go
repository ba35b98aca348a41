package ui

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// ClientKind is a program that speaks MCP and has a configuration of its own
// form.
type ClientKind struct {
	Name  string // as in client config --for
	Title string
	Where string // where the text belongs
	text  func(ClientConfig) string
}

// ClientKinds are the programs that we know the form of.
var ClientKinds = []ClientKind{
	{"claude-code", "Claude Code", "a shell: it adds the server for this project", claudeCode},
	{"claude-desktop", "Claude Desktop", "claude_desktop_config.json (Settings, Developer, Edit Config)", mcpServers},
	{"codex", "Codex CLI", "~/.codex/config.toml", codex},
	{"gemini", "Gemini CLI", "~/.gemini/settings.json", mcpServers},
	{"vscode", "VS Code", ".vscode/mcp.json", vscode},
	{"cursor", "Cursor", "~/.cursor/mcp.json", mcpServers},
	{"pi", "pi", "~/.pi/agent/mcp.json", mcpServers},
	{"omp", "omp", ".omp/mcp.json", mcpServers},
	{"goose", "goose", "~/.config/goose/config.yaml", goose},
}

// ClientConfig is what a client must know to reach us: it starts Command, our
// stdio end.
type ClientConfig struct {
	Command string
	Args    []string
	// URL and Token are for clients that speak websocket; Token is in the
	// environment of the others. Both may be empty: then the stdio end finds the
	// default client's token itself.
	URL   string
	Token string
}

// TokenEnv is where our stdio end looks for a token.
const TokenEnv = "DRAWBRIDGE_TOKEN"

// Text is the configuration in the form of a kind of client.
func (c ClientConfig) Text(kind string) (text, where string, err error) {
	var names []string
	for _, k := range ClientKinds {
		if k.Name == kind {
			return k.text(c), k.Where, nil
		}
		names = append(names, k.Name)
	}
	return "", "", fmt.Errorf("there is no kind of client %q: one of %s", kind, strings.Join(names, ", "))
}

// server is the entry that most clients share.
type server struct {
	Type    string            `json:"type,omitempty"`
	Command string            `json:"command,omitempty"`
	Args    []string          `json:"args,omitempty"`
	Env     map[string]string `json:"env,omitempty"`
	URL     string            `json:"url,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
}

func (c ClientConfig) stdio(kind string) server {
	s := server{Type: kind, Command: c.Command, Args: c.Args}
	if c.Token != "" {
		s.Env = map[string]string{TokenEnv: c.Token}
	}
	return s
}

func mcpServers(c ClientConfig) string {
	return indented(map[string]any{"mcpServers": map[string]any{"drawbridge": c.stdio("")}})
}

func vscode(c ClientConfig) string {
	return indented(map[string]any{"servers": map[string]any{"drawbridge": c.stdio("stdio")}})
}

// claudeCode takes the websocket, which only this client speaks, when there is a
// token to send.
func claudeCode(c ClientConfig) string {
	s := c.stdio("stdio")
	if c.URL != "" && c.Token != "" {
		s = server{Type: "ws", URL: c.URL, Headers: map[string]string{"Authorization": "Bearer " + c.Token}}
	}
	return "claude mcp add-json drawbridge " + shellQuote(strings.TrimSpace(compact(s))) + "\n"
}

func codex(c ClientConfig) string {
	var b strings.Builder
	b.WriteString("[mcp_servers.drawbridge]\n")
	fmt.Fprintf(&b, "command = %s\n", quoted(c.Command))
	list := make([]string, len(c.Args))
	for i, a := range c.Args {
		list[i] = quoted(a)
	}
	fmt.Fprintf(&b, "args = [%s]\n", strings.Join(list, ", "))
	// A person decides about calls, and that takes longer than the 60 s that
	// this client waits by itself.
	b.WriteString("tool_timeout_sec = 180\n")
	if c.Token != "" {
		fmt.Fprintf(&b, "\n[mcp_servers.drawbridge.env]\n%s = %s\n", TokenEnv, quoted(c.Token))
	}
	return b.String()
}

func goose(c ClientConfig) string {
	var b strings.Builder
	b.WriteString("extensions:\n  drawbridge:\n    name: drawbridge\n    type: stdio\n    enabled: true\n    timeout: 180\n")
	fmt.Fprintf(&b, "    cmd: %s\n    args:\n", quoted(c.Command))
	for _, a := range c.Args {
		fmt.Fprintf(&b, "      - %s\n", quoted(a))
	}
	if c.Token != "" {
		fmt.Fprintf(&b, "    envs:\n      %s: %s\n", TokenEnv, quoted(c.Token))
	}
	return b.String()
}

func indented(v any) string { return encoded(v, "  ") }

func compact(v any) string { return encoded(v, "") }

func encoded(v any, indent string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	if err := e.Encode(v); err != nil { // maps and strings always encode
		panic(err)
	}
	return b.String()
}

// quoted is a JSON string, which TOML and YAML read too.
func quoted(s string) string { return strings.TrimSpace(compact(s)) }

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// ConnectArgs are the arguments of our stdio end for a client. state is the
// state directory where it is not the platform's.
func ConnectArgs(client, state string) []string {
	args := []string{"connect"}
	if client != "" {
		args = append(args, "--client", client)
	}
	if state != "" {
		args = append(args, "--state", state)
	}
	return args
}
