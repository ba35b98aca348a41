package session

import (
	"bufio"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
)

// startBus starts a bus and makes it both the session's and the system's.
func startBus(t *testing.T) (address string) {
	t.Helper()
	if _, err := exec.LookPath("dbus-daemon"); err != nil {
		t.Skip("dbus-daemon is missing: apt-get install dbus-daemon")
	}
	cmd := exec.Command("dbus-daemon", "--session", "--nofork", "--print-address=1",
		"--address=unix:path="+filepath.Join(t.TempDir(), "bus"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Process.Kill(); cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	address = strings.TrimSpace(line)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	return address
}

// saver is a screen saver with the methods of org.freedesktop.ScreenSaver that its
// specification names, and a login session's property.
type saver struct {
	mu     sync.Mutex // guards what follows
	active bool
	hint   bool
	next   uint32
	held   map[uint32]string
	hang   chan struct{} // nil: it answers
}

func (s *saver) GetActive() (bool, *dbus.Error) {
	s.mu.Lock()
	hang, active := s.hang, s.active
	s.mu.Unlock()
	if hang != nil {
		<-hang
	}
	return active, nil
}

func (s *saver) Inhibit(app, why string) (uint32, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.next++
	s.held[s.next] = app + ": " + why
	return s.next, nil
}

func (s *saver) UnInhibit(cookie uint32) *dbus.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.held, cookie)
	return nil
}

// Get is org.freedesktop.DBus.Properties.Get.
func (s *saver) Get(face, name string) (dbus.Variant, *dbus.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if face != "org.freedesktop.login1.Session" || name != "LockedHint" {
		return dbus.Variant{}, dbus.MakeFailedError(dbus.ErrMsgUnknownMethod)
	}
	return dbus.MakeVariant(s.hint), nil
}

func (s *saver) set(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

func TestSession(t *testing.T) {
	address := startBus(t)
	s := Open()
	defer s.Close()
	ctx := t.Context()
	if s.Locked(ctx) {
		t.Error("without a screen saver the screen is locked")
	}
	s.KeepAwake(ctx, "nobody is there")()

	c, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	v := &saver{held: map[uint32]string{}}
	for _, e := range []struct{ face, path string }{
		{"org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver"},
		{"org.freedesktop.DBus.Properties", "/org/freedesktop/login1/session/auto"},
	} {
		if err := c.Export(v, dbus.ObjectPath(e.path), e.face); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"org.freedesktop.ScreenSaver", "org.freedesktop.login1"} {
		if r, err := c.RequestName(name, 0); err != nil || r != dbus.RequestNameReplyPrimaryOwner {
			t.Fatal(r, err)
		}
	}
	if s.Locked(ctx) {
		t.Error("an unlocked screen is locked")
	}
	v.set(func() { v.active = true })
	if !s.Locked(ctx) {
		t.Error("the screen saver is not believed")
	}
	v.set(func() { v.active, v.hint = false, true })
	if !s.Locked(ctx) {
		t.Error("the login session is not believed")
	}
	v.set(func() { v.hint = false })

	release := s.KeepAwake(ctx, "a batch runs")
	v.set(func() {
		if len(v.held) != 1 || v.held[1] != "Drawbridge: a batch runs" {
			t.Errorf("inhibited by %v", v.held)
		}
	})
	release()
	v.set(func() {
		if len(v.held) != 0 {
			t.Errorf("still inhibited by %v", v.held)
		}
	})

	// A hung service is not waited for.
	hang := make(chan struct{})
	defer close(hang)
	v.set(func() { v.hang = hang })
	done := make(chan bool, 1)
	go func() { done <- s.Locked(ctx) }()
	select {
	case locked := <-done:
		if locked {
			t.Error("a hung screen saver locks the screen")
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a hung screen saver is waited for")
	}
}

func TestNoBus(t *testing.T) {
	for _, name := range []string{"DBUS_SESSION_BUS_ADDRESS", "DBUS_SYSTEM_BUS_ADDRESS"} {
		t.Setenv(name, "unix:path="+filepath.Join(t.TempDir(), "none"))
	}
	s := Open()
	if s.Locked(t.Context()) {
		t.Error("without a bus the screen is locked")
	}
	s.KeepAwake(t.Context(), "nothing")()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}
