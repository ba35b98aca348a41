//go:build darwin || standin

package cocoa

import (
	"sync"
	"time"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

// Of NSEvent.h.
const (
	NSEventModifierFlagShift   uint = 1 << 17
	NSEventModifierFlagControl uint = 1 << 18
	NSEventModifierFlagOption  uint = 1 << 19
	NSEventModifierFlagCommand uint = 1 << 20
)

// EventKind is what an [Event] tells.
type EventKind uint8

// The kinds.
const (
	Pressed EventKind = iota + 1
	Dragged
	Released
	KeyDown
)

// Event is what came to a view made by [EventView].
type Event struct {
	Kind   EventKind
	Button int            // 0 left, 1 right, 2 any other
	Clicks int            // 2: the second of a double click
	At     quartz.CGPoint // in points of the screen, y upwards from the bottom of the main one
	Text   string         // what a key enters
	Bare   string         // the same without Control, Option and Command
	Flags  uint           // NSEventModifierFlag…
}

// eventViews are where each view's events go; the main thread's.
var eventViews = map[objc.ID]func(Event){}

// EventView puts a view into another one that tells f, on the main thread, of what
// is done to it with mouse and keyboard, until [ForgetEvents].
func EventView(in objc.ID, frame quartz.CGRect, sticks uint, f func(Event)) objc.ID {
	v := objc.ID(eventViewClass()).Send(Sel("alloc")).Send(Sel("initWithFrame:"), frame)
	v.Send(Sel("setAutoresizingMask:"), sticks)
	in.Send(Sel("addSubview:"), v)
	v.Send(Sel("release"))
	eventViews[v] = f
	return v
}

// ForgetEvents ends EventView.
func ForgetEvents(view objc.ID) { delete(eventViews, view) }

var eventViewClass = sync.OnceValue(func() objc.Class {
	const left, right, other = 0, 1, 2
	mouse := func(kind EventKind, button int) func(objc.ID, objc.SEL, objc.ID) {
		return func(view objc.ID, _ objc.SEL, event objc.ID) {
			tellEvent(view, event, Event{Kind: kind, Button: button, Clicks: objc.Send[int](event, Sel("clickCount"))})
		}
	}
	yes := func(objc.ID, objc.SEL) bool { return true }
	return define("DrawbridgeEventView", "NSView",
		objc.MethodDef{Cmd: Sel("acceptsFirstResponder"), Fn: yes},
		objc.MethodDef{Cmd: Sel("mouseDown:"), Fn: mouse(Pressed, left)},
		objc.MethodDef{Cmd: Sel("mouseDragged:"), Fn: mouse(Dragged, left)},
		objc.MethodDef{Cmd: Sel("mouseUp:"), Fn: mouse(Released, left)},
		objc.MethodDef{Cmd: Sel("rightMouseDown:"), Fn: mouse(Pressed, right)},
		objc.MethodDef{Cmd: Sel("rightMouseUp:"), Fn: mouse(Released, right)},
		objc.MethodDef{Cmd: Sel("otherMouseDown:"), Fn: mouse(Pressed, other)},
		objc.MethodDef{Cmd: Sel("otherMouseUp:"), Fn: mouse(Released, other)},
		objc.MethodDef{
			Cmd: Sel("keyDown:"),
			Fn: func(view objc.ID, _ objc.SEL, event objc.ID) {
				tellEvent(view, event, Event{Kind: KeyDown, Text: Text(event.Send(Sel("characters"))), Bare: Text(event.Send(Sel("charactersIgnoringModifiers")))})
			},
		},
	)
})

func tellEvent(view, event objc.ID, e Event) {
	f := eventViews[view]
	if f == nil {
		return
	}
	e.Flags = objc.Send[uint](event, Sel("modifierFlags"))
	at := objc.Send[quartz.CGPoint](event, Sel("locationInWindow"))
	frame := objc.Send[quartz.CGRect](view.Send(Sel("window")), Sel("frame"))
	e.At = quartz.CGPoint{X: frame.Origin.X + at.X, Y: frame.Origin.Y + at.Y}
	f(e)
}

// Scroller puts a view that can be scrolled both ways over an empty ground into
// another one.
func Scroller(in objc.ID, frame quartz.CGRect, sticks uint, ground quartz.CGSize) objc.ID {
	s := view("NSScrollView", in, frame, sticks)
	s.Send(Sel("setHasVerticalScroller:"), true)
	s.Send(Sel("setHasHorizontalScroller:"), true)
	s.Send(Sel("setBorderType:"), NSBezelBorder)
	d := Class("NSView").Send(Sel("alloc")).Send(Sel("initWithFrame:"), Rect(0, 0, ground.Width, ground.Height))
	s.Send(Sel("setDocumentView:"), d)
	d.Send(Sel("release"))
	return s
}

// ScrollTo shows a place of a scroller's ground at the bottom left.
func ScrollTo(scroller objc.ID, p quartz.CGPoint) {
	scroller.Send(Sel("documentView")).Send(Sel("scrollPoint:"), p)
}

// ScrolledTo is the place of a scroller's ground that is at the bottom left.
func ScrolledTo(scroller objc.ID) quartz.CGPoint {
	return objc.Send[quartz.CGRect](scroller, Sel("documentVisibleRect")).Origin
}

// OnScreen is where a view is, in points of the screen as [Event] has them.
func OnScreen(view objc.ID) quartz.CGRect {
	r := objc.Send[quartz.CGRect](view, Sel("bounds"))
	r = objc.Send[quartz.CGRect](view, Sel("convertRect:toView:"), r, objc.ID(0))
	frame := objc.Send[quartz.CGRect](view.Send(Sel("window")), Sel("frame"))
	r.Origin.X, r.Origin.Y = r.Origin.X+frame.Origin.X, r.Origin.Y+frame.Origin.Y
	return r
}

// ScreenHeight is the height of the main screen, from whose top Core Graphics
// measures downwards.
func ScreenHeight() float64 {
	all := Class("NSScreen").Send(Sel("screens"))
	if objc.Send[uint](all, Sel("count")) == 0 {
		return 0
	}
	return objc.Send[quartz.CGRect](all.Send(Sel("objectAtIndex:"), uint(0)), Sel("frame")).Size.Height
}

// HasKeyboard reports whether a window has the keyboard.
func HasKeyboard(window objc.ID) bool { return objc.Send[bool](window, Sel("isKeyWindow")) }

// GiveKeys has a view of a window take what is typed.
func GiveKeys(window, view objc.ID) { window.Send(Sel("makeFirstResponder:"), view) }

// DoubleClickTime is how soon a click has to follow another one to be its second.
func DoubleClickTime() time.Duration {
	return time.Duration(objc.Send[float64](Class("NSEvent"), Sel("doubleClickInterval")) * float64(time.Second))
}
