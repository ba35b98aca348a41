package input

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"drawbridge/bridge/private"
)

// journalSize is the size of the file. One write within one page is all that a
// note costs, and it needs no new space on the disk.
const journalSize = 1024

// Journal is a small file that says what a process holds down, so that the next
// one can let go of it. It is written before each press and after each release,
// without fsync: what was written outlives the process, though not the machine,
// and a machine that restarts holds nothing.
type Journal struct{ f *os.File }

// journalState is what the file holds, as one line of JSON, padded with spaces.
type journalState struct {
	PID       int      `json:"pid"`
	Injecting bool     `json:"injecting"` // events were being posted; a driver may hold keys of its own
	Buttons   []Button `json:"buttons,omitempty"`
	Keys      []Key    `json:"keys,omitempty"` // in the order of their presses
}

// OpenJournal opens or makes the journal at path, for this user only. Call
// [Recover] first. A link in its place is refused.
func OpenJournal(path string) (*Journal, error) {
	f, err := private.Open(path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, fmt.Errorf("open the input journal: %w", err)
	}
	j := &Journal{f: f}
	info, err := f.Stat()
	if err == nil && info.Size() < journalSize {
		err = j.clear() // takes the file's space now, while nothing is held
	}
	if err != nil {
		_ = f.Close() // the first error is the one to report
		return nil, err
	}
	return j, nil
}

// Close closes the file. It stays, so that what is still held can be found.
func (j *Journal) Close() error { return j.f.Close() }

func (j *Journal) clear() error { return j.save(journalState{PID: os.Getpid()}) }

func (j *Journal) write(held []hold) error {
	s := journalState{PID: os.Getpid(), Injecting: true}
	for _, x := range held {
		if x.button != 0 {
			s.Buttons = append(s.Buttons, x.button)
		} else {
			s.Keys = append(s.Keys, x.key)
		}
	}
	return j.save(s)
}

func (j *Journal) save(s journalState) error {
	line, err := json.Marshal(s)
	if err != nil {
		return fmt.Errorf("input journal: %w", err)
	}
	if len(line) >= journalSize {
		return fmt.Errorf("input journal: %d keys and buttons are too many to hold at once", len(s.Keys)+len(s.Buttons))
	}
	page := bytes.Repeat([]byte{' '}, journalSize)
	copy(page, line)
	page[journalSize-1] = '\n'
	if _, err := j.f.WriteAt(page, 0); err != nil {
		return fmt.Errorf("input journal: %w", err)
	}
	return nil
}

// Recover lets go of what the journal at path says a dead process left held,
// and clears it. It returns what was let go. A missing journal is no error; one
// that cannot be read lets go of every stray key and is cleared all the same.
func Recover(ctx context.Context, d Driver, path string) (released []string, err error) {
	f, err := private.Open(path, os.O_RDWR)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("open the input journal: %w", err)
	}
	j := &Journal{f: f}
	defer func() { err = errors.Join(err, j.Close()) }()

	data, err := io.ReadAll(io.LimitReader(f, journalSize))
	if err != nil {
		return nil, fmt.Errorf("read the input journal: %w", err)
	}
	s, ok := parseJournal(data)
	if ok && !s.Injecting {
		return nil, nil
	}
	var held []hold
	for _, k := range s.Keys {
		held = append(held, hold{key: k})
	}
	for _, b := range s.Buttons {
		held = append(held, hold{button: b})
	}
	var errs []error
	for _, x := range releaseOrder(held) {
		if e := letGo(ctx, d, x); e != nil {
			errs = append(errs, fmt.Errorf("release the %s left by process %d: %w", x, s.PID, e))
			continue
		}
		released = append(released, x.String())
	}
	// Typing presses keys that only the driver knows of.
	if e := d.ReleaseStray(ctx); e != nil {
		errs = append(errs, fmt.Errorf("release stray keys: %w", e))
	}
	if len(errs) > 0 {
		return released, errors.Join(errs...) // the journal keeps it for another try
	}
	return released, j.clear()
}

// parseJournal reads a journal's bytes. An empty file is one that was being
// made: nothing had been pressed yet.
func parseJournal(data []byte) (s journalState, ok bool) {
	data = bytes.TrimSpace(data)
	if len(data) == 0 {
		return s, true
	}
	if err := json.Unmarshal(data, &s); err != nil {
		return journalState{}, false
	}
	for _, b := range s.Buttons {
		if b < Left || b > Forward {
			return journalState{}, false
		}
	}
	return s, true
}
