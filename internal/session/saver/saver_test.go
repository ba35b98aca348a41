package saver_test

import (
	"errors"
	"testing"

	"github.com/godbus/dbus/v5"

	"drawbridge/internal/session/saver"
)

func TestSaver(t *testing.T) {
	address, stop, err := saver.Bus(t.TempDir())
	if errors.Is(err, saver.ErrNoDaemon) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	s, err := saver.Start(address)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := dbus.Connect(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	s.Lock(true, true)
	o := c.Object("org.freedesktop.ScreenSaver", "/org/freedesktop/ScreenSaver")
	var active bool
	if err := o.Call("org.freedesktop.ScreenSaver.GetActive", 0).Store(&active); err != nil || !active {
		t.Errorf("active %v, %v", active, err)
	}
	var cookie uint32
	if err := o.Call("org.freedesktop.ScreenSaver.Inhibit", 0, "app", "why").Store(&cookie); err != nil {
		t.Error(err)
	}
	if got := s.Inhibited(); len(got) != 1 || got[0] != "app: why" {
		t.Errorf("inhibited by %q", got)
	}
	if err := o.Call("org.freedesktop.ScreenSaver.UnInhibit", 0, cookie).Err; err != nil || len(s.Inhibited()) != 0 {
		t.Errorf("inhibited by %q, %v", s.Inhibited(), err)
	}
	session := c.Object("org.freedesktop.login1", "/org/freedesktop/login1/session/auto")
	if v, err := session.GetProperty("org.freedesktop.login1.Session.LockedHint"); err != nil || v.Value() != true {
		t.Errorf("hint %v, %v", v, err)
	}
	if _, err := session.GetProperty("org.freedesktop.login1.Session.Other"); err == nil {
		t.Error("a property that it has not is given")
	}
}
