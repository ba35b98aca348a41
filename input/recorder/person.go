package recorder

import (
	"context"
	"errors"
	"sync"
	"time"

	"drawbridge/input"
)

// Person is a person at the desktop whom a test plays by hand, and the watcher
// that sees them. It follows the contract of input.Watcher and nothing else.
type Person struct {
	mu      sync.Mutex // guards what follows
	person  input.Person
	changed chan struct{}
	err     error
}

var _ input.Watcher = (*Person)(nil)

// Act does something, a phrase such as "pressed a key".
func (p *Person) Act(what string) {
	p.change(func() { p.person = input.Person{Acts: p.person.Acts + 1, Last: time.Now(), What: what} })
}

// Vanish lets the watcher see nothing any more.
func (p *Person) Vanish() {
	p.change(func() { p.err = errors.New("the watch was ended") })
}

func (p *Person) change(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	f()
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// Person implements input.Watcher.
func (p *Person) Person() (input.Person, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.person, p.changed
}

// Err implements input.Watcher.
func (p *Person) Err() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

// Close implements input.Watcher.
func (p *Person) Close() error {
	p.Vanish()
	return nil
}

// who is a Person under a name that leaves Prover its method Person.
type who = Person

// Prover is a Person whose watcher has to prove that it sees them, and is asked to
// look.
type Prover struct {
	who
	Proof  error  // what the next Prove answers
	Proven int    // how often it was asked
	Look   func() // called whenever the person is asked for; may be nil
}

var _ input.Prover = (*Prover)(nil)

// Prove implements input.Prover.
func (p *Prover) Prove(context.Context) error {
	p.Proven++
	return p.Proof
}

// How implements input.Prover.
func (p *Prover) How() string {
	if p.Proven == 0 || p.Proof != nil {
		return ""
	}
	return "by looking at them"
}

// Person implements input.Watcher.
func (p *Prover) Person() (input.Person, <-chan struct{}) {
	if p.Look != nil {
		p.Look()
	}
	return p.who.Person()
}
