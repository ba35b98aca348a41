//go:build linux && !standin

package ui

import (
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"fyne.io/systray"
	"github.com/rs/zerolog"
)

// sniTray is the status item over D-Bus (StatusNotifierItem). The library under
// it has one item a process, appends only, and falls over where there is no
// session bus; so all places are made before it starts, and it neither starts
// nor ends without a bus.
type sniTray struct {
	log     zerolog.Logger
	changed func() // the item came to be hosted, or is no more

	host  atomic.Pointer[sniHost]
	views chan View // the newest that is not shown yet
	quit  chan struct{}
	ended sync.WaitGroup
	end   func()
}

// NewRenderer makes the platform's status item. changed is called when Hosted
// becomes another; at first it is false.
func NewRenderer(log zerolog.Logger, changed func()) Renderer {
	return &sniTray{log: log, changed: changed, views: make(chan View, 1), quit: make(chan struct{})}
}

// trayIconSize suits panels up to twice the usual height.
const trayIconSize = 44

func (r *sniTray) Start(v View, clicks chan<- Click) error {
	host, err := openHost(r.changed)
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoTray, err)
	}
	r.host.Store(host)
	if !host.Hosted() {
		r.log.Warn().Msg("no panel here shows status items (no StatusNotifierHost on the session bus); prompts go to the other surfaces until one does")
	}
	d := newDrawer(v)
	start, end := systray.RunWithExternalLoop(nil, nil)
	r.end = end
	start()
	r.ended.Go(func() { d.run(r.views, r.quit, clicks) })
	if host.Hosted() {
		r.changed()
	}
	return nil
}

func (r *sniTray) Show(v View) {
	select {
	case <-r.views: // it was never shown
	default:
	}
	r.views <- v
}

func (r *sniTray) Hosted() bool {
	host := r.host.Load()
	return host != nil && host.Hosted()
}

func (r *sniTray) Close() {
	close(r.quit)
	r.ended.Wait()
	host := r.host.Load()
	if host.Connected() {
		r.end()
	}
	host.Close()
}

// drawer keeps what the library shows. Only its goroutine uses the library.
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
	systray.SetTitle("Drawbridge")
	systray.SetIcon(v.Icon.PNG(FormBoth, trayIconSize))
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
		systray.SetIcon(v.Icon.PNG(FormBoth, trayIconSize))
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

// mnemonics keeps an underscore from becoming a key: a menu over D-Bus shows one
// where there are two.
func mnemonics(label string) string { return strings.ReplaceAll(label, "_", "__") }
