package hostllm

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/audit"
	"drawbridge/bridge/gate"
)

// Options are what a Switch is made of.
type Options struct {
	Dir        string // the state directory
	Seal       Sealer // vouches for the saved state; nil: nothing can
	Configured Mode
	ModelHosts []string // patterns of destinations beside the built-in ones
	// Doubt tells that more patterns may have been accepted than ModelHosts has:
	// those of the saved state are refused besides, whoever wrote it.
	Doubt  bool
	Person Person // nil: nobody can be asked
	Audit  Auditor
	// Changed, if set, is called when the state or the hosts change. It must not
	// block, nor call the switch.
	Changed func()
	// Unsaved, if set, is called when the state could not be saved: call SaveAgain
	// later. It must not block, nor call the switch.
	Unsaved func()
	Log     zerolog.Logger
}

// Switch is the kill switch. It is safe for concurrent use.
type Switch struct {
	opts  Options
	file  stateFile
	hosts []string // every pattern
	match *matcher

	allowed atomic.Pointer[permission] // over while models are denied

	mu      sync.Mutex // guards what follows, and orders the writes of the file
	state   State
	lasting State // the one that the next start is to find; another than state after a yes that ends with this process
	unsaved error // lasting is not in the file

	// book guards what follows. It is taken after mu, and never held while
	// something is written: refusals do not wait for a disk.
	book    sync.Mutex
	ledger  ledger
	first   *Refusal      // of this denial; nil: none yet
	changed chan struct{} // closed when the state or the hosts change
}

// Open reads the saved state and puts the stricter of it and the configuration
// in force. It fails only for patterns that are none, and for a newer program's
// state that cannot be kept: a state that cannot be read or written is a warning.
func Open(o Options) (*Switch, error) {
	s := &Switch{opts: o, file: stateFile{o.Dir, o.Seal}, changed: make(chan struct{}), ledger: ledger{}}
	s.hosts = append(append(s.hosts, modelHosts...), o.ModelHosts...)
	if last, err := s.file.read(); o.Doubt && err == nil {
		for _, h := range last.ModelHosts {
			if !slices.Contains(s.hosts, h) && CheckModelHost(h) == nil {
				s.hosts = append(s.hosts, h)
			}
		}
	}
	var err error
	if s.match, err = newMatcher(s.hosts); err != nil {
		return nil, err
	}
	state, err := s.file.atStart(o.Configured)
	if err != nil {
		o.Log.Error().Err(err).Msg("the model switch starts at deny")
		s.opts.Audit.Append(audit.Record{Phase: audit.Note, Tool: auditTool, Outcome: "models are off: the saved state could not be read"})
	}
	var newer *newerError
	if errors.As(err, &newer) {
		kept, err := s.file.keep(newer.v)
		if err != nil {
			return nil, fmt.Errorf("%w; it would be lost, since it cannot be kept: %w", newer, err)
		}
		o.Log.Warn().Str("file", kept).Msg("what a newer version saved is kept")
	}
	if state.Since.IsZero() {
		state.Since = now()
	}
	s.state, s.lasting = state, state
	s.allowed.Store(newPermission())
	if state.Mode != Allow {
		s.permission().deny()
	}
	// Also when nothing changed: the patterns may have, and what cannot be read
	// must not stay.
	s.save()
	return s, nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Millisecond) }

// auditTool names the switch in the audit.
const auditTool = "host-llm"

// permission returns what a model request needs to be sent, and ends with.
func (s *Switch) permission() *permission { return s.allowed.Load() }

// Denied tells whether models are denied.
func (s *Switch) Denied() bool { return s.permission().denied() }

// Watch returns the state, and a channel that is closed when it, or what is
// known of the hosts' coverage, changes.
func (s *Switch) Watch() (State, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.book.Lock()
	defer s.book.Unlock()
	return s.state, s.changed
}

// FirstRefusal returns the first request that was refused since models were
// denied, the same one each time; nil: none was. Watch tells when there is one.
func (s *Switch) FirstRefusal() *Refusal {
	s.book.Lock()
	defer s.book.Unlock()
	return s.first
}

