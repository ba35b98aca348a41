// Package saver plays, in tests, what a desktop session has on D-Bus: a bus of its
// own, a screen saver with the methods that the specification of
// org.freedesktop.ScreenSaver names, and the LockedHint, Active and Seat that
// logind's manual page gives a session.
package saver

import (
	"bufio"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"

	"github.com/godbus/dbus/v5"
)

// ErrNoDaemon: there is no bus to be had on this machine.
var ErrNoDaemon = errors.New("dbus-daemon is missing: apt-get install dbus-daemon")

// Bus starts a bus whose socket is in dir. It and the services that it starts when
// they are asked for have the environment env; without one, this process's. stop
// ends it.
func Bus(dir string, env ...string) (address string, stop func(), err error) {
	path, err := exec.LookPath("dbus-daemon")
	if err != nil {
		return "", nil, ErrNoDaemon
	}
	cmd := exec.Command(path, "--session", "--nofork", "--print-address=1", "--address=unix:path="+filepath.Join(dir, "bus"))
	cmd.Env = env
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return "", nil, fmt.Errorf("start a bus: %w", err)
	}
	stop = func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // killed: the error says so
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		stop()
		return "", nil, fmt.Errorf("the bus did not tell its address: %w", err)
	}
	return strings.TrimSpace(line), stop, nil
}

// Saver is a screen saver and a login session.
type Saver struct {
	conn *dbus.Conn

	mu        sync.Mutex // guards what follows
	active    bool
	hint      bool
	away      bool
	next      uint32
	inhibited map[uint32]string
	hang      <-chan struct{}
}

// Start puts a saver onto a bus.
func Start(address string) (*Saver, error) {
	c, err := dbus.Connect(address)
	if err != nil {
		return nil, err
	}
	s := &Saver{conn: c, inhibited: map[uint32]string{}}
	for _, e := range []struct {
		name, face string
		path       dbus.ObjectPath
		object     any
	}{
		{"org.freedesktop.ScreenSaver", "org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver", screen{s}},
		{"org.freedesktop.login1", "org.freedesktop.DBus.Properties", "/org/freedesktop/login1/session/auto", login{s}},
	} {
		if err == nil {
			err = c.Export(e.object, e.path, e.face)
		}
		if err == nil {
			_, err = c.RequestName(e.name, 0)
		}
	}
	if err != nil {
		c.Close()
		return nil, err
	}
	return s, nil
}

// Close takes the saver off the bus.
func (s *Saver) Close() error { return s.conn.Close() }

// Lock sets what the screen saver and the login session say.
func (s *Saver) Lock(active, hint bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.active, s.hint = active, hint
}

// Away puts another session in front on the seat.
func (s *Saver) Away(away bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.away = away
}

// Hang makes the screen saver answer nothing before until is closed.
func (s *Saver) Hang(until <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hang = until
}

// Inhibited lists who keeps the screen on, and why.
func (s *Saver) Inhibited() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []string
	for _, why := range s.inhibited {
		all = append(all, why)
	}
	return all
}

// screen has the methods of org.freedesktop.ScreenSaver.
type screen struct{ s *Saver }

func (o screen) GetActive() (bool, *dbus.Error) {
	o.s.mu.Lock()
	hang, active := o.s.hang, o.s.active
	o.s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return active, nil
}

func (o screen) Inhibit(app, why string) (uint32, *dbus.Error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	o.s.next++
	o.s.inhibited[o.s.next] = app + ": " + why
	return o.s.next, nil
}

func (o screen) UnInhibit(cookie uint32) *dbus.Error {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	delete(o.s.inhibited, cookie)
	return nil
}

// login has the properties of a session of org.freedesktop.login1.
type login struct{ s *Saver }

func (o login) GetAll(face string) (map[string]dbus.Variant, *dbus.Error) {
	o.s.mu.Lock()
	defer o.s.mu.Unlock()
	if face != "org.freedesktop.login1.Session" {
		return nil, dbus.MakeFailedError(fmt.Errorf("no properties of %s", face))
	}
	seat := struct {
		Name string
		Path dbus.ObjectPath
	}{"seat0", "/org/freedesktop/login1/seat/seat0"}
	return map[string]dbus.Variant{"LockedHint": dbus.MakeVariant(o.s.hint), "Active": dbus.MakeVariant(!o.s.away),
		"Seat": dbus.MakeVariant(seat)}, nil
}
