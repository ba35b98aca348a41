package session

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"drawbridge/internal/session/saver"
)

// startBus starts a bus and makes it both the session's and the system's.
func startBus(t *testing.T) (address string) {
	t.Helper()
	address, stop, err := saver.Bus(t.TempDir())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", address)
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", address)
	return address
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

	v, err := saver.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, c := range []struct{ active, hint bool }{{false, false}, {true, false}, {false, true}} {
		v.Lock(c.active, c.hint)
		if got, want := s.Locked(ctx), c.active || c.hint; got != want {
			t.Errorf("%+v: locked %v", c, got)
		}
	}
	v.Lock(false, false)

	release := s.KeepAwake(ctx, "a batch runs")
	if got := v.Inhibited(); len(got) != 1 || got[0] != "Drawbridge: a batch runs" {
		t.Errorf("inhibited by %q", got)
	}
	release()
	if got := v.Inhibited(); len(got) != 0 {
		t.Errorf("still inhibited by %q", got)
	}

	// A hung service is not waited for.
	hang := make(chan struct{})
	defer close(hang)
	v.Hang(hang)
	done := make(chan bool, 1)
	go func() { done <- s.Locked(ctx) }()
	select {
	case locked := <-done:
		if locked {
			t.Error("a hung screen saver locks the screen")
		}
	case <-time.After(time.Minute):
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
