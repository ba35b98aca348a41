//go:build linux

package input

import (
	"os/exec"
	"strings"
	"testing"
)

func TestXWayland(t *testing.T) {
	v := startDesk(t)
	t.Setenv("WAYLAND_DISPLAY", "wayland-0")
	t.Setenv("DISPLAY", ":59999")
	if why, err := XWayland(t.Context(), v.Display()); why != "" || err != nil {
		t.Errorf("another display than the desktop's: %q, %v", why, err)
	}
	t.Setenv("DISPLAY", v.Display())
	if why, err := XWayland(t.Context(), ""); !strings.Contains(why, "wayland-0") || err != nil {
		t.Errorf("the desktop's display: %q, %v", why, err)
	}
	t.Setenv("WAYLAND_DISPLAY", "")
	if why, err := XWayland(t.Context(), v.Display()); why != "" || err != nil {
		t.Errorf("a real X server: %q, %v", why, err)
	}
	need(t, "xrandr", "x11-xserver-utils")
	cmd := exec.Command("xrandr", "--setmonitor", "XWAYLAND0", "640/100x400/100+0+0", "none")
	cmd.Env = v.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("xrandr: %v: %s", err, out)
	}
	if why, err := XWayland(t.Context(), v.Display()); !strings.Contains(why, "XWAYLAND0") || err != nil {
		t.Errorf("a monitor of Xwayland: %q, %v", why, err)
	}
	if _, err := XWayland(t.Context(), ":59998"); err == nil {
		t.Error("no server gave no error")
	}
}
