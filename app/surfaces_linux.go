//go:build linux && !standin

package main

import "drawbridge/ui"

// newAsker asks by desktop notifications with buttons.
func newAsker(s *surfaces, changed func()) asker {
	return ui.NewNotifications(ui.NotificationOptions{
		Preview: s.previews.Small, Details: func() { s.tried(s.openActivity()) }, Injected: s.tool.LastEvent, Log: s.log,
		Changed: changed,
	})
}

// settle has nothing to do here: nothing has to be granted, and the desktop tells
// the agent nothing.
func (s *surfaces) settle() {}
