// Package desk opens the desktop that the computer tool drives: it picks the
// backend, and says which and why.
package desk

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/input"
)

// The backends.
const (
	Auto        = "auto"
	Native      = "native"
	AppleScript = "applescript"
	Virtual     = "virtual"
	Simulated   = "simulated"
)

// StateFile is where a simulated desktop writes what became of it, in the state
// directory, so that every action's effect can be read back.
const StateFile = "simulated.json"

// VirtualDir is where the files of a virtual desktop are, in the state
// directory; the key that opens it (Xauthority) among them.
const VirtualDir = "virtual"

// Options says which desktop is wanted.
type Options struct {
	Backend string // one of the constants; empty is Auto
	Capture string // auto, native or screencapture; empty is auto
	// StateDir is where a simulated desktop writes its StateFile, and a virtual
	// one keeps its VirtualDir.
	StateDir string
	// Width and Height are the size in pixels of a virtual or simulated desktop.
	Width, Height int
	// AllowXWayland uses the X11 backend under Wayland, where it reaches only
	// X11 applications.
	AllowXWayland bool
	// Lost, if set, is called once when a virtual desktop ends before it was
	// closed.
	Lost func(error)
	Log  zerolog.Logger

	getenv func(string) string // os.Getenv; another in tests
}

// platform is what one operating system offers. A function that is nil does not
// exist there.
type platform struct {
	// display tells where native's display is, or an error that says why there
	// is none that may be used.
	display     func(Options) (string, error)
	native      func(ctx context.Context, o Options, display string) (*computer.Desk, error)
	applescript func(ctx context.Context, o Options) (*computer.Desk, error)
	// installed tells what virtual misses on this machine.
	installed func() error
	virtual   func(ctx context.Context, o Options) (*computer.Desk, error)
	simulated func(ctx context.Context, o Options) (*computer.Desk, error)
}

// Open opens the desktop. A backend that is named is used or refused, never
// replaced; only auto chooses, and gives its reason in the desk's Reason. The
// simulated one is never chosen. The caller closes the desk.
func Open(ctx context.Context, o Options) (*computer.Desk, error) {
	o.getenv = os.Getenv
	return open(ctx, o, thisPlatform)
}

func open(ctx context.Context, o Options, p platform) (*computer.Desk, error) {
	if err := p.checkCapture(o); err != nil {
		return nil, err
	}
	d, err := p.open(ctx, o)
	if err != nil {
		return nil, err
	}
	event := o.Log.Info().Str("backend", d.Backend)
	if d.Reason != "" {
		event = event.Str("reason", d.Reason)
	}
	event.Msg("desktop opened")
	return d, nil
}

func (p platform) checkCapture(o Options) error {
	if o.Capture == "screencapture" && p.applescript == nil {
		return errors.New("capture screencapture exists only on macOS; set computer.capture to auto")
	}
	return nil
}

func (p platform) open(ctx context.Context, o Options) (*computer.Desk, error) {
	switch o.Backend {
	case Auto, "":
		return p.auto(ctx, o)
	case Native:
		display, err := p.display(o)
		if err != nil {
			return nil, fmt.Errorf("backend native: %w", err)
		}
		return named(Native)(p.native(ctx, o, display))
	case AppleScript:
		if p.applescript == nil {
			return nil, errors.New("backend applescript exists only on macOS; use auto, native, virtual or simulated")
		}
		return named(AppleScript)(p.applescript(ctx, o))
	case Virtual:
		if err := p.installed(); err != nil {
			return nil, fmt.Errorf("backend virtual: %w", err)
		}
		return named(Virtual)(p.virtual(ctx, o))
	case Simulated:
		return named(Simulated)(p.simulated(ctx, o))
	}
	return nil, fmt.Errorf("no backend is called %q; there are auto, native, applescript, virtual and simulated", o.Backend)
}

// named completes a desk with its backend's name, and names the backend in what
// it failed with.
func named(backend string) func(*computer.Desk, error) (*computer.Desk, error) {
	return func(d *computer.Desk, err error) (*computer.Desk, error) {
		if err != nil {
			return nil, fmt.Errorf("backend %s: %w", backend, err)
		}
		d.Backend = backend
		return d, nil
	}
}

func (p platform) auto(ctx context.Context, o Options) (*computer.Desk, error) {
	display, noNative := p.display(o)
	if noNative == nil {
		d, err := named(Native)(p.native(ctx, o, display))
		if err == nil {
			d.Reason = "auto: there is a display, " + display
			return d, nil
		}
		noNative = err
	}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if p.applescript != nil {
		d, err := named(AppleScript)(p.applescript(ctx, o))
		if err == nil {
			d.Reason = "auto: native is not usable: " + noNative.Error()
			return d, nil
		}
		return nil, neither(noNative, err)
	}
	noVirtual := p.installed()
	if noVirtual == nil {
		d, err := named(Virtual)(p.virtual(ctx, o))
		if err == nil {
			d.Reason = "auto: " + noNative.Error() + ", and Xvfb is installed"
			return d, nil
		}
		noVirtual = err
	}
	return nil, neither(noNative, noVirtual)
}

func neither(first, second error) error {
	return fmt.Errorf("no desktop to drive: %w; and %w. To try things out without one, name the simulated desktop: --backend simulated", first, second)
}

// simulatedFile is where the simulated desktop of a state directory writes.
func simulatedFile(o Options) string {
	if o.StateDir == "" {
		return ""
	}
	return filepath.Join(o.StateDir, StateFile)
}

// granted is the answer of a platform that has no permissions to give.
func granted(context.Context) map[string]computer.Permission {
	return map[string]computer.Permission{
		computer.PermAccessibility:   computer.Granted,
		computer.PermScreenRecording: computer.Granted,
	}
}

// awake has a driver keep its display awake. Where it cannot, a batch runs all the
// same: it is refused when the display sleeps.
func awake(driver input.Driver, log zerolog.Logger) func(context.Context) func() {
	return func(ctx context.Context) func() {
		release, err := driver.(input.Waker).KeepAwake(ctx)
		if err != nil {
			log.Debug().Err(err).Msg("the display is not kept awake")
		}
		return release
	}
}
