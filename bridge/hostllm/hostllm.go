// Package hostllm is the kill switch: while it is at deny, no model request of a
// host leaves this machine.
//
// [Switch] holds the state and what it counted. [Gateway] is where the requests
// of hosts pass: as a model gateway for hosts that take a base URL, and as a
// proxy that knows the model hosts by their names for hosts that honour proxies.
// Nothing here calls a model.
package hostllm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
)

// Mode is whether hosts may call their models.
type Mode string

// The modes. Everything that is not exactly Allow counts as Deny.
const (
	Allow Mode = "allow"
	Deny  Mode = "deny"
)

// ParseMode reads a mode.
func ParseMode(s string) (Mode, error) {
	if m := Mode(s); m == Allow || m == Deny {
		return m, nil
	}
	return Deny, fmt.Errorf("the mode is allow or deny, not %q", s)
}

// State is what is asked, and since when and by whom.
type State struct {
	Mode  Mode      `json:"mode"`
	Since time.Time `json:"since"`
	By    string    `json:"by"`
}

// Person is asked before hosts may call their models again.
type Person interface {
	Loosen(ctx context.Context, client string, item gate.Item) gate.Verdict
}

// Auditor takes the records of refusals and of changes.
type Auditor interface {
	Append(...audit.Record)
}

// RefusedError tells that hosts may not call their models again.
type RefusedError struct {
	Verdict gate.Verdict
}

func (e *RefusedError) Error() string {
	return "the models stay switched off: " + e.Verdict.Message
}

// errDenied is the cause with which what is under way ends when it is denied.
var errDenied = errors.New("model use is switched off")
