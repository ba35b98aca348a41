package grant

import (
	"encoding/xml"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/bridge/computer"
)

// TestHow names the pane and the reset of each grant, and our bundle.
func TestHow(t *testing.T) {
	for name, want := range map[string][2]string{
		computer.PermAccessibility:   {"Privacy_Accessibility", "Accessibility"},
		computer.PermPostEvents:      {"Privacy_Accessibility", "PostEvent"},
		computer.PermScreenRecording: {"Privacy_ScreenCapture", "ScreenCapture"},
		computer.PermInputMonitoring: {"Privacy_ListenEvent", "ListenEvent"},
	} {
		g, ok := Named(name)
		if how := g.How(); !ok || !strings.Contains(how, `open "x-apple.systempreferences:com.apple.preference.security?`+want[0]+`"`) ||
			!strings.Contains(how, "tccutil reset "+want[1]+" "+BundleID) || g.Purpose == "" {
			t.Errorf("%s: %s", name, how)
		}
	}
	if _, ok := Named("camera"); ok {
		t.Error("there is a grant for the camera")
	}
	b, err := os.ReadFile("../../Info.plist")
	if err != nil {
		t.Fatal(err)
	}
	var plist struct {
		Strings []string `xml:"dict>string"`
	}
	if err := xml.Unmarshal(b, &plist); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(b), "<key>CFBundleIdentifier</key>") || !strings.Contains(strings.Join(plist.Strings, "\n"), BundleID) {
		t.Errorf("Info.plist names another bundle than %s: %q", BundleID, plist.Strings)
	}
}

// TestOpenSettings opens the pane by macOS's own command, which is faked here: what
// it gets is written down, as open(1) says that an address is its argument.
func TestOpenSettings(t *testing.T) {
	dir := t.TempDir()
	script := "#!/bin/sh\nprintf %s \"$*\" >" + dir + "/opened\n[ ! -e " + dir + "/fail ]\n"
	if err := os.WriteFile(filepath.Join(dir, "open"), []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := OpenSettings(t.Context(), computer.PermScreenRecording); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "opened")); err != nil || string(b) != "x-apple.systempreferences:com.apple.preference.security?Privacy_ScreenCapture" {
		t.Errorf("opened %q, %v", b, err)
	}
	if err := OpenSettings(t.Context(), "camera"); err == nil {
		t.Error("the camera's pane was opened")
	}
	if err := os.WriteFile(filepath.Join(dir, "fail"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := OpenSettings(t.Context(), computer.PermAccessibility); err == nil || !strings.Contains(err.Error(), "Accessibility") {
		t.Errorf("a command that fails: %v", err)
	}
}
