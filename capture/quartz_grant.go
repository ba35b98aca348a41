//go:build darwin || standin

package capture

import (
	"context"
	"errors"
	"image"
	"sync/atomic"

	"drawbridge/internal/quartz"
)

// LoadQuartz binds the frameworks' functions; later calls return the first one's
// result.
func LoadQuartz() error { return loadQuartz() }

// What macOS grants. These need [LoadQuartz].

// quartzShown is set once a picture came although macOS says that there is no
// grant, as it may to a process that was there before the grant.
var quartzShown atomic.Bool

// QuartzMayRecord reports whether macOS shows us the screen, as far as it says, or
// as a picture has shown. It never prompts.
func QuartzMayRecord() bool { return cgPreflightScreenCaptureAccess() || quartzShown.Load() }

// QuartzAskRecord has macOS ask for the grant, once.
func QuartzAskRecord() bool { return cgRequestScreenCaptureAccess() }

// QuartzProbe takes a small picture by ScreenCaptureKit, whatever macOS says of the
// grant; from then on pictures are taken. Without the grant macOS may prompt, so it
// is not for the working path. Apple's command is no evidence: without the grant it
// shows the wallpaper.
func QuartzProbe(ctx context.Context) error {
	all, err := quartzDisplays()
	if err != nil {
		return err
	}
	s := &quartzSource{QuartzOptions: QuartzOptions{Deadline: kitDeadline}}
	f, err := s.kit(ctx, all[0], image.Rect(0, 0, 1, 1))
	if err != nil {
		return err
	}
	f.Release()
	if session := quartz.CurrentSession(); !session.Graphic || session.Locked || session.Asleep {
		return errors.New("the screen shows nothing now")
	}
	quartzShown.Store(true)
	return nil
}
