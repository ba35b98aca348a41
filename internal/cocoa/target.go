//go:build darwin || standin

package cocoa

import (
	"sync"

	"github.com/ebitengine/purego/objc"
)

// actions are what controls do, by the control, and closings what windows do that
// the person wants to close. Both are the main thread's.
var (
	actions  = map[objc.ID]func(){}
	closings = map[objc.ID]func(){}
)

// target is the one object that controls send their action to, and every window's
// delegate: a class made at run time cannot be taken back, so there is one.
var target = sync.OnceValue(func() objc.ID {
	c := define("DrawbridgeTarget", "NSObject",
		objc.MethodDef{
			Cmd: Sel("drawbridgeAct:"),
			Fn: func(_ objc.ID, _ objc.SEL, sender objc.ID) {
				if f := actions[sender]; f != nil {
					f()
				}
			},
		},
		objc.MethodDef{
			// A window stays until our code takes it away: closing it may be an
			// answer, and an answer may not count.
			Cmd: Sel("windowShouldClose:"),
			Fn: func(_ objc.ID, _ objc.SEL, window objc.ID) bool {
				if f := closings[window]; f != nil {
					f()
				}
				return false
			},
		},
	)
	return objc.ID(c).Send(Sel("new"))
})

// OnAction has f called, on the main thread, when the person uses a control or an
// item of a menu, until [Forget].
func OnAction(control objc.ID, f func()) {
	actions[control] = f
	Act(control)
}

// Act makes a control that has an action do it again, after AppKit gave it one of
// its own.
func Act(control objc.ID) {
	control.Send(Sel("setTarget:"), target())
	control.Send(Sel("setAction:"), Sel("drawbridgeAct:"))
}

// OnClose has f called, on the main thread, when the person wants to close a
// window, until [Forget].
func OnClose(window objc.ID, f func()) {
	closings[window] = f
	window.Send(Sel("setDelegate:"), target())
}

// Forget ends OnAction or OnClose. Before an object is released it must be
// forgotten, since another may get its address.
func Forget(object objc.ID) {
	delete(actions, object)
	delete(closings, object)
}
