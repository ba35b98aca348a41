package endpoint

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"testing"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
)

// hello is a source with one tool.
type hello struct{ ask gate.Default }

func (hello) Name() string { return "test" }

func (hello) Tools(string) []bridge.Tool {
	return []bridge.Tool{{Name: "hello", Definition: json.RawMessage(`{"name":"hello","inputSchema":{"type":"object"}}`)}}
}

func (h hello) Prepare(context.Context, *bridge.Call) (*bridge.Prepared, *bridge.Answer) {
	return &bridge.Prepared{Default: h.ask, Run: func(context.Context) bridge.Answer {
		return bridge.Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"hello"}]}`)}
	}}, nil
}

const callHello = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"hello","arguments":{},"_meta":{` +
	`"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}}}`

func post(t *testing.T, e *Endpoint, token string) (int, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.HTTP(), strings.NewReader(callHello))
	if err != nil {
		t.Fatal(err)
	}
	for k, v := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
		"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "hello"} {
		r.Header.Set(k, v)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(b)
}

// The guard and the gate are the real ones, and a folder can be served again.
func TestServe(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		ask  gate.Default
		want string
	}{{gate.DefaultAllow, `"text":"hello"`}, {gate.DefaultAsk, `"isError":true`}} {
		e, err := Serve(t.Context(), dir, hello{c.ask})
		if err != nil {
			t.Fatal(err)
		}
		if status, body := post(t, e, e.Token); status != http.StatusOK || !strings.Contains(body, c.want) {
			t.Errorf("with the token: %d %s, want %s", status, body, c.want)
		}
		if status, body := post(t, e, ""); status != http.StatusUnauthorized {
			t.Errorf("without a token: %d %s", status, body)
		}
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if res, err := http.Get(e.HTTP()); err == nil {
			res.Body.Close()
			t.Error("it still serves")
		}
	}
}
