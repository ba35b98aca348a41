//go:build (linux && !standin) || (systray && (darwin || standin))

package ui

import (
	"reflect"
	"time"

	"fyne.io/systray"
)

// drawer keeps what the library of the status item shows, fyne.io/systray. That
// appends only, so all places are made up front, hidden. Only its goroutine uses
// the library.
type drawer struct {
	sections []drawn
	icon     Icon
	tooltip  string
	cases    []reflect.SelectCase // of the items' clicks, from fixedCases on
	at       []drawnAt            // where the item of a case is
}

type drawn struct {
	places
	items []drawnItem
}

type drawnItem struct {
	*systray.MenuItem
	sub []*systray.MenuItem
}

type drawnAt struct{ section, place, sub int }

// fixedCases come before the clicks in what run selects from: quit and views.
const fixedCases = 2

func newDrawer(v View) *drawer {
	d := &drawer{cases: make([]reflect.SelectCase, fixedCases), at: make([]drawnAt, fixedCases), icon: v.Icon, tooltip: v.Tooltip}
	setTrayTitle()
	setTrayIcon(v.Icon)
	systray.SetTooltip(v.Tooltip)
	for i, s := range v.Menu {
		if s.Line {
			systray.AddSeparator()
		}
		sec := drawn{places: newPlaces(s.Room, s.SubRoom, s.Sticky), items: make([]drawnItem, s.Room)}
		for j := range sec.items {
			it := addItem(s.Check)
			it.Hide()
			sec.items[j].MenuItem = it
			d.listen(it, drawnAt{i, j, -1})
			for k := range s.SubRoom {
				sub := it.AddSubMenuItem("", "")
				sub.Hide()
				sec.items[j].sub = append(sec.items[j].sub, sub)
				d.listen(sub, drawnAt{i, j, k})
			}
		}
		d.sections = append(d.sections, sec)
	}
	d.show(v)
	return d
}

func addItem(check bool) *systray.MenuItem {
	if check {
		return systray.AddMenuItemCheckbox("", "", false)
	}
	return systray.AddMenuItem("", "")
}

// listen takes an item's clicks. The library throws away a click for which
// nobody waits, hence the buffer.
func (d *drawer) listen(it *systray.MenuItem, at drawnAt) {
	it.ClickedCh = make(chan struct{}, 1)
	d.cases = append(d.cases, reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(it.ClickedCh)})
	d.at = append(d.at, at)
}

func (d *drawer) run(views <-chan View, quit <-chan struct{}, clicks chan<- Click) {
	d.cases[0] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(quit)}
	d.cases[1] = reflect.SelectCase{Dir: reflect.SelectRecv, Chan: reflect.ValueOf(views)}
	for {
		chosen, value, ok := reflect.Select(d.cases)
		switch {
		case chosen == 0:
			return
		case chosen == 1:
			d.show(value.Interface().(View))
		case !ok:
			d.cases[chosen].Chan = reflect.Value{} // never closed by us; deaf is better than spinning
		default:
			if c, ok := d.clicked(d.at[chosen]); ok {
				select {
				case clicks <- c:
				default: // the person clicks faster than anything is done
				}
			}
		}
	}
}

func (d *drawer) clicked(at drawnAt) (Click, bool) {
	p := &d.sections[at.section].place[at.place]
	if at.sub >= 0 {
		p = &p.sub[at.sub]
	}
	if p.item == nil || p.item.Disabled || p.item.Action.Verb == "" {
		return Click{}, false
	}
	return Click{p.item.Action, p.since}, true
}

func (d *drawer) show(v View) {
	if v.Icon != d.icon {
		d.icon = v.Icon
		setTrayIcon(v.Icon)
	}
	if v.Tooltip != d.tooltip {
		d.tooltip = v.Tooltip
		systray.SetTooltip(v.Tooltip)
	}
	now := time.Now()
	for i := range d.sections {
		s := &d.sections[i]
		s.arrange(v.Menu[i].Items, now, func(j, k int, before, after *Item) {
			it := s.items[j].MenuItem
			if k >= 0 {
				it = s.items[j].sub[k]
			}
			redraw(it, before, after)
		})
	}
}

func redraw(it *systray.MenuItem, before, after *Item) {
	if after == nil {
		it.Hide()
		return
	}
	if before == nil || before.Label != after.Label {
		it.SetTitle(mnemonics(after.Label))
	}
	if after.Disabled != it.Disabled() {
		if after.Disabled {
			it.Disable()
		} else {
			it.Enable()
		}
	}
	if after.Checked != it.Checked() {
		if after.Checked {
			it.Check()
		} else {
			it.Uncheck()
		}
	}
	if before == nil {
		it.Show()
	}
}
