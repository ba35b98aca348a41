// Package measured keeps what only this machine can tell, and no documentation: it
// is found out by making gestures and looking what came of them. It holds for the
// version of the system that it was found out on.
package measured

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"drawbridge/bridge/private"
)

// FileName is the file in the state directory.
const FileName = "measured.json"

// Facts are what was measured.
type Facts struct {
	System        string    `json:"system"` // the version that it was measured on
	When          time.Time `json:"when"`
	WheelReversed bool      `json:"wheel_reversed"` // the wheel turns the other way than documented
	Typing        bool      `json:"typing"`         // text arrives as it was typed
	Watch         string    `json:"watch"`          // how the person is seen; empty: not at all
}

// most is how long the file may be.
const most = 4096

// Load reads what was measured on this version of the system. ok is false where
// nothing was, or on another version, or the file cannot be read: it is measured
// again then.
func Load(dir, system string) (f Facts, ok bool) {
	file, err := private.Open(filepath.Join(dir, FileName), os.O_RDONLY)
	if err != nil {
		return Facts{}, false
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, most))
	if err != nil || json.Unmarshal(data, &f) != nil || f.System != system || system == "" {
		return Facts{}, false
	}
	return f, true
}

// Save keeps what was measured, in place of what was before.
func Save(dir string, f Facts) (err error) {
	data, err := json.MarshalIndent(f, "", "\t")
	if err != nil {
		return fmt.Errorf("keep what was measured: %w", err)
	}
	path := filepath.Join(dir, FileName)
	next := path + ".new"
	if err := os.Remove(next); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("keep what was measured: %w", err)
	}
	file, err := private.Open(next, os.O_WRONLY|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return fmt.Errorf("keep what was measured: %w", err)
	}
	_, err = file.Write(append(data, '\n'))
	if err = errors.Join(err, file.Close()); err == nil {
		err = os.Rename(next, path)
	}
	if err != nil {
		return fmt.Errorf("keep what was measured: %w", errors.Join(err, os.Remove(next)))
	}
	return nil
}
