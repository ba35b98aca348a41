package desk

import (
	"context"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/input/simulated"
)

// openSimulated makes a desktop inside this process. It has no permissions to
// withhold, and nothing of the person's is on it.
func openSimulated(_ context.Context, o Options) (*computer.Desk, error) {
	so := simulated.Options{StateFile: simulatedFile(o)}
	if o.Width > 0 && o.Height > 0 {
		so.Displays = []capture.Display{simulated.Display(0, float64(o.Width), float64(o.Height), 1, input.Point{})}
	}
	d := simulated.New(so)
	return &computer.Desk{Own: true, Input: d, Source: d, Permissions: granted, Close: d.Close}, nil
}
