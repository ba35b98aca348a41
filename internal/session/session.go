// Package session asks a Linux desktop session, over D-Bus, whether its screen is
// locked, and keeps it from going to sleep. What is not there is left out: a plain
// window manager has no session to ask.
package session

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/godbus/dbus/v5"
)

// openTime is what the connection to a bus may take.
const openTime = time.Second

// answerTime is what one service may take to answer: a hung one is not waited for.
// It is far more than a busy machine needs: a locked screen that is not heard of
// counts as unlocked.
const answerTime = 500 * time.Millisecond

// Session is a person's desktop session.
type Session struct {
	user, system *dbus.Conn // nil: no such bus
}

// Open connects to the session's bus and to the system's, where there are any. It
// starts neither. The caller closes it.
func Open() *Session {
	system := os.Getenv("DBUS_SYSTEM_BUS_ADDRESS")
	if system == "" {
		system = "unix:path=/run/dbus/system_bus_socket"
	}
	return &Session{user: connect(Address()), system: connect(system)}
}

// Address is where the session's bus is, whether or not there is one.
func Address() string {
	if a := os.Getenv("DBUS_SESSION_BUS_ADDRESS"); a != "" {
		return a
	}
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" {
		dir = filepath.Join("/run/user", strconv.Itoa(os.Getuid()))
	}
	return "unix:path=" + filepath.Join(dir, "bus")
}

func connect(address string) *dbus.Conn {
	ctx, cancel := context.WithCancel(context.Background())
	t := time.AfterFunc(openTime, cancel)
	c, err := dbus.Connect(address, dbus.WithContext(ctx))
	if !t.Stop() || err != nil {
		cancel()
		if err == nil {
			c.Close()
		}
		return nil
	}
	context.AfterFunc(c.Context(), cancel)
	return c
}

// Close ends the connections, and with them whatever they inhibit.
func (s *Session) Close() error {
	for _, c := range []*dbus.Conn{s.user, s.system} {
		if c != nil {
			c.Close() // an error says that it was closed already
		}
	}
	return nil
}

// savers are the services that know of a locked screen, and keep awake.
var savers = []struct{ name, path string }{
	{"org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"},
	{"org.gnome.ScreenSaver", "/org/gnome/ScreenSaver"},
}

// call asks a service that runs. It starts none.
func call(ctx context.Context, c *dbus.Conn, name, path, method string, args ...any) *dbus.Call {
	return c.Object(name, dbus.ObjectPath(path)).CallWithContext(ctx, method, dbus.FlagNoAutoStart, args...)
}

// State is what a session says of itself.
type State struct {
	Locked bool // the screen is locked
	// Away: another session is in front on this seat: a login window's, or another
	// person's. A session without a seat, as a remote one, is never away.
	Away bool
}

// State asks for it. What nobody says is not so.
func (s *Session) State(ctx context.Context) State {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var st State
	if s.system != nil {
		const login = "org.freedesktop.login1"
		var all map[string]dbus.Variant
		if call(ctx, s.system, login, "/org/freedesktop/login1/session/auto", "org.freedesktop.DBus.Properties.GetAll",
			login+".Session").Store(&all) == nil {
			st = stateOf(all)
		}
	}
	// Last, since screen savers hang more easily than logind.
	if s.user != nil && !st.Locked {
		for _, v := range savers {
			var active bool
			if call(ctx, s.user, v.name, v.path, v.name+".GetActive").Store(&active) == nil && active {
				st.Locked = true
			}
		}
	}
	return st
}

// stateOf reads the properties of a session of logind. One that is missing, or of
// another type than it should be, says nothing.
func stateOf(all map[string]dbus.Variant) State {
	locked, _ := all["LockedHint"].Value().(bool)
	active, ok := all["Active"].Value().(bool)
	var name string
	if seat, _ := all["Seat"].Value().([]any); len(seat) > 0 {
		name, _ = seat[0].(string)
	}
	return State{Locked: locked, Away: ok && !active && name != ""}
}

// KeepAwake asks the session not to blank, lock or sleep, until release is called
// or we are gone. why is shown to the person who wonders.
func (s *Session) KeepAwake(ctx context.Context, why string) (release func()) {
	if s.user == nil {
		return func() {}
	}
	v := savers[0]
	asked, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	var cookie uint32
	if call(asked, s.user, v.name, v.path, v.name+".Inhibit", "Drawbridge", why).Store(&cookie) != nil {
		return func() {}
	}
	return func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), answerTime)
		defer cancel()
		// Should it fail, the service still lets go when our connection ends.
		_ = call(ctx, s.user, v.name, v.path, v.name+".UnInhibit", cookie).Err
	}
}
