// Package token keeps the tokens by which clients and hosts are known: named,
// stored as hashes only, revocable at once.
package token

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"drawbridge/bridge/private"

	"golang.org/x/sys/unix"
)

// Role says which routes a token opens.
type Role string

const (
	Client Role = "client" // calls tools
	Host   Role = "host"   // offers tools
)

// Names of files in the state directory.
const (
	FileName        = "tokens.json"
	DefaultFileName = "default.token"
	LockName        = "tokens.lock"
)

// DefaultName is the client that is made at the first start, for local use.
const DefaultName = "default"

// Entry is one token as it is stored. It does not hold the token.
type Entry struct {
	Name    string    `json:"name"`
	Role    Role      `json:"role"`
	Hash    string    `json:"sha256"` // of the token, in hexadecimal
	Images  string    `json:"images"` // whether the client's model reads pictures: yes, no, or "" for what the client says
	Created time.Time `json:"created"`
}

type file struct {
	V      int     `json:"v"`
	Tokens []Entry `json:"tokens"`
}

// Errors of the store.
var (
	ErrExists  = errors.New("a token of this name exists")
	ErrUnknown = errors.New("no token has this name")
)

// maxFile bounds tokens.json: thousands of tokens.
const maxFile = 4 << 20

// Store is the tokens of one state directory. Several processes may use the
// same directory; each sees the others' changes with its next question.
type Store struct {
	dir string

	mu      sync.RWMutex // guards what follows
	stamp   stamp
	entries []Entry
	hashes  [][sha256.Size]byte // of entries, in their order
}

// stamp tells one state of the file from another without reading it.
type stamp struct {
	ino   uint64
	size  int64
	mtime unix.Timespec
}

// Open reads the store of a state directory, which must exist.
func Open(dir string) (*Store, error) {
	s := &Store{dir: dir}
	if _, err := s.Refresh(); err != nil {
		return nil, err
	}
	return s, nil
}

func (s *Store) path() string { return filepath.Join(s.dir, FileName) }

