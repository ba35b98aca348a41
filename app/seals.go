package main

import (
	"fmt"
	"path/filepath"
	"slices"

	"drawbridge/bridge/gate"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/seal"
	"drawbridge/packaging/install"
)

// acceptedName is the file in the state directory that holds what the person
// accepted last, where the system has a place for its seal.
const acceptedName = "accepted"

// seals vouch for what is saved in a state directory. Without keys there are none:
// what was accepted ends with the agent then, and the state of the model switch is
// believed as it is found.
type seals struct {
	keys seal.Keys
	dir  string
}

func openSeals(dir string) seals {
	// By its one true name, however it is named on a command line.
	if real, err := filepath.EvalSymlinks(dir); err == nil {
		dir = real
	}
	return seals{seal.Platform(install.Identifier), dir}
}

// name is that of the key of a file.
func (s seals) name(file string) string { return file + " of " + s.dir }

// names are those of all keys of the directory.
func (s seals) names() []string { return []string{s.name(acceptedName), s.name(hostllm.StateFile)} }

// of is the seal of a file. In a directory that is new to it, with other
// directories sealed, it counts as lost: somebody may have put this one in the place
// of the person's.
func (s seals) of(file string) *seal.Seal {
	return seal.Among(s.keys, s.name(file), s.names()...)
}

// accepted keeps what the person accepted; nil where it cannot outlive the agent.
func (s seals) accepted() gate.Store {
	if s.keys == nil {
		return nil
	}
	return seal.File{Path: filepath.Join(s.dir, acceptedName), Seal: s.of(acceptedName)}
}

// models vouches for the saved state of the model switch; nil: nothing can.
func (s seals) models() hostllm.Sealer {
	if s.keys == nil {
		return nil
	}
	return s.of(hostllm.StateFile)
}

// remove takes the keys away, for good. It returns what they are called, and what
// those of other state directories are called, which stay.
func (s seals) remove() (removed, kept []string, err error) {
	if s.keys == nil {
		return nil, nil, nil
	}
	for _, name := range s.names() {
		is, err := s.keys.Remove(name)
		if err != nil {
			return removed, nil, err
		}
		if is {
			removed = append(removed, item(name))
		}
	}
	others, err := s.keys.Names()
	for _, name := range others {
		kept = append(kept, item(name)+", of another state directory")
	}
	slices.Sort(kept)
	return removed, kept, err
}

func item(name string) string { return fmt.Sprintf("the Keychain's item %q", name) }
