package atspi

import (
	"context"

	"github.com/godbus/dbus/v5"

	"drawbridge/internal/session"
)

// SessionAddress asks the person's session where its accessibility bus is; empty:
// there is none. The service that knows would start one, so it is asked only where
// the person has accessibility switched on, and is not started itself.
func SessionAddress(ctx context.Context) string {
	life, cancel := context.WithCancel(ctx)
	defer cancel()
	bus, err := dbus.Connect(session.Address(), dbus.WithContext(life))
	if err != nil {
		return ""
	}
	defer bus.Close()
	o := bus.Object("org.a11y.Bus", "/org/a11y/bus")
	var enabled dbus.Variant
	err = o.CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", dbus.FlagNoAutoStart, "org.a11y.Status", "IsEnabled").Store(&enabled)
	if on, ok := enabled.Value().(bool); err != nil || !ok || !on {
		return ""
	}
	var address string
	if o.CallWithContext(ctx, "org.a11y.Bus.GetAddress", dbus.FlagNoAutoStart).Store(&address) != nil {
		return ""
	}
	return address
}
