//go:build linux

package virtual

import (
	"context"

	"github.com/jezek/xgb"
	"github.com/jezek/xgb/xproto"

	"drawbridge/internal/x11"
)

// wmReady waits for a window manager: by convention it sets a property on the
// root window once it manages windows.
type wmReady struct {
	conn *x11.Conn
	up   <-chan struct{} // closed when it is there
}

func watchWM(ctx context.Context, display string) (wmReady, error) {
	props := make(chan xproto.Atom, 64)
	c, err := x11.Dial(ctx, display, func(ev xgb.Event) {
		if p, ok := ev.(xproto.PropertyNotifyEvent); ok && p.State == xproto.PropertyNewValue {
			select {
			case props <- p.Atom:
			default: // only while the start is long over
			}
		}
	})
	if err != nil {
		return wmReady{}, err
	}
	check, err := c.Atom(ctx, "_NET_SUPPORTING_WM_CHECK")
	if err == nil {
		err = c.Do(ctx, func() error {
			return xproto.ChangeWindowAttributesChecked(c.Conn, c.Root,
				xproto.CwEventMask, []uint32{xproto.EventMaskPropertyChange}).Check()
		})
	}
	if err != nil {
		c.Close()
		return wmReady{}, err
	}
	up := make(chan struct{})
	go func() {
		for {
			select {
			case a := <-props:
				if a == check {
					close(up)
					return
				}
			case <-c.Dead():
				return
			}
		}
	}()
	return wmReady{c, up}, nil
}
