//go:build linux && !standin

package desk

import (
	"errors"
	"fmt"

	"drawbridge/input/virtual"
)

var thisPlatform = platform{
	display:   x11Display,
	native:    openX11,
	installed: virtual.Available,
	virtual:   openVirtual,
	simulated: openSimulated,
}

// x11Display tells which X display native would use.
func x11Display(o Options) (string, error) {
	display := o.getenv("DISPLAY")
	if w := o.getenv("WAYLAND_DISPLAY"); w != "" && !o.AllowXWayland {
		return "", fmt.Errorf("this is a Wayland session (WAYLAND_DISPLAY=%s), where X11 reaches only the applications that run under XWayland; set allow_xwayland: true in the configuration if that is enough", w)
	}
	if display == "" {
		return "", errors.New("there is no display (DISPLAY is not set): start from a desktop session, or with --backend virtual")
	}
	return display, nil
}
