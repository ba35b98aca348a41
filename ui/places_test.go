package ui

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// shown is what the places show, the hidden ones as dots.
func (p *places) shown() string {
	var out []string
	for i := range p.place {
		s := "."
		if p.place[i].item != nil {
			s = p.place[i].item.Label
			for _, sub := range p.place[i].sub {
				if sub.item != nil {
					s += "/" + sub.item.Label
				}
			}
		}
		out = append(out, s)
	}
	return strings.Join(out, " ")
}

func items(keys string) []Item {
	var out []Item
	for _, k := range strings.Fields(keys) {
		out = append(out, Item{Key: k, Label: k, Action: Action{Arg: k}})
	}
	return out
}

// TestPlaces: a prompt keeps its place while it lives, and a place that was just
// freed is the last to be taken.
func TestPlaces(t *testing.T) {
	at := noon
	p := newPlaces(4, 0, true)
	for _, tt := range []struct{ items, want string }{
		{"a b c", "a b c ."},
		{"b c", ". b c ."},
		{"b c d", ". b c d"}, // not where a was until now
		{"b c d e", "e b c d"},
		{"b c d e f", "e b c d"}, // no room
		{"f", ". f . ."},
		{"", ". . . ."},
	} {
		at = at.Add(time.Second)
		if tt.items == "f" { // all others leave in the same step: only their places are left
			p.arrange(items("b f"), at, func(int, int, *Item, *Item) {})
			p.arrange(items("b"), at, func(int, int, *Item, *Item) {})
			at = at.Add(time.Second)
			p.arrange(nil, at, func(int, int, *Item, *Item) {})
			continue
		}
		p.arrange(items(tt.items), at, func(int, int, *Item, *Item) {})
		if got := p.shown(); got != tt.want {
			t.Errorf("%q: %s, want %s", tt.items, got, tt.want)
		}
	}
}

// TestPlacesSince: the time from which an item has stood where it stands is kept
// while its action is the same, and begins anew when it is another.
func TestPlacesSince(t *testing.T) {
	p := newPlaces(2, 1, false)
	show := func(after time.Duration, label, arg string) {
		p.arrange([]Item{{Key: "k", Label: label, Sub: []Item{{Key: "s", Label: label, Action: Action{Arg: arg}}}}}, noon.Add(after), func(int, int, *Item, *Item) {})
	}
	show(0, "one", "x")
	show(time.Second, "two", "x")
	if got := p.place[0].sub[0].since; !got.Equal(noon) {
		t.Errorf("another label moved it to %s", got)
	}
	show(2*time.Second, "two", "y")
	if got := p.place[0].sub[0].since; !got.Equal(noon.Add(2 * time.Second)) {
		t.Errorf("another action left it at %s", got)
	}
}

// TestPlacesRandom: whatever comes and goes, each item that fits is shown once,
// those that stay do not move, and what is told as changed is what changed.
func TestPlacesRandom(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	p := newPlaces(8, 0, true)
	live := map[string]bool{}
	shown := map[int]string{} // as a renderer sees it
	for step := range 2000 {
		k := fmt.Sprint("p", rnd.IntN(30))
		live[k] = !live[k]
		var keys []string
		for i := range 30 {
			if k := fmt.Sprint("p", i); live[k] && len(keys) < 8 {
				keys = append(keys, k)
			}
		}
		before := map[string]int{}
		for i := range p.place {
			if it := p.place[i].item; it != nil {
				before[it.Key] = i
			}
		}
		p.arrange(items(strings.Join(keys, " ")), noon.Add(time.Duration(step)*time.Second), func(i, _ int, _, after *Item) {
			delete(shown, i)
			if after != nil {
				shown[i] = after.Label
			}
		})
		seen := map[string]int{}
		for i := range p.place {
			it := p.place[i].item
			if it == nil {
				if shown[i] != "" {
					t.Fatalf("place %d is empty, and shows %s", i, shown[i])
				}
				continue
			}
			seen[it.Key] = i
			if shown[i] != it.Label {
				t.Fatalf("place %d has %s, and shows %s", i, it.Key, shown[i])
			}
			if at, ok := before[it.Key]; ok && at != i {
				t.Fatalf("%s moved from %d to %d", it.Key, at, i)
			}
		}
		if len(seen) != len(keys) {
			t.Fatalf("%d of %d are shown", len(seen), len(keys))
		}
	}
}
