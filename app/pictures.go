package main

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"drawbridge/bridge/private"
)

// Pictures of calls that name no directory for them are kept for a while, where
// nobody else can look, so that a person can open one.
const (
	picturesName = "pictures" // in the state directory
	keptPictures = 50
	keptBytes    = 64 << 20
)

// pictureName is that of a picture that was kept: when, and what it was called.
var pictureName = regexp.MustCompile(`^[0-9]{8}-[0-9]{6}-.*-[0-9]+\.[a-z0-9]+$`)

// pictureDir makes the place of kept pictures, drops the oldest that are too many,
// and returns what the names of new ones begin with.
func (c *cli) pictureDir() (dir, prefix string, err error) {
	if dir, err = c.stateDir(); err != nil {
		return "", "", err
	}
	dir = filepath.Join(dir, picturesName)
	if err := private.Dir(dir); err != nil {
		return "", "", err
	}
	return dir, time.Now().Format("20060102-150405-"), dropOldest(dir, keptPictures-1, keptBytes)
}

// dropOldest leaves so many files and bytes of pictures, the newest.
func dropOldest(dir string, files int, bytes int64) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var pictures []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if errors.Is(err, fs.ErrNotExist) || err == nil && (!info.Mode().IsRegular() || !pictureName.MatchString(info.Name())) {
			continue // gone already, or none of ours
		}
		if err != nil {
			return err
		}
		pictures = append(pictures, info)
	}
	slices.SortFunc(pictures, func(a, b fs.FileInfo) int { return b.ModTime().Compare(a.ModTime()) })
	for _, p := range pictures {
		files--
		bytes -= p.Size()
		if files >= 0 && bytes >= 0 {
			continue
		}
		if err := os.Remove(filepath.Join(dir, p.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}
