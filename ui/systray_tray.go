//go:build systray && (darwin || standin)

package ui

import (
	"fmt"
	"sync"
	"sync/atomic"

	"fyne.io/systray"
	"github.com/rs/zerolog"

	"drawbridge/internal/cocoa"
)

// systrayTray is the status item in macOS's menu bar as fyne.io/systray makes it,
// which takes cgo there. The application and its loop stay ours.
type systrayTray struct {
	log     zerolog.Logger
	changed func()

	hosted atomic.Bool
	views  chan View // the newest that is not shown yet
	quit   chan struct{}
	ended  sync.WaitGroup
}

// NewSystray makes the library's status item instead of the one of our own.
// changed is called when Hosted becomes another; at first it is false.
func NewSystray(log zerolog.Logger, changed func()) Renderer {
	return &systrayTray{log: log, changed: changed, views: make(chan View, 1), quit: make(chan struct{})}
}

func (r *systrayTray) Start(v View, clicks chan<- Click) error {
	err := cocoa.Start()
	if err == nil {
		// What the library makes belongs to the main thread; without this call first
		// it has nothing that it could fill.
		start, _ := systray.RunWithExternalLoop(nil, nil)
		err = cocoa.Main(start)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrNoTray, err)
	}
	d := newDrawer(v)
	r.ended.Go(func() { d.run(r.views, r.quit, clicks) })
	r.hosted.Store(true)
	r.changed()
	return nil
}

func (r *systrayTray) Show(v View) {
	select {
	case <-r.views: // it was never shown
	default:
	}
	r.views <- v
}

// Hosted is true from Start to Close: the library puts an item back that the person
// took away, and does not tell.
func (r *systrayTray) Hosted() bool { return r.hosted.Load() }

// Close leaves the item to the end of the process: the library takes it away only
// by ending the application's loop, which others still need.
func (r *systrayTray) Close() {
	close(r.quit)
	r.ended.Wait()
	r.hosted.Store(false)
}

// setTrayTitle sets none: beside the icon there is no room for a name.
func setTrayTitle() {}

// setTrayIcon gives the item a template, which macOS colours as its menu bar wants.
func setTrayIcon(i Icon) {
	png := i.PNG(FormTemplate, 36)
	systray.SetTemplateIcon(png, png)
}

// mnemonics has nothing to do: an underscore is one in this menu.
func mnemonics(label string) string { return label }
