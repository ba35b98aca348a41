package session

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"

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
	if got := s.State(ctx); got != (State{}) {
		t.Errorf("without a screen saver: %+v", got)
	}
	s.KeepAwake(ctx, "nobody is there")()

	v, err := saver.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	for _, c := range []struct{ active, hint, away bool }{{false, false, false}, {true, false, false}, {false, true, false}, {false, false, true}} {
		v.Lock(c.active, c.hint)
		v.Away(c.away)
		if got, want := s.State(ctx), (State{Locked: c.active || c.hint, Away: c.away}); got != want {
			t.Errorf("%+v: %+v", c, got)
		}
	}
	v.Lock(false, false)
	v.Away(false)

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
	done := make(chan State, 1)
	go func() { done <- s.State(ctx) }()
	select {
	case state := <-done:
		if state.Locked {
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
	if got := s.State(t.Context()); got != (State{}) {
		t.Errorf("without a bus: %+v", got)
	}
	s.KeepAwake(t.Context(), "nothing")()
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestStateOf(t *testing.T) {
	v := dbus.MakeVariant
	seat, none := v([]any{"seat0", dbus.ObjectPath("/s")}), v([]any{"", dbus.ObjectPath("/")})
	for _, c := range []struct {
		all  map[string]dbus.Variant
		want State
	}{
		{nil, State{}},
		{map[string]dbus.Variant{"LockedHint": v(true), "Active": v(true), "Seat": seat}, State{Locked: true}},
		{map[string]dbus.Variant{"Active": v(false), "Seat": seat}, State{Away: true}},
		{map[string]dbus.Variant{"Active": v(false), "Seat": none}, State{}},
		{map[string]dbus.Variant{"Active": v(false)}, State{}},
		{map[string]dbus.Variant{"Seat": seat}, State{}},
		{map[string]dbus.Variant{"LockedHint": v("yes"), "Active": v(int32(0)), "Seat": v([]any{})}, State{}},
	} {
		if got := stateOf(c.all); got != c.want {
			t.Errorf("%v: %+v, want %+v", c.all, got, c.want)
		}
	}
}
