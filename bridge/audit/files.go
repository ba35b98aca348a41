package audit

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	currentName = "audit.jsonl"
	anchorName  = "audit.head"
	lockName    = "audit.lock"
)

// generation is one closed file of the log.
type generation struct {
	name  string
	first uint64 // the seq of its first record
}

func generationName(first uint64) string { return fmt.Sprintf("audit-%020d.jsonl", first) }

// generations lists the closed files of dir, oldest first.
func generations(dir string) ([]generation, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	var gens []generation
	for _, e := range entries {
		digits, ok := strings.CutPrefix(e.Name(), "audit-")
		if digits, ok = strings.CutSuffix(digits, ".jsonl"); !ok || len(digits) != 20 {
			continue
		}
		first, err := strconv.ParseUint(digits, 10, 64)
		if err != nil {
			continue
		}
		gens = append(gens, generation{e.Name(), first})
	}
	sort.Slice(gens, func(i, j int) bool { return gens[i].first < gens[j].first })
	return gens, nil
}

// openFile opens a file of the log without following a link, and makes sure
// that it is a plain file of ours that nobody else can read.
func openFile(path string, flags int) (*os.File, error) {
	f, err := os.OpenFile(path, flags|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("audit: %s is a symbolic link: put a plain file in its place, or move it away", path)
	}
	if errors.Is(err, unix.EISDIR) {
		return nil, fmt.Errorf("audit: %s is a directory, where a file of the log must stand: move it away", path)
	}
	if err != nil {
		return nil, fmt.Errorf("audit: %w", err)
	}
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = fmt.Errorf("%s is no plain file: move it away", path)
	}
	if err == nil && info.Mode().Perm()&0o077 != 0 && flags&(os.O_WRONLY|os.O_RDWR) != 0 {
		err = f.Chmod(0o600)
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("audit: %w", err)
	}
	return f, nil
}

func openDir(dir string) error {
	// A link, whole or broken, is named below.
	made := os.MkdirAll(dir, 0o700)
	info, err := os.Lstat(dir)
	if err != nil && made != nil {
		err = made
	}
	if err != nil {
		return fmt.Errorf("audit: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("audit: %s is no directory of its own (a link, or a file): move it away", dir)
	}
	if made != nil {
		return fmt.Errorf("audit: %w", made)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("audit: %s can be read by others, and that cannot be changed: %w", dir, err)
		}
	}
	return nil
}

// lock takes the log for this process.
func lock(dir string) (*os.File, error) {
	f, err := openFile(filepath.Join(dir, lockName), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, fmt.Errorf("audit: another process writes %s: stop it, or use another state directory", dir)
		}
		return nil, fmt.Errorf("audit: lock %s: %w", dir, err)
	}
	return f, nil
}

// openCall is a call that started and is not done.
type openCall struct {
	ID     string `json:"id"`
	Client string `json:"client"`
	Conn   string `json:"conn"`
	Host   string `json:"host"`
	Tool   string `json:"tool"`
}

// anchor is what the head file says: that everything up to Seq was on disk,
// which calls were open there, and where the kept log begins.
type anchor struct {
	V         int        `json:"v"`
	Seq       uint64     `json:"seq"`
	Hash      string     `json:"hash"`
	First     uint64     `json:"first"`
	FirstPrev string     `json:"first_prev"`
	Open      []openCall `json:"open"`
}

func (a *anchor) link() (link, error) {
	l := link{seq: a.Seq}
	if n, err := hex.Decode(l.hash[:], []byte(a.Hash)); err != nil || n != len(l.hash) {
		return l, errors.New("its hash is no SHA-256")
	}
	return l, nil
}

// readAnchor returns nil where there is none.
func readAnchor(dir string) (*anchor, error) {
	path := filepath.Join(dir, anchorName)
	f, err := openFile(path, os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var a anchor
	if err := json.NewDecoder(f).Decode(&a); err != nil {
		return nil, fmt.Errorf("audit: %s cannot be read: %w", path, err)
	}
	if _, err := a.link(); err != nil {
		return nil, fmt.Errorf("audit: %s cannot be used: %w", path, err)
	}
	return &a, nil
}

// writeAnchor replaces the head file in one step.
func writeAnchor(dir string, a *anchor) error {
	b, err := json.Marshal(a)
	if err != nil {
		return err
	}
	tmp := filepath.Join(dir, anchorName+".new")
	f, err := openFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_TRUNC)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	if err == nil {
		err = f.Sync()
	}
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = os.Rename(tmp, filepath.Join(dir, anchorName))
	}
	if err != nil {
		os.Remove(tmp)
		return fmt.Errorf("audit: write the anchor: %w", err)
	}
	return nil
}
