package ui

import (
	"context"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

// TestManyPrompts: 1,000 prompts of 20 clients that come and are withdrawn in
// random order. At every rest gate, menu and page show the same, and in the end
// nothing is left: no prompt, no picture, no goroutine.
func TestManyPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		previews := &Previews{}
		renderer := &fakeRenderer{}
		r := newPageRig(t)
		r.gateAgent = newGateAgent(gate.Options{PerClient: 1000})
		r.activity.o.Previews = previews
		tray := NewTray(TrayOptions{Renderer: renderer, Agent: r.gateAgent, Log: zerolog.Nop()})
		ctx, cancel := context.WithCancel(t.Context())
		var ended sync.WaitGroup
		ended.Go(func() {
			if err := tray.Run(ctx); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		r.gate.AddSurface(tray)
		token := r.open()
		before := runtime.NumGoroutine()

		rnd := rand.New(rand.NewPCG(3, 4))
		open := map[int]context.CancelFunc{}
		places := newPlaces(mostPrompts, mostLined+10, true)
		for made, steps := 0, 1; made < 1000 || len(open) > 0; steps++ {
			if made < 1000 && (len(open) == 0 || rnd.IntN(5) < 3) {
				ask, withdraw := context.WithCancel(ctx)
				open[made] = withdraw
				request := &gate.Request{ID: fmt.Sprint("c", made), Client: fmt.Sprint("client", made%20), Tool: "bash", Host: "omp",
					Preview: func(context.Context) ([]byte, error) { return []byte("png"), nil }}
				ended.Go(func() {
					if v := r.gate.Decide(ask, request); v.Outcome != gate.Gone {
						t.Errorf("%+v", v)
					}
				})
				made++
			} else {
				keys := slices.Sorted(func(yield func(int) bool) {
					for k := range open {
						if !yield(k) {
							return
						}
					}
				})
				k := keys[rnd.IntN(len(keys))]
				open[k]()
				delete(open, k)
			}
			if steps%40 > 0 && len(open) > 0 {
				continue
			}
			time.Sleep(200 * time.Millisecond) // withdrawn everywhere by then
			synctest.Wait()
			list := r.gate.List()
			if len(list) != len(open) {
				t.Fatalf("the gate has %d of %d", len(list), len(open))
			}
			view, _ := renderer.last()
			shown := view.Menu[1].Items
			if len(shown) != min(len(list), mostPrompts) {
				t.Fatalf("the menu has %d of %d", len(shown), len(list))
			}
			places.arrange(shown, time.Now(), func(int, int, *Item, *Item) {})
			page := r.state(token).Pending
			if len(page) != len(list) {
				t.Fatalf("the page has %d of %d", len(page), len(list))
			}
			for i, p := range list {
				if page[i].ID != p.ID || i < len(shown) && shown[i].Key != p.ID {
					t.Fatalf("place %d: gate %s, page %s", i, p.ID, page[i].ID)
				}
				if i < len(shown) && places.find(p.ID) < 0 {
					t.Fatalf("%s has no place in the menu", p.ID)
				}
				previews.PNG(ctx, p)
			}
		}
		synctest.Wait()
		if n := len(previews.all); n != 0 {
			t.Errorf("%d pictures are left", n)
		}
		if n := runtime.NumGoroutine() - before; n > 0 {
			t.Errorf("%d goroutines are left", n)
		}
		cancel()
		ended.Wait()
	})
}
