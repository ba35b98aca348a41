// Package audit is the append-only, hash-chained record of every call.
//
// # Files
//
// The log is JSON Lines in a directory of its own (0700; files 0600):
//
//	audit.jsonl                    the generation that is written
//	audit-00000000000000000001.jsonl   an older one, named for its first seq
//	audit.head                     the anchor: what was last known to be on disk
//	audit.lock                     held by the one process that writes
//
// # A line
//
// Every line is one JSON object that ends in the members prev and hash, in this
// order and without spaces:
//
//	{"seq":7,"ts":"…",…,"prev":"<64 hex>","hash":"<64 hex>"}
//
// To verify a line, take it without its newline, drop the last 75 bytes (which
// are `,"hash":"`, 64 lower-case hex digits and `"}`), append `}`, and take the
// SHA-256 of that: it is hash. prev is the hash of the line before, in whatever
// generation that is; the very first line has 64 zeros. seq starts at 1 and
// grows by one. What the chain cannot show is told by [Report.Limits].
//
// # Redaction
//
// Arguments are redacted before they are written, never after: see [Redact].
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

// Unknown is the outcome of a call that was open when its process died. It may
// have run, partly or wholly; it is never run again.
const Unknown = "unknown"

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
