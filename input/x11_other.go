//go:build !linux

package input

import "errors"

// OpenX11 drives an X display. This build has no X11 layer.
func OpenX11(display string, own bool) (Driver, error) {
	return nil, errors.New("input on X11 exists on Linux only")
}
