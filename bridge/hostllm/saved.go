package hostllm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"drawbridge/bridge/private"
)

// StateFile is the file in the state directory that holds the last state. Hosts'
// extensions read it while Drawbridge does not run; where they cannot, they deny.
const StateFile = "host-llm.json"

const maxStateFile = 1 << 20

// saved is its content.
type saved struct {
	V int `json:"v"`
	State
	// ModelHosts are the patterns of destinations that are refused under deny.
	ModelHosts []string `json:"model_hosts"`
}

// load returns the last state. fs.ErrNotExist: none was saved.
func load(dir string) (State, error) {
	path := filepath.Join(dir, StateFile)
	b, err := private.ReadFile(path, maxStateFile)
	if err != nil {
		return State{}, err
	}
	var s saved
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return State{}, fmt.Errorf("%s cannot be read: %w", path, err)
	}
	if d.More() {
		return State{}, fmt.Errorf("%s holds more than one state", path)
	}
	if s.V != 1 {
		return State{}, fmt.Errorf("%s has version %d; this program writes 1", path, s.V)
	}
	if _, err := ParseMode(string(s.Mode)); err != nil {
		return State{}, fmt.Errorf("%s: %w", path, err)
	}
	return s.State, nil
}

// atStart is what holds at the start: the stricter of the configuration and what
// was saved. Where that cannot be read, it is deny, and the error says why.
func atStart(dir string, configured Mode) (State, error) {
	last, err := load(dir)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return State{Mode: configured, By: "configuration"}, nil
	case err != nil:
		return State{Mode: Deny, By: "unreadable state"}, fmt.Errorf("the saved state of the model switch cannot be trusted, so models are off: %w", err)
	case last.Mode == Deny || configured == Allow:
		return last, nil
	}
	return State{Mode: Deny, By: "configuration"}, nil
}

func save(dir string, s State, hosts []string) error {
	b, err := json.MarshalIndent(saved{V: 1, State: s, ModelHosts: hosts}, "", "  ")
	if err != nil {
		return err
	}
	return private.WriteFile(filepath.Join(dir, StateFile), append(b, '\n'))
}
