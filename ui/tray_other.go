//go:build !linux

package ui

import "github.com/rs/zerolog"

// NewRenderer makes the platform's status item. This build has none yet: its
// place is behind the same interface.
func NewRenderer(zerolog.Logger, func()) Renderer { return noTray{} }

type noTray struct{}

func (noTray) Start(View, chan<- Click) error { return ErrNoTray }
func (noTray) Show(View)                      {}
func (noTray) Hosted() bool                   { return false }
func (noTray) Close()                         {}
