package ui

import (
	"fmt"
	"runtime"
	"slices"
	"strings"

	"drawbridge/ui/clientfile"
)

// ClientKind is a program that speaks MCP and has a configuration of its own
// form.
type ClientKind struct {
	Name  string // as in client config --for
	Title string
	Where string // where the text belongs
	// File is the file in which the entry is kept: in the home directory where it
	// begins with ~/, else in the current one.
	File   string
	Format clientfile.Format
	path   []string
	fields func(ClientConfig) clientfile.Fields
}

// ClientKinds are the programs that we know the form of.
var ClientKinds = []ClientKind{
	{"claude-code", "Claude Code", "a shell: it adds the server for this project", "~/.claude.json", clientfile.JSON, servers, websocketOrStdio},
	{"claude-desktop", "Claude Desktop", "claude_desktop_config.json (Settings, Developer, Edit Config)", claudeDesktop(), clientfile.JSON, servers, stdio},
	{"codex", "Codex CLI", "~/.codex/config.toml", "~/.codex/config.toml", clientfile.TOML, []string{"mcp_servers", entryName}, codex},
	{"gemini", "Gemini CLI", "~/.gemini/settings.json", "~/.gemini/settings.json", clientfile.JSON, servers, stdio},
	{"vscode", "VS Code", ".vscode/mcp.json", ".vscode/mcp.json", clientfile.JSON, []string{"servers", entryName}, typedStdio},
	{"cursor", "Cursor", "~/.cursor/mcp.json", "~/.cursor/mcp.json", clientfile.JSON, servers, stdio},
	{"pi", "pi", "~/.pi/agent/mcp.json", "~/.pi/agent/mcp.json", clientfile.JSON, servers, stdio},
	{"omp", "omp", ".omp/mcp.json", ".omp/mcp.json", clientfile.JSON, servers, stdio},
	{"goose", "goose", "~/.config/goose/config.yaml", "~/.config/goose/config.yaml", clientfile.YAML, []string{"extensions", entryName}, goose},
}

// entryName is what we are called in other programs' configuration.
const entryName = "drawbridge"

var servers = []string{"mcpServers", entryName}

// claudeDesktop is where that program keeps its configuration.
func claudeDesktop() string {
	const name = "/Claude/claude_desktop_config.json"
	if runtime.GOOS == "darwin" {
		return "~/Library/Application Support" + name
	}
	return "~/.config" + name
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

// Kind finds a kind of client by its name.
func Kind(name string) (ClientKind, error) {
	var names []string
	for _, k := range ClientKinds {
		if k.Name == name {
			return k, nil
		}
		names = append(names, k.Name)
	}
	return ClientKind{}, fmt.Errorf("there is no kind of client %q: one of %s", name, strings.Join(names, ", "))
}

// Text is the configuration in the form of this kind of client.
func (k ClientKind) Text(c ClientConfig) string {
	if k.Name == "claude-code" { // its own command is the way that it recommends
		return "claude mcp add-json " + entryName + " " + shellQuote(clientfile.Line(k.fields(c))) + "\n"
	}
	text, err := k.Merge(c, nil)
	if err != nil { // there is nothing to go wrong with
		panic(err)
	}
	return string(text)
}

// Merge puts the entry into the content of the client's file.
func (k ClientKind) Merge(c ClientConfig, old []byte) ([]byte, error) {
	return clientfile.Merge(k.Format, old, clientfile.Entry{Path: k.path, Fields: k.fields(c), Not: instead(k.fields(c))})
}

// instead are the fields of the other ways to reach a server, and a token's that
// is not needed any more.
func instead(fields clientfile.Fields) []string {
	not := []string{"type", "command", "cmd", "args", "url", "uri", "httpUrl", "serverUrl", "headers", "bearer_token_env_var"}
	for _, f := range fields {
		not = slices.DeleteFunc(not, func(n string) bool { return n == f.Name })
	}
	return not
}

// command is how a client starts our stdio end. env names the field for the
// environment.
func (c ClientConfig) command(command, env string) clientfile.Fields {
	token := clientfile.Field{Name: TokenEnv, Value: clientfile.Absent{}}
	if c.Token != "" {
		token.Value = c.Token
	}
	return clientfile.Fields{{Name: command, Value: c.Command}, {Name: "args", Value: c.Args}, {Name: env, Value: clientfile.Fields{token}}}
}

func stdio(c ClientConfig) clientfile.Fields { return c.command("command", "env") }

func typedStdio(c ClientConfig) clientfile.Fields {
	return append(clientfile.Fields{{Name: "type", Value: "stdio"}}, stdio(c)...)
}

// websocketOrStdio takes the websocket, which only Claude Code speaks, when there
// is a token to send.
func websocketOrStdio(c ClientConfig) clientfile.Fields {
	if c.URL == "" || c.Token == "" {
		return typedStdio(c)
	}
	return clientfile.Fields{{Name: "type", Value: "ws"}, {Name: "url", Value: c.URL},
		{Name: "headers", Value: clientfile.Fields{{Name: "Authorization", Value: "Bearer " + c.Token}}},
		{Name: "env", Value: clientfile.Fields{{Name: TokenEnv, Value: clientfile.Absent{}}}}}
}

// patience is how many seconds a client shall wait for a call, where it can be
// told: a person decides about calls, and that takes longer than the 60 s that
// clients wait by themselves.
const patience = 180

func codex(c ClientConfig) clientfile.Fields {
	f := c.command("command", "env")
	return slices.Insert(f, 2, clientfile.Field{Name: "tool_timeout_sec", Value: patience, Keep: true})
}

func goose(c ClientConfig) clientfile.Fields {
	return append(clientfile.Fields{
		{Name: "name", Value: entryName}, {Name: "type", Value: "stdio"}, {Name: "enabled", Value: true, Keep: true}, {Name: "timeout", Value: patience, Keep: true},
	}, c.command("cmd", "envs")...)
}

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
