//go:build darwin || standin

package cocoa

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

// ErrNoSession: nobody is logged in at the screen, or we run outside of that
// session. AppKit would end the process.
var ErrNoSession = errors.New("there is no login session on a screen here")

// Of NSApplication.h and NSEvent.h.
const (
	NSApplicationActivationPolicyAccessory int  = 1
	NSTerminateNow                         uint = 1
	NSTerminateLater                       uint = 2
	NSEventTypeApplicationDefined          uint = 15
)

// application is this process's NSApplication. All but mu's is the main thread's.
var application struct {
	mu           sync.Mutex // guards reopen and quit
	reopen, quit func()

	delegate objc.ID
	ending   bool // macOS waits for us to end
}

// Start has AppKit's loop serve the main thread, as an application with neither a
// Dock icon nor a menu bar, and returns when it does. Later calls do nothing. It
// needs [quartz.Loop].
var Start = sync.OnceValue(func() error {
	if err := errors.Join(quartz.Load(), Load("Foundation"), Load("AppKit")); err != nil {
		return err
	}
	if !quartz.CurrentSession().Graphic {
		return ErrNoSession
	}
	if err := quartz.TakeOver(runApp, stopApp); err != nil {
		return err
	}
	return quartz.OnMain(context.Background(), func() {})
})

// OnReopen has f called when the person opens the application again while it
// runs.
func OnReopen(f func()) {
	application.mu.Lock()
	defer application.mu.Unlock()
	application.reopen = f
}

// OnQuit has f called when macOS asks the application to end, as it does when the
// person logs out. macOS waits until the process has ended.
func OnQuit(f func()) {
	application.mu.Lock()
	defer application.mu.Unlock()
	application.quit = f
}

// Main runs f on the main thread, inside an autorelease pool, and returns when it
// has.
func Main(f func()) error {
	return quartz.OnMain(context.Background(), func() { Pool(f) })
}

func sharedApp() objc.ID { return Class("NSApplication").Send(Sel("sharedApplication")) }

// runApp is on the main thread.
func runApp() {
	Pool(func() {
		app := sharedApp()
		app.Send(Sel("setActivationPolicy:"), NSApplicationActivationPolicyAccessory)
		application.delegate = objc.ID(delegateClass()).Send(Sel("new"))
		app.Send(Sel("setDelegate:"), application.delegate)
	})
	sharedApp().Send(Sel("run"))
}

// stopApp is on the main thread.
func stopApp() {
	app := sharedApp()
	if application.ending {
		app.Send(Sel("replyToApplicationShouldTerminate:"), true) // ends the process
		return
	}
	app.Send(Sel("stop:"), objc.ID(0))
	// The loop looks at the stop only after one more event.
	event := Class("NSEvent").Send(Sel("otherEventWithType:location:modifierFlags:timestamp:windowNumber:context:subtype:data1:data2:"),
		NSEventTypeApplicationDefined, quartz.CGPoint{}, uint(0), float64(0), 0, objc.ID(0), int16(0), 0, 0)
	app.Send(Sel("postEvent:atStart:"), event, false)
}

var delegateClass = sync.OnceValue(func() objc.Class {
	return define("DrawbridgeDelegate", "NSObject",
		objc.MethodDef{
			Cmd: Sel("applicationShouldHandleReopen:hasVisibleWindows:"),
			Fn: func(objc.ID, objc.SEL, objc.ID, bool) bool {
				told(&application.reopen)
				return false
			},
		},
		objc.MethodDef{
			Cmd: Sel("applicationShouldTerminate:"),
			Fn: func(objc.ID, objc.SEL, objc.ID) uint {
				if !told(&application.quit) {
					return NSTerminateNow
				}
				application.ending = true
				return NSTerminateLater
			},
		},
	)
})

// told calls one of the application's functions, if it is set, on a goroutine of
// its own: it may want the main thread.
func told(f *func()) bool {
	application.mu.Lock()
	g := *f
	application.mu.Unlock()
	if g != nil {
		go g()
	}
	return g != nil
}

// define makes a class. It fails only where our own code is wrong.
func define(name, super string, methods ...objc.MethodDef) objc.Class {
	c, err := objc.RegisterClass(name, objc.GetClass(super), nil, nil, methods)
	if err != nil {
		panic(fmt.Errorf("cocoa: %s: %w", name, err))
	}
	return c
}
