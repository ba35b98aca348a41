//go:build !standin

package desk

import (
	"errors"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/session/saver"
	"drawbridge/internal/x11/power"
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

// works moves the pointer, reads it back, and takes a picture.
func works(t *testing.T, d *computer.Desk, width, height int) {
	t.Helper()
	want := input.Point{X: 33, Y: 44}
	if err := d.Input.Move(t.Context(), want); err != nil {
		t.Fatal(err)
	}
	if at, err := d.Input.Pointer(t.Context()); err != nil || at != want {
		t.Errorf("pointer at %v, %v; want %v", at, err, want)
	}
	displays, err := d.Source.Displays(t.Context())
	if err != nil || len(displays) != 1 {
		t.Fatalf("displays %v, %v", displays, err)
	}
	f, err := d.Source.Grab(t.Context(), displays[0], image.Rectangle{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	if f.Width != width || f.Height != height {
		t.Errorf("a picture of %dx%d, want %dx%d", f.Width, f.Height, width, height)
	}
}

func TestVirtualAndNative(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	lost := make(chan error, 1)
	v, err := Open(t.Context(), Options{Backend: Virtual, StateDir: dir, Width: 640, Height: 480, Lost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	if !v.Own || v.Backend != Virtual || v.Display == "" {
		t.Errorf("own %v, backend %s, display %q", v.Own, v.Backend, v.Display)
	}
	if _, err := os.Stat(filepath.Join(dir, VirtualDir, "Xauthority")); err != nil {
		t.Errorf("the key is not in the state directory: %v", err)
	}
	works(t, v, 640, 480)

	// The same display as a person's would be reached.
	n, err := open(t.Context(), Options{Backend: Auto, getenv: func(k string) string {
		return map[string]string{"DISPLAY": v.Display}[k]
	}}, thisPlatform)
	if err != nil {
		t.Fatal(err)
	}
	if n.Own || n.Backend != Native || !strings.Contains(n.Reason, v.Display) {
		t.Errorf("own %v, backend %s, reason %q", n.Own, n.Backend, n.Reason)
	}
	works(t, n, 640, 480)
	if n.Person == nil || n.Unwatched != nil || v.Person == nil {
		t.Errorf("nobody watches the person: %v", n.Unwatched)
	}
	if err := n.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	if err := v.Close(); err != nil {
		t.Errorf("closing: %v", err)
	}
	select {
	case err := <-lost:
		t.Errorf("a desktop that was closed counts as lost: %v", err)
	default:
	}
}

// A session that is locked, sleeps or is not in front takes no input, and one that
// is used does not fall asleep.
func TestSession(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	address, stop, err := saver.Bus(t.TempDir())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	s, err := saver.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	v, err := virtual.Start(t.Context(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	number, err := strconv.Atoi(v.Display()[1:])
	if err != nil {
		t.Fatal(err)
	}
	relay, err := power.Start(t.TempDir(), number)
	if err != nil {
		t.Fatal(err)
	}
	defer relay.Close()
	d, err := open(t.Context(), Options{Backend: Native, getenv: func(k string) string {
		return map[string]string{"DISPLAY": relay.Display()}[k]
	}}, thisPlatform)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	if err := d.Blocked(t.Context()); err != nil {
		t.Errorf("an unlocked session: %v", err)
	}
	s.Lock(true, false)
	if err := d.Blocked(t.Context()); !errors.Is(err, capture.ErrLocked) {
		t.Errorf("a locked session: %v", err)
	}
	s.Lock(false, false)
	s.Away(true)
	if err := d.Blocked(t.Context()); !errors.Is(err, capture.ErrLoginWindow) {
		t.Errorf("another session in front: %v", err)
	}
	s.Away(false)
	relay.Set(power.Off)
	if err := d.Blocked(t.Context()); !errors.Is(err, capture.ErrAsleep) {
		t.Errorf("a display that sleeps: %v", err)
	}
	relay.Set(power.On)
	release := d.Awake(t.Context())
	if got := s.Inhibited(); len(got) != 1 {
		t.Errorf("kept awake by %q", got)
	}
	release()
	if got := s.Inhibited(); len(got) != 0 {
		t.Errorf("still kept awake by %q", got)
	}
}

func TestVirtualLost(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	dir := t.TempDir()
	lost := make(chan error, 1)
	v, err := Open(t.Context(), Options{Backend: Virtual, StateDir: dir, Lost: func(err error) { lost <- err }})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	out, err := exec.Command("pgrep", "-f", filepath.Join(dir, VirtualDir, "Xauthority")).Output()
	if err != nil {
		t.Skip("no pgrep to find the server with")
	}
	pid, err := strconv.Atoi(strings.Fields(string(out))[0])
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-lost:
		if err == nil {
			t.Error("lost without a reason")
		}
	case <-time.After(time.Minute):
		t.Fatal("nobody was told")
	}
	if err := v.Input.Move(t.Context(), input.Point{X: 1, Y: 1}); !errors.Is(err, input.ErrGone) {
		t.Errorf("moving on a desktop that is gone: %v, want ErrGone", err)
	}
}

func TestNativeWithoutServer(t *testing.T) {
	o := Options{Backend: Native, getenv: func(k string) string {
		return map[string]string{"DISPLAY": ":64999"}[k]
	}}
	if _, err := open(t.Context(), o, thisPlatform); err == nil || !strings.Contains(err.Error(), "backend native") || !strings.Contains(err.Error(), ":64999") {
		t.Errorf("a display that is not there: %v; want it named", err)
	}
}
