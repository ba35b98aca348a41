//go:build !linux

package input

import (
	"context"
	"errors"
)

var errNoX11 = errors.New("input on X11 exists on Linux only")

// OpenX11 drives an X display. This build has no X11 layer.
func OpenX11(display string, own bool) (Driver, error) { return nil, errNoX11 }

// XWayland tells whether an X display belongs to a Wayland desktop. This build
// has no X11 layer.
func XWayland(ctx context.Context, display string) (reason string, err error) { return "", errNoX11 }
