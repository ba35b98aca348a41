//go:build darwin || standin

package input

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"
)

// scriptTime is what one script may take: System Events may have to be started
// for the first one.
const scriptTime = 10 * time.Second

// appleScript drives macOS by System Events, through osascript. System Events
// clicks, and enters keys and text; it has no pointer to move, no wheel, no drag.
// A gesture's parts are collected and run as one script where the last one is
// posted: a click with its release, a key with its press.
type appleScript struct {
	at      Point
	pressed bool
	mods    []Key
}

// OpenAppleScript drives the desktop by System Events.
func OpenAppleScript() (Driver, error) {
	if _, err := exec.LookPath("osascript"); err != nil {
		return nil, fmt.Errorf("osascript, which comes with macOS, is missing: %w", err)
	}
	return new(appleScript), nil
}

// run runs statements for System Events. args are what they call arg 1, arg 2:
// text is never made part of a script.
func (d *appleScript) run(ctx context.Context, statement string, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, scriptTime, errors.New("System Events did not answer in time"))
	defer cancel()
	script := "on run argv\ntell application \"System Events\" to " + statement + "\nend run\n"
	cmd := exec.CommandContext(ctx, "osascript", append([]string{"-e", script, "--"}, args...)...)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	err := cmd.Run()
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("osascript: %w", context.Cause(ctx))
	}
	line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
	switch {
	case strings.Contains(line, "-1743"):
		return fmt.Errorf("%w: macOS does not let Drawbridge control System Events; grant it in System Settings, Privacy & Security, Automation", ErrPermission)
	case strings.Contains(line, "-1719"), strings.Contains(line, "-25211"), strings.Contains(line, "1002"):
		return fmt.Errorf("%w: Accessibility is not granted (%s)", ErrPermission, line)
	}
	return fmt.Errorf("osascript: %w: %s", err, line)
}

// using is how AppleScript names the modifiers that are held.
func (d *appleScript) using() string {
	if len(d.mods) == 0 {
		return ""
	}
	names := map[Key]string{Shift: "shift down", Control: "control down", Alt: "option down", Command: "command down"}
	var held []string
	for _, m := range d.mods {
		held = append(held, names[m])
	}
	return " using {" + strings.Join(held, ", ") + "}"
}

func (d *appleScript) Move(_ context.Context, p Point) error {
	d.at = p
	return nil
}

func (d *appleScript) Button(ctx context.Context, b Button, down bool, clicks int) error {
	if b != Left || clicks != 1 || len(d.mods) > 0 {
		return errors.New("System Events makes single clicks with the left button only, and with no key held")
	}
	if down {
		d.pressed = true
		return nil
	}
	if !d.pressed {
		return nil
	}
	d.pressed = false
	return d.run(ctx, "click at {(item 1 of argv) as integer, (item 2 of argv) as integer}",
		strconv.Itoa(int(math.Floor(d.at.X))), strconv.Itoa(int(math.Floor(d.at.Y))))
}

func (d *appleScript) Scroll(context.Context, float64, float64) error {
	return errors.New("System Events has no wheel")
}

func (d *appleScript) Key(ctx context.Context, k Key, down bool) error {
	if k.Modifier() {
		if k == Fn {
			return fmt.Errorf("System Events cannot hold fn: %w", ErrNoKey)
		}
		d.mods = slices.DeleteFunc(d.mods, func(m Key) bool { return m == k })
		if down {
			d.mods = append(d.mods, k)
		}
		return nil
	}
	if !down {
		return nil
	}
	if s, ok := quartzNamed[k]; ok {
		return d.run(ctx, "key code ((item 1 of argv) as integer)"+d.using(), strconv.Itoa(int(s.code)))
	}
	if len(k) != 1 {
		return fmt.Errorf("%q: %w to System Events", string(k), ErrNoKey)
	}
	return d.run(ctx, "keystroke (item 1 of argv)"+d.using(), string(k))
}

// Type enters printable ASCII, newlines and tabs: of other characters System
// Events makes the letter a.
func (d *appleScript) Type(ctx context.Context, text string) (n int, err error) {
	if err := checkText(text); err != nil {
		return 0, err
	}
	for i, r := range text {
		if r > '~' {
			return 0, fmt.Errorf("byte %d of the text is no ASCII, and System Events enters nothing else; use the native backend", i)
		}
	}
	for text != "" {
		line, _, _ := strings.Cut(text, "\n")
		line, _, _ = strings.Cut(line, "\r")
		line, _, _ = strings.Cut(line, "\t")
		size := len(line)
		if size > 0 {
			err = d.run(ctx, "keystroke (item 1 of argv)", line)
		} else {
			k := Enter
			if text[0] == '\t' {
				k = Tab
			}
			size = 1
			if strings.HasPrefix(text, "\r\n") {
				size = 2
			}
			err = d.run(ctx, "key code ((item 1 of argv) as integer)", strconv.Itoa(int(quartzNamed[k].code)))
		}
		if err != nil {
			return n, err
		}
		n += size
		text = text[size:]
	}
	return n, nil
}

func (d *appleScript) Pointer(context.Context) (Point, error) { return Point{}, ErrNoPointer }

func (d *appleScript) Sync(context.Context) error { return nil }

// ReleaseStray forgets: System Events holds nothing between two scripts.
func (d *appleScript) ReleaseStray(context.Context) error {
	*d = appleScript{}
	return nil
}

func (d *appleScript) Close() error { return nil }
