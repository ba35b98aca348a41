//go:build linux && !standin

package ui

import (
	"fmt"
	"strings"
	"sync"
	"sync/atomic"

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

func setTrayTitle() { systray.SetTitle("Drawbridge") }

func setTrayIcon(i Icon) { systray.SetIcon(i.PNG(FormBoth, trayIconSize)) }

// mnemonics keeps an underscore from becoming a key: a menu over D-Bus shows one
// where there are two.
func mnemonics(label string) string { return strings.ReplaceAll(label, "_", "__") }
