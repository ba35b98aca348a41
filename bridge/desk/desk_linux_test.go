package desk

import (
	"strings"
	"testing"
)

func TestX11Display(t *testing.T) {
	for name, tc := range map[string]struct {
		env   map[string]string
		allow bool
		want  string
		says  string
	}{
		"x11":             {map[string]string{"DISPLAY": ":3"}, false, ":3", ""},
		"none":            {nil, false, "", "DISPLAY is not set"},
		"wayland":         {map[string]string{"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, false, "", "allow_xwayland: true"},
		"wayland allowed": {map[string]string{"DISPLAY": ":0", "WAYLAND_DISPLAY": "wayland-0"}, true, ":0", ""},
		"wayland alone":   {map[string]string{"WAYLAND_DISPLAY": "wayland-0"}, true, "", "DISPLAY is not set"},
	} {
		got, err := x11Display(Options{AllowXWayland: tc.allow, getenv: func(k string) string { return tc.env[k] }})
		if got != tc.want || (err == nil) != (tc.says == "") || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %q, %v; want %q and %q", name, got, err, tc.want, tc.says)
		}
	}
}
