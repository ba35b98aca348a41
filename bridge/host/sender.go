package host

import (
	"context"
	"sync"
)

// sendQueue is how many frames may wait for a host that does not read. Who has
// one more waits with its own context.
const sendQueue = 256

// sender writes frames in their order from one goroutine, so that a host that
// does not read holds up nobody but who waits for that host.
type sender struct {
	frames chan []byte
	stop   chan struct{} // closed by close
	done   chan struct{} // closed when the goroutine has ended
	once   sync.Once
}

// newSender starts the writer. failed is called once, when a write fails.
func newSender(write func([]byte) error, failed func(error)) *sender {
	s := &sender{frames: make(chan []byte, sendQueue), stop: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		for {
			select {
			case f := <-s.frames:
				if err := write(f); err != nil {
					failed(err)
					return
				}
			case <-s.stop:
				return
			}
		}
	}()
	return s
}

func (s *sender) send(ctx context.Context, frame []byte) error {
	select {
	case <-s.done:
		return ErrGone
	default:
	}
	select {
	case s.frames <- frame:
		return nil
	case <-s.done:
		return ErrGone
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// close ends the writer. What it is writing must be unblocked by the caller.
func (s *sender) close() {
	s.once.Do(func() { close(s.stop) })
}
