//go:build !linux

package ui

import (
	"context"
	"errors"
	"image"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

// NotificationOptions are what Notifications are made of.
type NotificationOptions struct {
	Preview  func(context.Context, *gate.Pending) image.Image
	Details  func()
	Injected func() time.Time
	Changed  func()
	Log      zerolog.Logger
}

// Notifications has no daemon to ask here; it is never ready.
type Notifications struct{}

var _ gate.Surface = (*Notifications)(nil)

// NewNotifications makes the surface.
func NewNotifications(NotificationOptions) *Notifications { return &Notifications{} }

// Name is "notification".
func (*Notifications) Name() string { return "notification" }

// Ready is false.
func (*Notifications) Ready() bool { return false }

// Show refuses.
func (*Notifications) Show(*gate.Pending) error { return errNoNotifications }

// Withdraw has nothing to take away.
func (*Notifications) Withdraw(*gate.Pending, string) {}

// Tell shows nothing.
func (*Notifications) Tell(string) bool { return false }

// Run refuses.
func (*Notifications) Run(context.Context) error { return errNoNotifications }

var errNoNotifications = errors.New("this platform has no notifications with buttons for us")
