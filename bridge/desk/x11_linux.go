package desk

import (
	"context"
	"errors"
	"path/filepath"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/input/virtual"
	"drawbridge/internal/session"
)

// openX11 opens the X display of the person. X11 asks nobody before it lets a
// program post events or look: whoever can connect may do both.
func openX11(ctx context.Context, o Options, display string) (*computer.Desk, error) {
	d, err := x11Desk(ctx, o, display, false)
	if err != nil {
		return nil, err
	}
	s := session.Open()
	sleeper := d.Input.(input.Sleeper)
	d.Blocked = func(ctx context.Context) error {
		switch state := s.State(ctx); {
		case state.Away:
			return capture.ErrLoginWindow
		case state.Locked:
			return capture.ErrLocked
		}
		asleep, err := sleeper.Asleep(ctx)
		if asleep {
			return capture.ErrAsleep
		}
		return err
	}
	server := d.Awake
	d.Awake = func(ctx context.Context) func() {
		first, second := server(ctx), s.KeepAwake(ctx, "a program uses the desktop")
		return func() { second(); first() }
	}
	inner := d.Close
	d.Close = func() error { return errors.Join(inner(), s.Close()) }
	return d, nil
}

func x11Desk(ctx context.Context, o Options, display string, own bool) (*computer.Desk, error) {
	source, err := capture.OpenX11(display)
	if err != nil {
		return nil, err
	}
	driver, err := input.OpenX11(display, own)
	if err != nil {
		source.Close()
		return nil, err
	}
	d := &computer.Desk{
		Own: own, Display: display, Input: driver, Source: source, Permissions: granted,
		Close: func() error { return errors.Join(driver.Close(), source.Close()) },
	}
	d.Awake = awake(driver, o.Log)
	// A desktop of our own is watched too: a person may have come onto it by a
	// remote desktop, and to watch costs nothing.
	if d.Person, d.Unwatched = driver.(input.Watched).Watch(ctx); d.Unwatched != nil {
		d.Person = nil
		o.Log.Warn().Err(d.Unwatched).Msg("the person's own input cannot be seen")
		return d, nil
	}
	d.Close = func() error { return errors.Join(d.Person.Close(), driver.Close(), source.Close()) }
	return d, nil
}

// openVirtual starts an X server and a window manager of our own.
func openVirtual(ctx context.Context, o Options) (*computer.Desk, error) {
	vo := virtual.Options{Width: o.Width, Height: o.Height}
	if o.StateDir != "" {
		vo.Dir = filepath.Join(o.StateDir, VirtualDir)
	}
	v, err := virtual.Start(ctx, vo)
	if err != nil {
		return nil, err
	}
	d, err := x11Desk(ctx, o, v.Display(), true)
	if err != nil {
		return nil, errors.Join(err, v.Close())
	}
	closing, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-v.Exited():
			o.Log.Error().Err(v.Err()).Msg("the virtual desktop is gone")
			if o.Lost != nil {
				o.Lost(v.Err())
			}
		case <-closing:
		}
	}()
	inner := d.Close
	d.Close = func() error {
		close(closing)
		<-watched
		return errors.Join(inner(), v.Close())
	}
	return d, nil
}
