package hosts

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/host"
	"drawbridge/bridge/token"
)

// servers are two of the protocol's own example servers, as child hosts.
var servers = program{
	name:     "servers",
	packages: []string{"@modelcontextprotocol/server-everything@2026.8.31", "@modelcontextprotocol/server-filesystem@2026.8.31"},
}

// bearer adds the token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestServers runs server-everything and server-filesystem as child hosts and
// lists and calls their tools with the official SDK's client, in both eras.
func TestServers(t *testing.T) {
	cache := install(t, servers)
	files := t.TempDir()
	if err := os.WriteFile(filepath.Join(files, "a.txt"), []byte("from the file"), 0o600); err != nil {
		t.Fatal(err)
	}
	bin := func(name string) string { return filepath.Join(cache, "node_modules", ".bin", name) }
	state := t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	store, err := token.Open(state)
	if err != nil {
		t.Fatal(err)
	}
	client, err := store.Add("tester", token.Client, "")
	if err != nil {
		t.Fatal(err)
	}
	log := zerolog.New(zerolog.NewTestWriter(t))
	var server *bridge.Server
	set, err := host.NewSet(host.Options{Log: log, Version: "test", Changed: func() { server.ToolsChanged() }, Hosts: map[string]host.Config{
		"everything": {Command: bin("mcp-server-everything"), Args: []string{"stdio"}},
		"files":      {Command: bin("mcp-server-filesystem"), Args: []string{files}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	server = bridge.New(bridge.Options{Log: log, Version: "test", Hosts: set, Gate: &openGate{}, Audit: &ledger{}, Tokens: store})
	set.Start()
	web := httptest.NewServer(server.Handler())
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		server.Close(ctx)
		set.Close()
		web.Close()
	})
	end := time.Now().Add(patience)
	for ready := 0; ready < 2; {
		ready = 0
		for _, st := range set.Status() {
			if st.State == string(host.StateReady) {
				ready++
			}
		}
		if time.Now().After(end) {
			t.Fatalf("waited %s in vain: %+v %v", patience, set.Status(), set.Warnings())
		}
		time.Sleep(20 * time.Millisecond)
	}
	for _, era := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(era, func(t *testing.T) {
			progress := make(chan float64, 64)
			c := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
				ProgressNotificationHandler: func(_ context.Context, q *mcp.ProgressNotificationClientRequest) { progress <- q.Params.Progress },
			})
			session, err := c.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(client)}}, &mcp.ClientSessionOptions{ProtocolVersion: era})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			have := map[string]bool{}
			for tool, err := range session.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				have[tool.Name] = true
			}
			for _, want := range []string{"everything_echo", "everything_get-sum", "files_read_text_file", "files_write_file", "files_list_directory"} {
				if !have[want] {
					t.Errorf("no tool %s among %v", want, have)
				}
			}
			call := func(name string, token any, args map[string]any) string {
				t.Helper()
				p := &mcp.CallToolParams{Name: name, Arguments: args}
				if token != nil {
					p.SetProgressToken(token)
				}
				r, err := session.CallTool(t.Context(), p)
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				text := fmt.Sprintf("isError %t:", r.IsError)
				for _, c := range r.Content {
					if x, ok := c.(*mcp.TextContent); ok {
						text += " " + x.Text
					}
				}
				return text
			}
			if got := call("everything_echo", nil, map[string]any{"message": "héllo"}); got != "isError false: Echo: héllo" {
				t.Errorf("echo: %s", got)
			}
			if got := call("files_read_text_file", nil, map[string]any{"path": filepath.Join(files, "a.txt")}); !strings.Contains(got, "from the file") {
				t.Errorf("read: %s", got)
			}
			if got := call("files_read_text_file", nil, map[string]any{"path": "/etc/hostname"}); !strings.HasPrefix(got, "isError true") {
				t.Errorf("a file outside: %s", got)
			}
			written := filepath.Join(files, era+".txt")
			call("files_write_file", nil, map[string]any{"path": written, "content": "🌉"})
			if b, err := os.ReadFile(written); err != nil || string(b) != "🌉" {
				t.Errorf("the file holds %q, %v", b, err)
			}
			call("everything_trigger-long-running-operation", "tok", map[string]any{"duration": 0.2, "steps": 2})
			select {
			case <-progress:
			case <-time.After(patience):
				t.Error("no progress was heard")
			}
		})
	}
}
