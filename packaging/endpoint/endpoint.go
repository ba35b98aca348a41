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
	"drawbridge/bridge/host"
	"drawbridge/bridge/token"
)

// Endpoint is a served one.
type Endpoint struct {
	Server *bridge.Server
	Hosts  *host.Set
	Host   string // address:port
	Token  string // of a client

	// HostToken is that of the host "tools", with which programs can dial in.
	HostToken string

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
	hostToken, err := hostToken(tokens)
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
	e.HostToken = hostToken
	if e.Hosts, err = host.NewSet(host.Options{Log: log, Version: "test", Main: HostName, Changed: func() { e.Server.ToolsChanged() }}); err != nil {
		end()
		return nil, errors.Join(err, ln.Close(), records.Close())
	}
	e.Server = bridge.New(bridge.Options{
		Log: log, Version: "test", Sources: sources, Hosts: e.Hosts,
		Gate: hostGate{gate.New(gate.Options{Log: log})}, Audit: records, Tokens: tokens,
	})
	e.Hosts.Start()
	go func() { e.done <- e.Server.Serve(ctx, ln) }() // until Close
	return e, nil
}

// HostName is the host that HostToken is for. It is Main, so that its tools keep
// their names.
const HostName = "tools"

// hostGate lets the calls of that host run, which in real use a rule does. All
// else is the real gate's.
type hostGate struct{ *gate.Gate }

func (g hostGate) Decide(ctx context.Context, r *gate.Request) gate.Verdict {
	if r.Host == HostName {
		own := *r
		own.Default = gate.DefaultAllow
		r = &own
	}
	return g.Gate.Decide(ctx, r)
}

// hostToken makes a token for the host; a folder that is served again has one
// already, which nobody knows any more.
func hostToken(tokens *token.Store) (string, error) {
	all, err := tokens.List()
	if err != nil {
		return "", err
	}
	for _, e := range all {
		if e.Role == token.Host && e.Name == HostName {
			if err := tokens.Revoke(HostName, token.Host); err != nil {
				return "", err
			}
		}
	}
	return tokens.Add(HostName, token.Host, "")
}

// HostSocket is where a host dials in.
func (e *Endpoint) HostSocket() string { return "ws://" + e.Host + "/host" }

// WebSocket is the address of the websocket binding.
func (e *Endpoint) WebSocket() string { return "ws://" + e.Host + "/mcp" }

// HTTP is the address of the Streamable HTTP binding.
func (e *Endpoint) HTTP() string { return "http://" + e.Host + "/mcp" }

// Close ends the calls and connections, then the audit.
func (e *Endpoint) Close() error {
	e.end()
	err := <-e.done
	e.Hosts.Close()
	return errors.Join(err, e.audit.Close())
}
