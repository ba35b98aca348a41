package hostllm

import (
	"runtime"
	"sync"
	"sync/atomic"
)

// permission is that to leave this machine. It holds until models are denied, and
// never again. A nil one, of what needs none, holds for ever.
type permission struct {
	over atomic.Bool
	mu   sync.Mutex           // guards ends
	ends map[*func()]struct{} // of what is under way; nil when it is over
}

func newPermission() *permission { return &permission{ends: map[*func()]struct{}{}} }

// denied tells whether it is over.
func (p *permission) denied() bool { return p != nil && p.over.Load() }

// whenDenied has end called when it is over, at once where it is. What stop
// withdraws may still be called when both come together.
func (p *permission) whenDenied(end func()) (stop func()) {
	if p == nil {
		return func() {}
	}
	p.mu.Lock()
	over := p.ends == nil
	if !over {
		p.ends[&end] = struct{}{}
	}
	p.mu.Unlock()
	if over {
		end()
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.ends, &end)
	}
}

// deny ends it. When it returns it is over; what is under way is then ended one
// after the other, so that neither who denied nor new requests, which are to be
// refused, wait for a thousand streams.
func (p *permission) deny() {
	p.over.Store(true)
	p.mu.Lock()
	ends := p.ends
	p.ends = nil
	p.mu.Unlock()
	go func() { // is done when all are ended
		for end := range ends {
			(*end)()
			runtime.Gosched()
		}
	}()
}
