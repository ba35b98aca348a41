// Package gate decides, per call: allow, ask a person, or deny. It holds the
// rules, the pending approvals and the desktop lease.
package gate

import (
	"context"
	"encoding/json"
)

// Default is what happens to a call that no rule matches.
type Default uint8

const (
	// DefaultAsk asks a person. It is the zero value on purpose.
	DefaultAsk Default = iota
	// DefaultAskFirst asks until one such call of this client was allowed, then
	// lets the client's further ones run: looking at the person's own display.
	DefaultAskFirst
	// DefaultAllow runs unasked: looking at a desktop of the agent's own, or a
	// read-only tool of a host whose hints are trusted.
	DefaultAllow
)

// Request is one call that wants to run.
type Request struct {
	ID     string // the call's id in the audit
	Client string // the token's name
	Conn   string // the connection's id; empty on stateless HTTP, where nothing lasts for a connection
	Host   string // the host that would run it; "drawbridge" for our own tool
	Tool   string // the name as listed
	Args   json.RawMessage
	// Default is for calls that no rule matches.
	Default Default
	// Preview, if set, makes what a graphical surface shows beside the
	// arguments: the last picture with the batch's targets marked, as PNG.
	Preview func(ctx context.Context) (png []byte, err error)
	// Changed, if set, tells after a verdict whether the picture around the
	// targets is another than the one that was shown.
	Changed func(ctx context.Context) (bool, error)
	// Waiting, if set, is called once when the call begins to wait for a person
	// (or for a resume), and not at all when it does not have to.
	Waiting func()
}

// Outcome is what became of a request.
type Outcome uint8

const (
	Denied  Outcome = iota // by a rule or a person
	Allowed                // run it
	Nobody                 // nobody can be asked here
	Expired                // nobody answered in time
	Full                   // too many approvals of this client wait, or it is cooling down after a denial
	Paused                 // everything is paused, and nobody resumed in time
	Gone                   // the caller cancelled or hung up while it waited
)

// Verdict is the gate's decision on one request.
type Verdict struct {
	Outcome Outcome
	// By says who decided, for the audit: "rule config:3", "--allow computer",
	// "default", "person at the terminal", "deadline", …
	By string
	// Message is a sentence for the caller: why not, and what can be done.
	// Empty when allowed.
	Message string
}
