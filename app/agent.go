package main

import (
	"context"

	"github.com/rs/zerolog"

	"drawbridge/app/config"
	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
)

type leaser interface {
	Acquire(ctx context.Context, holder string, waiting func(string)) (func(), error)
}
type agent struct {
	desk  *computer.Desk
	lease leaser
}

func (a *agent) config() config.Config { return config.Config{} }
func newAgent(ctx context.Context, c *cli, o runOptions, conf *config.Loaded, dir string, log zerolog.Logger, end context.CancelCauseFunc) (*agent, error) {
	return nil, nil
}
func (a *agent) run(ctx context.Context) error { return nil }
func (a *agent) reload() (reloaded, error)     { return reloaded{}, nil }

// deskOptions says which desktop a configuration asks for.
func deskOptions(c config.Config, stateDir string, log zerolog.Logger) desk.Options {
	return desk.Options{
		Backend: c.Computer.Backend, Capture: c.Computer.Capture, StateDir: stateDir,
		Width: c.Virtual.Width, Height: c.Virtual.Height,
		AllowXWayland: c.AllowXWayland, Log: log,
	}
}
