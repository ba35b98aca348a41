package ui

import "time"

// places keeps the items of a section in places that were made up front. Items
// that stay keep theirs, where the section is sticky.
type places struct {
	sticky bool
	place  []place
}

// place is one line of a menu that was made up front.
type place struct {
	item  *Item // what it shows; nil: it is hidden
	since time.Time
	freed time.Time // when it was last hidden
	sub   []place
}

func newPlaces(room, subRoom int, sticky bool) places {
	p := places{sticky: sticky, place: make([]place, room)}
	for i := range p.place {
		p.place[i].sub = make([]place, subRoom)
	}
	return p
}

// arrange puts items into the places, those beyond their number left out.
// changed is called for each place that shows something else than before, sub
// being below 0 for one of the first level.
func (p *places) arrange(items []Item, now time.Time, changed func(i, sub int, before, after *Item)) {
	next := make([]*Item, len(p.place))
	var fresh []*Item
	for i := range items {
		it := &items[i]
		at := -1
		if p.sticky {
			at = p.find(it.Key)
		} else if i < len(next) {
			at = i
		}
		if at >= 0 {
			next[at] = it
		} else {
			fresh = append(fresh, it)
		}
	}
	// A new item goes where nothing was for the longest time.
	for _, it := range fresh {
		best := -1
		for i := range next {
			free := next[i] == nil && (p.place[i].item == nil)
			if free && (best < 0 || p.place[i].freed.Before(p.place[best].freed)) {
				best = i
			}
		}
		if best < 0 { // only places that become free just now are left
			for i := range next {
				if next[i] == nil {
					best = i
					break
				}
			}
		}
		if best < 0 {
			break
		}
		next[best] = it
	}
	for i := range p.place {
		p.place[i].set(next[i], now, func(before, after *Item) { changed(i, -1, before, after) })
		var sub []Item
		if next[i] != nil {
			sub = next[i].Sub
		}
		for j := range p.place[i].sub {
			var it *Item
			if j < len(sub) {
				it = &sub[j]
			}
			p.place[i].sub[j].set(it, now, func(before, after *Item) { changed(i, j, before, after) })
		}
	}
}

func (p *places) find(key string) int {
	for i := range p.place {
		if it := p.place[i].item; it != nil && it.Key == key {
			return i
		}
	}
	return -1
}

func (p *place) set(it *Item, now time.Time, changed func(before, after *Item)) {
	before := p.item
	switch {
	case before == nil && it == nil:
		return
	case it == nil:
		p.freed = now
	case before == nil || before.Action != it.Action:
		p.since = now
	}
	p.item = it
	if before == nil || it == nil || before.Label != it.Label || before.Disabled != it.Disabled || before.Checked != it.Checked {
		changed(before, it)
	}
}
