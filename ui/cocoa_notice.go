//go:build darwin || standin

package ui

import (
	"github.com/rs/zerolog"

	"drawbridge/internal/cocoa"
)

// notices say in a notification what the panel asks, and what needs no answer.
// They are never a place to answer at: another program may make a notification
// that looks like ours, and the panel shows more. The zero notices show nothing.
type notices struct{ center *cocoa.Notices }

func (n *notices) open(log zerolog.Logger) {
	center, err := cocoa.OpenNotices()
	if err != nil {
		log.Info().Err(err).Msg("no notifications; prompts are in the panel")
		return
	}
	n.center = center
}

// up tells that a prompt waits.
func (n *notices) up(id, headline string) {
	if n.center != nil {
		n.center.Post(id, headline, "Answer in Drawbridge's panel or in its menu.")
	}
}

// down takes that away.
func (n *notices) down(id string) {
	if n.center != nil {
		n.center.Remove(id)
	}
}

// tell shows a sentence, and reports whether it could.
func (n *notices) tell(text string) bool {
	if n.center == nil {
		return false
	}
	n.center.Post("told", "Drawbridge", Escape(text, 300))
	return true
}
