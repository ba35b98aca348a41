//go:build standin

package ui

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/input"
)

// TestCocoaPanicChord presses the chord on the person's keyboard. It is here, and
// not in package input, since AppKit's loop must run and knows one display only.
func TestCocoaPanicChord(t *testing.T) {
	m := openMac(t)
	d, err := input.OpenQuartz()
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	grabber := d.(input.Grabber)
	pressed := make(chan string, 8)
	grab := func(name string, mods []input.Key, k input.Key) interface{ Close() error } {
		t.Helper()
		c, err := grabber.Grab(t.Context(), mods, k, func() { pressed <- name })
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	press := func(codes ...byte) {
		t.Helper()
		for _, c := range codes {
			if err := m.Key(c, true); err != nil {
				t.Fatal(err)
			}
		}
		slices.Reverse(codes)
		for _, c := range codes {
			if err := m.Key(c, false); err != nil {
				t.Fatal(err)
			}
		}
	}
	// Presses come in order, so each wait also tells that nothing came before.
	wait := func(want string) {
		t.Helper()
		select {
		case got := <-pressed:
			if got != want {
				t.Errorf("heard %s, not %s", got, want)
			}
		case <-time.After(30 * time.Second):
			t.Fatalf("%s was not heard within 30 s", want)
		}
	}
	const control, option, shift, command, q = 37, 64, 50, 133, 24
	chord := []input.Key{input.Control, input.Alt}

	first := grab("panic", chord, "escape")
	press(control, option, keyEscape)
	wait("panic")
	// A batch may hold more.
	press(shift, control, option, keyEscape)
	wait("panic")
	press(command, shift, control, option, keyEscape)
	wait("panic")
	press(control, keyEscape) // another chord
	letter := grab("letter", []input.Key{input.Command, input.Shift}, "q")
	press(command, shift, q)
	wait("letter")

	for what, c := range map[string]struct {
		mods []input.Key
		key  input.Key
		want string
	}{
		"a chord that is taken":   {chord, "escape", "another program has taken it"},
		"a letter as a modifier":  {[]input.Key{"a"}, "escape", `"a" is no modifier`},
		"a key that is nowhere":   {chord, "fnord", "no such key"},
		"a key that X has no key": {chord, "f20", "status -9879"},
	} {
		if _, err := grabber.Grab(t.Context(), c.mods, c.key, nil); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", what, err)
		}
	}

	if err := first.Close(); err != nil {
		t.Error(err)
	}
	press(control, option, keyEscape) // heard by nobody
	press(shift, control, option, keyEscape)
	press(command, shift, q)
	wait("letter")
	again := grab("again", chord, "escape")
	press(control, option, keyEscape)
	wait("again")
	if err := errors.Join(again.Close(), letter.Close()); err != nil {
		t.Error(err)
	}
}
