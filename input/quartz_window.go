//go:build darwin || standin

package input

import (
	"context"
	"errors"
	"fmt"
	"time"

	"drawbridge/internal/quartz"
)

// Whose windows are where, by the window server's list, and what is there or has
// the keyboard, by Accessibility. Titles of the list come with the grant for screen
// recording only. An application that hangs does not answer Accessibility: then the
// list alone is told.

var _ Namer = (*quartzDriver)(nil)

// normalLayer is where applications' own windows are (CGWindowLevel.h,
// kCGNormalWindowLevel); menus, the Dock and overlays are above.
const normalLayer = 0

// axTime is how long Accessibility is waited for, and axPatience how long macOS
// waits for an application on our behalf.
const (
	axTime     = 30 * time.Millisecond
	axPatience = 25 * time.Millisecond
)

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

// Focused names the frontmost window of the application that has the keyboard. Who
// that is macOS tells itself, also of one that hangs; where it does not tell in
// time, it is not guessed.
func (d *quartzDriver) Focused(ctx context.Context) (*Window, error) {
	own, cancel := context.WithTimeout(ctx, axTime)
	defer cancel()
	said, err := d.ax.ask(own, func(system quartz.Element) (s axAnswer, err error) {
		app, err := system.Element("AXFocusedApplication")
		if err != nil {
			return s, err
		}
		defer app.Release()
		s.pid, err = app.PID()
		return s, err
	})
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if errors.Is(err, ErrLate) {
		return nil, err
	}
	// Without the grant, or with nobody who has it, it is whoever is in front.
	known := err == nil
	w, err := d.window(ctx, func(w quartzWindow) bool {
		if known {
			return w.PID == said.pid
		}
		return w.layer == normalLayer
	})
	if w == nil || !known {
		return w, err
	}
	more, err := d.ax.ask(own, func(quartz.Element) (s axAnswer, err error) {
		app := quartz.AXApplication(said.pid)
		defer app.Release()
		e, err := app.Element("AXFocusedUIElement")
		if err != nil {
			return s, err
		}
		s.role = role(e)
		e.Release()
		if w, err := app.Element("AXFocusedWindow"); err == nil {
			s.title, _ = w.Text("AXTitle") // what has none is no worse
			w.Release()
		}
		return s, nil
	})
	if err == nil {
		w.Role = more.role
		if w.Title == "" {
			w.Title = more.title
		}
	}
	return w, nil
}

// Under names the topmost window at p, menus and the Dock among them.
func (d *quartzDriver) Under(ctx context.Context, p Point) (*Window, error) {
	own, cancel := context.WithTimeout(ctx, axTime)
	defer cancel()
	said, _ := d.ax.ask(own, func(system quartz.Element) (s axAnswer, err error) { // unknown is empty
		e, err := system.At(p.X, p.Y)
		if err != nil {
			return s, err
		}
		defer e.Release()
		s.role = role(e)
		return s, nil
	})
	w, err := d.window(ctx, func(w quartzWindow) bool { return w.holds(p) })
	if w != nil {
		w.Role = said.role
	}
	return w, err
}

// role is what an element is for; a field for passwords has a role of its own only
// beneath that of a text field.
func role(e quartz.Element) string {
	const secure = "AXSecureTextField"
	if sub, err := e.Text("AXSubrole"); err == nil && sub == secure {
		return secure
	}
	r, _ := e.Text("AXRole") // unknown is empty
	return r
}

// axAnswer is what Accessibility told.
type axAnswer struct {
	pid         int
	role, title string
}

// quartzAX asks Accessibility one question at a time: while an application does not
// answer, no other question is asked.
type quartzAX struct{ turn chan struct{} }

var errLate = fmt.Errorf("ask Accessibility: %w", ErrLate)

// ask returns what f finds out, if it does so before ctx ends. f ends when macOS's
// own patience does, which was set for it.
func (a *quartzAX) ask(ctx context.Context, f func(system quartz.Element) (axAnswer, error)) (axAnswer, error) {
	select {
	case a.turn <- struct{}{}:
	default:
		return axAnswer{}, errLate
	}
	type result struct {
		axAnswer
		err error
	}
	answer := make(chan result, 1)
	go func() {
		system := quartz.AXSystem(axPatience)
		s, err := f(system)
		system.Release()
		<-a.turn
		answer <- result{s, err}
	}()
	select {
	case r := <-answer:
		return r.axAnswer, r.err
	case <-ctx.Done():
		return axAnswer{}, errLate
	}
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
		pid, _ := quartz.Number(cfDictionaryGetValue(e, kCGWindowOwnerPID))
		w.PID = int(pid)
		w.layer, _ = quartz.Number(cfDictionaryGetValue(e, kCGWindowLayer))
		if bounds := cfDictionaryGetValue(e, kCGWindowBounds); bounds == 0 || !cgRectMakeWithDictionaryRepresentation(bounds, &w.at) {
			continue
		}
		if wanted(w) {
			w.Bounds = Rect{w.at.Origin.X, w.at.Origin.Y, w.at.Size.Width, w.at.Size.Height}
			return &w.Window, nil
		}
	}
	return nil, nil
}
