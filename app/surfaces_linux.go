//go:build linux && !standin

package main

import "drawbridge/ui"

// newAsker asks by desktop notifications with buttons.
func newAsker(s *surfaces, changed func()) asker {
	return ui.NewNotifications(ui.NotificationOptions{
		Preview: s.previews.Small, Details: s.openPage, Injected: s.tool.LastEvent, Log: s.log,
		Changed: changed,
	})
}

// hearSystem and settle have nothing to do here: the desktop tells the agent
// nothing, and nothing has to be granted.
func (a *agent) hearSystem() {}

func (s *surfaces) settle() {}
