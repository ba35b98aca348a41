package main

import (
	"fmt"
	"slices"
	"sync"
	"time"
)

// call is one round trip of one client.
type call func() error

// result is what a closed loop of clients saw.
type result struct {
	perSecond float64
	p50       time.Duration
}

// warmUp is how many calls each client makes before the clock starts.
const warmUp = 50

// loop lets every client call, one call after the other, for d.
func loop(clients []call, d time.Duration) (result, error) {
	for _, c := range clients {
		for range warmUp {
			if err := c(); err != nil {
				return result{}, err
			}
		}
	}
	took := make([][]time.Duration, len(clients))
	errs := make([]error, len(clients))
	var wg sync.WaitGroup
	begin := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			for last := begin; last.Sub(begin) < d; {
				if errs[i] = c(); errs[i] != nil {
					return
				}
				now := time.Now()
				took[i] = append(took[i], now.Sub(last))
				last = now
			}
		})
	}
	wg.Wait()
	spent := time.Since(begin)
	for i, err := range errs {
		if err != nil {
			return result{}, fmt.Errorf("client %d: %w", i, err)
		}
	}
	all := slices.Concat(took...)
	return result{perSecond: float64(len(all)) / spent.Seconds(), p50: median(all)}, nil
}
