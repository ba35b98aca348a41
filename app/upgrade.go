package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/private"
	"drawbridge/bridge/token"
)

// upgrades[n] brings state of format n to format n+1. Each may be killed and run
// again.
var upgrades = []func(dir string) error{
	func(string) error { return nil }, // the switch saves itself where nothing was saved
	func(dir string) error {
		if s := openSeals(dir).models(); s != nil {
			return hostllm.SealSaved(dir, s)
		}
		return nil
	},
}

// upgrade brings a state directory from a format to the newest. Before anything is
// changed, it is copied; a killed upgrade is finished at the next start, and the
// copy stays what it was before the first step.
type upgrade struct {
	dir    string
	from   int
	steps  []func(dir string) error
	backup string // where the copy is, once run returned

	at func(what string) // called before each step, for tests that end there
}

// underWay is the file that holds where a begun upgrade has its copy, and what it
// began with, as JSON.
const underWay = "upgrade.json"

type begun struct {
	V      int    `json:"v"`
	From   int    `json:"from"`
	Backup string `json:"backup"`
}

// upgrading tells whether an upgrade was begun and not finished.
func upgrading(dir string) bool {
	_, err := os.Lstat(filepath.Join(dir, underWay))
	return err == nil
}

func (u *upgrade) run() error {
	b, err := u.begin()
	if err != nil {
		return err
	}
	u.from, u.backup = b.From, filepath.Join(u.dir, b.Backup)
	if err := u.copy(); err != nil {
		return fmt.Errorf("keeping a copy of it: %w", err)
	}
	for n := u.from; n < len(u.steps); n++ {
		u.note(fmt.Sprintf("step %d", n))
		if err := u.steps[n](u.dir); err != nil {
			return err
		}
	}
	u.note("mark")
	if err := writeFormat(u.dir, len(u.steps)); err != nil {
		return err
	}
	u.note("end")
	return os.Remove(filepath.Join(u.dir, underWay))
}

func (u *upgrade) note(what string) {
	if u.at != nil {
		u.at(what)
	}
}

// begin returns what was begun, or begins.
func (u *upgrade) begin() (b begun, err error) {
	path := filepath.Join(u.dir, underWay)
	text, err := private.ReadFile(path, 4096)
	if err == nil {
		err = json.Unmarshal(text, &b)
		if err != nil || b.V != 1 || b.From < 0 || b.From > len(u.steps) || !strings.HasPrefix(b.Backup, backupPrefix) || !filepath.IsLocal(b.Backup) {
			return b, fmt.Errorf("%s does not say what was begun: restore the state directory from a backup, or move it away", path)
		}
		return b, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return b, err
	}
	b = begun{V: 1, From: u.from}
	for n := 1; ; n++ {
		b.Backup = fmt.Sprintf("%s%d", backupPrefix, u.from)
		if n > 1 { // one is left of an upgrade that was taken back
			b.Backup += fmt.Sprintf("-%d", n)
		}
		if _, err := os.Lstat(filepath.Join(u.dir, b.Backup)); errors.Is(err, fs.ErrNotExist) {
			break
		}
	}
	if text, err = json.Marshal(b); err != nil {
		return b, err
	}
	u.note("begin")
	return b, private.WriteFile(path, append(text, '\n'))
}

const (
	backupPrefix = "backup-format-"
	maxBackedUp  = 16 << 20 // no file of ours that an upgrade may change is larger
)

// notBackedUp are files that hold nothing over a restart.
var notBackedUp = []string{underWay, "lock", bridge.EndpointFile, logName, logName + ".1", journalName, leaseName, token.LockName}

// copy copies the files of the directory, all at once for whoever looks: under the
// name of the copy there is all or nothing. What is below it no upgrade touches.
func (u *upgrade) copy() (err error) {
	if _, err := os.Lstat(u.backup); err == nil {
		return nil
	}
	u.note("copy")
	half := filepath.Join(u.dir, "."+filepath.Base(u.backup))
	if err := os.RemoveAll(half); err != nil {
		return err
	}
	if err := os.Mkdir(half, 0o700); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(half))
		}
	}()
	entries, err := os.ReadDir(u.dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || slices.Contains(notBackedUp, e.Name()) {
			continue
		}
		u.note("copy " + e.Name())
		if info, err := e.Info(); err != nil {
			return err
		} else if info.Size() > maxBackedUp {
			return fmt.Errorf("%s is larger than %d bytes; that is no file of ours: move it away", filepath.Join(u.dir, e.Name()), maxBackedUp)
		}
		b, err := os.ReadFile(filepath.Join(u.dir, e.Name()))
		if err != nil {
			return err
		}
		if err := private.WriteFile(filepath.Join(half, e.Name()), b); err != nil {
			return err
		}
	}
	u.note("copied")
	return os.Rename(half, u.backup)
}
