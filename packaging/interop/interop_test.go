package interop

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"drawbridge/packaging/agent"
	"drawbridge/packaging/npm"
)

// The two revisions that stand for the two eras.
const (
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

// running is the one agent of all tests here: they only look.
var running *agent.Agent

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "interop")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	bin, err := agent.Build(ctx, dir)
	if err != nil {
		return 1, err
	}
	running, err = agent.Start(ctx, agent.Options{Bin: bin, State: filepath.Join(dir, "state"), Args: []string{"--backend", "simulated", "--allow", "computer"}})
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, running.Stop()) }()
	return m.Run(), nil
}

// The one call that every client makes.
const screenshot = `{"actions":[{"type":"screenshot"}]}`

func TestGoSDK(t *testing.T) {
	authorized := &http.Client{Transport: bearer{running.Token, http.DefaultTransport}}
	command, args := running.Connect()
	for _, version := range []string{legacy, modern} {
		for _, c := range []struct {
			name      string
			transport func() mcp.Transport
		}{
			{"websocket", func() mcp.Transport { return &socket{url: running.WebSocket(), token: running.Token} }},
			{"http", func() mcp.Transport {
				return &mcp.StreamableClientTransport{Endpoint: running.HTTP(), HTTPClient: authorized}
			}},
			{"stdio", func() mcp.Transport { return &mcp.CommandTransport{Command: exec.Command(command, args...)} }},
		} {
			t.Run(version+"/"+c.name, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
				defer cancel()
				client := mcp.NewClient(&mcp.Implementation{Name: "go-sdk", Version: "1"}, nil)
				session, err := client.Connect(ctx, c.transport(), &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				if got := session.InitializeResult().ProtocolVersion; got != version {
					t.Errorf("negotiated %s, want %s", got, version)
				}
				tools, err := session.ListTools(ctx, nil)
				if err != nil {
					t.Fatal(err)
				}
				var names []string
				for _, tool := range tools.Tools {
					names = append(names, tool.Name)
				}
				res, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "computer", Arguments: json.RawMessage(screenshot)})
				if err != nil {
					t.Fatal(err)
				}
				raw, err := json.Marshal(res)
				if err != nil {
					t.Fatal(err)
				}
				check(t, names, raw)
			})
		}
	}
}

// TestTypeScript runs the official TypeScript clients, each as a Node program of
// its own in testdata.
func TestTypeScript(t *testing.T) {
	tools := npm.Require(t)
	command, args := running.Connect()
	overHTTP := map[string]any{"url": running.HTTP(), "token": running.Token}
	overStdio := map[string]any{"command": command, "commandArgs": args}
	for _, c := range []struct {
		name, script string
		how          map[string]any
		mode         any
		version      string // expected; empty where the client does not tell
	}{
		{"v1/websocket", "v1-websocket.mjs", map[string]any{"url": running.WebSocket(), "token": running.Token}, nil, ""},
		{"v1/stdio", "v1-stdio.mjs", overStdio, nil, ""},
		{"v2/http/legacy", "v2.mjs", overHTTP, "legacy", legacy},
		{"v2/http/auto", "v2.mjs", overHTTP, "auto", modern},
		{"v2/http/modern", "v2.mjs", overHTTP, map[string]string{"pin": modern}, modern},
		{"v2/stdio/legacy", "v2.mjs", overStdio, "legacy", legacy},
		{"v2/stdio/auto", "v2.mjs", overStdio, "auto", modern},
	} {
		t.Run(c.name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
			defer cancel()
			task := map[string]any{"tool": "computer", "args": json.RawMessage(screenshot), "mode": c.mode}
			for k, v := range c.how {
				task[k] = v
			}
			got := runNode(ctx, t, tools, c.script, task)
			if got.Server != "drawbridge" || got.Version != c.version {
				t.Errorf("spoke %q with %q, want %q with drawbridge", got.Version, got.Server, c.version)
			}
			check(t, got.Tools, got.Result)
		})
	}
}

// report is what the scripts in testdata print.
type report struct {
	Server, Version string
	Tools           []string
	Result          json.RawMessage
}

func runNode(ctx context.Context, t *testing.T, tools npm.Tools, script string, task any) report {
	t.Helper()
	source, err := os.Open(filepath.Join("testdata", script))
	if err != nil {
		t.Fatal(err)
	}
	defer source.Close()
	env, err := json.Marshal(task)
	if err != nil {
		t.Fatal(err)
	}
	// From standard input, a module's imports are looked up from the working
	// directory, which is where the packages are.
	cmd := exec.CommandContext(ctx, tools.Node, "--input-type=module")
	cmd.Dir, cmd.Stdin = tools.Dir, source
	cmd.Env = append(os.Environ(), "DRAWBRIDGE_TEST="+string(env))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, &stderr)
	}
	var r report
	if err := json.Unmarshal(out, &r); err != nil {
		t.Fatalf("%s printed %.300q: %v", script, out, err)
	}
	return r
}

// check looks at what a client got: the tool is listed, and the result holds a
// picture whose own size is the one that the record states.
func check(t *testing.T, tools []string, raw json.RawMessage) {
	t.Helper()
	if !slices.Contains(tools, "computer") {
		t.Errorf("tools listed: %q", tools)
	}
	var res struct {
		IsError bool
		Content []struct{ Type, Text, Data, MimeType string }
		// The rest is the record.
		StructuredContent struct {
			Backend string
			Picture *struct {
				Width, Height int
				Mime          string
			}
			Executed []struct{ Type, Status string }
		}
	}
	if err := json.Unmarshal(raw, &res); err != nil {
		t.Fatalf("result %.300s: %v", raw, err)
	}
	record := res.StructuredContent
	if res.IsError || record.Backend != "simulated" || record.Picture == nil {
		t.Fatalf("isError %v, backend %q, picture %v: %.600s", res.IsError, record.Backend, record.Picture, raw)
	}
	if len(record.Executed) != 1 || record.Executed[0].Type != "screenshot" || record.Executed[0].Status != "executed" {
		t.Errorf("executed %+v", record.Executed)
	}
	pictures := 0
	for _, block := range res.Content {
		if block.Type != "image" {
			continue
		}
		pictures++
		data, err := base64.StdEncoding.DecodeString(block.Data)
		if err != nil {
			t.Fatal(err)
		}
		img, err := png.Decode(bytes.NewReader(data))
		if err != nil {
			t.Fatal(err)
		}
		size := img.Bounds().Size()
		if size.X != record.Picture.Width || size.Y != record.Picture.Height || block.MimeType != record.Picture.Mime || block.MimeType != "image/png" {
			t.Errorf("a %s of %v, stated as %+v", block.MimeType, size, *record.Picture)
		}
	}
	if pictures != 1 {
		t.Errorf("%d pictures in the result", pictures)
	}
}

// bearer adds the token to every request.
type bearer struct {
	token string
	next  http.RoundTripper
}

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+b.token)
	return b.next.RoundTrip(r)
}
