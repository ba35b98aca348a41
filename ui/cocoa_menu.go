//go:build darwin || standin

package ui

import (
	"time"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/cocoa"
)

// Of NSCell.h.
const (
	NSControlStateValueOff int = 0
	NSControlStateValueOn  int = 1
)

// cocoaMenu draws a [Menu] as an NSMenu. Items are made once for each place, and
// put into the menu while there is something in it. All of it is the main
// thread's.
type cocoaMenu struct {
	menu     objc.ID
	clicked  func(Click)
	sections []cocoaSection
}

type cocoaSection struct {
	places
	line  bool
	items []cocoaItem
}

// cocoaItem is what stands for a place; made when it is first needed.
type cocoaItem struct {
	item  objc.ID
	shown bool
	sub   objc.ID // its sub-menu
	subs  []cocoaItem
}

// newCocoaMenu makes a menu with the sections of m and nothing in them.
func newCocoaMenu(m Menu, clicked func(Click)) *cocoaMenu {
	c := &cocoaMenu{menu: newMenu(), clicked: clicked}
	for _, s := range m {
		if s.Line {
			c.menu.Send(cocoa.Sel("addItem:"), cocoa.Class("NSMenuItem").Send(cocoa.Sel("separatorItem")))
		}
		sec := cocoaSection{places: newPlaces(s.Room, s.SubRoom, s.Sticky), line: s.Line, items: make([]cocoaItem, s.Room)}
		for i := range sec.items {
			sec.items[i].subs = make([]cocoaItem, s.SubRoom)
		}
		c.sections = append(c.sections, sec)
	}
	return c
}

func newMenu() objc.ID {
	m := cocoa.Class("NSMenu").Send(cocoa.Sel("alloc")).Send(cocoa.Sel("initWithTitle:"), cocoa.String("Drawbridge"))
	// Else AppKit enables every item that has an action.
	m.Send(cocoa.Sel("setAutoenablesItems:"), false)
	return m
}

// show shows another menu of the same sections. Items whose place is sticky stay
// where they are, also while the menu is open.
func (c *cocoaMenu) show(m Menu) {
	now := time.Now()
	at := 0 // in the menu
	for i := range c.sections {
		s := &c.sections[i]
		s.arrange(m[i].Items, now, func(j, k int, _, after *Item) {
			p, it := &s.place[j], &s.items[j]
			if k >= 0 {
				p, it = &p.sub[k], &it.subs[k]
			}
			c.draw(p, it, after)
		})
		if s.line {
			at++
		}
		for j := range s.items {
			it := &s.items[j]
			at += settle(c.menu, it, s.place[j].item != nil, at)
			c.subMenu(it, s.place[j].sub)
		}
	}
}

// draw puts what a place shows into its item.
func (c *cocoaMenu) draw(p *place, it *cocoaItem, after *Item) {
	if after == nil {
		return
	}
	if it.item == 0 {
		it.item = cocoa.Class("NSMenuItem").Send(cocoa.Sel("new"))
		cocoa.OnAction(it.item, func() {
			if i := p.item; i != nil && !i.Disabled && i.Action.Verb != "" {
				c.clicked(Click{i.Action, p.since})
			}
		})
	}
	state := NSControlStateValueOff
	if after.Checked {
		state = NSControlStateValueOn
	}
	it.item.Send(cocoa.Sel("setTitle:"), cocoa.String(after.Label))
	it.item.Send(cocoa.Sel("setEnabled:"), !after.Disabled)
	it.item.Send(cocoa.Sel("setState:"), state)
}

// settle puts an item into a menu, or takes it out, and returns how many places
// it takes there.
func settle(menu objc.ID, it *cocoaItem, wanted bool, at int) int {
	switch {
	case wanted && !it.shown:
		menu.Send(cocoa.Sel("insertItem:atIndex:"), it.item, at)
	case !wanted && it.shown:
		menu.Send(cocoa.Sel("removeItem:"), it.item)
	}
	it.shown = wanted
	if wanted {
		return 1
	}
	return 0
}

// subMenu gives an item the sub-menu that its places want, if any.
func (c *cocoaMenu) subMenu(it *cocoaItem, places []place) {
	at := 0
	for k := range places {
		if places[k].item != nil && it.sub == 0 {
			it.sub = newMenu()
		}
		at += settle(it.sub, &it.subs[k], places[k].item != nil, at)
	}
	if it.item == 0 {
		return
	}
	wanted := objc.ID(0)
	if at > 0 {
		wanted = it.sub
	}
	if it.item.Send(cocoa.Sel("submenu")) != wanted {
		it.item.Send(cocoa.Sel("setSubmenu:"), wanted)
		if wanted == 0 { // a sub-menu has an action of its own
			cocoa.Act(it.item)
		}
	}
}

// close releases everything.
func (c *cocoaMenu) close() {
	drop := func(it *cocoaItem) {
		if it.item != 0 {
			cocoa.Forget(it.item)
			it.item.Send(cocoa.Sel("release"))
		}
		if it.sub != 0 {
			it.sub.Send(cocoa.Sel("release"))
		}
	}
	for i := range c.sections {
		for j := range c.sections[i].items {
			it := &c.sections[i].items[j]
			for k := range it.subs {
				drop(&it.subs[k])
			}
			drop(it)
		}
	}
	c.menu.Send(cocoa.Sel("release"))
}
