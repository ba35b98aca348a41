//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"drawbridge/bridge/computer"
)

// arrivals is a lease that notes who asks for it and who gets it, in the order in
// which they do. While one asks, nobody else does: the order is exact.
type arrivals struct {
	lease computer.Lease

	asking sync.Mutex // held from the question until its place in the queue is certain

	mu           sync.Mutex // guards what follows
	asked, given []string   // clients
}

func (a *arrivals) Acquire(ctx context.Context, client string, waiting func(string)) (release func(), err error) {
	a.asking.Lock()
	placed := sync.OnceFunc(func() {
		a.note(&a.asked, client)
		a.asking.Unlock()
	})
	defer placed()
	release, err = a.lease.Acquire(ctx, client, func(holder string) {
		placed()
		waiting(holder)
	})
	placed()
	if err == nil {
		a.note(&a.given, client)
	}
	return release, err
}

func (a *arrivals) note(list *[]string, client string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	*list = append(*list, client)
}

// take returns both lists and forgets them.
func (a *arrivals) take() (asked, given []string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	asked, given = a.asked, a.given
	a.asked, a.given = nil, nil
	return asked, given
}

// presses is how often a client of the crowd presses its own key in one batch.
const presses = 4

// letterCodes are the codes of the keys a to j on the keyboard of Xvfb.
var letterCodes = []byte{38, 56, 54, 40, 26, 41, 42, 43, 31, 44}

// crowd lets clients send batches at once, each pressing a key of its own, and
// checks that the window gets whole batches, in the order in which they were sent.
// It returns how many there were.
func (r *rig) crowd(ctx context.Context, clients int, d time.Duration) (int, error) {
	r.heard()
	r.order.take()
	name := func(i int) string { return fmt.Sprintf("client%d", i) }
	end := time.Now().Add(d)
	failed := make([]error, clients)
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			key := fmt.Sprintf(`{"type":"keypress","keys":["%c"]}`, 'a'+i)
			batch := "[" + key
			for range presses - 1 {
				batch += "," + key
			}
			batch += "]"
			for time.Now().Before(end) && failed[i] == nil {
				s, err := r.call(ctx, name(i), batch)
				if err == nil && s.Stopped != nil {
					err = fmt.Errorf("stopped for %s: %s", s.Stopped.Reason, s.Stopped.Message)
				}
				if err != nil {
					failed[i] = fmt.Errorf("%s: %w", name(i), err)
				}
			}
		})
	}
	wg.Wait()
	asked, given := r.order.take()
	if err := errors.Join(failed...); err != nil {
		return len(given), err
	}
	if !slices.Equal(asked, given) {
		return len(given), fmt.Errorf("asked for in the order %v, given in the order %v", asked, given)
	}
	// The person's key comes last.
	if err := r.mark(ctx); err != nil {
		return len(given), err
	}
	var want []byte
	turns := map[string]bool{}
	for _, client := range given {
		turns[client] = true
		for i := range clients {
			if client == name(i) {
				want = append(want, slices.Repeat(letterCodes[i:i+1], presses)...)
			}
		}
	}
	if err := r.awaitKeys(ctx, append(want, letterKey)); err != nil {
		return len(given), err
	}
	if len(turns) != clients {
		return len(given), fmt.Errorf("only %d of %d clients had a turn", len(turns), clients)
	}
	return len(given), nil
}

// awaitKeys waits until the window has got as many keys as are wanted, and fails
// where it got others.
func (r *rig) awaitKeys(ctx context.Context, want []byte) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	var got []byte
	for len(got) < len(want) && ctx.Err() == nil {
		got = append(got, r.heard()...)
		time.Sleep(time.Millisecond)
	}
	for i := range want {
		if i >= len(got) || got[i] != want[i] {
			return fmt.Errorf("key %d of %d that the window got is another one than of the batch whose turn it was (%d keys came)", i, len(want), len(got))
		}
	}
	return nil
}
