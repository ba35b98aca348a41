package desk

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
)

var thisPlatform = platform{
	display:   x11Display,
	native:    openX11,
	installed: xvfbInstalled,
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
		return "", errors.New("there is no display (DISPLAY is not set)")
	}
	return display, nil
}

// xvfbInstalled tells what a virtual desktop misses.
func xvfbInstalled() error {
	var missing []string
	for program, pkg := range map[string]string{"Xvfb": "xvfb", "jwm": "jwm"} {
		if _, err := exec.LookPath(program); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) > 0 {
		return fmt.Errorf("a virtual desktop needs what is not installed here; on Debian: apt-get install %s", strings.Join(missing, " "))
	}
	return nil
}
