// Package grant knows what macOS lets a program do only once a person has allowed
// it: what each grant is for, where it is given, how it is asked for. To look never
// prompts; [Request] does, and is for a person who wants to be asked.
package grant

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"drawbridge/bridge/computer"
)

// Grant is one of them.
type Grant struct {
	Name    string // as in /status: one of computer.Perm…
	Title   string // as System Settings call it
	Purpose string // what it is for
	Needed  bool   // false: there is another way, if a worse one
	anchor  string // of the pane in System Settings
	service string // tccutil's name of it
}

// all are in the order in which a person is asked.
var all = []Grant{
	{computer.PermAccessibility, "Accessibility", "moving the pointer, clicking, scrolling and typing", true, "Privacy_Accessibility", "Accessibility"},
	{computer.PermPostEvents, "Accessibility", "posting events, which macOS counts apart from Accessibility and gives with it", true, "Privacy_Accessibility", "PostEvent"},
	{computer.PermScreenRecording, "Screen & System Audio Recording", "pictures of the screen", true, "Privacy_ScreenCapture", "ScreenCapture"},
	{computer.PermInputMonitoring, "Input Monitoring", "seeing your own mouse and keyboard, so that a batch stops when you use them", false, "Privacy_ListenEvent", "ListenEvent"},
}

// Named finds a grant.
func Named(name string) (Grant, bool) {
	for _, g := range all {
		if g.Name == name {
			return g, true
		}
	}
	return Grant{}, false
}

// BundleID is ours, as in Info.plist.
const BundleID = "io.github.drawbridge.Drawbridge"

// Settings is the address of the pane of System Settings where it is given.
func (g Grant) Settings() string {
	return "x-apple.systempreferences:com.apple.preference.security?" + g.anchor
}

// Reset is the command that takes a stale entry off the list: one of an older
// build, which is shown as given and counts for nothing.
func (g Grant) Reset() string { return "tccutil reset " + g.service + " " + BundleID }

// How says how it is given.
func (g Grant) How() string {
	return "System Settings, Privacy & Security, " + g.Title + ": switch Drawbridge on; to get there: " +
		`open "` + g.Settings() + `"; if it still counts as missing, quit Drawbridge and open it again; ` +
		"if it is on there already, the entry is an older build's: " + g.Reset() + ", then grant it again"
}

var errUnknown = errors.New("no grant has this name")

// OpenSettings opens the pane where a grant is given.
func OpenSettings(ctx context.Context, name string) error {
	g, ok := Named(name)
	if !ok {
		return fmt.Errorf("%s: %w", name, errUnknown)
	}
	if out, err := exec.CommandContext(ctx, "open", g.Settings()).CombinedOutput(); err != nil {
		return fmt.Errorf("open System Settings, Privacy & Security, %s: %w %s", g.Title, err, out)
	}
	return nil
}
