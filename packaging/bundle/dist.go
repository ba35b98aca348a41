package bundle

import (
	"archive/zip"
	"compress/flate"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// zipTime is the time of every entry: the oldest that a zip can say, since a real
// one would make two zips of one app differ.
var zipTime = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// Zip packs the bundle at a path, with the modes of its files, which unpacking on
// a Mac restores. It leaves out the files of which skip tells, by their path in the
// bundle.
func Zip(w io.Writer, app string, skip func(name string) bool) error {
	z := zip.NewWriter(w)
	z.RegisterCompressor(zip.Deflate, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
	parent := filepath.Dir(app)
	err := filepath.WalkDir(app, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name, err := filepath.Rel(app, p); err != nil || skip(name) {
			return err
		}
		name, err := filepath.Rel(parent, p)
		if err != nil {
			return err
		}
		st, err := d.Info()
		if err != nil {
			return err
		}
		h := &zip.FileHeader{Name: filepath.ToSlash(name), Modified: zipTime}
		h.SetMode(st.Mode())
		switch {
		case d.IsDir():
			h.Name += "/"
			_, err = z.CreateHeader(h)
			return err
		case !st.Mode().IsRegular():
			return fmt.Errorf("%s is no regular file", p)
		}
		h.Method = zip.Deflate
		to, err := z.CreateHeader(h)
		if err != nil {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		_, err = io.Copy(to, f)
		return err
	})
	if err != nil {
		return fmt.Errorf("packing %s: %w", app, err)
	}
	return z.Close()
}

// Digest is the SHA-256 of a file, in hex.
func Digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Cask is a Homebrew cask for a zip at an address, in which #{version} stands for
// the version, and the page that tells about it.
func Cask(version, url, homepage, digest string) string {
	short, _ := Versions(version)
	return strings.NewReplacer("VERSION", short, "DIGEST", digest, "HOMEPAGE", homepage, "URL", url).Replace(`cask "drawbridge" do
  version "VERSION"
  sha256 "DIGEST"

  url "URL"
  name "Drawbridge"
  desc "Lets a program drive this desktop under a person's eyes"
  homepage "HOMEPAGE"

  depends_on macos: ">= :monterey"

  app "Drawbridge.app"
  binary "#{appdir}/Drawbridge.app/Contents/MacOS/drawbridge"

  uninstall launchctl: "io.github.drawbridge.Drawbridge",
            quit:      "io.github.drawbridge.Drawbridge"

  zap trash: [
    "~/Library/Application Support/Drawbridge",
    "~/Library/LaunchAgents/io.github.drawbridge.Drawbridge.plist",
    "~/Library/Logs/Drawbridge",
  ]
end
`)
}
