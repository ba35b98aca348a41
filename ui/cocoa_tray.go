//go:build darwin || standin

package ui

import (
	"fmt"
	"image"
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego/objc"
	"github.com/rs/zerolog"

	"drawbridge/internal/cocoa"
)

// Of NSStatusBar.h.
const NSVariableStatusItemLength float64 = -1

const (
	statusPoints = 18 // of the icon on each side
	statusPixels = 2 * statusPoints
)

// cocoaTray is the status item in the menu bar.
type cocoaTray struct {
	log     zerolog.Logger
	changed func()

	hosted atomic.Bool // the person has not taken it off the menu bar
	views  chan View   // the newest that is not shown yet
	quit   chan struct{}
	ended  sync.WaitGroup

	// The main thread's.
	item    objc.ID
	icon    Icon
	tooltip string
	menu    *cocoaMenu
}

// NewRenderer makes the platform's status item. changed is called when Hosted
// becomes another; at first it is false.
func NewRenderer(log zerolog.Logger, changed func()) Renderer {
	return &cocoaTray{log: log, changed: changed, views: make(chan View, 1), quit: make(chan struct{})}
}

func (r *cocoaTray) Start(v View, clicks chan<- Click) error {
	err := cocoa.Start()
	if err == nil {
		err = cocoa.Main(func() { r.open(v, clicks) })
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoTray, err)
	}
	r.look()
	r.ended.Go(r.follow)
	return nil
}

func (r *cocoaTray) open(v View, clicks chan<- Click) {
	r.item = cocoa.Class("NSStatusBar").Send(cocoa.Sel("systemStatusBar")).Send(cocoa.Sel("statusItemWithLength:"), NSVariableStatusItemLength)
	r.item.Send(cocoa.Sel("retain"))
	r.menu = newCocoaMenu(v.Menu, func(c Click) {
		select {
		case clicks <- c:
		default: // the person clicks faster than anything is done
		}
	})
	r.item.Send(cocoa.Sel("setMenu:"), r.menu.menu)
	r.item.Send(cocoa.Sel("setVisible:"), true)
	r.setIcon(v.Icon)
	r.setTooltip(v.Tooltip)
	r.menu.show(v.Menu)
}

// setIcon gives the item a template, which macOS colours as its menu bar wants.
func (r *cocoaTray) setIcon(i Icon) {
	r.icon = i
	im := cocoa.Image(i.PNG(FormTemplate, statusPixels), image.Pt(statusPoints, statusPoints))
	im.Send(cocoa.Sel("setTemplate:"), true)
	r.item.Send(cocoa.Sel("button")).Send(cocoa.Sel("setImage:"), im)
	im.Send(cocoa.Sel("release"))
}

func (r *cocoaTray) setTooltip(text string) {
	r.tooltip = text
	r.item.Send(cocoa.Sel("button")).Send(cocoa.Sel("setToolTip:"), cocoa.String(text))
}

func (r *cocoaTray) Show(v View) {
	select {
	case <-r.views: // it was never shown
	default:
	}
	r.views <- v
}

// follow shows what comes, since the main thread may be busy.
func (r *cocoaTray) follow() {
	for {
		select {
		case <-r.quit:
			return
		case v := <-r.views:
			r.main(func() {
				if v.Icon != r.icon {
					r.setIcon(v.Icon)
				}
				if v.Tooltip != r.tooltip {
					r.setTooltip(v.Tooltip)
				}
				r.menu.show(v.Menu)
			})
			r.look()
		}
	}
}

// look sees whether the item is in the menu bar: the person can take it off.
func (r *cocoaTray) look() {
	visible := false
	r.main(func() { visible = r.item != 0 && objc.Send[bool](r.item, cocoa.Sel("isVisible")) })
	if r.hosted.Swap(visible) != visible {
		r.changed()
	}
}

// Reveal puts the item back into the menu bar.
func (r *cocoaTray) Reveal() {
	r.main(func() {
		if r.item != 0 {
			r.item.Send(cocoa.Sel("setVisible:"), true)
		}
	})
	r.look()
}

// Hosted tells whether the item was in the menu bar when that was last looked at.
func (r *cocoaTray) Hosted() bool { return r.hosted.Load() }

func (r *cocoaTray) Close() {
	close(r.quit)
	r.ended.Wait()
	r.hosted.Store(false)
	r.main(func() {
		cocoa.Class("NSStatusBar").Send(cocoa.Sel("systemStatusBar")).Send(cocoa.Sel("removeStatusItem:"), r.item)
		r.menu.close()
		r.item.Send(cocoa.Sel("release"))
		r.item = 0
	})
}

func (r *cocoaTray) main(f func()) {
	if err := cocoa.Main(f); err != nil {
		r.log.Warn().Err(err).Msg("the menu bar's item")
	}
}
