//go:build !standin

package doctor

import (
	"context"

	"drawbridge/bridge/computer"
)

func openNative(ctx context.Context, d *computer.Desk) (Window, error) {
	return openX11Window(ctx, d.Display)
}
