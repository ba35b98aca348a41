//go:build standin

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/packaging/install"
	"drawbridge/packaging/sample"
	"drawbridge/packaging/verify"
)

// TestQuartzMove starts the app from where macOS would forget its permissions. It
// offers to move itself, and serves from there in no case. The dialog and open(1)
// are played by scripts; what a Mac draws is not seen.
func TestQuartzMove(t *testing.T) {
	id := sample.SelfSigned(t)
	const (
		yes  = "echo 'button returned:Move and Start'"
		quit = "echo 'button returned:Quit'"
		esc  = "echo 'execution error: User canceled. (-128)' >&2; exit 1"
	)
	for _, c := range []struct {
		name    string
		place   string // below the home
		dialog  string
		opens   string // what open does
		there   string // an app that is in place: "", older, other
		damage  bool
		moved   bool
		want    string // of the error, or of what is said
		version string // in place afterwards; empty: none
	}{
		{"Downloads", "Downloads", yes, "", "", false, true, "moved to", "2.0.0"},
		{"the Trash", ".Trash", yes, "", "", false, true, "moved to", "2.0.0"},
		{"a temporary place", "temp/deep", yes, "", "", false, true, "moved to", "2.0.0"},
		{"translocated", "AppTranslocation/0A-1B/d", yes, "", "", false, true, "moved to", "2.0.0"},
		{"over an older one", "Downloads", yes, "", "older", false, true, "moved to", "2.0.0"},
		{"over another one", "Downloads", yes, "", "other", false, false, "would be lost", "1.0.0"},
		{"no", "Downloads", quit, "", "", false, false, "not serving from", ""},
		{"escape", "Downloads", esc, "", "", false, false, "not serving from", ""},
		{"damaged", "Downloads", yes, "", "", true, false, "not whole", ""},
		{"it does not start", "Downloads", yes, "echo 'LSOpenURLs failed' >&2; exit 1", "", false, false, "does not start: exit status 1: LSOpenURLs failed", "2.0.0"},
		{"a stable place", "Applications", "", "", "older", false, false, "", "1.0.0"},
		{"where it was built", "src/build", "", "", "", false, false, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			// Not in a temporary place, as all that a test makes by itself is.
			home, err := os.MkdirTemp("/dev/shm", "drawbridge-test-")
			if err != nil {
				t.Skip(err)
			}
			t.Cleanup(func() { _ = os.RemoveAll(home) })
			apps := filepath.Join(home, "Applications")
			place := filepath.Join(home, filepath.FromSlash(c.place))
			if place != apps {
				if err := os.CopyFS(filepath.Join(place, install.Name), os.DirFS(drawbridgeApp(t, "v2.0.0", id))); err != nil {
					t.Fatal(err)
				}
			}
			if c.there != "" {
				owner := id
				if c.there == "other" {
					owner = sample.SelfSigned(t)
				}
				if err := os.CopyFS(filepath.Join(apps, install.Name), os.DirFS(drawbridgeApp(t, "v1.0.0", owner))); err != nil {
					t.Fatal(err)
				}
			}
			if c.damage {
				sample.Replace(t, filepath.Join(place, install.Name, "Contents/Info.plist"), "2.0.0", "2.0.1")
			}
			bin := t.TempDir()
			for name, script := range map[string]string{"osascript": c.dialog, "open": c.opens} {
				text := "#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done >>" + filepath.Join(bin, name+".calls") + "\n" + script + "\n"
				if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			calls := func(name string) string {
				b, err := os.ReadFile(filepath.Join(bin, name+".calls"))
				if err != nil && !errors.Is(err, os.ErrNotExist) {
					t.Fatal(err)
				}
				return string(b)
			}
			var out bytes.Buffer
			cmd := &cli{stdio: stdio{in: strings.NewReader(""), out: &out, err: io.Discard, getenv: func(name string) string {
				return map[string]string{"HOME": home, "TMPDIR": filepath.Join(home, "temp")}[name]
			}}}
			moved, err := cmd.moveAway(t.Context(), filepath.Join(place, install.Name, "Contents/MacOS/drawbridge"))
			said := out.String()
			if err != nil {
				said += err.Error()
			}
			stable := c.want == ""
			if moved != c.moved || !strings.Contains(said, c.want) || (err == nil) != (c.moved || stable) {
				t.Errorf("moved %v, %q, %v; want %v, %q", moved, &out, err, c.moved, c.want)
			}
			if asked := calls("osascript"); stable != (asked == "") || !stable && !strings.Contains(asked, "Move it to "+apps+" and start it there?\n") {
				t.Errorf("asked is %q", asked)
			}
			app := filepath.Join(apps, install.Name)
			if opened := calls("open"); (c.moved || c.opens != "") != (opened == "-n\n"+app+"\n") {
				t.Errorf("opened is %q", opened)
			}
			r, verr := verify.Bundle(app)
			if c.version != r.Version || (verr == nil) != (c.version != "") {
				t.Errorf("in place is %q, %v; want %q", r.Version, verr, c.version)
			}
			var exit *exitError
			if c.want == "not serving from" && (!errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(exit.hint, "drawbridge install")) {
				t.Errorf("%+v", err)
			}
		})
	}
}

// TestQuartzMoveAtTheTerminal asks where the person started it.
func TestQuartzMoveAtTheTerminal(t *testing.T) {
	for answer, want := range map[string]bool{"y\n": true, "Yes\n": true, "\n": false, "no\n": false, "yes please\n": false} {
		master, slave := openPTY(t)
		defer slave.Close()
		shown := watch(master)
		if _, err := io.WriteString(master, answer); err != nil {
			t.Fatal(err)
		}
		cmd := &cli{stdio: stdio{in: slave, out: io.Discard, err: slave}}
		if got, err := cmd.confirmMove(t.Context(), "Move it?"); got != want || err != nil {
			t.Errorf("%q: %v, %v", answer, got, err)
		}
		shown.await(t, `Move it\? \[y/N\] `)
	}
}
