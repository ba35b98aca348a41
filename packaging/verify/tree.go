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

// besideContents are the files that may lie beside Contents, as codesign has it:
// what Finder and the App Store leave there. Anything else it calls unsealed
// contents in the bundle root (BundleDiskRep::setup in Apple's Security).
var besideContents = []string{".LSOverride", ".DS_Store", "Icon\r", ".SoftwareDepot.tracking"}

// Leftover tells whether a file of a bundle is none of the app's: one that Finder or
// the App Store leaves there and that no seal covers. name is its path in the bundle.
func Leftover(name string) bool {
	name = filepath.ToSlash(name)
	dir, base := path.Split(name)
	if dir == "" {
		return slices.Contains(besideContents, base)
	}
	// Beside the program and the seal there is only what is the app's.
	return base == ".DS_Store" && (dir == "Contents/" || strings.HasPrefix(dir, "Contents/Resources/"))
}

// CheckRoot checks that a bundle holds Contents and nothing else.
func CheckRoot(app string) error {
	entries, err := os.ReadDir(app)
	if err != nil {
		return err
	}
	var problems []error
	for _, e := range entries {
		info, err := e.Info()
		switch {
		case err != nil:
			problems = append(problems, err)
		case e.Name() == "Contents" && e.IsDir():
		case Leftover(e.Name()) && plain(info):
		default:
			problems = append(problems, fmt.Errorf("%q lies beside Contents, where no seal covers it", e.Name()))
		}
	}
	return errors.Join(problems...)
}

// plain tells whether a file is a regular one that nobody executes.
func plain(info fs.FileInfo) bool { return info.Mode().IsRegular() && info.Mode()&0o111 == 0 }

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
		b, err := readFile(filepath.Join(contents, filepath.FromSlash(name)))
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
	known := map[string]bool{}
	dirs := map[string]bool{".": true}
	note := func(name string) {
		known[name] = true
		for d := path.Dir(name); !dirs[d]; d = path.Dir(d) {
			dirs[d] = true
		}
	}
	for name := range parsed.Files {
		note(path.Clean(name))
	}
	// CodeResources in Contents itself is the ticket that stapler puts there.
	for _, name := range []string{"Info.plist", "PkgInfo", "CodeResources", path.Join("MacOS", executable), "_CodeSignature/CodeResources"} {
		note(name)
	}
	// The one file of ours that no seal covers says what each app's does.
	if b, err := readFile(filepath.Join(contents, "PkgInfo")); err == nil && (len(b) != 8 || !bytes.HasPrefix(b, []byte("APPL"))) {
		problems = append(problems, errors.New("PkgInfo is not that of an app"))
	}
	err := filepath.WalkDir(contents, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(contents, p)
		if err != nil {
			return err
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch mode := info.Mode(); {
		case d.IsDir() && !dirs[name]:
			problems = append(problems, fmt.Errorf("the directory %s was added", name))
			return fs.SkipDir
		case d.IsDir():
		case !mode.IsRegular():
			problems = append(problems, fmt.Errorf("%s is no regular file", name))
		case !known[name] && !(Leftover("Contents/"+name) && plain(info)):
			problems = append(problems, fmt.Errorf("%s was added", name))
		case mode&(fs.ModeSetuid|fs.ModeSetgid) != 0:
			problems = append(problems, fmt.Errorf("%s would run as another user or group than who starts it (%v)", name, mode))
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
