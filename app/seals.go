package main

import (
	"fmt"
	"path/filepath"

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

func (s seals) of(file string) *seal.Seal { return seal.New(s.keys, s.name(file)) }

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

// remove takes the keys away, for good, and returns what they are called.
func (s seals) remove() (removed []string, err error) {
	if s.keys == nil {
		return nil, nil
	}
	for _, file := range []string{acceptedName, hostllm.StateFile} {
		is, err := s.keys.Remove(s.name(file))
		if err != nil {
			return removed, err
		}
		if is {
			removed = append(removed, fmt.Sprintf("the Keychain's item %q", s.name(file)))
		}
	}
	return removed, nil
}
