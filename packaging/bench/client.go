package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/gorilla/websocket"

	"drawbridge/bridge/wire"
)

const (
	initialize  = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}`
	initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`
)

// client is a websocket client of the older era. It makes its frames by hand and
// has one call in flight.
type client struct {
	conn *websocket.Conn
	id   int
}

func dial(ctx context.Context, url, token string) (*client, error) {
	d := websocket.Dialer{Subprotocols: []string{"mcp"}}
	conn, _, err := d.DialContext(ctx, url, http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn}
	if _, err := c.trip([]byte(initialize)); err != nil {
		return nil, err
	}
	return c, conn.WriteMessage(websocket.TextMessage, []byte(initialized))
}

func (c *client) Close() error { return c.conn.Close() }

// trip sends one request and returns its answer. What comes between is a
// notification (the list of tools may change), and to take it for the answer
// would leave every later one behind its request.
func (c *client) trip(frame []byte) ([]byte, error) {
	if err := c.conn.WriteMessage(websocket.TextMessage, frame); err != nil {
		return nil, err
	}
	for {
		_, answer, err := c.conn.ReadMessage()
		if err != nil || wire.Get(answer, "method") == nil {
			return answer, err
		}
	}
}

// callTool calls a tool and returns the frame of the answer.
func (c *client) callTool(name, args string) ([]byte, error) {
	c.id++
	return c.trip(fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s","arguments":%s}}`, c.id, name, args))
}

// batch is the answer to a computer call, as far as it is read here.
type batch struct {
	IsError bool
	Content []struct {
		Type, Text, Data, MimeType string
	}
}

// computer runs one batch and fails when it did not run to its end.
func (c *client) computer(actions string) (batch, error) {
	answer, err := c.callTool("computer", `{"actions":[`+actions+`]}`)
	if err != nil {
		return batch{}, err
	}
	var m struct {
		Result *batch
		Error  json.RawMessage
	}
	if err := json.Unmarshal(answer, &m); err != nil {
		return batch{}, err
	}
	switch {
	case m.Result == nil:
		return batch{}, fmt.Errorf("the call failed: %s", m.Error)
	case m.Result.IsError && len(m.Result.Content) > 0:
		return batch{}, fmt.Errorf("the batch stopped: %s", m.Result.Content[0].Text)
	case m.Result.IsError:
		return batch{}, fmt.Errorf("the batch stopped")
	}
	return *m.Result, nil
}

// picture returns the batch's picture, still as base64.
func (b batch) picture() (string, error) {
	for _, block := range b.Content {
		if block.Type == "image" {
			return block.Data, nil
		}
	}
	return "", fmt.Errorf("the result holds no picture")
}
