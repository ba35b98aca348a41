package bridge

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"drawbridge/bridge/private"
)

// DefaultAddr is where clients look for the endpoint.
const DefaultAddr = "127.0.0.1:7317"

// Listen opens the endpoint's listener. The host must be a loopback address or
// localhost; any other is refused. If the port is taken, a free one is used and
// warning says so: clients would hand their token to whoever sits there.
func Listen(addr string) (ln net.Listener, warning string, err error) {
	host, port, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, "", fmt.Errorf("the listen address %q is not HOST:PORT: %w", addr, err)
	}
	if n, err := strconv.Atoi(port); err != nil || n < 0 || n > 65535 {
		return nil, "", fmt.Errorf("the listen address %q has no port between 0 and 65535", addr)
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip := net.ParseIP(host)
	if ip == nil || !ip.IsLoopback() {
		return nil, "", fmt.Errorf("the listen address %q is not a loopback address; Drawbridge serves this machine only: use 127.0.0.1 or [::1], and ssh -L to reach it from another", addr)
	}
	ln, err = net.Listen("tcp", net.JoinHostPort(host, port))
	if err == nil {
		return ln, "", nil
	}
	if !errors.Is(err, syscall.EADDRINUSE) {
		return nil, "", fmt.Errorf("listening on %s: %w", addr, err)
	}
	ln, err = net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, "", fmt.Errorf("listening on %s: %w", addr, err)
	}
	warning = fmt.Sprintf("another program listens on %s; this agent is on %s instead. Clients that are set to %s hand their token to that program: stop it or set another listen address, and revoke their tokens if you do not know it", addr, ln.Addr(), addr)
	return ln, warning, nil
}

// EndpointFile is the file in the state directory that tells where the running
// agent is. It holds no token.
const EndpointFile = "endpoint.json"

// Endpoint is its content.
type Endpoint struct {
	V       int       `json:"v"`
	PID     int       `json:"pid"`
	Started time.Time `json:"started"`
	URL     string    `json:"url"` // ws://…/mcp; the same with http:// is the HTTP binding
	Gateway string    `json:"gateway"`
	Proxy   string    `json:"proxy"`
	Control string    `json:"control"`
}

// URL returns the endpoint's address for a listener.
func URL(ln net.Listener) string { return "ws://" + ln.Addr().String() + "/mcp" }

// WriteEndpoint writes the file. The returned func removes it again if it still
// holds what was written: another agent's file is left alone.
func WriteEndpoint(dir string, e Endpoint) (remove func() error, err error) {
	e.V = 1
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	b = append(b, '\n')
	path := filepath.Join(dir, EndpointFile)
	if err := private.WriteFile(path, b); err != nil {
		return nil, fmt.Errorf("writing %s: %w", EndpointFile, err)
	}
	return func() error {
		now, err := private.ReadFile(path, 64<<10)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if !bytes.Equal(now, b) {
			return nil
		}
		return os.Remove(path)
	}, nil
}

// ReadEndpoint returns where the running agent is. fs.ErrNotExist: none runs.
func ReadEndpoint(dir string) (Endpoint, error) {
	var e Endpoint
	path := filepath.Join(dir, EndpointFile)
	b, err := private.ReadFile(path, 64<<10)
	if err != nil {
		return e, err
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, fmt.Errorf("%s cannot be read (%w); remove it, and start the agent again", path, err)
	}
	return e, nil
}
