package ui

import (
	"sync"
	"sync/atomic"
)

// Pulse tells that something changed, without saying what. The zero Pulse works.
// Touch is cheap while nobody waits.
type Pulse struct {
	waiting atomic.Bool

	mu   sync.Mutex // guards next
	next chan struct{}
}

// Touch wakes who waits. It never blocks.
func (p *Pulse) Touch() {
	if !p.waiting.Load() {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting.Store(false)
	if p.next != nil {
		close(p.next)
		p.next = nil
	}
}

// Wait returns a channel that the next Touch closes. To miss nothing, call Wait
// first and look afterwards.
func (p *Pulse) Wait() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.next == nil {
		p.next = make(chan struct{})
	}
	p.waiting.Store(true)
	return p.next
}
