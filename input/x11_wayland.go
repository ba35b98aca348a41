//go:build linux

package input

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/jezek/xgb/randr"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// XWayland tells whether an X display is only the one that a Wayland desktop
// keeps for old programs, and by what it was recognised. Through such a display
// no other window can be seen or reached. reason is empty for a real X server.
func XWayland(ctx context.Context, display string) (reason string, err error) {
	c, err := x11.Dial(ctx, display, nil)
	if err != nil {
		return "", err
	}
	defer c.Close()
	if ok, err := c.Extension(ctx, "XWAYLAND"); ok || err != nil {
		return "the X server has the XWAYLAND extension", err
	}
	names, err := monitorNames(ctx, c)
	if err != nil {
		return "", err
	}
	for _, n := range names {
		if strings.HasPrefix(n, "XWAYLAND") {
			return fmt.Sprintf("the X server's monitor is called %s", n), nil
		}
	}
	// Versions in between have neither.
	if w := os.Getenv("WAYLAND_DISPLAY"); w != "" && (display == "" || display == os.Getenv("DISPLAY")) {
		return fmt.Sprintf("$WAYLAND_DISPLAY is set (%s)", w), nil
	}
	return "", nil
}

func monitorNames(ctx context.Context, c *x11.Conn) ([]string, error) {
	if ok, err := c.Extension(ctx, "RANDR"); !ok || err != nil {
		return nil, err
	}
	return x11.Await(ctx, c, func() ([]string, error) {
		v, err := randr.QueryVersion(c.Conn, 1, 5).Reply()
		if err != nil || v.MajorVersion == 1 && v.MinorVersion < 5 {
			return nil, err
		}
		r, err := randr.GetMonitors(c.Conn, c.Root, false).Reply()
		if err != nil {
			return nil, err
		}
		var names []string
		for _, m := range r.Monitors {
			n, err := xproto.GetAtomName(c.Conn, m.Name).Reply()
			if err != nil {
				return nil, err
			}
			names = append(names, n.Name)
		}
		return names, nil
	})
}
