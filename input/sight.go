package input

import (
	"math"
	"sync"
	"time"
)

// sight is what a watcher has seen of the person.
type sight struct {
	mu      sync.Mutex // guards what follows
	person  Person
	changed chan struct{}
	err     error
}

func newSight() *sight { return &sight{changed: make(chan struct{})} }

// act notes that the person did something, at a time.
func (s *sight) act(what string, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.person = Person{Acts: s.person.Acts + 1, Last: at, What: what}
	s.tell()
}

// blind notes why the person cannot be seen; with nil they can be seen again.
func (s *sight) blind(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
	s.tell()
}

// tell wakes who waits for a change; the caller holds mu.
func (s *sight) tell() {
	close(s.changed)
	s.changed = make(chan struct{})
}

// Person implements Watcher.
func (s *sight) Person() (Person, <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.person, s.changed
}

// Err implements Watcher.
func (s *sight) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// Phrases of a [Person]'s What.
const (
	pressedKey    = "pressed a key"
	pressedButton = "pressed a button of the mouse"
	turnedWheel   = "turned the wheel"
	movedPointer  = "moved the pointer"
)

// restTime without motion ends a drift: small motions far apart do not add up.
const restTime = 500 * time.Millisecond

// drift adds up the motion of a pointer that somebody or something moves.
type drift struct {
	x, y float64
	last time.Time
	far  bool
}

// add reports whether the pointer has gone far enough to be moved by a person.
func (d *drift) add(dx, dy float64, now time.Time) bool {
	if now.Sub(d.last) > restTime {
		*d = drift{}
	}
	d.last = now
	d.x, d.y = d.x+dx, d.y+dy
	d.far = d.far || math.Hypot(d.x, d.y) >= DriftPoints
	return d.far
}
