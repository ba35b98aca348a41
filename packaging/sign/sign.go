// Package sign seals an app bundle as codesign does, on any machine: the list of
// hashed resources, the hardened runtime, and a signature that is ad hoc or by an
// identity. It does not notarize, and sets no trusted time: for that codesign and
// notarytool take the bundle on a Mac.
package sign

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"howett.net/plist"

	"drawbridge/bridge/private"
)

// Larger files are none of an app's of ours.
const (
	maxProgram = 1 << 30
	maxFile    = 64 << 20
)

// Options say how a bundle is signed.
type Options struct {
	Identity     *Identity // nil signs ad hoc: permissions are lost with the next build
	Entitlements []byte    // a property list
	Now          time.Time // the time that the signature states
}

// Bundle signs the app bundle at a path in place. What was signed before is
// replaced. When it fails the bundle may be left without a valid signature.
func Bundle(app string, o Options) error {
	if o.Identity != nil {
		if err := o.Identity.check(o.Now); err != nil {
			return err
		}
	}
	contents := filepath.Join(app, "Contents")
	info, err := private.ReadPlain(filepath.Join(contents, "Info.plist"), 0, maxFile)
	if err != nil {
		return fmt.Errorf("that is no app bundle: %w", err)
	}
	var keys struct {
		Identifier string `plist:"CFBundleIdentifier"`
		Executable string `plist:"CFBundleExecutable"`
	}
	if _, err := plist.Unmarshal(info, &keys); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(contents, "Info.plist"), err)
	}
	if keys.Identifier == "" || keys.Executable == "" || filepath.Base(keys.Executable) != keys.Executable {
		return fmt.Errorf("%s: CFBundleIdentifier and CFBundleExecutable must name the app and its program", filepath.Join(contents, "Info.plist"))
	}
	seal := filepath.Join(contents, "_CodeSignature")
	if err := os.Mkdir(seal, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	resources, err := codeResources(contents, keys.Executable)
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(seal, "CodeResources"), resources, 0o644); err != nil {
		return err
	}
	program := filepath.Join(contents, "MacOS", keys.Executable)
	b, err := private.ReadPlain(program, 0, maxProgram)
	if err != nil {
		return err
	}
	signed, err := code(b, params{
		identifier:   keys.Identifier,
		infoPlist:    info,
		resources:    resources,
		entitlements: o.Entitlements,
		identity:     o.Identity,
		now:          o.Now,
	})
	if err != nil {
		return fmt.Errorf("signing %s: %w", program, err)
	}
	// A new file: macOS remembers the signature of the old one by its inode.
	next := program + ".signing"
	err = os.WriteFile(next, signed, 0o755)
	if err == nil {
		err = os.Chmod(next, 0o755) // whatever the umask is
	}
	if err == nil {
		err = os.Rename(next, program)
	}
	if err != nil {
		_ = os.Remove(next)
	}
	return err
}
