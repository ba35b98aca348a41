package hostllm

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"drawbridge/bridge/private"
	"drawbridge/bridge/wire"
)

// StateFile is the file in the state directory that holds the last state. Hosts'
// extensions read it while Drawbridge does not run; where they cannot, they deny.
const StateFile = "host-llm.json"

const maxStateFile = 1 << 20

// version is that of its form.
const version = 1

// saved is its content.
type saved struct {
	V int `json:"v"`
	State
	// ModelHosts are the patterns of destinations that are refused under deny.
	ModelHosts []string `json:"model_hosts"`
	// Seal vouches for the rest where this system can keep a key for one program.
	Seal string `json:"seal,omitempty"`
}

// Sealer vouches for the file, so that a state that another program wrote, or put
// back, is not taken.
type Sealer interface {
	// Made tells whether anything was ever sealed.
	Made() (bool, error)
	// Check returns nil for what was sealed last, with its seal.
	Check(content []byte, seal string) error
	// Write seals content, which put puts into place with its seal.
	Write(content []byte, put func(seal string) error) error
}

// stateFile is the file of a state directory.
type stateFile struct {
	dir  string
	seal Sealer // nil: there can be none
}

func (f stateFile) path() string { return filepath.Join(f.dir, StateFile) }

// read returns what the file holds, whoever wrote it. fs.ErrNotExist: there is none.
func (f stateFile) read() (s saved, err error) {
	b, err := private.ReadFile(f.path(), maxStateFile)
	if err != nil {
		return saved{}, err
	}
	var form struct {
		V int `json:"v"`
	}
	if json.Unmarshal(b, &form) == nil && form.V > version {
		return saved{}, &newerError{f.path(), form.V}
	}
	if err := unambiguous(b); err != nil {
		return saved{}, fmt.Errorf("%s: %w", f.path(), err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return saved{}, fmt.Errorf("%s cannot be read: %w", f.path(), err)
	}
	if d.More() {
		return saved{}, fmt.Errorf("%s holds more than one state", f.path())
	}
	if s.V != version {
		return saved{}, fmt.Errorf("%s has version %d; this program writes %d", f.path(), s.V, version)
	}
	if _, err := ParseMode(string(s.Mode)); err != nil {
		return saved{}, fmt.Errorf("%s: %w", f.path(), err)
	}
	return s, nil
}

// newerError tells that a newer program wrote the file.
type newerError struct {
	path string
	v    int
}

func (e *newerError) Error() string {
	return fmt.Sprintf("%s has version %d, which a newer Drawbridge wrote; this one writes %d", e.path, e.v, version)
}

// unambiguous refuses a member that is there twice, or in another case: another
// reader might take the other one, or none.
func unambiguous(b []byte) error {
	err := wire.Validate(b)
	if err == nil {
		wire.Members(b, func(m wire.Member) bool {
			if strings.ToLower(m.Name) != m.Name {
				err = fmt.Errorf("it has no member %q", m.Name)
			}
			return err == nil
		})
	}
	return err
}

// keep copies a file that is not ours to replace to beside it, and returns where.
func (f stateFile) keep(v int) (string, error) {
	b, err := private.ReadFile(f.path(), maxStateFile)
	if err != nil {
		return "", err
	}
	path := fmt.Sprintf("%s.v%d", f.path(), v)
	return path, private.WriteFile(path, b)
}

// load returns the last state. fs.ErrNotExist: none was ever saved.
func (f stateFile) load() (State, error) {
	s, err := f.read()
	if f.seal == nil {
		return s.State, err
	}
	if errors.Is(err, fs.ErrNotExist) {
		made, merr := f.seal.Made()
		if merr != nil {
			return State{}, fmt.Errorf("%s is not there, and whether it ever was cannot be told: %w", f.path(), merr)
		}
		if made {
			return State{}, fmt.Errorf("%s is not there, though Drawbridge has sealed something, here or in another state directory", f.path())
		}
	}
	if err != nil {
		return State{}, err
	}
	content, err := s.content()
	if err == nil {
		err = f.seal.Check(content, s.Seal)
	}
	if err != nil {
		return State{}, fmt.Errorf("%s: %w", f.path(), err)
	}
	return s.State, nil
}

// content is what is sealed.
func (s saved) content() ([]byte, error) {
	s.Seal = ""
	return json.Marshal(s)
}

// atStart is what holds at the start: the stricter of the configuration and what
// was saved. Where that cannot be read, it is deny, and the error says why.
func (f stateFile) atStart(configured Mode) (State, error) {
	last, err := f.load()
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

func (f stateFile) save(s State, hosts []string) error {
	next := saved{V: version, State: s, ModelHosts: hosts}
	put := func(seal string) error {
		next.Seal = seal
		b, err := json.MarshalIndent(next, "", "  ")
		if err != nil {
			return err
		}
		return private.WriteFile(f.path(), append(b, '\n'))
	}
	if f.seal == nil {
		return put("")
	}
	content, err := next.content()
	if err == nil {
		err = f.seal.Write(content, put)
	}
	if err != nil && s.Mode == Deny {
		// Without a seal it means deny, too; hosts read it as it is.
		err = errors.Join(err, put(""))
	}
	return err
}

// SealSaved seals the state that an agent saved that made no seals yet. Once there
// was a seal, a state without one is not believed; one that cannot be read stays
// as it is, which means deny.
func SealSaved(dir string, seal Sealer) error {
	f := stateFile{dir, seal}
	made, err := seal.Made()
	if err != nil || made {
		return err
	}
	s, err := f.read()
	if err != nil {
		return nil
	}
	return f.save(s.State, s.ModelHosts)
}
