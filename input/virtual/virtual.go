// Package virtual starts a desktop that belongs to the agent alone: an Xvfb with
// a small window manager, as children that end with this process, however it
// ends. The person's own mouse and screen stay free.
package virtual

import "errors"

// Options say what kind of screen to start.
type Options struct {
	Width, Height int // in pixels; 0 means 1280 by 800
	// Dir is where the files of the desktop go (the key that opens it, the window
	// manager's configuration). It is made with mode 0700 if need be and its
	// files are overwritten by the next Start, so what a killed process left
	// there does not pile up. Empty means a temporary directory.
	Dir string
}

// Names of the programs that make up the desktop, and the Debian packages that
// hold them.
const (
	serverProgram, serverPackage = "Xvfb", "xvfb"
	wmProgram, wmPackage         = "jwm", "jwm"
)

// ErrMissing: a program that the desktop is made of is not installed. The error
// names it and the package that brings it.
var ErrMissing = errors.New("not installed")
