//go:build standin

// Package standin stands in for macOS's frameworks on Linux, so that the source
// that ships for macOS is run by tests: posted events land on a real X display,
// pictures come from it, and every grant can be withheld.
//
// The frameworks are C, built by build.sh. Each says at its head which header or
// report its signs, units and failures are taken from. What has no such source
// is not played: it is listed in the README as not yet seen on a Mac.
package standin

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/ebitengine/purego"
)

// Desk is the one desktop of the stand-in; it is the process's.
type Desk struct{ x, log string }

var set func(name, value string) int32

var load = sync.OnceValue(func() error {
	root := os.Getenv("DRAWBRIDGE_STANDIN")
	if root == "" {
		return errors.New("the stand-in is not built: run packaging/standin/test.sh, which sets DRAWBRIDGE_STANDIN")
	}
	lib, err := purego.Dlopen(filepath.Join(root, "lib", "libstandin.so"), purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return fmt.Errorf("load the stand-in: %w", err)
	}
	purego.RegisterLibFunc(&set, lib, "standin_set")
	return nil
})

// Open puts the desktop of the stand-in onto an X display, whose cookie is in
// the file xauthority, with everything granted and the US layout. displays are
// as in [Desk.Set]. What is posted is noted in the file log.
func Open(display, xauthority, displays, log string) (*Desk, error) {
	if err := load(); err != nil {
		return nil, err
	}
	d := &Desk{x: display, log: log}
	for _, s := range [][2]string{
		{"xauthority", xauthority}, {"x", display}, {"displays", displays}, {"log", log},
		{"trusted", "1"}, {"post", "1"}, {"screen", "1"}, {"preflight", "1"}, {"listen", "1"}, {"tap", "ok"}, {"ax", "ok"}, {"macos", "15.1"}, {"reversed", "0"}, {"counters", "ok"}, {"counted", "1"}, {"graphic", "1"}, {"console", "1"}, {"locked", "0"}, {"asleep", "0"},
		{"deaf", "0"}, {"secure", "0"}, {"source", "com.apple.keylayout.US"}, {"bundle", "0"}, {"notices", "1"}, {"sck", "ok"}, {"keylock", "0"}, {"power", "1"},
	} {
		if err := d.Set(s[0], s[1]); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Set changes one thing:
//
//	displays   "id:x,y,w,h,scale,px,py …": bounds in points, pixels a point, and
//	           the place of the top left pixel on the X display; the main one first
//	trusted, post, screen, listen   0 withholds Accessibility, event posting, Screen
//	           Recording, Input Monitoring; to request one of them is noted as "prompt"
//	preflight  0: macOS does not say that Screen Recording is granted, if it is
//	tap        ok; deaf: a tap hears nothing; none: there is none to be had; timeout,
//	           user: macOS turns those off that there are
//	counters   none: no event is counted; counted 0: only the hardware's are
//	person     wheel: the person turns a wheel, which the X display's mouse has none
//	           of; momentum: what was scrolled rolls on by itself
//	macos      the version of macOS
//	reversed   1: a positive wheel is down, and right
//	ax         hang: who does not answer Accessibility costs two seconds, whatever
//	           patience was set
//	graphic    0: there is no login session; console 0: it is not on the screen
//	locked, asleep          1: the session is locked, the display sleeps
//	secure     the process that reads the keyboard securely, 0 for none
//	deaf       1: what is set of an event source does not stick
//	source     the input source's id: a layout, or an input method
//	bundle     1: the program runs from an application's bundle
//	notices    0: the person wants no notifications
//	sck        ScreenCaptureKit: ok, error:CODE, never, late:MS, absent
//	keychain   the file that keeps the Keychain's items; empty: they end with the
//	           process
//	keylock    1: the Keychain is locked
//	power      0: power management refuses to keep the display awake
func (d *Desk) Set(name, value string) error {
	if set(name, value) == 0 {
		return fmt.Errorf("the stand-in has no setting %s=%s", name, value)
	}
	return nil
}

// Posted returns what was posted since the last call, an event a line: what it
// is, its flags and tag, and, for an event that a Mac would not deliver as it
// was meant, why: " dropped", " blocked", " not-dragged", " no-deltas", …
func (d *Desk) Posted() ([]string, error) {
	b, err := os.ReadFile(d.log)
	if err != nil {
		return nil, err
	}
	if err := os.Truncate(d.log, 0); err != nil {
		return nil, err
	}
	return strings.FieldsFunc(string(b), func(r rune) bool { return r == '\n' }), nil
}

// X is the X display that it is on.
func (d *Desk) X() string { return d.x }

// Log is the file of what was posted.
func (d *Desk) Log() string { return d.log }

// Close lets go of the X display.
func (d *Desk) Close() error {
	return errors.Join(d.Set("x", ""), d.Set("log", ""))
}
