//go:build !darwin && !standin

package grant

import (
	"context"
	"fmt"

	"drawbridge/bridge/computer"
)

// List is empty: nothing has to be granted here.
func List() []Grant { return nil }

// Look knows nothing here.
func Look(string) computer.Permission { return computer.Unknown }

// Request has nobody to ask.
func Request(name string) error {
	return fmt.Errorf("request %s: only macOS has grants", name)
}

// Probe knows nothing here.
func Probe(context.Context, string) computer.Permission { return computer.Unknown }
