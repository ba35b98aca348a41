package simulated

import (
	"context"

	"drawbridge/input"
)

// The window's name, for input.Namer.
const (
	appName     = "Simulated"
	windowTitle = "Practice window"
)

var frame = Rect{0, 0, windowSize[0], windowSize[1]}

var _ input.Namer = (*Desktop)(nil)

// Focused implements input.Namer. The role is the widget's name.
func (d *Desktop) Focused(ctx context.Context) (*input.Window, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.window.focus == "" {
		return nil, ctx.Err()
	}
	return d.named(d.window.focus), ctx.Err()
}

// Under implements input.Namer. The role is the widget's name.
func (d *Desktop) Under(ctx context.Context, p input.Point) (*input.Window, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p.X, p.Y = p.X-d.window.corner.X, p.Y-d.window.corner.Y
	if !frame.contains(p) {
		return nil, ctx.Err()
	}
	return d.named(d.window.hit(p)), ctx.Err()
}

// named is called with mu held.
func (d *Desktop) named(role string) *input.Window {
	at := frame.at(d.window.corner)
	return &input.Window{App: appName, Title: windowTitle, Role: role, Bounds: input.Rect{X: at[0], Y: at[1], Width: at[2], Height: at[3]}}
}
