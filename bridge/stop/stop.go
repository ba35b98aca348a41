// Package stop names the reasons for which a running call is ended early. It is
// a leaf: the pipeline ends calls with these causes, sources read them.
package stop

// Reason is the word for it, as a result's stopped.reason shows it.
type Reason string

// The reasons that a result can name.
const (
	Err          Reason = "error"
	Cancelled    Reason = "cancelled"
	Stopped      Reason = "stopped"
	Paused       Reason = "paused"
	Pending      Reason = "pending"
	HandBack     Reason = "hand_back"
	Quiet        Reason = "quiet"
	Unwatched    Reason = "unwatched"
	Locked       Reason = "locked"
	LoginWindow  Reason = "login_window"
	Asleep       Reason = "asleep"
	SecureInput  Reason = "secure_input"
	Permission   Reason = "permission"
	StalePicture Reason = "stale_picture"
	Misplaced    Reason = "misplaced"
	Expect       Reason = "expect"
	FocusStolen  Reason = "focus_stolen"
	Lease        Reason = "lease"
	Deadline     Reason = "deadline"
)

// Error ends a running call for a reason. It is the cause with which the call's
// context is cancelled (context.WithCancelCause), by whoever stops it: the
// pipeline on cancel or hang-up, the stop and pause verbs, a deadline.
type Error struct {
	Reason  Reason
	Message string // a sentence for people and models
}

func (e *Error) Error() string { return string(e.Reason) + ": " + e.Message }
