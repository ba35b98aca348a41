//go:build darwin || standin

package desk

import (
	"context"
	"errors"

	"github.com/rs/zerolog"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/grant"
	"drawbridge/bridge/measured"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/internal/quartz"
)

var thisPlatform = platform{
	display:     func(Options) (string, error) { return "macOS's own", nil },
	native:      openQuartz,
	applescript: openAppleScript,
	installed:   func() error { return errors.New("a virtual desktop exists only on Linux") },
	simulated:   openSimulated,
}

// openQuartz opens the person's desktop by macOS's own frameworks.
func openQuartz(ctx context.Context, o Options, _ string) (*computer.Desk, error) {
	source, err := capture.OpenQuartz(capture.QuartzOptions{Way: o.Capture})
	if err != nil {
		return nil, err
	}
	driver, err := input.OpenQuartz()
	if err != nil {
		source.Close()
		return nil, err
	}
	d := quartzDesk(driver, source, o.Log)
	d.System = quartz.SystemVersion()
	if f, ok := measured.Load(o.StateDir, d.System); ok {
		driver.(input.Wheeler).ReverseWheel(f.WheelReversed)
	}
	if d.Person, d.Unwatched = driver.(input.Watched).Watch(ctx); d.Unwatched == nil {
		d.Close = func() error { return errors.Join(d.Person.Close(), driver.Close(), source.Close()) }
	}
	return d, nil
}

// openAppleScript drives the desktop by System Events, and looks at it by
// Apple's command.
func openAppleScript(_ context.Context, o Options) (*computer.Desk, error) {
	if o.Capture == capture.QuartzNative {
		return nil, errors.New("it takes pictures by screencapture; set capture to auto or screencapture")
	}
	source, err := capture.OpenQuartz(capture.QuartzOptions{Way: capture.QuartzScreencapture})
	if err != nil {
		return nil, err
	}
	driver, err := input.OpenAppleScript()
	if err != nil {
		source.Close()
		return nil, err
	}
	d := quartzDesk(driver, source, o.Log)
	d.Can = &computer.Can{
		Actions:     []computer.ActionType{computer.Screenshot, computer.Click, computer.Keypress, computer.Type, computer.Wait},
		PlainClicks: true, ASCII: true, MainDisplay: true,
	}
	d.Permissions = grants(scriptGrant)
	return d, nil
}

// errNoTag tells why nobody watches the person where System Events act: what it
// posts carries nothing that tells it from the person's.
var errNoTag = errors.New("what System Events send cannot be told from the person's own mouse and keyboard")

func quartzDesk(driver input.Driver, source capture.Source, log zerolog.Logger) *computer.Desk {
	return &computer.Desk{
		Input: driver, Source: source, Permissions: grants(grant.Look), Unwatched: errNoTag, Awake: awake(driver, log),
		Close: func() error { return errors.Join(driver.Close(), source.Close()) },
	}
}

// needed are the grants without which something does not work. Input Monitoring is
// none: where it is missing the person is seen in another way, and where they are
// not, that is said.
var needed = []string{computer.PermAccessibility, computer.PermPostEvents, computer.PermScreenRecording}

// grants asks macOS by look, which never prompts: that is for a person who wants to
// be asked.
func grants(look func(name string) computer.Permission) func(context.Context) map[string]computer.Permission {
	return func(context.Context) map[string]computer.Permission {
		states := map[string]computer.Permission{}
		for _, name := range needed {
			states[name] = look(name)
		}
		return states
	}
}

// scriptGrant leaves open what System Events may do: macOS tells it with each
// script, and not before.
func scriptGrant(name string) computer.Permission {
	if name == computer.PermScreenRecording {
		return grant.Look(name)
	}
	return computer.Unknown
}
