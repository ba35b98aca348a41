// Package verify reads an app bundle as macOS does and checks its seal: every
// page of the code, every part of the signature and every resource is hashed
// again. It shares no code with the package that signs.
package verify

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
	"howett.net/plist"

	"drawbridge/bridge/private"
)

// Report is what a bundle is.
type Report struct {
	Identifier    string `json:"identifier"`
	Version       string `json:"version"`
	Build         string `json:"build"`      // the version that also counts the commits since
	Executable    string `json:"executable"` // its name in Contents/MacOS
	MinimumSystem string `json:"minimum_system"`
	// Signature says how it is signed, for people.
	Signature string `json:"signature"`
	AdHoc     bool   `json:"ad_hoc"`
	// Requirement is what macOS ties permissions to. For an ad hoc signature that
	// is the hash of this very code.
	Requirement  string         `json:"requirement"`
	Entitlements map[string]any `json:"entitlements"`
	Slices       []Slice        `json:"slices"`
	Resources    int            `json:"resources"` // sealed files
}

// StartsOn tells whether the program has a part for a processor, as Go calls it.
func (r Report) StartsOn(arch string) bool {
	return slices.ContainsFunc(r.Slices, func(s Slice) bool { return s.Arch == arch })
}

// info are the keys of Info.plist that are read. A key of another type is an
// error of the parser.
type info struct {
	Identifier    string `plist:"CFBundleIdentifier"`
	Executable    string `plist:"CFBundleExecutable"`
	PackageType   string `plist:"CFBundlePackageType"`
	Version       string `plist:"CFBundleShortVersionString"`
	Build         string `plist:"CFBundleVersion"`
	MinimumSystem string `plist:"LSMinimumSystemVersion"`
}

// maxProgram and maxFile bound what is read of a stranger's bundle.
const (
	maxProgram = 1 << 30
	maxFile    = 64 << 20
)

// Bundle checks the app bundle at a path. The error names everything that is
// wrong; the report holds what could be read all the same.
func Bundle(app string) (Report, error) {
	var r Report
	contents := filepath.Join(app, "Contents")
	infoPlist, err := readFile(filepath.Join(contents, "Info.plist"))
	if err != nil {
		return r, fmt.Errorf("%s is no app bundle: %w", app, err)
	}
	var keys info
	if _, err := plist.Unmarshal(infoPlist, &keys); err != nil {
		return r, fmt.Errorf("%s: Info.plist: %w", app, err)
	}
	r.Identifier, r.Version, r.Build, r.Executable, r.MinimumSystem = keys.Identifier, keys.Version, keys.Build, keys.Executable, keys.MinimumSystem
	for key, value := range map[string]string{
		"CFBundleIdentifier": keys.Identifier, "CFBundleExecutable": keys.Executable, "CFBundleShortVersionString": keys.Version,
		"CFBundleVersion": keys.Build, "LSMinimumSystemVersion": keys.MinimumSystem,
	} {
		if value == "" {
			err = errors.Join(err, fmt.Errorf("Info.plist has no %s", key))
		}
	}
	if keys.PackageType != "APPL" || filepath.Base(keys.Executable) != keys.Executable {
		err = errors.Join(err, errors.New("Info.plist describes no app with a program of its own"))
	}
	if err != nil {
		return r, fmt.Errorf("%s: %w", app, err)
	}

	resources, err := readFile(filepath.Join(contents, "_CodeSignature", "CodeResources"))
	if err != nil {
		return r, fmt.Errorf("%s is not sealed: %w", app, err)
	}
	var problems []error
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	add(CheckRoot(app))
	r.Resources, err = checkResources(contents, keys.Executable, resources)
	add(err)
	program, err := readProgram(filepath.Join(contents, "MacOS", keys.Executable))
	if err != nil {
		return r, fmt.Errorf("%s: %w", app, errors.Join(append(problems, err)...))
	}
	add(r.checkProgram(program, beside{infoPlist, resources}))
	if len(problems) > 0 {
		return r, fmt.Errorf("%s: %w", app, errors.Join(problems...))
	}
	return r, nil
}

// checkProgram checks every slice, and that they agree.
func (r *Report) checkProgram(b []byte, with beside) error {
	parts, err := programSlices(b)
	if err != nil {
		return err
	}
	var problems []error
	var first signature
	var hashes []string
	for i, part := range parts {
		s, sig, err := checkSlice(part, with)
		r.Slices = append(r.Slices, s)
		if err != nil {
			problems = append(problems, fmt.Errorf("%s: %w", s.Arch, err))
		}
		if sig.identifier == "" {
			continue // nothing could be read
		}
		if sig.identifier != r.Identifier {
			problems = append(problems, fmt.Errorf("%s: signed as %q, Info.plist says %q", s.Arch, sig.identifier, r.Identifier))
		}
		if s.MinimumSystem != r.MinimumSystem {
			problems = append(problems, fmt.Errorf("%s: built for macOS %s, Info.plist says %s", s.Arch, s.MinimumSystem, r.MinimumSystem))
		}
		hashes = append(hashes, fmt.Sprintf("cdhash H\"%s\"", s.CDHash))
		if i == 0 {
			first = sig
		}
		if sig.requirement != first.requirement || sig.adHoc != first.adHoc || sig.signer != nil && first.signer != nil && !sig.signer.Equal(first.signer) {
			problems = append(problems, fmt.Errorf("%s: signed in another way than the first slice", s.Arch))
		}
	}
	r.AdHoc, r.Entitlements, r.Requirement = first.adHoc, first.entitlements, first.requirement
	switch {
	case first.adHoc:
		r.Signature = "ad hoc: permissions are lost with the next build"
		r.Requirement = strings.Join(hashes, " or ")
	case first.signer == nil:
	case first.appleAnchor:
		r.Signature = fmt.Sprintf("by %q, team %s; that Apple issued the certificate is not checked here", first.signer.Subject.CommonName, first.team)
	default:
		r.Signature = fmt.Sprintf("by %q, a certificate of its own, until %s", first.signer.Subject.CommonName, first.signer.NotAfter.Format("2006-01-02"))
	}
	return errors.Join(problems...)
}

// readFile reads a regular file, and follows no link to it.
func readFile(name string) ([]byte, error) { return private.ReadPlain(name, unix.O_NOFOLLOW, maxFile) }

// readProgram reads the program, which must be one that can be started, and as
// nobody else than who starts it.
func readProgram(name string) ([]byte, error) {
	f, info, err := private.OpenPlain(name, unix.O_NOFOLLOW)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info.Mode()&0o100 == 0 {
		return nil, fmt.Errorf("%s cannot be executed (mode %04o)", name, info.Mode().Perm())
	}
	if info.Size() > maxProgram {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, info.Size(), int64(maxProgram))
	}
	return io.ReadAll(f)
}
