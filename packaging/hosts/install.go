// Package hosts holds the extension that attaches omp and pi to Drawbridge, and
// puts it in place.
package hosts

import (
	"bytes"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"drawbridge/bridge/private"
)

//go:embed drawbridge.ts
var extension []byte

// Kinds are the programs that the extension is for.
var Kinds = []string{"omp", "pi"}

// Names of the two files in a program's folder of extensions.
const (
	extensionFile = "drawbridge.ts"
	settingsFile  = "drawbridge.json"
)

// maxExtension is more than any version of the extension has.
const maxExtension = 1 << 20

// ourMark begins the extension; a file that does not begin so is somebody else's.
var ourMark = []byte("// Drawbridge's extension")

// Settings are what the extension reads.
type Settings struct {
	Endpoint string `json:"endpoint"` // the agent's endpoint.json
	Token    string `json:"token"`
	Name     string `json:"name"`
	Main     bool   `json:"main"`
}

// Dir is where a program of this kind looks for extensions. getenv and home are
// those of the person who runs it.
func Dir(kind, home string, getenv func(string) string) (string, error) {
	if !slices.Contains(Kinds, kind) {
		return "", fmt.Errorf("there is no extension for %q; there are those for %s", kind, strings.Join(Kinds, " and "))
	}
	// Both programs read the same variable.
	if dir := getenv("PI_CODING_AGENT_DIR"); dir != "" {
		return filepath.Join(dir, "extensions"), nil
	}
	return filepath.Join(home, "."+kind, "agent", "extensions"), nil
}

// Install puts the extension and its settings into a folder, over those of an
// earlier version. It returns the extension's path.
func Install(dir string, s Settings) (string, error) {
	path := filepath.Join(dir, extensionFile)
	if err := checkOurs(path); err != nil {
		return "", err
	}
	settings, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	// The settings hold a token, and go first: without them the extension does
	// nothing.
	if err := replace(filepath.Join(dir, settingsFile), append(settings, '\n')); err != nil {
		return "", err
	}
	return path, replace(path, extension)
}

// Uninstall takes the two files away. It returns whether there were any.
func Uninstall(dir string) (bool, error) {
	path := filepath.Join(dir, extensionFile)
	if err := checkOurs(path); err != nil {
		return false, err
	}
	found := false
	for _, p := range []string{path, filepath.Join(dir, settingsFile)} {
		switch err := os.Remove(p); {
		case err == nil:
			found = true
		case !errors.Is(err, fs.ErrNotExist):
			return found, err
		}
	}
	return found, nil
}

// checkOurs refuses to touch a file of that name that is not ours.
func checkOurs(path string) error {
	b, err := private.ReadPlain(path, 0, maxExtension)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !bytes.HasPrefix(b, ourMark):
		return fmt.Errorf("%s is not Drawbridge's extension; move it away first", path)
	}
	return nil
}

// leftover is what replace calls a file that is not in its place yet.
var leftover = regexp.MustCompile(`^\.drawbridge-[0-9]{1,10}$`)

// replace writes a file that only its owner can read, whole or not at all.
func replace(path string, content []byte) (err error) {
	_ = private.Sweep(filepath.Dir(path), leftover) // it is in nobody's way
	f, err := os.CreateTemp(filepath.Dir(path), ".drawbridge-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			os.Remove(f.Name())
		}
	}()
	_, err = f.Write(content) // CreateTemp's files are 0600
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
