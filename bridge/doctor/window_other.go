//go:build !linux

package doctor

import (
	"context"
	"fmt"
	"runtime"
)

// openNative has no window to offer here.
func openNative(context.Context, string) (Window, error) {
	return nil, fmt.Errorf("there is no test window on %s yet: use --backend simulated to test the rest", runtime.GOOS)
}
