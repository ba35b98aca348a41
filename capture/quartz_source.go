//go:build darwin || standin

package capture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"math"
	"slices"
	"sync"
	"time"

	"drawbridge/internal/quartz"
)

// Ways to take pictures on macOS.
const (
	QuartzAuto          = "auto"          // ScreenCaptureKit, and screencapture where it fails
	QuartzNative        = "native"        // ScreenCaptureKit only
	QuartzScreencapture = "screencapture" // Apple's command only
)

// QuartzOptions says how to take pictures; the zero value is fine.
type QuartzOptions struct {
	Way     string // one of the constants; empty is QuartzAuto
	Pointer bool   // draw the pointer into the picture
	// Deadline is what ScreenCaptureKit gets to answer, which it sometimes never
	// does; 0 is three seconds.
	Deadline time.Duration
}

const kitDeadline = 3 * time.Second

// kitPause is how long a ScreenCaptureKit that did not answer is left alone, so
// that not every picture waits for it.
const kitPause = time.Minute

type quartzSource struct {
	QuartzOptions

	mu    sync.Mutex
	spare []byte    // guarded by mu: memory of the last frame, for the next
	after time.Time // guarded by mu: when ScreenCaptureKit is to be tried again
}

// OpenQuartz looks at the displays of macOS. It takes no picture and asks for no
// permission before the first Grab.
func OpenQuartz(o QuartzOptions) (Source, error) {
	switch o.Way {
	case "":
		o.Way = QuartzAuto
	case QuartzAuto, QuartzNative, QuartzScreencapture:
	default:
		return nil, fmt.Errorf("no way to take pictures is called %q; there are %s, %s and %s", o.Way, QuartzAuto, QuartzNative, QuartzScreencapture)
	}
	if o.Deadline == 0 {
		o.Deadline = kitDeadline
	}
	if err := loadQuartz(); err != nil {
		return nil, fmt.Errorf("macOS's frameworks cannot be used: %w", err)
	}
	if o.Way == QuartzNative {
		if err := loadKit(); err != nil {
			return nil, fmt.Errorf("ScreenCaptureKit cannot be used: %w; set capture to %s or %s", err, QuartzAuto, QuartzScreencapture)
		}
	}
	return &quartzSource{QuartzOptions: o}, nil
}

// quartzDisplay is a display and what Core Graphics calls it.
type quartzDisplay struct {
	Display
	id uint32
}

func (s *quartzSource) Displays(ctx context.Context) ([]Display, error) {
	all, err := quartzDisplays()
	if err != nil {
		return nil, err
	}
	list := make([]Display, len(all))
	for i, d := range all {
		list[i] = d.Display
	}
	return list, nil
}

// quartzDisplays lists the displays that show something of their own: the main
// one first, the others from left to right, so that an index keeps its meaning.
func quartzDisplays() ([]quartzDisplay, error) {
	var ids [32]uint32
	var n uint32
	if status := cgGetActiveDisplayList(uint32(len(ids)), &ids[0], &n); status != 0 {
		return nil, fmt.Errorf("list the displays: Core Graphics error %d", status)
	}
	if n == 0 {
		return nil, fmt.Errorf("list the displays: %w: no display is active", ErrGone)
	}
	mainID := cgMainDisplayID()
	var all []quartzDisplay
	for _, id := range ids[:n] {
		if id != mainID && cgDisplayMirrorsDisplay(id) != 0 {
			continue
		}
		d, err := quartzMeasure(id)
		if err != nil {
			return nil, err
		}
		all = append(all, d)
	}
	slices.SortFunc(all, func(a, b quartzDisplay) int {
		switch {
		case a.id == mainID:
			return -1
		case b.id == mainID:
			return 1
		case a.Origin != b.Origin:
			return slices.Compare(a.Origin[:], b.Origin[:])
		}
		return int(a.id) - int(b.id)
	})
	for i := range all {
		all[i].Index = i
		all[i].Name = fmt.Sprintf("display %d", all[i].id)
	}
	return all, nil
}

