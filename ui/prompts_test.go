package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"drawbridge/bridge/gate"
)

// crowd is a gate with a menu and a page, and 20 clients whose prompts come and
// are withdrawn in random order.
type crowd struct {
	*pageRig
	renderer *fakeRenderer
	previews *Previews
	token    string
	places   places
	ctx      context.Context
	end      context.CancelFunc
	ended    sync.WaitGroup
}

func newCrowd(t *testing.T) *crowd {
	c := &crowd{pageRig: newPageRig(t), renderer: &fakeRenderer{}, previews: &Previews{}, places: newPlaces(mostPrompts, mostLined+10, true)}
	c.gateAgent = newGateAgent(gate.Options{PerClient: 1000})
	c.activity.o.Previews = c.previews
	c.ctx, c.end = context.WithCancel(t.Context())
	tray := NewTray(TrayOptions{Renderer: c.renderer, Agent: c.gateAgent, Log: zerolog.Nop()})
	c.ended.Go(func() {
		if err := tray.Run(c.ctx); err != nil {
			t.Error(err)
		}
	})
	c.gate.AddSurface(tray)
	c.token = c.open()
	return c
}

// pass has prompts come and go until there were n, and calls rest from time to
// time, with how many there are.
func (c *crowd) pass(n int, rest func(open int)) {
	rnd := rand.New(rand.NewPCG(3, 4))
	open := map[int]context.CancelFunc{}
	for made, steps := 0, 1; made < n || len(open) > 0; steps++ {
		if made < n && (len(open) == 0 || rnd.IntN(5) < 3) {
			ask, withdraw := context.WithCancel(c.ctx)
			open[made] = withdraw
			request := &gate.Request{ID: fmt.Sprint("c", made), Client: fmt.Sprint("client", made%20), Conn: fmt.Sprint("k", made%20), Tool: "bash", Host: "omp",
				Preview: func(context.Context) ([]byte, error) { return make([]byte, 10_000), nil }}
			c.ended.Go(func() {
				if v := c.gate.Decide(ask, request); v.Outcome != gate.Gone {
					c.t.Errorf("%+v", v)
				}
			})
			made++
		} else {
			keys := slices.Collect(func(yield func(int) bool) {
				for k := range open {
					if !yield(k) {
						return
					}
				}
			})
			slices.Sort(keys)
			k := keys[rnd.IntN(len(keys))]
			open[k]()
			delete(open, k)
		}
		if steps%40 == 0 || len(open) == 0 {
			rest(len(open))
		}
	}
}

// agree tells where gate, menu and page differ, or have not n prompts.
func (c *crowd) agree(n int) error {
	list := c.gate.List()
	if len(list) != n {
		return fmt.Errorf("the gate has %d of %d", len(list), n)
	}
	if !c.renderer.started() {
		return errors.New("there is no menu yet")
	}
	view, _ := c.renderer.last()
	shown := section(view.Menu, "prompts")
	if len(shown) != min(len(list), mostPrompts) {
		return fmt.Errorf("the menu has %d of %d", len(shown), len(list))
	}
	c.places.arrange(shown, time.Now(), func(int, int, *Item, *Item) {})
	page := c.state(c.token).Pending
	if len(page) != len(list) {
		return fmt.Errorf("the page has %d of %d", len(page), len(list))
	}
	for i, p := range list {
		if page[i].ID != p.ID || i < len(shown) && shown[i].Key != p.ID {
			return fmt.Errorf("place %d: gate %s, page %s", i, p.ID, page[i].ID)
		}
		if i < len(shown) && c.places.find(p.ID) < 0 {
			return fmt.Errorf("%s has no place in the menu", p.ID)
		}
		c.previews.PNG(c.ctx, p)
	}
	return nil
}

// leave ends everything, and tells what it leaves behind.
func (c *crowd) leave() {
	c.end()
	c.ended.Wait()
	c.previews.mu.Lock()
	defer c.previews.mu.Unlock()
	if n := len(c.previews.all); n != 0 {
		c.t.Errorf("%d pictures are left", n)
	}
}

// TestManyPrompts: of 1,000 prompts that come and are withdrawn, gate, menu and
// page show the same 200 ms after each change, by a clock that stands while the
// program computes.
func TestManyPrompts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.pass(1000, func(open int) {
			time.Sleep(200 * time.Millisecond)
			synctest.Wait()
			if err := c.agree(open); err != nil {
				t.Fatal(err)
			}
		})
		synctest.Wait()
		c.leave()
	})
}

// TestManyPromptsLeaveNothing: after as many, by the clock on the wall and with
// goroutines that meet as they like, no goroutine is left, and no more memory is
// held than before.
func TestManyPromptsLeaveNothing(t *testing.T) {
	before := goleak.IgnoreCurrent() // what other tests left
	c := newCrowd(t)
	pass := func() uint64 {
		c.pass(1000, func(open int) {
			err := c.agree(open)
			for late := time.Now().Add(time.Minute); err != nil; err = c.agree(open) {
				if time.Now().After(late) {
					t.Fatal(err)
				}
				time.Sleep(time.Millisecond)
			}
		})
		var m runtime.MemStats
		// What ended a moment ago may still be on its way out.
		least := uint64(0)
		for range 10 {
			runtime.GC()
			runtime.ReadMemStats(&m)
			least = cmp.Or(min(least, m.HeapAlloc), m.HeapAlloc)
			time.Sleep(10 * time.Millisecond)
		}
		return least
	}
	first := pass() // makes what is kept for good
	second := pass()
	// A prompt with its picture takes more than 10 kB, so 1,000 of them 10 MB.
	if second > first+500_000 {
		t.Errorf("another 1,000 prompts leave %d kB", (second-first)/1000)
	}
	t.Logf("held after 1,000 prompts %d kB, after 2,000 %d kB", first/1000, second/1000)
	c.leave()
	if err := goleak.Find(before); err != nil {
		t.Error(err)
	}
}
