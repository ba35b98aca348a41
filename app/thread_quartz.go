//go:build darwin || standin

package main

import (
	"runtime"

	"drawbridge/internal/quartz"
)

// macOS tells whether this program is built for it, or for the stand-in for it.
const macOS = true

// Parts of macOS insist on the process's first thread, which main has only if it
// is locked to it before main begins.
func init() { runtime.LockOSThread() }

// onFirstThread runs f, and meanwhile macOS's main loop on the first thread.
func onFirstThread(f func()) { quartz.Loop(f) }
