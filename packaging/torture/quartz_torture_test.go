//go:build standin

package main

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jezek/xgb/xproto"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/stop"
	"drawbridge/internal/x11"
)

// tells gives a window a property, from which the stand-in's Accessibility is told.
func (w *window) tells(t *testing.T, name, value string) {
	t.Helper()
	c := w.conn.Conn
	a, err := xproto.InternAtom(c, false, uint16(len(name)), name).Reply()
	if err == nil {
		err = xproto.ChangePropertyChecked(c, xproto.PropModeReplace, w.id, a.Atom, xproto.AtomString, 8, uint32(len(value)), []byte(value)).Check()
	}
	if err != nil {
		t.Fatal(err)
	}
}

func set(t *testing.T, name, value string) {
	t.Helper()
	if err := mac.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

// forget waits until what the driver knew of the session is too old for it.
func forget() { time.Sleep(250 * time.Millisecond) }

// In a password field, whose program reads the keyboard securely, nothing is typed,
// and who reads is named.
func TestQuartzPasswordField(t *testing.T) {
	r := start(t)
	r.tool.SetConfig(computer.DefaultConfig())
	if err := r.look(t.Context(), "tester"); err != nil {
		t.Fatal(err)
	}
	holder := exec.Command("sleep", "3600")
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { holder.Process.Kill(); holder.Wait() }()
	pid := holder.Process.Pid
	defer set(t, "secure", "0")
	vault, x, y := r.fixture(t, "Vault", 0, nil)
	vault.tells(t, "_AX_ROLE", "AXTextField")
	refused := func(s computer.Structured, index int, status computer.Status) {
		t.Helper()
		who := fmt.Sprintf("sleep (process %d)", pid)
		if s.Stopped == nil || s.Stopped.Reason != stop.SecureInput || s.Stopped.Index != index || !strings.Contains(s.Stopped.Message, who) || strings.Contains(s.Stopped.Message, "hunter2") {
			t.Errorf("stopped %+v; want %s that names %s", s.Stopped, stop.SecureInput, who)
		} else if s.Executed[index].Status != status {
			t.Errorf("%+v", s.Executed[index])
		}
	}

	// It begins to read in the middle of a text, as when a Tab leads to the field.
	var begun sync.WaitGroup
	begun.Go(func() {
		err := r.log.await(t.Context(), func(all []did) bool { return len(all) > 100 })
		if err = errors.Join(err, mac.Set("secure", fmt.Sprint(pid))); err != nil {
			t.Error(err)
		}
	})
	r.log.take()
	s := r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"type","text":"%s"}`, x, y, strings.Repeat("0123456789", 40_000))
	begun.Wait()
	refused(s, 1, computer.Partial)

	vault.tells(t, "_AX_SUBROLE", "AXSecureTextField")
	if err := r.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	r.log.take()
	for end := time.Now().Add(limit); ; {
		// On a busy machine the role may come too late for the record.
		s = r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"type","text":"hunter2"}`, x, y)
		f := s.Executed[1].Focus
		if f != nil && f.Before != nil && f.Before.App == "Vault" && f.Before.Role == "AXSecureTextField" {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the keyboard is with %+v", f)
		}
	}
	refused(s, 1, computer.Refused)
	if s.Executed[0].Status != computer.Executed {
		t.Errorf("the click: %+v", s.Executed[0])
	}
	refused(r.run(t, `{"type":"keypress","keys":["h"]}`), 0, computer.Refused)
	if err := r.mark(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, e := range r.log.take() {
		if e.Device.XTest && e.Kind == x11.RawKeyPress {
			t.Errorf("a key was sent: %+v", e.Raw)
		}
	}
	set(t, "secure", "0")
	if s := r.run(t, `{"type":"keypress","keys":["h"]}`); s.Stopped != nil {
		t.Errorf("once nobody reads: %+v", s.Stopped)
	}
}

// A program whose accessibility hangs is named by the window server, without a role.
func TestQuartzHung(t *testing.T) {
	r := start(t)
	r.tool.SetConfig(computer.DefaultConfig())
	if err := r.look(t.Context(), "tester"); err != nil {
		t.Fatal(err)
	}
	hung, x, y := r.fixture(t, "Hung", 0, nil)
	hung.tells(t, "_AX_HANGS", "1")
	defer set(t, "ax", "ok")
	for _, ax := range []string{"ok", "hang"} {
		set(t, "ax", ax)
		s := r.run(t, `{"type":"click","x":%d,"y":%d},{"type":"keypress","keys":["a"]}`, x, y)
		if s.Stopped != nil {
			t.Errorf("%s: stopped %+v", ax, s.Stopped)
			continue
		}
		if e := s.Executed[0]; e.Target == nil || e.Target.App != "Hung" || e.Target.Role != "" || e.Effect == nil || *e.Effect != computer.SuspectedNoop {
			t.Errorf("%s: %+v, %v", ax, e.Target, e.Effect)
		}
		t.Logf("%s: the click took %g ms, the key %g ms", ax, s.Executed[0].MS, s.Executed[1].MS)
	}
}

// On a session that is locked, not in front or not there, and on a display that
// sleeps, nothing is sent.
func TestQuartzLocked(t *testing.T) {
	r := start(t)
	cfg := r.config()
	cfg.WaitMS = 1
	r.tool.SetConfig(cfg)
	if err := r.look(t.Context(), "tester"); err != nil {
		t.Fatal(err)
	}
	r.log.take()
	for _, c := range []struct {
		reason         stop.Reason
		name, on, back string
	}{
		{stop.Locked, "locked", "1", "0"},
		{stop.LoginWindow, "console", "0", "1"},
		{stop.LoginWindow, "graphic", "0", "1"},
		{stop.Asleep, "asleep", "1", "0"},
	} {
		set(t, c.name, c.on)
		s := r.run(t, `{"type":"wait"},{"type":"click","x":10,"y":10},{"type":"type","text":"secret"}`)
		if s.Stopped == nil || s.Stopped.Reason != c.reason || s.Stopped.Index != 1 || s.Executed[1].Status != computer.Refused || s.Executed[2].Status != computer.Skipped {
			t.Errorf("%s=%s: %+v, %+v", c.name, c.on, s.Stopped, s.Executed)
		}
		set(t, c.name, c.back)
		forget()
	}
	if got := r.log.take(); len(got) > 0 {
		t.Errorf("posted all the same: %+v", got)
	}
	if s := r.run(t, `{"type":"click","x":10,"y":10}`); s.Stopped != nil {
		t.Errorf("once it is unlocked: %+v", s.Stopped)
	}
}
