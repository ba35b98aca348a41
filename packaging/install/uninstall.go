package install

import (
	"errors"
	"os"
	"path/filepath"
)

// Uninstall removes the app of an identifier from a directory, and what killed
// installs left there. It says whether there was one. An app of another identifier
// is left alone.
func Uninstall(dir, identifier string) (removed bool, err error) {
	target := filepath.Join(dir, Name)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	unlock, err := lock(dir)
	if err != nil {
		return false, err
	}
	defer unlock()
	there, err := lookAt(target, identifier)
	if err != nil {
		return false, err
	}
	if there.exists {
		// Away in one step first, so that no half of it is ever at the place.
		stage, err := os.MkdirTemp(dir, staging+"*")
		if err != nil {
			return false, err
		}
		if err := os.Rename(target, filepath.Join(stage, Name)); err != nil {
			return false, errors.Join(err, os.Remove(stage))
		}
	}
	return there.exists, removeStaged(dir)
}
