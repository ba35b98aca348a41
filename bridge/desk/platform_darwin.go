package desk

import (
	"context"
	"errors"

	"drawbridge/bridge/computer"
)

var errNotBuilt = errors.New("the macOS layer is not built yet")

var thisPlatform = platform{
	display: func(Options) (string, error) { return "the main display", nil },
	native: func(context.Context, Options, string) (*computer.Desk, error) {
		return nil, errNotBuilt
	},
	applescript: func(context.Context, Options) (*computer.Desk, error) {
		return nil, errNotBuilt
	},
	installed: func() error { return errors.New("a virtual desktop exists only on Linux") },
	simulated: openSimulated,
}
