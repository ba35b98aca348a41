//go:build linux

package input

import (
	"context"

	"github.com/jezek/xgb/dpms"
	"github.com/jezek/xgb/screensaver"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// KeepAwake implements Waker. The server forgets it when the connection ends, so
// it is given back also by a process that dies.
func (d *x11Driver) KeepAwake(ctx context.Context) (release func(), err error) {
	const name = "MIT-SCREEN-SAVER"
	if ok, err := d.conn.Extension(ctx, name); !ok || err != nil {
		return func() {}, err
	}
	suspend := func(ctx context.Context, n uint32) error {
		return d.conn.Do(ctx, func() error { return screensaver.SuspendChecked(d.conn.Conn, n).Check() })
	}
	if err := suspend(ctx, 1); err != nil {
		return func() {}, d.fail("keep the display awake", err)
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
		defer cancel()
		_ = suspend(ctx, 0) // fails with the connection, which gives it back
	}, nil
}

// Asleep implements Sleeper. A display sleeps when its power is down, and when the
// server's own screen saver has blanked it.
func (d *x11Driver) Asleep(ctx context.Context) (asleep bool, err error) {
	power, err := d.conn.Extension(ctx, "DPMS")
	if err == nil && power {
		asleep, err = x11.Await(ctx, d.conn, func() (bool, error) {
			r, err := dpms.Info(d.conn.Conn).Reply()
			return err == nil && r.State && r.PowerLevel != dpms.DPMSModeOn, err
		})
	}
	saver := false
	if err == nil && !asleep {
		saver, err = d.conn.Extension(ctx, "MIT-SCREEN-SAVER")
	}
	if err == nil && saver {
		asleep, err = x11.Await(ctx, d.conn, func() (bool, error) {
			r, err := screensaver.QueryInfo(d.conn.Conn, xproto.Drawable(d.conn.Root)).Reply()
			return err == nil && r.State == screensaver.StateOn, err
		})
	}
	if err != nil {
		return false, d.fail("ask whether the display sleeps", err)
	}
	return asleep, nil
}
