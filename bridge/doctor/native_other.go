//go:build !linux && !darwin && !standin

package doctor

import (
	"context"
	"fmt"
	"runtime"

	"drawbridge/bridge/computer"
)

// openNative has no window to offer here.
func openNative(context.Context, *computer.Desk) (Window, error) {
	return nil, fmt.Errorf("there is no test window on %s: use --backend simulated to test the rest", runtime.GOOS)
}
