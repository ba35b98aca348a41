//go:build linux

package power_test

import (
	"context"
	"strconv"
	"testing"

	"github.com/jezek/xgb/dpms"
	"github.com/jezek/xgb/xproto"

	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
	"drawbridge/internal/x11/power"
)

func TestPower(t *testing.T) {
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(context.Background(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer v.Close()
	number, err := strconv.Atoi(v.Display()[1:])
	if err != nil {
		t.Fatal(err)
	}
	s, err := power.Start(t.TempDir(), number)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	c, err := x11.Dial(t.Context(), s.Display(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if ok, err := c.Extension(t.Context(), "DPMS"); !ok || err != nil {
		t.Fatalf("no power management: %v", err)
	}
	check := func(what string, on bool, level uint16) {
		t.Helper()
		r, err := dpms.Info(c.Conn).Reply()
		if err != nil || r.State != on || r.PowerLevel != level {
			t.Errorf("%s: %+v, %v", what, r, err)
		}
		// Everything else is the real server's, in step.
		g, err := xproto.GetGeometry(c.Conn, xproto.Drawable(c.Root)).Reply()
		if err != nil || g.Width != c.Screen.WidthInPixels {
			t.Errorf("%s: the root window is %+v, %v", what, g, err)
		}
	}
	if r, err := dpms.GetVersion(c.Conn, 1, 1).Reply(); err != nil || r.ServerMajorVersion != 1 || r.ServerMinorVersion != 1 {
		t.Errorf("version %+v, %v", r, err)
	}
	if r, err := dpms.Capable(c.Conn).Reply(); err != nil || !r.Capable {
		t.Errorf("capable %+v, %v", r, err)
	}
	if r, err := dpms.GetTimeouts(c.Conn).Reply(); err != nil || r.OffTimeout != 0 {
		t.Errorf("timeouts %+v, %v", r, err)
	}
	check("at first", true, power.On)
	s.Set(power.Suspend)
	check("sent to sleep", true, power.Suspend)
	dpms.ForceLevel(c.Conn, dpms.DPMSModeOff)
	check("switched off", true, power.Off)
	dpms.Disable(c.Conn)
	check("without management", false, power.On)
	dpms.Enable(c.Conn)
	check("with management", true, power.On)
	if ok, err := c.Extension(t.Context(), "XTEST"); !ok || err != nil {
		t.Errorf("another extension: %v, %v", ok, err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	<-c.Dead()
}
