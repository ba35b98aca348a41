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
	s.Away(true)
	var all map[string]dbus.Variant
	if err := session.Call("org.freedesktop.DBus.Properties.GetAll", 0, "org.freedesktop.login1.Session").Store(&all); err != nil ||
		all["LockedHint"].Value() != true || all["Active"].Value() != false || all["Seat"].Value().([]any)[0] != "seat0" {
		t.Errorf("properties %v, %v", all, err)
	}
	if session.Call("org.freedesktop.DBus.Properties.GetAll", 0, "org.freedesktop.login1.Other").Err == nil {
		t.Error("properties that it has not are given")
	}
}
