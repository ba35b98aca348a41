package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"

	"drawbridge/bridge/private"
	"drawbridge/bridge/token"
)

// stateFormat numbers the form of what is in the state directory. A change that an
// older agent would misread takes the next number, and a step in upgrades.
//
//	0  says no number; the model switch was not saved
//	1  has the state of the model switch, without a seal
//	2  has it sealed, and what was accepted, where the system keeps a key for that
const stateFormat = 2

// formatName is the file that holds the number.
const formatName = "format"

func readFormat(dir string) (int, error) {
	path := filepath.Join(dir, formatName)
	b, err := private.ReadFile(path, 16)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(strings.TrimSpace(string(b)))
	switch {
	case err != nil || n < 1:
		return 0, usagef("%s holds %q, which is no number of a format: restore the state directory from a backup, or move it away", path, b)
	case n > stateFormat:
		return 0, &exitError{
			code: exitUsage,
			err:  fmt.Errorf("the state in %s is of format %d, written by a newer Drawbridge; this one knows %d", dir, n, stateFormat),
			hint: "install the newer version again, or name another directory with --state",
		}
	}
	return n, nil
}

func writeFormat(dir string, n int) error {
	return private.WriteFile(filepath.Join(dir, formatName), fmt.Appendf(nil, "%d\n", n))
}

// openState brings a state directory to this agent's format. It refuses one that a
// newer agent wrote: what this one does not know of, it would lose. It returns a
// sentence where older state was brought up.
func openState(dir string) (told string, err error) {
	n, err := readFormat(dir)
	if err != nil || n == stateFormat && !upgrading(dir) {
		return "", err
	}
	// Tokens are the first that any agent saves.
	if _, err := private.ReadFile(filepath.Join(dir, token.FileName), maxBackedUp); n == 0 && errors.Is(err, fs.ErrNotExist) {
		return "", writeFormat(dir, stateFormat)
	}
	u := upgrade{dir: dir, from: n, steps: upgrades}
	if err := u.run(); err != nil {
		return "", fmt.Errorf("bringing the state in %s from format %d to %d: %w", dir, n, stateFormat, err)
	}
	return fmt.Sprintf("the state in %s was of an older format (%d); what it was is kept in %s", dir, u.from, u.backup), nil
}
