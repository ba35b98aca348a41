//go:build systray && (darwin || standin)

package main

import "drawbridge/ui"

// newRenderer makes the status item: fyne.io/systray's, by choice of who built this.
var newRenderer = ui.NewSystray
