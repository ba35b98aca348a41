// Package bridge is the MCP endpoint: connections, the catalogue, and the one
// pipeline that every call takes, whatever it came in by.
package bridge

import (
	"context"
	"encoding/json"
	"time"

	"drawbridge/bridge/gate"
)

// Images says whether a client's model reads pictures.
type Images uint8

const (
	ImagesUnknown Images = iota // counts as yes
	ImagesYes
	ImagesNo
)

// Caller is the client side of a call.
type Caller struct {
	Client string // the token's name
	Token  string // which token of that name: its hash, never the token itself
	Conn   string // the connection's id; empty on stateless HTTP
	Images Images
}

// Call is one tools/call on its way. The raw fields alias the received frame
// and must not be changed.
type Call struct {
	ID         string // ours; the audit's id, not the JSON-RPC one
	Caller     Caller
	Tool       string          // the name as listed
	SourceTool string          // the name as the source names it
	Params     json.RawMessage // the params object exactly as received
	Arguments  json.RawMessage // its arguments member exactly as received; nil when absent
	// Notify sends a notification to the caller while the call runs; raw params.
	Notify func(method string, params json.RawMessage)
	// ProgressToken is the caller's, raw; nil when it gave none.
	ProgressToken json.RawMessage
}

// Answer is what goes back to the caller: exactly one field is set.
type Answer struct {
	Result json.RawMessage // a CallToolResult object
	Error  json.RawMessage // a JSON-RPC error object
	// Outcome goes into the audit's done record: "ok", "error", or
	// "stopped: REASON". Empty means: read it from the result's isError.
	Outcome string
}

// Tool is one definition that a source offers.
type Tool struct {
	Name       string          // as the source names it
	Definition json.RawMessage // raw, exactly as the source gave it
}

// Source is where tools come from: our own computer tool, or a host.
type Source interface {
	// Name names the source in rules, audit and listings ("drawbridge" is ours).
	Name() string
	// Tools lists what this client may see of the source, in a stable order.
	Tools(client string) []Tool
	// Prepare looks at a call before anybody is asked about it. It returns what
	// is to be asked and run, or, for a call that cannot run (bad arguments), the
	// answer. It must not act.
	Prepare(ctx context.Context, c *Call) (*Prepared, *Answer)
}

// ConnObserver is a source that keeps something per connection.
type ConnObserver interface {
	// ConnClosed tells that the caller's connection ended.
	ConnClosed(Caller)
}

// Prepared is a call that may run once the gate allows it.
type Prepared struct {
	// Default, Preview, Closeup and Changed go into the gate's request.
	Default gate.Default
	Preview func(ctx context.Context) ([]byte, error)
	Closeup func() []byte
	Changed func(ctx context.Context) (bool, error)
	// Run does it. ctx ends with a cause when the call is to stop: a
	// *stop.Error that names the reason. Run returns soon after, and its
	// answer then says what had been done.
	Run func(ctx context.Context) Answer
}

// Gate decides about calls.
type Gate interface {
	Decide(ctx context.Context, r *gate.Request) gate.Verdict
}

// HostStatus is one entry of /status.hosts.
type HostStatus struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	State string `json:"state"`
	Tools int    `json:"tools"`
	// Reason says why it is down, Asking what it itself asks somebody, by call.
	Reason string            `json:"reason,omitempty"`
	Asking map[string]string `json:"asking,omitempty"`
}

// ClientStatus is one entry of /status.clients.
type ClientStatus struct {
	Name        string    `json:"name"`
	Connections int       `json:"connections"`
	Calls       int       `json:"calls"`
	Since       time.Time `json:"since"`
}

// Status is /status and the control socket's status.
type Status struct {
	V           int               `json:"v"`
	PID         int               `json:"pid"`
	Version     string            `json:"version"`
	Backend     string            `json:"backend"`
	Reason      string            `json:"reason"`
	Display     string            `json:"display,omitempty"` // the X display, for programs that shall run on it
	Permissions map[string]string `json:"permissions"`
	Paused      bool              `json:"paused"`
	Pending     int               `json:"pending"`
	Clients     []ClientStatus    `json:"clients"`
	Hosts       []HostStatus      `json:"hosts"`
	HostLLM     string            `json:"host_llm"`
	Warnings    []string          `json:"warnings"`
}
