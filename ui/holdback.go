package ui

import (
	"bytes"
	"fmt"
	"io"
	"sync"
)

// mostHeld is how many bytes are held back while a prompt is up.
const mostHeld = 64 << 10

// holdback passes writes through, except while it is closed: then it keeps them
// for later, so that what a program makes us log cannot scroll away the prompt
// that a person is reading.
type holdback struct {
	to io.Writer

	mu      sync.Mutex // guards everything below, and writes to to
	closed  bool
	held    bytes.Buffer
	dropped int // writes that were too many to hold
}

func (h *holdback) Write(b []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case !h.closed:
		return h.to.Write(b)
	case h.held.Len()+len(b) > mostHeld:
		h.dropped++
	default:
		h.held.Write(b)
	}
	return len(b), nil
}

// close begins to hold back.
func (h *holdback) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

// open passes on what was held back, and writes as they come.
func (h *holdback) open() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = false
	_, _ = h.held.WriteTo(h.to) // a log that cannot be written has no place to say so
	h.held = bytes.Buffer{}
	if h.dropped > 0 {
		fmt.Fprintf(h.to, "(%d log lines were left out while a question was on the screen)\n", h.dropped)
		h.dropped = 0
	}
}
