//go:build linux

package input

import (
	"sync"
	"time"
)

// ledger counts the events that we have posted and that the server has not yet
// told of. Events of XTEST name no client, and a person at a remote desktop comes
// through XTEST too: what is told beyond our own count is theirs.
type ledger struct {
	mu    sync.Mutex   // guards what follows
	owed  map[fake]int // nil while nobody watches
	last  time.Time    // of the last event noted
	place fake         // the last motion
}

// creditTime is how long a posted event may take to come back. The server drops
// some, such as motions that wait behind a grab; their credit must not stand for
// what a person does much later.
const creditTime = 2 * time.Second

func (l *ledger) open() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed = map[fake]int{}
}

func (l *ledger) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.owed = nil
}

// note counts an event that is about to be posted.
func (l *ledger) note(e fake) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed == nil {
		return
	}
	now := time.Now()
	if now.Sub(l.last) > creditTime {
		clear(l.owed)
	}
	l.last = now
	l.owed[e]++
	if e.kind == motionKind {
		l.place = e
	}
}

// take reports whether an event that the server tells of is ours.
func (l *ledger) take(e fake) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.owed[e] == 0 || time.Since(l.last) > creditTime {
		return false
	}
	if l.owed[e]--; l.owed[e] == 0 {
		delete(l.owed, e)
	}
	return true
}

// sent is where the pointer was sent last.
func (l *ledger) sent() (x, y float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return float64(l.place.x), float64(l.place.y)
}
