//go:build !darwin && !standin

package capture

import (
	"errors"
	"time"
)

// QuartzOptions says how to take pictures on macOS.
type QuartzOptions struct {
	Way      string
	Pointer  bool
	Deadline time.Duration
}

// OpenQuartz looks at the displays of macOS. This build has no Quartz layer.
func OpenQuartz(QuartzOptions) (Source, error) {
	return nil, errors.New("capture through Quartz exists on macOS only")
}
