// Package bundle makes Drawbridge.app, before it is signed, and what is handed
// out: the zip, its digest and a Homebrew cask. The same input gives the same
// bytes, whatever the machine and the time.
package bundle

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"howett.net/plist"
)

//go:embed strings
var localized embed.FS

// Parts are what goes into the bundle beside what this package makes itself.
type Parts struct {
	Version   string // as git describe prints it
	InfoPlist []byte // with $(SHORT_VERSION) and $(BUILD_VERSION) to be filled in
	Program   []byte // the universal executable
	Icon      []byte // an .icns file
	Licences  []byte // the licence texts of what is linked in
}

// Write makes the bundle at a path, which must not exist. When it fails nothing
// is left there.
func Write(app string, p Parts) (err error) {
	short, build := Versions(p.Version)
	info := strings.NewReplacer("$(SHORT_VERSION)", short, "$(BUILD_VERSION)", build).Replace(string(p.InfoPlist))
	var keys struct {
		Executable string `plist:"CFBundleExecutable"`
		Icon       string `plist:"CFBundleIconFile"`
	}
	if _, err := plist.Unmarshal([]byte(info), &keys); err != nil {
		return fmt.Errorf("Info.plist: %w", err)
	}
	for key, name := range map[string]string{"CFBundleExecutable": keys.Executable, "CFBundleIconFile": keys.Icon} {
		if name == "" || filepath.Base(name) != name {
			return fmt.Errorf("Info.plist: %s is %q; it must be the name of a file", key, name)
		}
	}
	if err := os.Mkdir(app, 0o755); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(app))
		}
	}()
	files := map[string][]byte{
		"Info.plist":                         []byte(info),
		"PkgInfo":                            []byte("APPL????"),
		"MacOS/" + keys.Executable:           p.Program,
		"Resources/" + keys.Icon + ".icns":   p.Icon,
		"Resources/Third-party licences.txt": p.Licences,
	}
	err = fs.WalkDir(localized, "strings", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files["Resources/"+strings.TrimPrefix(name, "strings/")], err = localized.ReadFile(name)
		return err
	})
	if err != nil {
		return err
	}
	for name, content := range files {
		mode := fs.FileMode(0o644)
		if strings.HasPrefix(name, "MacOS/") {
			mode = 0o755
		}
		if err := writeFile(filepath.Join(app, "Contents", filepath.FromSlash(name)), content, mode); err != nil {
			return err
		}
	}
	// The modes are the bundle's own, whatever the umask is.
	return filepath.WalkDir(app, func(p string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return os.Chmod(p, 0o755)
	})
}

func writeFile(path string, content []byte, mode fs.FileMode) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(path, content, mode); err != nil {
		return err
	}
	return os.Chmod(path, mode)
}
