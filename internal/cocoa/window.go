//go:build darwin || standin

package cocoa

import (
	"sync"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

// Of NSWindow.h and NSGraphics.h.
const (
	NSWindowStyleMaskTitled             uint = 1
	NSWindowStyleMaskClosable           uint = 2
	NSWindowStyleMaskResizable          uint = 8
	NSWindowStyleMaskNonactivatingPanel uint = 128

	NSBackingStoreBuffered uint = 2

	NSWindowCollectionBehaviorCanJoinAllSpaces    uint = 1
	NSWindowCollectionBehaviorFullScreenAuxiliary uint = 256
)

// panelClass is a panel that Escape closes, whatever is in it.
var panelClass = sync.OnceValue(func() objc.Class {
	return define("DrawbridgePanel", "NSPanel", objc.MethodDef{
		Cmd: Sel("cancelOperation:"),
		Fn: func(panel objc.ID, _ objc.SEL, _ objc.ID) {
			if f := closings[panel]; f != nil {
				f()
			}
		},
	})
})

// Panel makes a window that floats above all others, on every space, and does not
// take the keyboard from the application that the person works in; only a click
// into a field of it does. It is not shown yet. The caller ends it with
// [CloseWindow].
func Panel(title string, width, height float64) objc.ID {
	p := window(objc.ID(panelClass()), title, width, height,
		NSWindowStyleMaskTitled|NSWindowStyleMaskClosable|NSWindowStyleMaskResizable|NSWindowStyleMaskNonactivatingPanel)
	p.Send(Sel("setFloatingPanel:"), true)
	p.Send(Sel("setBecomesKeyOnlyIfNeeded:"), true)
	// This application is never the active one.
	p.Send(Sel("setHidesOnDeactivate:"), false)
	p.Send(Sel("setCollectionBehavior:"), NSWindowCollectionBehaviorCanJoinAllSpaces|NSWindowCollectionBehaviorFullScreenAuxiliary)
	return p
}

// Window makes a plain window, not shown yet. The caller ends it with
// [CloseWindow].
func Window(title string, width, height float64) objc.ID {
	return window(Class("NSWindow"), title, width, height, NSWindowStyleMaskTitled|NSWindowStyleMaskClosable)
}

// window puts a window near the top of the screen that has the keyboard.
func window(class objc.ID, title string, width, height float64, style uint) objc.ID {
	const fromTop = 80
	screen := objc.Send[quartz.CGRect](Class("NSScreen").Send(Sel("mainScreen")), Sel("visibleFrame"))
	frame := Rect(screen.Origin.X+(screen.Size.Width-width)/2, screen.Origin.Y+max(0, screen.Size.Height-height-fromTop), width, height)
	w := class.Send(Sel("alloc")).Send(Sel("initWithContentRect:styleMask:backing:defer:"), frame, style, NSBackingStoreBuffered, false)
	w.Send(Sel("setReleasedWhenClosed:"), false)
	w.Send(Sel("setTitle:"), String(title))
	return w
}

// Content is the view that a window's views go into.
func Content(window objc.ID) objc.ID { return window.Send(Sel("contentView")) }

// Show brings a window up without taking the keyboard.
func Show(window objc.ID) { window.Send(Sel("orderFrontRegardless")) }

// ShowActive brings a window up and gives it the keyboard, as for one that the
// person asked for.
func ShowActive(window objc.ID) {
	sharedApp().Send(Sel("activateIgnoringOtherApps:"), true)
	window.Send(Sel("makeKeyAndOrderFront:"), objc.ID(0))
}

// CloseWindow takes a window away and releases it. Its controls have been
// forgotten.
func CloseWindow(window objc.ID) {
	Forget(window)
	window.Send(Sel("setDelegate:"), objc.ID(0))
	window.Send(Sel("orderOut:"), objc.ID(0))
	window.Send(Sel("close"))
	// In the default mode, which is that of no button being held down: one of this
	// window's may be.
	window.Send(Sel("performSelector:withObject:afterDelay:"), Sel("release"), objc.ID(0), float64(0))
}

// DefaultButton makes Return press a button.
func DefaultButton(button objc.ID) { button.Send(Sel("setKeyEquivalent:"), String("\r")) }
