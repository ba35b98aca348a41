// Package seal vouches for files that other programs of the same person could
// change: what the person accepted, and what they switched off. A seal is a hash
// under a key that the system gives to this program alone.
package seal

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
)

// Keys keeps secrets by name where no other program reads or changes them.
type Keys interface {
	// Get returns what is kept under a name; nil where nothing is.
	Get(name string) ([]byte, error)
	// Set keeps a secret in place of what was there.
	Set(name string, secret []byte) error
	// Remove reports whether there was something.
	Remove(name string) (bool, error)
	// Names lists what something is kept under, in no order; also what another
	// program put there.
	Names() ([]string, error)
}

// ErrBroken tells that something is not what was sealed last.
var ErrBroken = errors.New("it was changed, put back or removed by another program")

const keySize = 32

// Seal vouches for the one content that was written last under a name. What was
// written before is as broken as what was never written: each time there is a new
// key.
type Seal struct {
	keys Keys
	name string
	kin  []string // names whose being kept says nothing about this one; nil: all

	mu      sync.Mutex // guards what follows, and orders the writers
	content []byte     // that the key in keys vouches for; nil: not known
	mac     string
}

// New makes the seal of a name.
func New(keys Keys, name string) *Seal { return &Seal{keys: keys, name: name} }

// Among makes the seal of a name of one place, which has those names. Where
// something is kept of another place, Made is true: whoever can have the program
// work in a new place could otherwise have what was sealed forgotten.
func Among(keys Keys, name string, names ...string) *Seal {
	return &Seal{keys: keys, name: name, kin: names}
}

// Made tells whether anything was ever sealed under the name, or may have been.
func (s *Seal) Made() (bool, error) {
	key, err := s.keys.Get(s.name)
	if key != nil || err != nil || s.kin == nil {
		return key != nil, err
	}
	kept, err := s.keys.Names()
	return slices.ContainsFunc(kept, func(name string) bool { return !slices.Contains(s.kin, name) }), err
}

// Check returns nil for the content that was sealed last, with its seal, and
// [ErrBroken] for any other.
func (s *Seal) Check(content []byte, mac string) error {
	key, err := s.keys.Get(s.name)
	if err != nil {
		return err
	}
	if len(key) != keySize || !hmac.Equal([]byte(mac), []byte(s.sum(key, content))) {
		return ErrBroken
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.content, s.mac = bytes.Clone(content), mac
	return nil
}

// Write seals content; put is to put it into place with its seal. When put fails,
// what was in place before is sealed no more: it may be looser, and who can make put
// fail could have it back. The same content may be written again. A process that is
// killed on the way leaves nothing that Check would take, unless it is the old content
// or the new.
func (s *Seal) Write(content []byte, put func(mac string) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.content != nil && bytes.Equal(content, s.content) {
		return put(s.mac)
	}
	key := make([]byte, keySize)
	if _, err := rand.Read(key); err != nil {
		return err
	}
	if err := s.keys.Set(s.name, key); err != nil {
		return fmt.Errorf("keeping the key of the seal: %w", err)
	}
	s.content, s.mac = append([]byte{}, content...), s.sum(key, content)
	return put(s.mac)
}

// sum covers the name too, so that one thing's seal is no other's.
func (s *Seal) sum(key, content []byte) string {
	h := hmac.New(sha256.New, key)
	fmt.Fprintf(h, "drawbridge %d %s\n", len(s.name), s.name)
	h.Write(content)
	return hex.EncodeToString(h.Sum(nil))
}
