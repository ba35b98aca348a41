package bridge

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"testing"

	"drawbridge/bridge/wire"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// wsTransport lets the official SDK speak over our websocket.
type wsTransport struct{ r *rig }

func (t wsTransport) Connect(ctx context.Context) (mcp.Connection, error) {
	c, err := wire.Dial(ctx, t.r.wsURL(), t.r.token)
	if err != nil {
		return nil, err
	}
	return wsTransportConn{c}, nil
}

type wsTransportConn struct{ *wire.Conn }

func (c wsTransportConn) SessionID() string { return "" }

func (c wsTransportConn) Read(context.Context) (jsonrpc.Message, error) {
	b, err := c.ReadFrame(64 << 20)
	if err != nil {
		return nil, err
	}
	return jsonrpc.DecodeMessage(b)
}

func (c wsTransportConn) Write(_ context.Context, m jsonrpc.Message) error {
	b, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	return c.WriteFrame(b)
}

// bearer adds the token to each request.
type bearer string

func (b bearer) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+string(b))
	return http.DefaultTransport.RoundTrip(r)
}

// TestSDK has the official SDK as the client, in both eras on both bindings.
func TestSDK(t *testing.T) {
	for _, version := range []string{"2025-06-18", "2025-11-25", "2026-07-28"} {
		for _, binding := range []string{"websocket", "http"} {
			t.Run(version+" "+binding, func(t *testing.T) {
				r := newRig(t, nil)
				started, ended := make(chan struct{}, 1), make(chan error, 1)
				r.source.add("hang", hang(started, ended))
				r.source.add("progress", func(_ context.Context, c *Call) Answer {
					c.Notify("notifications/progress", json.RawMessage(`{"progressToken":`+string(c.ProgressToken)+`,"progress":1,"total":2,"message":"half"}`))
					return Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"done"}],"structuredContent":{"a":1}}`)}
				})
				var transport mcp.Transport = wsTransport{r}
				if binding == "http" {
					transport = &mcp.StreamableClientTransport{Endpoint: r.http.URL + "/mcp", HTTPClient: &http.Client{Transport: bearer(r.token)}}
				}
				progress := make(chan string, 1)
				changed := make(chan struct{}, 1)
				client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, &mcp.ClientOptions{
					ProgressNotificationHandler: func(_ context.Context, q *mcp.ProgressNotificationClientRequest) { progress <- q.Params.Message },
					ToolListChangedHandler: func(context.Context, *mcp.ToolListChangedRequest) {
						select {
						case changed <- struct{}{}:
						default: // heard already
						}
					},
				})
				session, err := client.Connect(t.Context(), transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
				if err != nil {
					t.Fatal(err)
				}
				defer session.Close()
				init := session.InitializeResult()
				if init.ProtocolVersion != version || init.ServerInfo.Name != "drawbridge" || init.Instructions != Instructions {
					t.Errorf("negotiated %+v", init)
				}
				list, err := session.ListTools(t.Context(), nil)
				if err != nil || len(list.Tools) != 3 {
					t.Fatalf("%+v, %v", list, err)
				}
				params := &mcp.CallToolParams{Name: "progress", Arguments: map[string]any{"x": 1}}
				params.SetProgressToken("tok")
				result, err := session.CallTool(t.Context(), params)
				if err != nil || result.IsError || result.Content[0].(*mcp.TextContent).Text != "done" {
					t.Fatalf("%+v, %v", result, err)
				}
				if got := <-progress; got != "half" {
					t.Errorf("progress %q", got)
				}
				result, err = session.CallTool(t.Context(), &mcp.CallToolParams{Name: "missing"})
				if err != nil || !result.IsError || result.Content[0].(*mcp.TextContent).Text != `tool "missing" is not exposed` {
					t.Errorf("a missing tool: %+v, %v", result, err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				go func() { <-started; cancel() }()
				if _, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "hang"}); !errors.Is(err, context.Canceled) {
					t.Errorf("a cancelled call: %v", err)
				}
				<-ended
				// Over HTTP the stream for changes may open a little later.
				eventually(t, func() bool {
					r.ToolsChanged()
					select {
					case <-changed:
						return true
					default:
						return false
					}
				})
			})
		}
	}
}

// TestStdioEnd has the official SDK speak stdio to the end that connect runs.
func TestStdioEnd(t *testing.T) {
	r := newRig(t, nil)
	toAgent, fromClient := io.Pipe()
	toClient, fromAgent := io.Pipe()
	link := r.dial()
	done := make(chan error, 1)
	go func() { done <- wire.Stdio(t.Context(), toAgent, fromAgent, link, 0) }()
	client := mcp.NewClient(&mcp.Implementation{Name: "sdk", Version: "1"}, nil)
	session, err := client.Connect(t.Context(), &mcp.IOTransport{Reader: toClient, Writer: fromClient}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if result, err := session.CallTool(t.Context(), &mcp.CallToolParams{Name: "noop"}); err != nil || result.Content[0].(*mcp.TextContent).Text != "ok" {
		t.Errorf("%+v, %v", result, err)
	}
	_ = fromClient.Close()
	if err := <-done; err != nil {
		t.Errorf("at the end of the input: %v", err)
	}
	_ = fromAgent.Close()
	_ = session.Close()
}
