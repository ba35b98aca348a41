//go:build !darwin && !standin

package input

import "errors"

// OpenQuartz drives the desktop of macOS. This build has no Quartz layer.
func OpenQuartz() (Driver, error) {
	return nil, errors.New("input through Quartz exists on macOS only")
}
