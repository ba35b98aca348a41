// Package endpoint serves the real MCP endpoint inside a test or a measurement,
// with the real gate and the real audit, and with whatever tools are given. There
// is no person: what would have to be asked is refused.
package endpoint

import (
	"context"
	"errors"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/token"
)

// Endpoint is a served one.
type Endpoint struct {
	Server *bridge.Server
	Host   string // address:port
	Token  string // of a client

	audit *audit.Log
	end   context.CancelFunc
	done  chan error // what serving ended with
}

// Serve serves the sources' tools, with dir as the state folder, until Close.
func Serve(ctx context.Context, dir string, sources ...bridge.Source) (_ *Endpoint, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	log := zerolog.Nop()
	tokens, err := token.Open(dir)
	if err != nil {
		return nil, err
	}
	if err := tokens.EnsureDefault(); err != nil {
		return nil, err
	}
	secret, err := token.ReadDefault(dir)
	if err != nil {
		return nil, err
	}
	ln, _, err := bridge.Listen("127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	records, err := audit.Open(filepath.Join(dir, "audit"), audit.Options{Log: log})
	if err != nil {
		return nil, errors.Join(err, ln.Close())
	}
	ctx, end := context.WithCancel(context.WithoutCancel(ctx))
	e := &Endpoint{Host: ln.Addr().String(), Token: secret, audit: records, end: end, done: make(chan error, 1)}
	e.Server = bridge.New(bridge.Options{
		Log: log, Version: "test", Sources: sources,
		Gate: gate.New(gate.Options{Log: log}), Audit: records, Tokens: tokens,
	})
	go func() { e.done <- e.Server.Serve(ctx, ln) }() // until Close
	return e, nil
}

// WebSocket is the address of the websocket binding.
func (e *Endpoint) WebSocket() string { return "ws://" + e.Host + "/mcp" }

// HTTP is the address of the Streamable HTTP binding.
func (e *Endpoint) HTTP() string { return "http://" + e.Host + "/mcp" }

// Close ends the calls and connections, then the audit.
func (e *Endpoint) Close() error {
	e.end()
	return errors.Join(<-e.done, e.audit.Close())
}
