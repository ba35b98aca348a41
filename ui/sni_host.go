//go:build linux && !standin

package ui

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
)

// errNoBus tells that there is no session bus to be asked anything over.
var errNoBus = errors.New("there is no D-Bus session bus (DBUS_SESSION_BUS_ADDRESS is not set)")

// sessionBus connects to the session bus, if there is one. It never starts one,
// as the library does where it finds none.
func sessionBus() (*dbus.Conn, error) {
	if os.Getenv("DBUS_SESSION_BUS_ADDRESS") == "" {
		bus := filepath.Join(os.Getenv("XDG_RUNTIME_DIR"), "bus")
		if _, err := os.Stat(bus); err != nil || !filepath.IsAbs(bus) {
			return nil, errNoBus
		}
	}
	conn, err := dbus.ConnectSessionBus(dbus.WithSignalHandler(dbus.NewSequentialSignalHandler()))
	if err != nil {
		return nil, fmt.Errorf("the D-Bus session bus cannot be used: %w", err)
	}
	return conn, nil
}

const (
	sniWatcher     = "org.kde.StatusNotifierWatcher"
	sniWatcherPath = "/StatusNotifierWatcher"
	ownerChanged   = "org.freedesktop.DBus.NameOwnerChanged"
	// busTimeout bounds what we ask of other programs on the bus.
	busTimeout = 3 * time.Second
)

// sniHost follows whether a panel shows status items.
type sniHost struct {
	conn    *dbus.Conn
	hosted  atomic.Bool
	changed func()
	ended   sync.WaitGroup
}

func openHost(changed func()) (*sniHost, error) {
	conn, err := sessionBus()
	if err != nil {
		return nil, err
	}
	h := &sniHost{conn: conn, changed: changed}
	signals := make(chan *dbus.Signal, 16)
	conn.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, sniWatcher)},
		{dbus.WithMatchInterface(sniWatcher), dbus.WithMatchMember("StatusNotifierHostRegistered")},
		{dbus.WithMatchInterface(sniWatcher), dbus.WithMatchMember("StatusNotifierHostUnregistered")},
	} {
		if err := conn.AddMatchSignal(match...); err != nil {
			conn.Close()
			return nil, fmt.Errorf("follow the panel: %w", err)
		}
	}
	h.hosted.Store(h.look())
	h.ended.Go(func() {
		for range signals { // closed with the connection
			if now := h.look(); h.hosted.Swap(now) != now {
				h.changed()
			}
		}
		if h.hosted.Swap(false) {
			h.changed()
		}
	})
	return h, nil
}

// look asks whether a watcher is there and has a host.
func (h *sniHost) look() bool {
	ctx, cancel := context.WithTimeout(context.Background(), busTimeout)
	defer cancel()
	var v dbus.Variant
	err := h.conn.Object(sniWatcher, sniWatcherPath).CallWithContext(ctx, "org.freedesktop.DBus.Properties.Get", 0,
		sniWatcher, "IsStatusNotifierHostRegistered").Store(&v)
	yes, ok := v.Value().(bool)
	return err == nil && ok && yes
}

func (h *sniHost) Hosted() bool { return h.hosted.Load() && h.conn.Connected() }

func (h *sniHost) Connected() bool { return h.conn.Connected() }

func (h *sniHost) Close() {
	h.conn.Close()
	h.ended.Wait()
}
