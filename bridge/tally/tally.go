// Package tally counts what programs ask of the agent, by kind, so that a person
// can see each kind of attempt however often it is made, and nobody can fill
// anything with them.
package tally

import (
	"slices"
	"sync"
	"time"
)

// most is how many kinds are told apart. Who counts names kinds, and not what a
// stranger sent, so there are fewer; this is for when that is forgotten.
const most = 128

// Kind is one kind of request, and what became of it.
type Kind struct {
	What  string // such as "/activity/answer"
	Why   string // why it was refused; empty: it was not
	Count int
	Last  time.Time
	// Said is what the last one said beside that: a method, a path, a verb. It is a
	// program's text.
	Said string
}

// Tally counts. The zero Tally works, and is safe for concurrent use.
type Tally struct {
	mu    sync.Mutex // guards kinds
	kinds []*Kind    // the latest last
}

// Add counts one, and tells how many of its kind there were.
func (t *Tally) Add(what, why, said string) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	i := slices.IndexFunc(t.kinds, func(k *Kind) bool { return k.What == what && k.Why == why })
	if i < 0 && len(t.kinds) >= most {
		i = 0 // the one that was longest ago makes place
		t.kinds[0] = &Kind{What: what, Why: why}
	}
	k := &Kind{What: what, Why: why}
	if i >= 0 {
		k = t.kinds[i]
		t.kinds = slices.Delete(t.kinds, i, i+1)
	}
	k.Count++
	k.Last, k.Said = time.Now(), said
	t.kinds = append(t.kinds, k)
	return k.Count
}

// List returns all kinds, the latest first.
func (t *Tally) List() []Kind {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := make([]Kind, 0, len(t.kinds))
	for _, k := range slices.Backward(t.kinds) {
		out = append(out, *k)
	}
	return out
}

// Total is how many there were of all kinds that List has.
func Total(kinds []Kind) int {
	n := 0
	for _, k := range kinds {
		n += k.Count
	}
	return n
}
