package interop

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// socket is the official Go SDK's side of our websocket: the SDK has no such
// transport itself, and this one follows the wire contract of docs/protocol.md.
type socket struct{ url, token string }

var _ mcp.Transport = (*socket)(nil)

// Connect implements [mcp.Transport].
func (s *socket) Connect(ctx context.Context) (mcp.Connection, error) {
	dialer := websocket.Dialer{Subprotocols: []string{"mcp"}}
	conn, res, err := dialer.DialContext(ctx, s.url, http.Header{"Authorization": {"Bearer " + s.token}})
	if err != nil {
		if res != nil {
			err = fmt.Errorf("%w (HTTP %s)", err, res.Status)
		}
		return nil, err
	}
	if got := conn.Subprotocol(); got != "mcp" {
		conn.Close()
		return nil, fmt.Errorf("the server chose subprotocol %q", got)
	}
	return &socketConn{conn: conn}, nil
}

// socketConn carries one JSON-RPC message a text frame.
type socketConn struct {
	conn *websocket.Conn

	mu sync.Mutex // one writer at a time
}

// Read implements [mcp.Connection].
func (c *socketConn) Read(context.Context) (jsonrpc.Message, error) {
	kind, frame, err := c.conn.ReadMessage()
	switch {
	case websocket.IsCloseError(err, websocket.CloseNormalClosure, websocket.CloseGoingAway):
		return nil, io.EOF
	case err != nil:
		return nil, err
	case kind != websocket.TextMessage:
		return nil, fmt.Errorf("a frame of kind %d, want text", kind)
	}
	return jsonrpc.DecodeMessage(frame)
}

// Write implements [mcp.Connection].
func (c *socketConn) Write(_ context.Context, m jsonrpc.Message) error {
	frame, err := jsonrpc.EncodeMessage(m)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.conn.WriteMessage(websocket.TextMessage, frame)
}

// Close implements [mcp.Connection].
func (c *socketConn) Close() error {
	bye := websocket.FormatCloseMessage(websocket.CloseNormalClosure, "")
	_ = c.conn.WriteControl(websocket.CloseMessage, bye, time.Now().Add(time.Second)) // the peer may be gone
	return c.conn.Close()
}

// SessionID implements [mcp.Connection].
func (c *socketConn) SessionID() string { return "" }
