//go:build linux

package main

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"drawbridge/internal/x11"
)

// presses is how often a client of the crowd presses its own key in one batch.
const presses = 4

// crowd lets clients send batches at once, each pressing a key of its own, and
// checks that the keys come in whole batches. It returns how many there were.
func (r *rig) crowd(ctx context.Context, clients int, d time.Duration) (int, error) {
	r.log.take()
	end := time.Now().Add(d)
	var (
		wg     sync.WaitGroup
		sent   atomic.Int64
		failed = make(chan error, clients)
	)
	for i := range clients {
		wg.Go(func() {
			key := fmt.Sprintf(`{"type":"keypress","keys":["%c"]}`, 'a'+i)
			batch := "[" + key
			for range presses - 1 {
				batch += "," + key
			}
			batch += "]"
			for time.Now().Before(end) {
				s, err := r.call(ctx, fmt.Sprintf("client%d", i), batch)
				if err == nil && s.Stopped != nil {
					err = fmt.Errorf("stopped for %s: %s", s.Stopped.Reason, s.Stopped.Message)
				}
				if err != nil {
					failed <- fmt.Errorf("client %d: %w", i, err)
					return
				}
				sent.Add(1)
			}
		})
	}
	wg.Wait()
	close(failed)
	if err := <-failed; err != nil {
		return 0, err
	}
	if err := r.mark(ctx); err != nil {
		return 0, err
	}
	var keys []uint32
	by := map[uint32]int{}
	for _, e := range r.log.take() {
		if e.Device.XTest && e.Kind == x11.RawKeyPress {
			keys = append(keys, e.Detail)
			by[e.Detail]++
		}
	}
	if len(keys) != presses*int(sent.Load()) {
		return 0, fmt.Errorf("%d keys came of %d batches of %d", len(keys), sent.Load(), presses)
	}
	for i, k := range keys {
		if k != keys[i-i%presses] {
			return 0, fmt.Errorf("the batch at key %d holds keys of two clients: %v", i, keys[i-i%presses:i+1])
		}
	}
	if len(by) != clients {
		return 0, fmt.Errorf("only %d of %d clients had a turn", len(by), clients)
	}
	return int(sent.Load()), nil
}
