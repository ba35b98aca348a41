// Package verify reads an app bundle as macOS does and checks its seal: every
// page of the code, every part of the signature and every resource is hashed
// again. It shares no code with the package that signs.
package verify

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"howett.net/plist"
)

// Report is what a bundle is.
type Report struct {
	Identifier    string `json:"identifier"`
	Version       string `json:"version"`
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
	infoPlist, err := readFile(filepath.Join(contents, "Info.plist"), maxFile)
	if err != nil {
		return r, fmt.Errorf("%s is no app bundle: %w", app, err)
	}
	var keys info
	if _, err := plist.Unmarshal(infoPlist, &keys); err != nil {
		return r, fmt.Errorf("%s: Info.plist: %w", app, err)
	}
	r.Identifier, r.Version, r.Executable, r.MinimumSystem = keys.Identifier, keys.Version, keys.Executable, keys.MinimumSystem
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

	resources, err := readFile(filepath.Join(contents, "_CodeSignature", "CodeResources"), maxFile)
	if err != nil {
		return r, fmt.Errorf("%s is not sealed: %w", app, err)
	}
	var problems []error
	add := func(err error) {
		if err != nil {
			problems = append(problems, err)
		}
	}
	r.Resources, err = checkResources(contents, keys.Executable, resources)
	add(err)
	program, err := readFile(filepath.Join(contents, "MacOS", keys.Executable), maxProgram)
	if err != nil {
		return r, errors.Join(append(problems, err)...)
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

// checkResources checks every file against the list, and that nothing lies in the
// bundle that the list does not have. It returns how many are sealed.
func checkResources(contents, executable string, list []byte) (int, error) {
	var parsed struct {
		Files map[string]any `plist:"files2"`
	}
	if _, err := plist.Unmarshal(list, &parsed); err != nil {
		return 0, fmt.Errorf("the list of resources: %w", err)
	}
	var problems []error
	for name, entry := range parsed.Files {
		hash, optional, err := sealed(entry)
		if err != nil || !filepath.IsLocal(name) {
			problems = append(problems, fmt.Errorf("the list of resources says something about %s that is not known here", name))
			continue
		}
		b, err := readFile(filepath.Join(contents, filepath.FromSlash(name)), maxFile)
		if errors.Is(err, fs.ErrNotExist) && optional {
			continue
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("resource %s: %w", name, err))
			continue
		}
		if h := sha256.Sum256(b); !bytes.Equal(h[:], hash) {
			problems = append(problems, fmt.Errorf("resource %s was changed", name))
		}
	}
	unlisted := []string{"Info.plist", "PkgInfo", path.Join("MacOS", executable), "_CodeSignature/CodeResources"}
	err := filepath.WalkDir(contents, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(contents, p)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		if !d.Type().IsRegular() {
			problems = append(problems, fmt.Errorf("%s is no regular file", name))
		} else if parsed.Files[name] == nil && !slices.Contains(unlisted, name) && path.Base(name) != ".DS_Store" {
			problems = append(problems, fmt.Errorf("%s was added", name))
		}
		return nil
	})
	if err != nil {
		problems = append(problems, err)
	}
	return len(parsed.Files), errors.Join(problems...)
}

// sealed reads one entry of the list: a hash, or a dictionary with one.
func sealed(entry any) (hash []byte, optional bool, err error) {
	switch e := entry.(type) {
	case []byte:
		return e, false, nil
	case map[string]any:
		hash, ok := e["hash2"].([]byte)
		optional, _ := e["optional"].(bool)
		if ok {
			return hash, optional, nil
		}
	}
	return nil, false, errors.New("no hash")
}

// readFile reads a regular file of at most limit bytes.
func readFile(name string, limit int64) ([]byte, error) {
	st, err := os.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is no regular file", name)
	}
	if st.Size() > limit {
		return nil, fmt.Errorf("%s has %d bytes, more than %d", name, st.Size(), limit)
	}
	return os.ReadFile(name)
}
