//go:build !linux

package virtual

import (
	"context"
	"errors"
)

var errLinuxOnly = errors.New("a virtual desktop (Xvfb) exists on Linux only")

// Virtual is a running desktop. This build has none.
type Virtual struct{}

// Available says whether Start can work here: it cannot.
func Available() error { return errLinuxOnly }

// Start refuses: there is no Xvfb on this platform.
func Start(context.Context, Options) (*Virtual, error) { return nil, errLinuxOnly }

func (*Virtual) Display() string         { return "" }
func (*Virtual) Env() []string           { return nil }
func (*Virtual) Exited() <-chan struct{} { return nil }
func (*Virtual) Err() error              { return errLinuxOnly }
func (*Virtual) Close() error            { return nil }
