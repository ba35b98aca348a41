package gate

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// ErrLeaseQueueFull tells that too many batches wait for the desktop already.
var ErrLeaseQueueFull = errors.New("too many batches wait for the desktop")

// leaseLook is how often a lease that another process holds is tried again. The
// kernel can wake a waiter, but not one that may have to give up.
const leaseLook = 50 * time.Millisecond

// Lease is the right to use one desktop. One batch on the machine has it: within
// this process the waiting ones are served in the order in which they came, and
// between processes a lock on a file decides, which the kernel frees when a
// process dies. The file says who holds it.
type Lease struct {
	path  string
	queue int

	mu      sync.Mutex // guards everything below
	holder  string     // in this process; empty if none holds or tries for it
	held    bool
	waiting []chan struct{} // closed when it is their turn
}

// NewLease makes the lease of the desktop that path stands for. At most queue
// batches of this process wait for it.
func NewLease(path string, queue int) *Lease { return &Lease{path: path, queue: queue} }

// holder is what the lock file says.
type holder struct {
	PID    int    `json:"pid"`
	Client string `json:"client"`
}

// Acquire waits for the desktop. waiting, if not nil, is called once, with who
// holds it, if it has to wait. release gives it back and may be called twice.
func (l *Lease) Acquire(ctx context.Context, client string, waiting func(holderNow string)) (release func(), err error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	told := waiting == nil
	tell := func(who string) {
		if !told {
			told = true
			waiting(who)
		}
	}
	l.mu.Lock()
	if l.held {
		who := fmt.Sprintf("client %q", l.holder)
		if len(l.waiting) >= l.queue {
			l.mu.Unlock()
			return nil, fmt.Errorf("%w: %d wait, and %s holds it", ErrLeaseQueueFull, l.queue, who)
		}
		turn := make(chan struct{})
		l.waiting = append(l.waiting, turn)
		l.mu.Unlock()
		tell(who)
		select {
		case <-turn:
		case <-ctx.Done():
			l.leave(turn)
			return nil, context.Cause(ctx)
		}
		l.mu.Lock()
	}
	l.held, l.holder = true, client
	l.mu.Unlock()

	f, err := l.lock(ctx, client, tell)
	if err != nil {
		l.pass()
		return nil, err
	}
	return sync.OnceFunc(func() {
		// Emptied first: who finds it locked meanwhile must not read our name.
		_ = f.Truncate(0)
		f.Close()
		l.pass()
	}), nil
}

// leave takes a waiter out of the queue, or passes its turn on if it had come.
func (l *Lease) leave(turn chan struct{}) {
	l.mu.Lock()
	i := slices.Index(l.waiting, turn)
	if i >= 0 {
		l.waiting = slices.Delete(l.waiting, i, i+1)
	}
	l.mu.Unlock()
	if i < 0 {
		l.pass()
	}
}

// pass gives the turn to the next one in this process.
func (l *Lease) pass() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		l.held, l.holder = false, ""
		return
	}
	close(l.waiting[0]) // held stays set: nobody may step in between
	l.waiting = slices.Delete(l.waiting, 0, 1)
}

// lock takes the file's lock and writes who holds it.
func (l *Lease) lock(ctx context.Context, client string, tell func(string)) (*os.File, error) {
	// Not passed on to children (os.OpenFile closes it on exec): a child that
	// outlives us must not keep the desktop.
	f, err := os.OpenFile(l.path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0o600)
	if err != nil {
		return nil, fmt.Errorf("desktop lease: %w", err)
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if err == nil {
			break
		}
		if !errors.Is(err, unix.EWOULDBLOCK) && !errors.Is(err, unix.EINTR) {
			f.Close()
			return nil, fmt.Errorf("desktop lease: lock %s: %w", l.path, err)
		}
		tell(readHolder(f))
		select {
		case <-ctx.Done():
			f.Close()
			return nil, context.Cause(ctx)
		case <-time.After(leaseLook):
		}
	}
	b, err := json.Marshal(holder{os.Getpid(), client})
	if err == nil {
		err = f.Truncate(0)
	}
	if err == nil {
		_, err = f.WriteAt(b, 0)
	}
	if err != nil { // a name that cannot be written does not take the desktop away
		_ = f.Truncate(0)
	}
	return f, nil
}

// readHolder says in words who holds the lock of f.
func readHolder(f *os.File) string {
	b, _ := io.ReadAll(io.NewSectionReader(f, 0, 4096))
	var h holder
	if json.Unmarshal(b, &h) != nil || h.PID == 0 {
		return "another program"
	}
	return fmt.Sprintf("client %q of process %d", h.Client, h.PID)
}

// Holder returns the client of this process that holds the desktop or is about
// to, and how many wait behind it.
func (l *Lease) Holder() (client string, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.holder, len(l.waiting)
}
