//go:build darwin || standin

package capture

import (
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"runtime"
	"sync"
	"unsafe"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

// Pictures through ScreenCaptureKit.

// errNoAnswer: a callback did not come. It happens, and then it may never come.
var errNoAnswer = errors.New("ScreenCaptureKit did not answer in time")

// SCError.h and SCStream.h.
const (
	SCStreamErrorUserDeclined = -3801
	SCCaptureResolutionBest   = 1
)

// kitTries is how often a picture is tried: errors that pass by themselves are
// known, "declined" in spite of a grant among them.
const kitTries = 2

func (s *quartzSource) kit(ctx context.Context, d quartzDisplay, r image.Rectangle) (*Frame, error) {
	if err := loadKit(); err != nil {
		return nil, fmt.Errorf("ScreenCaptureKit: %w", err)
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.Deadline, errNoAnswer)
	defer cancel()
	var err error
	for range kitTries {
		var img quartz.Ref
		if img, err = s.kitImage(ctx, d, r); err == nil {
			f, err := s.draw(img)
			quartz.Release(img)
			return f, err
		}
		if ctx.Err() != nil || errors.Is(err, ErrDisplayChanged) {
			break
		}
	}
	var e *cocoa.Error
	if errors.As(err, &e) && e.Code == SCStreamErrorUserDeclined {
		return nil, fmt.Errorf("%w: %w", ErrPermission, err)
	}
	return nil, fmt.Errorf("ScreenCaptureKit: %w", err)
}

// kitImage takes one picture of r, in pixels of the display. The caller releases
// it.
func (s *quartzSource) kitImage(ctx context.Context, d quartzDisplay, r image.Rectangle) (quartz.Ref, error) {
	const (
		getContent = "getShareableContentExcludingDesktopWindows:onScreenWindowsOnly:completionHandler:"
		getImage   = "captureImageWithFilter:configuration:completionHandler:"
	)
	found := newDelivery()
	block := cocoa.Block(getContent, func(_ objc.Block, content, err objc.ID) {
		found.put(quartz.Ref(content), err, func() { content.Send(cocoa.Sel("retain")) })
	})
	cocoa.Pool(func() {
		cocoa.Class("SCShareableContent").Send(cocoa.Sel(getContent), false, true, block)
	})
	block.Release()
	content, err := found.wait(ctx)
	if err != nil {
		return 0, fmt.Errorf("list what can be recorded: %w", err)
	}
	defer func() { objc.ID(content).Send(cocoa.Sel("release")) }()

	taken := newDelivery()
	block = cocoa.Block(getImage, func(_ objc.Block, img quartz.Ref, err objc.ID) {
		taken.put(img, err, func() { cfRetain(img) })
	})
	defer block.Release()
	cocoa.Pool(func() {
		var display objc.ID
		cocoa.Each(objc.ID(content).Send(cocoa.Sel("displays")), func(x objc.ID) bool {
			if objc.Send[uint32](x, cocoa.Sel("displayID")) == d.id {
				display = x
			}
			return display == 0
		})
		if display == 0 {
			err = ErrDisplayChanged
			return
		}
		// Our own windows are left out: a prompt is no business of a model's.
		ours := cocoa.Class("NSMutableArray").Send(cocoa.Sel("array"))
		cocoa.Each(objc.ID(content).Send(cocoa.Sel("applications")), func(app objc.ID) bool {
			if objc.Send[int32](app, cocoa.Sel("processID")) == int32(os.Getpid()) {
				ours.Send(cocoa.Sel("addObject:"), app)
			}
			return true
		})
		filter := cocoa.Class("SCContentFilter").Send(cocoa.Sel("alloc")).Send(cocoa.Sel("initWithDisplay:excludingApplications:exceptingWindows:"),
			display, ours, cocoa.Class("NSArray").Send(cocoa.Sel("array")))
		defer filter.Send(cocoa.Sel("release"))
		c := cocoa.Class("SCStreamConfiguration").Send(cocoa.Sel("new"))
		defer c.Send(cocoa.Sel("release"))
		c.Send(cocoa.Sel("setWidth:"), uint(r.Dx()))
		c.Send(cocoa.Sel("setHeight:"), uint(r.Dy()))
		c.Send(cocoa.Sel("setShowsCursor:"), s.Pointer)
		if cocoa.Responds(c, "setCaptureResolution:") {
			c.Send(cocoa.Sel("setCaptureResolution:"), SCCaptureResolutionBest)
		}
		if r.Dx() != d.Pixels[0] || r.Dy() != d.Pixels[1] {
			// In points from the display's corner.
			c.Send(cocoa.Sel("setSourceRect:"), quartz.CGRect{
				Origin: quartz.CGPoint{X: float64(r.Min.X) / d.Scale, Y: float64(r.Min.Y) / d.Scale},
				Size:   quartz.CGSize{Width: float64(r.Dx()) / d.Scale, Height: float64(r.Dy()) / d.Scale},
			})
		}
		cocoa.Class("SCScreenshotManager").Send(cocoa.Sel(getImage), filter, c, block)
	})
	if err != nil {
		return 0, err
	}
	img, err := taken.wait(ctx)
	if err != nil {
		return 0, fmt.Errorf("take the picture: %w", err)
	}
	return img, nil
}

// draw copies an image, whatever its own format, into a frame of ours.
func (s *quartzSource) draw(img quartz.Ref) (*Frame, error) {
	const bits, channels = 8, 4
	w, h := cgImageGetWidth(img), cgImageGetHeight(img)
	if w == 0 || h == 0 || w > 1<<15 || h > 1<<15 {
		return nil, fmt.Errorf("ScreenCaptureKit gave a picture of %d×%d pixels", w, h)
	}
	space := cgColorSpaceCreateWithName(kCGColorSpaceSRGB)
	defer quartz.Release(space)
	pix, release := s.memory(int(w * h * channels))
	c := cgBitmapContextCreate(unsafe.Pointer(&pix[0]), w, h, uint(bits), w*channels, space, kCGBitmapByteOrder32Little|kCGImageAlphaNoneSkipFirst)
	if c == 0 {
		release()
		return nil, errors.New("Core Graphics made no bitmap for the picture")
	}
	cgContextDrawImage(c, quartz.CGRect{Size: quartz.CGSize{Width: float64(w), Height: float64(h)}}, img)
	quartz.Release(c)
	runtime.KeepAlive(pix)
	return NewFrame(pix, int(w*channels), int(w), int(h), release), nil
}

// delivery is what a callback brings: one object that is retained until somebody
// takes it, or nobody wants it any more.
type delivery struct {
	arrived chan struct{}

	mu        sync.Mutex
	object    quartz.Ref // guarded by mu
	err       error      // guarded by mu
	abandoned bool       // guarded by mu
	done      bool       // guarded by mu
}

func newDelivery() *delivery { return &delivery{arrived: make(chan struct{})} }

// put is called on a thread of the system's. keep retains the object.
func (d *delivery) put(object quartz.Ref, err objc.ID, keep func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.done || d.abandoned {
		return
	}
	d.done = true
	switch {
	case err != 0:
		d.err = cocoa.AsError(err)
	case object == 0:
		d.err = errors.New("it brought nothing, and no error")
	default:
		keep()
		d.object = object
	}
	close(d.arrived)
}

func (d *delivery) wait(ctx context.Context) (quartz.Ref, error) {
	select {
	case <-d.arrived:
	case <-ctx.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.done {
		d.abandoned = true
		return 0, context.Cause(ctx)
	}
	return d.object, d.err
}
