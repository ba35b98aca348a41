//go:build !linux

package capture

import "errors"

// OpenX11 looks at an X display. This build has no X11 layer.
func OpenX11(display string) (Source, error) {
	return nil, errors.New("capture on X11 exists on Linux only")
}
