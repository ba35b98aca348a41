package install

import (
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// Dir is the directory for apps: /Applications where it may be written, else the
// person's own.
func Dir(home string) string {
	if unix.Access("/Applications", unix.W_OK) == nil {
		return "/Applications"
	}
	return filepath.Join(home, "Applications")
}

// AppOf is the app that a program is inside of, or empty: the path has the form
// X.app/Contents/MacOS/PROGRAM.
func AppOf(executable string) string {
	dir := filepath.Dir(executable)
	app := filepath.Dir(filepath.Dir(dir))
	if filepath.Base(dir) != "MacOS" || filepath.Base(filepath.Dir(dir)) != "Contents" || filepath.Ext(app) != ".app" {
		return ""
	}
	return app
}

// Volatile says why an app at a path cannot keep permissions, or nothing where it
// can: macOS forgets them when the place changes.
func Volatile(app, home, temp string) string {
	below := func(dir string) bool {
		return dir != "" && strings.HasPrefix(app, filepath.Clean(dir)+"/")
	}
	switch {
	case strings.Contains(app, "/AppTranslocation/"):
		return "macOS runs it from a copy, since it was downloaded and never moved"
	case below("/Volumes"):
		return "it is on a mounted volume"
	case home != "" && below(filepath.Join(home, "Downloads")):
		return "it is in Downloads"
	case home != "" && below(filepath.Join(home, ".Trash")):
		return "it is in the Trash"
	case below(temp), below("/tmp"), below("/private/tmp"), below("/var/folders"), below("/private/var/folders"):
		return "it is in a temporary place"
	}
	return ""
}
