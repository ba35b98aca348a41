// Package audit is the append-only, hash-chained record of every call.
package audit

import (
	"encoding/json"
)

// Phase says what a record is about.
type Phase string

// The phases of a call, and Note for everything that is no call.
const (
	Start   Phase = "start"
	Ask     Phase = "ask"
	Verdict Phase = "verdict"
	Done    Phase = "done"
	Note    Phase = "note"
)

// Record is one line of the audit, without what the log itself adds (seq, ts,
// prev, hash). Args is given as the program sent it; the log redacts it before
// anything is written.
type Record struct {
	Phase   Phase
	ID      string // of the call; empty for a note about no call
	Client  string
	Conn    string
	Host    string
	Tool    string
	Args    json.RawMessage
	Outcome string  // ok, error, refused: …, cancelled, unknown, …
	MS      float64 // how long the call took; on done
	In, Out int     // bytes of arguments and result; on done
}
