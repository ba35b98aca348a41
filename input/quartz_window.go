//go:build darwin || standin

package input

import (
	"context"
	"errors"

	"drawbridge/internal/quartz"
)

// Whose windows are where, by the window server's list. Titles come with the
// grant for screen recording only.

var _ Namer = (*quartzDriver)(nil)

// normalLayer is where applications' own windows are (CGWindowLevel.h,
// kCGNormalWindowLevel); menus, the Dock and overlays are above.
const normalLayer = 0

// quartzWindow is one entry of the list.
type quartzWindow struct {
	Window
	layer int64
	at    quartz.CGRect
}

func (w quartzWindow) holds(p Point) bool {
	o, s := w.at.Origin, w.at.Size
	return p.X >= o.X && p.Y >= o.Y && p.X < o.X+s.Width && p.Y < o.Y+s.Height
}

// Focused names the frontmost window of an application. It is the one with the
// keyboard, unless a panel took that without coming to the front.
func (d *quartzDriver) Focused(ctx context.Context) (*Window, error) {
	return d.window(ctx, func(w quartzWindow) bool { return w.layer == normalLayer })
}

// Under names the topmost window at p, menus and the Dock among them.
func (d *quartzDriver) Under(ctx context.Context, p Point) (*Window, error) {
	return d.window(ctx, func(w quartzWindow) bool { return w.holds(p) })
}

// window finds the first window from the front that is wanted.
func (d *quartzDriver) window(ctx context.Context, wanted func(quartzWindow) bool) (*Window, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	list := cgWindowListCopyWindowInfo(kCGWindowListOptionOnScreenOnly|kCGWindowListExcludeDesktopElements, 0)
	if list == 0 {
		return nil, errors.New("list the windows: this process has no window server")
	}
	defer quartz.Release(list)
	for i := range cfArrayGetCount(list) {
		e := cfArrayGetValueAtIndex(list, i)
		w := quartzWindow{Window: Window{
			App:   quartz.String(cfDictionaryGetValue(e, kCGWindowOwnerName)),
			Title: quartz.String(cfDictionaryGetValue(e, kCGWindowName)),
		}}
		w.layer, _ = quartz.Number(cfDictionaryGetValue(e, kCGWindowLayer))
		if bounds := cfDictionaryGetValue(e, kCGWindowBounds); bounds == 0 || !cgRectMakeWithDictionaryRepresentation(bounds, &w.at) {
			continue
		}
		if wanted(w) {
			return &w.Window, nil
		}
	}
	return nil, nil
}
