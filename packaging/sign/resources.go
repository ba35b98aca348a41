package sign

import (
	"bytes"
	"crypto/sha1"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"

	"drawbridge/bridge/private"
)

// rules are those that codesign writes into every bundle, byte for byte.
//
//go:embed rules.xml
var rules string

// codeResources returns the CodeResources file of a bundle that has its main
// executable and resources, and nothing nested: the hash of every resource, by
// the old rules and the new.
func codeResources(contents, executable string) ([]byte, error) {
	var old, new bytes.Buffer
	err := filepath.WalkDir(contents, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(contents, p)
		if err != nil {
			return err
		}
		name = filepath.ToSlash(name)
		switch {
		case name == "Info.plist", name == "PkgInfo", name == path.Join("MacOS", executable), strings.HasPrefix(name, "_CodeSignature/"):
			return nil
		case !strings.HasPrefix(name, "Resources/"):
			return fmt.Errorf("%s has no place in the bundle: beside the executable there are only Resources", name)
		case !d.Type().IsRegular():
			return fmt.Errorf("%s is no regular file", name)
		}
		b, err := private.ReadPlain(p, 0, maxFile)
		if err != nil {
			return err
		}
		h1, h2 := sha1.Sum(b), sha256.Sum256(b)
		// Texts of a language may be removed without breaking the seal.
		optional := strings.Contains(name, ".lproj/")
		writeHash(&old, name, "hash", h1[:], optional)
		writeHash(&new, name, "hash2", h2[:], optional)
		return nil
	})
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	out.WriteString("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<plist version=\"1.0\">\n<dict>\n")
	fmt.Fprintf(&out, "\t<key>files</key>\n\t<dict>\n%s\t</dict>\n", old.String())
	fmt.Fprintf(&out, "\t<key>files2</key>\n\t<dict>\n%s\t</dict>\n", new.String())
	out.WriteString(rules)
	out.WriteString("</dict>\n</plist>\n")
	return out.Bytes(), nil
}

// writeHash writes one file's entry. The old list holds bare hashes where there
// is nothing else to say.
func writeHash(w *bytes.Buffer, name, key string, hash []byte, optional bool) {
	w.WriteString("\t\t<key>")
	_ = xml.EscapeText(w, []byte(name)) // a buffer takes everything
	w.WriteString("</key>\n")
	hash64 := base64.StdEncoding.EncodeToString(hash)
	if key == "hash" && !optional {
		fmt.Fprintf(w, "\t\t<data>\n\t\t%s\n\t\t</data>\n", hash64)
		return
	}
	fmt.Fprintf(w, "\t\t<dict>\n\t\t\t<key>%s</key>\n\t\t\t<data>\n\t\t\t%s\n\t\t\t</data>\n", key, hash64)
	if optional {
		w.WriteString("\t\t\t<key>optional</key>\n\t\t\t<true/>\n")
	}
	w.WriteString("\t\t</dict>\n")
}