// quartzMeasure takes the scale from the display's mode. The calls that are named
// after pixels give points where a Retina display is scaled. The mode may be that
// of the panel before it is turned, so its sides are not used for the size.
func quartzMeasure(id uint32) (quartzDisplay, error) {
	mode := cgDisplayCopyDisplayMode(id)
	if mode == 0 {
		return quartzDisplay{}, fmt.Errorf("list the displays: %w: display %d has no mode", ErrDisplayChanged, id)
	}
	defer quartz.Release(mode)
	points, pixels := cgDisplayModeGetWidth(mode), cgDisplayModeGetPixelWidth(mode)
	b := cgDisplayBounds(id)
	if points == 0 || pixels == 0 || b.Size.Width <= 0 || b.Size.Height <= 0 {
		return quartzDisplay{}, fmt.Errorf("list the displays: %w: display %d has no size", ErrDisplayChanged, id)
	}
	scale := float64(pixels) / float64(points)
	return quartzDisplay{id: id, Display: Display{
		Points: [2]float64{b.Size.Width, b.Size.Height},
		Pixels: [2]int{int(math.Round(b.Size.Width * scale)), int(math.Round(b.Size.Height * scale))},
		Origin: [2]float64{b.Origin.X, b.Origin.Y},
		Scale:  scale,
	}}, nil
}

// visible refuses where a picture would be black, or show the wallpaper only.
func visible() error {
	switch s := quartz.CurrentSession(); {
	case !s.Graphic:
		return ErrLoginWindow
	case !s.OnConsole:
		return fmt.Errorf("%w: another user's session is on the screen", ErrLoginWindow)
	case s.Locked:
		return ErrLocked
	case s.Asleep:
		return ErrAsleep
	case !QuartzMayRecord():
		return ErrPermission
	}
	return nil
}

func (s *quartzSource) Grab(ctx context.Context, d Display, r image.Rectangle) (*Frame, error) {
	if err := visible(); err != nil {
		return nil, err
	}
	all, err := quartzDisplays()
	if err != nil {
		return nil, err
	}
	if d.Index < 0 || d.Index >= len(all) || all[d.Index].Display != d {
		return nil, ErrDisplayChanged
	}
	whole := image.Rect(0, 0, d.Pixels[0], d.Pixels[1])
	if r.Empty() {
		r = whole
	}
	if !r.In(whole) {
		return nil, fmt.Errorf("%v is not inside of the display's %v", r, whole)
	}
	var f *Frame
	if f, err = s.take(ctx, all[d.Index], r); err != nil {
		return nil, err
	}
	// The picture itself is the authority on its size.
	if f.Width != r.Dx() || f.Height != r.Dy() {
		w, h := f.Width, f.Height
		f.Release()
		return nil, fmt.Errorf("%w: the picture has %d×%d pixels, expected were %d×%d", ErrDisplayChanged, w, h, r.Dx(), r.Dy())
	}
	return f, nil
}

// take goes the configured way.
func (s *quartzSource) take(ctx context.Context, d quartzDisplay, r image.Rectangle) (*Frame, error) {
	if s.Way == QuartzScreencapture {
		return s.command(ctx, d, r)
	}
	s.mu.Lock()
	wait := time.Until(s.after)
	s.mu.Unlock()
	if s.Way == QuartzAuto && wait > 0 {
		return s.command(ctx, d, r)
	}
	f, err := s.kit(ctx, d, r)
	if err == nil || s.Way == QuartzNative || ctx.Err() != nil || errors.Is(err, ErrPermission) {
		return f, err
	}
	if errors.Is(err, errNoAnswer) {
		s.mu.Lock()
		s.after = time.Now().Add(kitPause)
		s.mu.Unlock()
	}
	f, other := s.command(ctx, d, r)
	if other != nil {
		return nil, fmt.Errorf("%w; and %w", err, other)
	}
	return f, nil
}

// memory lends n bytes, those of the last frame if they are enough.
func (s *quartzSource) memory(n int) (pix []byte, release func()) {
	s.mu.Lock()
	pix, s.spare = s.spare, nil
	s.mu.Unlock()
	if cap(pix) < n {
		pix = make([]byte, n)
	}
	pix = pix[:n]
	return pix, func() {
		s.mu.Lock()
		s.spare = pix
		s.mu.Unlock()
	}
}

func (s *quartzSource) Idle() {
	s.mu.Lock()
	s.spare = nil
	s.mu.Unlock()
}

func (s *quartzSource) Close() error {
	s.Idle()
	return nil
}
