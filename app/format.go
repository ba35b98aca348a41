package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"drawbridge/bridge/private"
)

// stateFormat numbers the form of what is in the state directory. A change that an
// older agent would misread takes the next number.
const stateFormat = 1

// checkFormat refuses a state directory that a newer agent wrote: what this one
// does not know of, it would lose. A directory that says nothing is of the first
// format and is marked.
func checkFormat(dir string) error {
	path := filepath.Join(dir, "format")
	b, err := private.ReadFile(path, 16)
	if errors.Is(err, fs.ErrNotExist) {
		return private.WriteFile(path, fmt.Appendf(nil, "%d\n", stateFormat))
	}
	if err != nil {
		return err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	switch {
	case err != nil || n < 1:
		return usagef("%s holds %q, which is no number of a format: restore the state directory from a backup, or move it away", path, b)
	case n > stateFormat:
		return &exitError{
			code: exitUsage,
			err:  fmt.Errorf("the state in %s is of format %d, written by a newer Drawbridge; this one knows %d", dir, n, stateFormat),
			hint: "install the newer version again, or name another directory with --state",
		}
	}
	return nil
}
