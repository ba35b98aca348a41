package doctor

import (
	"context"
	"os/exec"
	"path/filepath"
	"strings"
)

// identity is what macOS ties a grant to: a bundle at a place, its signature,
// and who started it.
type identity struct {
	exe, home string
	parent    int // the process that started us; 1 is launchd
	codesign  func(ctx context.Context, path string) string
}

// bundle is the .app that a program lies in; empty for a bare program.
func (id identity) bundle() string {
	const inside = ".app/Contents/MacOS/"
	if i := strings.LastIndex(id.exe, inside); i >= 0 {
		return id.exe[:i+len(".app")]
	}
	return ""
}

// volatile says why grants do not last at this place; empty where they do.
func (id identity) volatile() string {
	for _, p := range []struct{ part, what string }{
		{"/AppTranslocation/", "macOS runs a copy of it from a random place, because it was downloaded and not moved (App Translocation)"},
		{"/private/var/folders/", "it lies in a temporary folder"},
		{"/var/folders/", "it lies in a temporary folder"},
		{"/private/tmp/", "it lies in a temporary folder"},
		{"/tmp/", "it lies in a temporary folder"},
		{"/Volumes/", "it lies on a mounted image or another volume"},
		{filepath.Join(id.home, "Downloads") + "/", "it lies in Downloads"},
	} {
		if strings.HasPrefix(id.exe, p.part) || p.part == "/AppTranslocation/" && strings.Contains(id.exe, p.part) {
			return p.what
		}
	}
	return ""
}

// inspect returns the signature's identifier and all that makes grants get lost.
func (id identity) inspect(ctx context.Context) (signature string, warnings []string) {
	warn := func(s string) { warnings = append(warnings, s) }
	target := id.bundle()
	if target == "" {
		target = id.exe
		warn("this is a bare program, not Drawbridge.app: macOS asks for grants in the name of whoever started it; run doctor by the app")
	} else if id.parent != 1 {
		warn("the app was started by a program and not by macOS: its grants may be taken for that program's; quit it and open it from Finder, or with: open " + target)
	}
	if why := id.volatile(); why != "" {
		warn(why + ", where grants get lost: move it to /Applications and open it from there")
	}
	var name string
	adhoc := false
	for line := range strings.Lines(id.codesign(ctx, target)) {
		switch key, value, _ := strings.Cut(strings.TrimSpace(line), "="); key {
		case "Identifier":
			name = value
		case "Signature":
			adhoc = value == "adhoc"
		}
	}
	switch {
	case name == "":
		warn("it carries no signature that codesign can read: macOS cannot tell it from another program, and forgets its grants")
		return "none", warnings
	case adhoc:
		warn("its signature is ad hoc: macOS forgets its grants with the next build; sign it with one certificate that is kept")
		name += ", ad hoc"
	}
	if strings.HasPrefix(name, "a.out") {
		warn("its signature is the Go linker's (a.out): the bundle was never sealed, so sign it as a whole")
	}
	return name, warnings
}

// codesign asks Apple's tool, which comes with macOS.
func codesign(ctx context.Context, path string) string {
	out, _ := exec.CommandContext(ctx, "codesign", "--display", "--verbose=2", path).CombinedOutput() // what it cannot read it does not name
	return string(out)
}
