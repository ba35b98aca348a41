//go:build darwin || standin

package grant

import (
	"context"
	"fmt"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
)

// List lists the grants, in the order in which a person is asked for them.
func List() []Grant { return all }

// asks are what macOS says of each, and how it is made to ask. The frameworks are
// loaded by whoever opened the desktop.
var asks = map[string]struct {
	given   func() bool
	request func() bool
}{
	computer.PermAccessibility:   {input.QuartzTrusted, input.QuartzAskTrust},
	computer.PermPostEvents:      {input.QuartzMayPost, input.QuartzAskPost},
	computer.PermScreenRecording: {capture.QuartzMayRecord, capture.QuartzAskRecord},
	computer.PermInputMonitoring: {input.QuartzMayListen, input.QuartzAskListen},
}

// Look asks macOS for the state of a grant. It never prompts.
func Look(name string) computer.Permission {
	a, ok := asks[name]
	switch {
	case !ok || input.LoadQuartz() != nil || capture.LoadQuartz() != nil:
		return computer.Unknown
	case a.given():
		return computer.Granted
	}
	return computer.Missing
}

// Request has macOS ask the person, where the grant is missing. macOS asks once; a
// person who said no gives it in System Settings.
func Request(name string) error {
	if _, ok := asks[name]; !ok {
		return fmt.Errorf("%s: %w", name, errUnknown)
	}
	if Look(name) == computer.Missing {
		asks[name].request()
	}
	return nil
}

// Probe puts what macOS says of a grant to the test where that can be done without
// posting events: by a small picture, which macOS may give before it says so. It
// may prompt.
func Probe(ctx context.Context, name string) computer.Permission {
	if name == computer.PermScreenRecording && Look(name) == computer.Missing && capture.QuartzProbe(ctx) == nil {
		return computer.Granted
	}
	return Look(name)
}