// Refresh reads the file again if it changed and reports whether it did. Where
// it cannot be read, no token is valid until it can.
func (s *Store) Refresh() (changed bool, err error) {
	var now stamp
	var st unix.Stat_t
	switch err := unix.Lstat(s.path(), &st); {
	case err == nil:
		now = stamp{uint64(st.Ino), st.Size, st.Mtim}
	case !errors.Is(err, fs.ErrNotExist):
		return false, &fs.PathError{Op: "lstat", Path: s.path(), Err: err}
	}
	s.mu.RLock()
	same := now == s.stamp
	s.mu.RUnlock()
	if same {
		return false, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.entries, s.hashes, s.stamp = nil, nil, stamp{}
	f, err := s.read()
	if err != nil {
		return true, err
	}
	if err := s.take(f); err != nil {
		return true, err
	}
	s.stamp = now
	return true, nil
}

// take puts the file's entries in force. The caller holds mu.
func (s *Store) take(f file) error {
	hashes := make([][sha256.Size]byte, len(f.Tokens))
	for i, e := range f.Tokens {
		b, err := hex.DecodeString(e.Hash)
		if err != nil || copy(hashes[i][:], b) != sha256.Size || len(b) != sha256.Size {
			return fmt.Errorf("%s: the hash of %q is no SHA-256; remove the entry and add the client again", s.path(), e.Name)
		}
	}
	s.entries, s.hashes = f.Tokens, hashes
	return nil
}

func (s *Store) read() (file, error) {
	f := file{V: 1}
	b, err := private.ReadFile(s.path(), maxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return f, fmt.Errorf("reading the tokens: %w%s", err, remedy(err, "revoke what you do not know there, if somebody may have written to it"))
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&f); err != nil {
		return f, fmt.Errorf("%s cannot be read (%w); mend it, or move it away and add the clients again", s.path(), err)
	}
	if f.V != 1 {
		return f, fmt.Errorf("%s has version %d, which a newer Drawbridge wrote; use that one, or move the file away", s.path(), f.V)
	}
	return f, nil
}

// remedy adds what else is to be done where others had a hand on a file.
func remedy(err error, then string) string {
	var shared *private.SharedError
	if errors.As(err, &shared) {
		return ", and " + then
	}
	return ""
}

// edit changes the file under the cross-process lock.
func (s *Store) edit(change func(*file) error) error {
	unlock, err := private.Lock(filepath.Join(s.dir, LockName))
	if err != nil {
		return err
	}
	defer unlock()
	f, err := s.read()
	if err != nil {
		return err
	}
	if err := change(&f); err != nil {
		return err
	}
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	if err := private.WriteFile(s.path(), append(b, '\n')); err != nil {
		return fmt.Errorf("writing the tokens: %w", err)
	}
	_, err = s.Refresh()
	return err
}

var nameRule = regexp.MustCompile(`^[A-Za-z0-9._-]{1,64}$`)

// CheckName reports whether a client or host may have this name.
func CheckName(name string) error {
	if !nameRule.MatchString(name) || strings.Trim(name, ".") == "" {
		return fmt.Errorf("the name %q does not do: 1 to 64 of the characters A-Z a-z 0-9 . _ -, not dots alone", name)
	}
	return nil
}

// Add makes a token and returns it. It cannot be shown again: only its hash is
// kept. Images is yes, no or empty. A name that this role has already is
// ErrExists.
func (s *Store) Add(name string, role Role, images string) (string, error) {
	if err := CheckName(name); err != nil {
		return "", err
	}
	if role != Client && role != Host {
		return "", fmt.Errorf("no role is called %q: client or host", role)
	}
	if images != "" && images != "yes" && images != "no" {
		return "", fmt.Errorf("images is %q: yes, no, or left out", images)
	}
	var b [32]byte
	if _, err := rand.Read(b[:]); err != nil {
		return "", err
	}
	token := base64.RawURLEncoding.EncodeToString(b[:])
	hash := sha256.Sum256([]byte(token))
	err := s.edit(func(f *file) error {
		if slices.ContainsFunc(f.Tokens, func(e Entry) bool { return e.Name == name && e.Role == role }) {
			return fmt.Errorf("%q: %w; revoke it first", name, ErrExists)
		}
		f.Tokens = append(f.Tokens, Entry{Name: name, Role: role, Hash: hex.EncodeToString(hash[:]), Images: images, Created: time.Now().UTC().Truncate(time.Second)})
		return nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// Revoke removes a token by name and role. ErrUnknown if there is none.
func (s *Store) Revoke(name string, role Role) error {
	return s.edit(func(f *file) error {
		n := len(f.Tokens)
		f.Tokens = slices.DeleteFunc(f.Tokens, func(e Entry) bool { return e.Name == name && e.Role == role })
		if len(f.Tokens) == n {
			return fmt.Errorf("%q: %w", name, ErrUnknown)
		}
		return nil
	})
}

// List returns all entries, oldest first.
func (s *Store) List() ([]Entry, error) {
	if _, err := s.Refresh(); err != nil {
		return nil, err
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.Clone(s.entries), nil
}

// Find returns the entry of a presented token. It takes the same time whichever
// entry fits.
func (s *Store) Find(token string) (Entry, bool) {
	hash := sha256.Sum256([]byte(token))
	s.mu.RLock()
	defer s.mu.RUnlock()
	found := -1
	for i := range s.hashes {
		found = subtle.ConstantTimeSelect(subtle.ConstantTimeCompare(s.hashes[i][:], hash[:]), i, found)
	}
	if found < 0 {
		return Entry{}, false
	}
	return s.entries[found], true
}

// Valid reports whether an entry that was found earlier is still in force.
func (s *Store) Valid(e Entry) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return slices.ContainsFunc(s.entries, func(x Entry) bool { return x.Hash == e.Hash && x.Name == e.Name && x.Role == e.Role })
}

// EnsureDefault makes the client for local use, with its token in the file
// default.token, unless both are there. A token file whose token is no longer
// valid is left alone if its client was revoked on purpose: then the client is
// not made again, and EnsureDefault reports nothing.
func (s *Store) EnsureDefault() error {
	path := filepath.Join(s.dir, DefaultFileName)
	_, err := private.ReadFile(path, 1024)
	if err == nil {
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the token for local use: %w%s", err, remedy(err, "take a new one if somebody may have read it: drawbridge client revoke default, then client add default"))
	}
	if err := s.Revoke(DefaultName, Client); err != nil && !errors.Is(err, ErrUnknown) {
		return err
	}
	token, err := s.Add(DefaultName, Client, "")
	if err != nil {
		return err
	}
	return s.KeepDefault(token)
}

// KeepDefault puts a token of the client for local use into default.token.
func (s *Store) KeepDefault(token string) error {
	if err := private.WriteFile(filepath.Join(s.dir, DefaultFileName), []byte(token+"\n")); err != nil {
		return fmt.Errorf("writing the token for local use: %w", err)
	}
	return nil
}

// ReadDefault returns the token for local use of a state directory.
func ReadDefault(dir string) (string, error) {
	b, err := private.ReadFile(filepath.Join(dir, DefaultFileName), 1024)
	if err != nil {
		return "", fmt.Errorf("reading the token for local use: %w%s", err, remedy(err, "take a new one if somebody may have read it: drawbridge client revoke default, then client add default"))
	}
	return string(bytes.TrimSpace(b)), nil
}
