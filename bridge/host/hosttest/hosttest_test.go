package hosttest

import (
	"context"
	"encoding/json"
	"net/http/httptest"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestAgainstSDK holds the scripted host against the official SDK's client, in
// both eras: what it says must be what a real host could say.
func TestAgainstSDK(t *testing.T) {
	for _, era := range []string{Legacy, Modern} {
		t.Run(era, func(t *testing.T) {
			s := &Server{Era: era, PageSize: 1, Call: func(_ context.Context, c *Call) (json.RawMessage, json.RawMessage) {
				if c.Name == "fails" {
					return nil, json.RawMessage(`{"code":-32055,"message":"no"}`)
				}
				return json.RawMessage(`{"content":[{"type":"text","text":"done"}]}`), nil
			}}
			s.SetTools(`{"name":"works","inputSchema":{"type":"object"}}`, `{"name":"fails","inputSchema":{"type":"object"}}`)
			web := httptest.NewServer(s)
			defer web.Close()
			client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
			session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: web.URL}, &mcp.ClientSessionOptions{ProtocolVersion: era})
			if err != nil {
				t.Fatal(err)
			}
			defer session.Close()
			if got := session.InitializeResult(); got.ProtocolVersion != era {
				t.Errorf("agreed on %s, want %s", got.ProtocolVersion, era)
			}
			var names []string
			for tool, err := range session.Tools(t.Context(), nil) {
				if err != nil {
					t.Fatal(err)
				}
				names = append(names, tool.Name)
			}
			if len(names) != 2 || names[0] != "works" || names[1] != "fails" || s.Lists() != 2 {
				t.Errorf("listed %v in %d pages, want works and fails in 2", names, s.Lists())
			}
			r, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "works"})
			if err != nil || len(r.Content) != 1 || r.Content[0].(*mcp.TextContent).Text != "done" {
				t.Errorf("works: %+v, %v", r, err)
			}
			if _, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "fails"}); err == nil {
				t.Error("fails: no error came")
			}
		})
	}
}
