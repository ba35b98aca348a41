package main

import (
	"archive/zip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"

	"drawbridge/bridge/private"
	"drawbridge/packaging/bundle"
	"drawbridge/packaging/verify"
)

// handedOut are the files that a person gets, in a directory that may hold others.
type handedOut struct {
	dir           string
	app           string
	version       string
	url, homepage string // of the cask; empty: there is none
}

// make writes the files. Each takes the place of one from before, and of nothing
// else.
func (d handedOut) make(out io.Writer) error {
	name := fmt.Sprintf("Drawbridge-%s.zip", d.version)
	path, cask := filepath.Join(d.dir, name), filepath.Join(d.dir, "drawbridge.rb")
	for _, f := range []struct {
		path string
		ours func(path string) (bool, error)
	}{{path, isZip}, {path + ".sha256", isDigest}, {cask, isCask}} {
		switch ours, err := f.ours(f.path); {
		case errors.Is(err, fs.ErrNotExist):
		case f.path == cask && d.url == "" && err == nil && !ours: // nothing is written there
		case err != nil:
			return fmt.Errorf("what stands in the way is not ours: move it away: %w", err)
		case !ours:
			return fmt.Errorf("%s is not of an earlier make dist: move it away", f.path)
		}
	}
	if err := os.MkdirAll(d.dir, 0o755); err != nil {
		return err
	}
	if err := writeWhole(path, func(w io.Writer) error { return bundle.Zip(w, d.app, verify.Leftover) }); err != nil {
		return err
	}
	digest, err := bundle.Digest(path)
	if err != nil {
		return err
	}
	if err := writeWhole(path+".sha256", text(digestLine(digest, name))); err != nil {
		return err
	}
	fmt.Fprintf(out, "%s\n  sha256 %s\n", path, digest)
	if d.url != "" {
		if err := writeWhole(cask, text(bundle.Cask(d.version, d.url, d.homepage, digest))); err != nil {
			return err
		}
		_, err := fmt.Fprintln(out, cask)
		return err
	}
	fmt.Fprintln(out, "  no Homebrew cask, which needs to know where the zip will be: URL=ADDRESS HOMEPAGE=ADDRESS")
	// One from before is for another zip.
	switch ours, err := isCask(cask); {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !ours:
		_, err := fmt.Fprintf(out, "  %s is not as make dist writes it, and stays\n", cask)
		return err
	}
	return os.Remove(cask)
}

func text(s string) func(io.Writer) error {
	return func(w io.Writer) error { _, err := io.WriteString(w, s); return err }
}

// writeWhole writes a file whole or not at all.
func writeWhole(path string, write func(io.Writer) error) (err error) {
	left := regexp.MustCompile(`^\.` + regexp.QuoteMeta(filepath.Base(path)) + `-[0-9]{1,10}$`)
	if err := private.Sweep(filepath.Dir(path), left); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	err = errors.Join(write(f), f.Chmod(0o644), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		err = errors.Join(err, os.Remove(f.Name()))
	}
	return err
}

// isZip tells whether a file is a zip of one app.
func isZip(path string) (bool, error) {
	f, info, err := private.OpenPlain(path, unix.O_NOFOLLOW)
	if err != nil {
		return false, err
	}
	defer f.Close()
	z, err := zip.NewReader(f, info.Size())
	if err != nil || len(z.File) == 0 {
		return false, nil
	}
	app, _, _ := strings.Cut(z.File[0].Name, "/")
	for _, e := range z.File {
		if !strings.HasPrefix(e.Name, app+"/") {
			return false, nil
		}
	}
	return filepath.Ext(app) == ".app", nil
}

func digestLine(digest, name string) string { return fmt.Sprintf("%s  %s\n", digest, name) }

var oneDigest = regexp.MustCompile(`^[0-9a-f]{64}  Drawbridge-[0-9.]+\.zip\n$`)

// isDigest tells whether a file holds the digest of such a zip, and nothing else.
func isDigest(path string) (bool, error) {
	b, err := private.ReadPlain(path, unix.O_NOFOLLOW, maxText)
	return err == nil && oneDigest.Match(b), err
}

// caskValues are those that a cask is made of.
var caskValues = regexp.MustCompile(`(?s)\n  version "([^"\n]*)"\n  sha256 "([^"\n]*)"\n\n  url "([^"\n]*)"\n.*\n  homepage "([^"\n]*)"\n`)

// isCask tells whether a file is a cask of ours as it was written, which nobody has
// changed since.
func isCask(path string) (bool, error) {
	b, err := private.ReadPlain(path, unix.O_NOFOLLOW, maxText)
	if err != nil {
		return false, err
	}
	v := caskValues.FindStringSubmatch(string(b))
	return v != nil && bundle.Cask(v[1], v[3], v[4], v[2]) == string(b), nil
}
