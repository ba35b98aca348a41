package desk

import (
	"context"
	"errors"

	"drawbridge/bridge/computer"
)

var openX11 = func(context.Context, Options, string) (*computer.Desk, error) { return nil, errors.New("stub") }
var openVirtual = func(context.Context, Options) (*computer.Desk, error) { return nil, errors.New("stub") }
