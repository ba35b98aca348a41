package doctor

import (
	"context"
	"strings"
	"testing"
)

func TestIdentity(t *testing.T) {
	// As codesign prints them (facts of the tool: key=value lines on stderr).
	const (
		signed = "Executable=/Applications/Drawbridge.app/Contents/MacOS/Drawbridge\nIdentifier=io.example.drawbridge\nFormat=app bundle with Mach-O universal (x86_64 arm64)\nSignature size=2000\nTeamIdentifier=not set\n"
		adhoc  = "Identifier=io.example.drawbridge\nSignature=adhoc\nTeamIdentifier=not set\n"
		linker = "Identifier=a.out\nCodeDirectory v=20400 size=… flags=0x20002(adhoc,linker-signed)\nSignature=adhoc\n"
		none   = "Drawbridge.app: code object is not signed at all\n"
		inside = "Drawbridge.app/Contents/MacOS/Drawbridge"
	)
	for _, c := range []struct {
		name, exe, said string
		parent          int
		bundle, sign    string
		warns           []string // one word or more of each warning, in order
	}{
		{"well", "/Applications/" + inside, signed, 1, "/Applications/Drawbridge.app", "io.example.drawbridge", nil},
		{"by a terminal", "/Applications/" + inside, signed, 4711, "/Applications/Drawbridge.app", "io.example.drawbridge", []string{"open /Applications/Drawbridge.app"}},
		{"bare", "/usr/local/bin/drawbridge", signed, 4711, "", "io.example.drawbridge", []string{"bare program"}},
		{"ad hoc", "/Applications/" + inside, adhoc, 1, "/Applications/Drawbridge.app", "io.example.drawbridge, ad hoc", []string{"ad hoc"}},
		{"linker", "/Applications/" + inside, linker, 1, "/Applications/Drawbridge.app", "a.out, ad hoc", []string{"ad hoc", "never sealed"}},
		{"unsigned", "/Applications/" + inside, none, 1, "/Applications/Drawbridge.app", "none", []string{"no signature"}},
		{"downloads", "/Users/ann/Downloads/" + inside, signed, 1, "/Users/ann/Downloads/Drawbridge.app", "io.example.drawbridge", []string{"Downloads"}},
		{"translocated", "/private/var/folders/x/AppTranslocation/y/d/" + inside, signed, 1, "/private/var/folders/x/AppTranslocation/y/d/Drawbridge.app", "io.example.drawbridge", []string{"Translocation"}},
		{"temporary", "/private/tmp/" + inside, signed, 1, "/private/tmp/Drawbridge.app", "io.example.drawbridge", []string{"temporary"}},
		{"image", "/Volumes/Drawbridge/" + inside, signed, 1, "/Volumes/Drawbridge/Drawbridge.app", "io.example.drawbridge", []string{"mounted image"}},
	} {
		id := identity{exe: c.exe, home: "/Users/ann", parent: c.parent, codesign: func(context.Context, string) string { return c.said }}
		sign, warnings := id.inspect(t.Context())
		if id.bundle() != c.bundle || sign != c.sign || len(warnings) != len(c.warns) {
			t.Errorf("%s: %q, %q, %q", c.name, id.bundle(), sign, warnings)
			continue
		}
		for i, w := range c.warns {
			if !strings.Contains(warnings[i], w) {
				t.Errorf("%s: %q does not say %q", c.name, warnings[i], w)
			}
		}
	}
}
