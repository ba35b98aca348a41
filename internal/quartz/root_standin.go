//go:build standin && !darwin

package quartz

import "os"

// root is where the stand-in for macOS's frameworks was built, so that nothing
// has to be put into /System.
var root = os.Getenv("DRAWBRIDGE_STANDIN")
