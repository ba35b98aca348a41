package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/token"
	"drawbridge/bridge/wire"
	"drawbridge/ui"
)

// tokenEnv is where a client that is not the default one gives its token.
const tokenEnv = ui.TokenEnv

// maxAnswer bounds what one call may bring back.
const maxAnswer = 512 << 20

// runningAgent finds the running agent: its state directory and where it serves.
func (c *cli) runningAgent(ctx context.Context) (dir string, end bridge.Endpoint, err error) {
	if dir, err = c.stateDir(); err != nil {
		return "", end, err
	}
	// The control socket tells a running agent from the endpoint.json of a dead
	// one, whose ports other programs may have by now: they would get our secrets.
	if _, err := control.Dial(ctx, dir); err != nil {
		return "", end, err
	}
	end, err = bridge.ReadEndpoint(dir)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: it has no %s in %s yet", control.ErrNoAgent, bridge.EndpointFile, dir)
	}
	return dir, end, err
}

// endpoint finds the running agent, and the token of a client: the default one,
// or another whose token is in the environment.
func (c *cli) endpoint(ctx context.Context, client string) (end bridge.Endpoint, secret string, err error) {
	dir, end, err := c.runningAgent(ctx)
	if err != nil {
		return end, "", err
	}
	secret = c.getenv(tokenEnv)
	switch {
	case client != "" && client != token.DefaultName && secret == "":
		return end, "", &exitError{code: exitUsage, err: fmt.Errorf("the token of client %q is not known", client),
			hint: "set " + tokenEnv + " to what drawbridge client add printed"}
	case client == "" && secret == "", client == token.DefaultName:
		secret, err = token.ReadDefault(dir)
	}
	return end, secret, err
}

// dial connects to the running agent as a client.
func (c *cli) dial(ctx context.Context, client string) (*wire.Conn, error) {
	end, secret, err := c.endpoint(ctx, client)
	if err != nil {
		return nil, err
	}
	conn, err := wire.Dial(ctx, end.URL, secret)
	var refused *wire.DialError
	if errors.As(err, &refused) && refused.Status == 401 {
		return nil, &exitError{code: exitFailed, err: err, hint: "the token was revoked or is another agent's; see: drawbridge client list"}
	}
	return conn, err
}

// session is an MCP connection of the command line to the agent.
type session struct {
	conn *wire.Conn
	next int
}

// protocolVersion is the revision that the command line speaks.
const protocolVersion = "2025-11-25"

func (c *cli) openSession(ctx context.Context) (*session, error) {
	conn, err := c.dial(ctx, "")
	if err != nil {
		return nil, err
	}
	s := &session{conn: conn}
	_, err = s.request(ctx, "initialize", map[string]any{
		"protocolVersion": protocolVersion,
		"capabilities":    struct{}{},
		"clientInfo":      map[string]string{"name": "drawbridge", "version": buildVersion()},
	})
	if err == nil {
		err = conn.WriteFrame([]byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return s, nil
}

// request sends one request and returns its raw result. It leaves out whatever
// else arrives meanwhile. When ctx ends, the connection is closed, which cancels
// the request.
func (s *session) request(ctx context.Context, method string, params any) (json.RawMessage, error) {
	defer context.AfterFunc(ctx, func() { s.conn.Close() })()
	s.next++
	id := json.Number(fmt.Sprint(s.next))
	frame, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params})
	if err != nil {
		return nil, err
	}
	fail := func(err error) (json.RawMessage, error) {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		return nil, fmt.Errorf("%s: the agent went away: %w", method, err)
	}
	if err := s.conn.WriteFrame(frame); err != nil {
		return fail(err)
	}
	for {
		raw, err := s.conn.ReadFrame(maxAnswer)
		if err != nil {
			return fail(err)
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Result json.RawMessage `json:"result"`
			Error  *struct {
				Code    int    `json:"code"`
				Message string `json:"message"`
			} `json:"error"`
		}
		if err := json.Unmarshal(raw, &m); err != nil {
			return nil, fmt.Errorf("%s: the agent's answer is not JSON: %w", method, err)
		}
		if m.Method != "" || string(m.ID) != id.String() {
			continue
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s (%d)", method, m.Error.Message, m.Error.Code)
		}
		return m.Result, nil
	}
}

func (s *session) close() { s.conn.Close() }
