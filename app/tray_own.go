//go:build !systray || !(darwin || standin)

package main

import "drawbridge/ui"

// newRenderer makes the status item.
var newRenderer = ui.NewRenderer
