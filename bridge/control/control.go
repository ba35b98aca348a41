// Package control is how the command line asks the running agent: a unix socket
// in the state directory, one JSON request a connection, answered by JSON lines.
//
// The socket carries neutral and tightening verbs only. Nothing that widens what
// programs may do is ever asked over it: any program of the same user can.
//
// A request is {"verb": "status", "args": …}. The answer is any number of lines
// {"progress": …} and one last line {"ok": true, "result": …} or {"ok": false,
// "error": "a sentence", "code": "a word"}. Hanging up cancels the request.
package control

import (
	"encoding/json"
	"errors"
	"path/filepath"
)

// Name is the socket's name in the state directory.
const Name = "control.sock"

// Path returns where the socket of a state directory is.
func Path(stateDir string) string { return filepath.Join(stateDir, Name) }

// maxLine bounds a request, and maxAnswer a line of an answer.
const (
	maxLine   = 1 << 20
	maxAnswer = 64 << 20
)

// ErrNoAgent: nothing listens on the socket.
var ErrNoAgent = errors.New("no agent is running")

// ErrInUse: an agent already listens on the socket.
var ErrInUse = errors.New("another agent listens on the control socket")

// Error is what a handler failed with, as it reaches the asking side. A handler
// returns one to give its failure a code.
type Error struct {
	Code    string // a word for programs; empty when there is nothing to tell apart
	Message string
}

func (e *Error) Error() string { return e.Message }

type request struct {
	Verb string          `json:"verb"`
	Args json.RawMessage `json:"args,omitempty"`
}

type line struct {
	Progress json.RawMessage `json:"progress,omitempty"`
	OK       *bool           `json:"ok,omitempty"` // set on the last line only
	Result   json.RawMessage `json:"result,omitempty"`
	Error    string          `json:"error,omitempty"`
	Code     string          `json:"code,omitempty"`
}
