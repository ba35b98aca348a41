package tally

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestTally(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var tally Tally
		if tally.List() == nil || len(tally.List()) != 0 {
			t.Error("not empty at first")
		}
		began := time.Now()
		for i, n := range []int{tally.Add("a", "no", "x"), tally.Add("b", "no", ""), tally.Add("a", "", ""), tally.Add("a", "no", "y")} {
			if want := []int{1, 1, 1, 2}[i]; n != want {
				t.Errorf("%d: %d, want %d", i, n, want)
			}
		}
		got := tally.List()
		if len(got) != 3 || got[0] != (Kind{"a", "no", 2, began, "y"}) || got[1].Why != "" || got[2].What != "b" || Total(got) != 4 {
			t.Errorf("%+v", got)
		}
		// However many kinds there are, so many are kept: the latest.
		var all sync.WaitGroup
		for i := range 10 * most {
			all.Go(func() { tally.Add(fmt.Sprint(i), "no", "") })
		}
		all.Wait()
		tally.Add("last", "no", "")
		if got := tally.List(); len(got) != most || got[0].What != "last" {
			t.Errorf("%d kinds, %+v first", len(got), got[0])
		}
	})
}
