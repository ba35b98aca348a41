//go:build linux && !standin

package ui

import (
	"bufio"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"
)

// startBus starts a session bus of the test's own and makes it that of the
// process.
func startBus(t *testing.T) {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("dbus-daemon is not installed (Debian package dbus)")
	}
	cmd := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	address, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", strings.TrimSpace(address))
}

func busConn(t *testing.T) *dbus.Conn {
	t.Helper()
	conn, err := sessionBus()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// fakeDaemon is a notification daemon after the Desktop Notifications
// Specification 1.2, which behaves as xfce4-notifyd 0.7 was seen to: a click on a
// button sends ActionInvoked and then NotificationClosed with reason 2, a click
// elsewhere only the latter, CloseNotification closes with reason 3, and a
// notification that is closed already cannot be closed again.
type fakeDaemon struct {
	conn *dbus.Conn
	can  []string

	mu   sync.Mutex // guards everything below
	dies bool       // at the next notification, without an answer
	next uint32
	up   map[uint32]fakeNotification
	news chan fakeNotification // every one that is put up
	gone chan uint32           // every one that we close
}

type fakeNotification struct {
	id            uint32
	summary, body string
	actions       []string
	hints         map[string]dbus.Variant
	timeout       int32
}

func newFakeDaemon(t *testing.T, can ...string) *fakeDaemon {
	t.Helper()
	d := &fakeDaemon{conn: busConn(t), can: can, up: map[uint32]fakeNotification{}, news: make(chan fakeNotification, 100), gone: make(chan uint32, 100)}
	if err := d.conn.Export(d, notifyPath, notifyName); err != nil {
		t.Fatal(err)
	}
	if r, err := d.conn.RequestName(notifyName, dbus.NameFlagDoNotQueue); err != nil || r != dbus.RequestNameReplyPrimaryOwner {
		t.Fatal(r, err)
	}
	return d
}

// GetCapabilities is part of the specification.
func (d *fakeDaemon) GetCapabilities() ([]string, *dbus.Error) { return d.can, nil }

// Notify is part of the specification.
func (d *fakeDaemon) Notify(_ string, _ uint32, _, summary, body string, actions []string, hints map[string]dbus.Variant, timeout int32) (uint32, *dbus.Error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.next++
	n := fakeNotification{d.next, summary, body, actions, hints, timeout}
	d.up[n.id] = n
	d.news <- n
	if d.dies {
		_ = d.conn.Close()
	}
	return n.id, nil
}

// CloseNotification is part of the specification.
func (d *fakeDaemon) CloseNotification(id uint32) *dbus.Error {
	if !d.take(id) {
		return dbus.NewError("org.freedesktop.DBus.Error.InvalidArgs", nil)
	}
	d.emit("NotificationClosed", id, uint32(3))
	d.gone <- id
	return nil
}

func (d *fakeDaemon) take(id uint32) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, ok := d.up[id]
	delete(d.up, id)
	return ok
}

func (d *fakeDaemon) count() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.up)
}

func (d *fakeDaemon) emit(signal string, args ...any) {
	_ = d.conn.Emit(notifyPath, notifyName+"."+signal, args...)
}

// click is the person's click on a button.
func (d *fakeDaemon) click(id uint32, action string) {
	if d.take(id) {
		d.emit("ActionInvoked", id, action)
		d.emit("NotificationClosed", id, uint32(byPerson))
	}
}

// end closes a notification for a reason.
func (d *fakeDaemon) end(id, reason uint32) {
	if d.take(id) {
		d.emit("NotificationClosed", id, reason)
	}
}

// TestFakeDaemon holds the fake to what it says of itself.
func TestFakeDaemon(t *testing.T) {
	startBus(t)
	d := newFakeDaemon(t, "actions")
	c := busConn(t)
	signals := make(chan *dbus.Signal, 10)
	c.Signal(signals)
	if err := c.AddMatchSignal(dbus.WithMatchInterface(notifyName)); err != nil {
		t.Fatal(err)
	}
	o := c.Object(notifyName, notifyPath)
	var id uint32
	notify := func() {
		if err := o.Call(notifyName+".Notify", 0, "a", uint32(0), "", "s", "b", []string{"x", "X"}, map[string]dbus.Variant{}, int32(0)).Store(&id); err != nil {
			t.Fatal(err)
		}
	}
	want := func(name string, second any) {
		t.Helper()
		s := <-signals
		for !strings.HasPrefix(s.Name, notifyName) { // the bus's own
			s = <-signals
		}
		if s.Name != name || s.Body[0] != id || s.Body[1] != second {
			t.Fatalf("%+v, want %s %v", s, name, second)
		}
	}
	notify()
	d.click(id, "x")
	want(notifyAction, "x")
	want(notifyClosed, uint32(2))
	notify()
	d.end(id, 1)
	want(notifyClosed, uint32(1))
	notify()
	if err := o.Call(notifyName+".CloseNotification", 0, id).Err; err != nil {
		t.Fatal(err)
	}
	want(notifyClosed, uint32(3))
	if err := o.Call(notifyName+".CloseNotification", 0, id).Err; err == nil || d.count() != 0 {
		t.Error("closed twice")
	}
}