// bump tells who watches. It is called with book held.
func (s *Switch) bump() {
	close(s.changed)
	s.changed = make(chan struct{})
	if s.opts.Changed != nil {
		s.opts.Changed()
	}
}

// Deny switches models off, at once: requests under way end. by says who wanted
// it. An error says that it holds and is not saved: it would not outlive this
// process.
func (s *Switch) Deny(by string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.permission().deny()
	if s.state.Mode != Deny {
		s.state = State{Mode: Deny, Since: now(), By: by}
		s.lasting = s.state
		s.tell()
	}
	// Also when it was denied before: the file may say something else by now.
	if err := s.save(); err != nil {
		return fmt.Errorf("models are off while this process lives, but that could not be saved; it is tried again: %w", err)
	}
	return nil
}

// Allow asks the person whether hosts may call their models again, and waits for
// the answer. by names the place where it is wanted. A *[RefusedError] says why not.
func (s *Switch) Allow(ctx context.Context, by string) error { return s.allow(ctx, by, by) }

// allow is Allow for who the person is told of, and by as the state tells it.
func (s *Switch) allow(ctx context.Context, who, by string) error {
	if st, _ := s.Watch(); st.Mode == Allow {
		return nil
	}
	v := gate.Verdict{Outcome: gate.Nobody, Message: "only a person can allow this, and nobody can be asked here"}
	if s.opts.Person != nil {
		v = s.opts.Person.Loosen(ctx, who, gate.Item{Key: auditTool, Text: "hosts may call their own models again (host_llm: allow)"})
	}
	if v.Outcome != gate.Allowed && v.Outcome != gate.AllowedTillEnd {
		return &RefusedError{v}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.state.Mode == Allow {
		return nil
	}
	next := State{Mode: Allow, Since: now(), By: by + ", allowed by the " + v.By}
	if v.Outcome == gate.AllowedTillEnd {
		next.By += " until the agent ends"
	} else {
		// Saved before it holds, as deny holds before it is saved.
		if err := s.file.save(next, s.hosts); err != nil {
			s.failed(err) // the seal of what is there went with it
			return fmt.Errorf("the models stay off, since the change could not be saved: %w", err)
		}
		s.lasting, s.unsaved = next, nil
	}
	s.state = next
	s.allowed.Store(newPermission())
	s.tell()
	return nil
}

// save writes the state that lasts. It is called with mu held, or before anybody
// else has s.
func (s *Switch) save() error {
	err := s.file.save(s.lasting, s.hosts)
	if err != nil {
		s.opts.Log.Error().Err(err).Msg("the state of the model switch could not be saved")
	}
	s.failed(err)
	return err
}

// failed remembers why the state is not saved; nil: it is. It is called with mu
// held, or before anybody else has s.
func (s *Switch) failed(err error) {
	s.unsaved = err
	if err != nil && s.opts.Unsaved != nil {
		s.opts.Unsaved()
	}
}

// SaveAgain saves what could not be saved before, if there is something.
func (s *Switch) SaveAgain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.unsaved == nil {
		return
	}
	if s.failed(s.file.save(s.lasting, s.hosts)); s.unsaved == nil && s.opts.Changed != nil {
		s.opts.Changed()
	}
}

// tell says that the state changed. It is called with mu held.
func (s *Switch) tell() {
	s.opts.Log.Warn().Str("mode", string(s.state.Mode)).Str("by", s.state.By).Msg("the model switch changed")
	s.opts.Audit.Append(audit.Record{Phase: audit.Note, Tool: auditTool, Outcome: string(s.state.Mode) + ", by " + s.state.By})
	s.book.Lock()
	defer s.book.Unlock()
	s.first = nil
	s.bump()
}

// Warnings are sentences for the status.
func (s *Switch) Warnings() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []string
	if s.unsaved != nil {
		out = append(out, fmt.Sprintf("the model switch is at %s, but that could not be saved, and is tried again: %v", s.lasting.Mode, s.unsaved))
	}
	if s.state.Mode != Deny {
		return out
	}
	s.book.Lock()
	defer s.book.Unlock()
	if s.first != nil {
		out = append(out, "models are off, and a request was refused: "+s.first.String())
	}
	return append(out, s.ledger.uncovered()...)
}
