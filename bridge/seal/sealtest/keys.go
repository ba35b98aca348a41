// Package sealtest keeps the keys of seals in memory, for tests.
package sealtest

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"sync"
)

// Keys behaves as seal.Keys says: what Set keeps, Get returns, until Remove. The
// zero value is ready.
type Keys struct {
	mu     sync.Mutex // guards what follows
	kept   map[string][]byte
	locked bool
}

// ErrLocked is what everything fails with after Lock(true).
var ErrLocked = errors.New("the keys are locked")

// Lock has everything fail, or work again.
func (k *Keys) Lock(locked bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.locked = locked
}

// Get returns what is kept under a name; nil where nothing is.
func (k *Keys) Get(name string) ([]byte, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return nil, ErrLocked
	}
	return bytes.Clone(k.kept[name]), nil
}

// Set keeps a secret in place of what was there.
func (k *Keys) Set(name string, secret []byte) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return ErrLocked
	}
	if k.kept == nil {
		k.kept = map[string][]byte{}
	}
	k.kept[name] = append([]byte{}, secret...)
	return nil
}

// Remove reports whether there was something.
func (k *Keys) Remove(name string) (bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return false, ErrLocked
	}
	_, is := k.kept[name]
	delete(k.kept, name)
	return is, nil
}

// Names lists what something is kept under.
func (k *Keys) Names() ([]string, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.locked {
		return nil, ErrLocked
	}
	return slices.Collect(maps.Keys(k.kept)), nil
}
