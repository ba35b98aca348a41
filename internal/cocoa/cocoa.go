//go:build darwin || standin

// Package cocoa sends messages to Objective-C objects without cgo.
//
// Every message is checked against Apple's headers by packaging/sdkcheck, which
// finds the calls of objc.ID.Send, objc.Send and [Block]: the selector must be a
// constant in a call of [Sel], and an argument's Go type must be that of the
// header (an int for a CGFloat compiles and is silently wrong).
package cocoa

import (
	"fmt"
	"runtime"
	"sync"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

var selectors sync.Map // string → objc.SEL

// Sel is the selector of that name.
func Sel(name string) objc.SEL {
	if s, ok := selectors.Load(name); ok {
		return s.(objc.SEL)
	}
	s := objc.RegisterName(name)
	selectors.Store(name, s)
	return s
}

// Load loads a framework of classes.
func Load(framework string) error { return quartz.Open(framework).Err() }

// Class finds a class; 0 where this version of macOS has none of that name.
func Class(name string) objc.ID { return objc.ID(objc.GetClass(name)) }

// Responds reports whether an object knows a selector. A message that is not
// understood would end the process.
func Responds(object objc.ID, selector string) bool {
	return object != 0 && objc.Send[bool](object, Sel("respondsToSelector:"), Sel(selector))
}

// Block makes a block of f for the method that takes it, whose selector is only
// named so that f can be checked. The caller releases it.
func Block(selector string, f any) objc.Block { return objc.NewBlock(f) }

// Text reads an NSString.
func Text(s objc.ID) string {
	if s == 0 {
		return ""
	}
	return objc.Send[string](s, Sel("UTF8String"))
}

// Each calls f with the elements of an NSArray until it returns false.
func Each(array objc.ID, f func(objc.ID) bool) {
	n := objc.Send[uint](array, Sel("count"))
	for i := range n {
		if !f(array.Send(Sel("objectAtIndex:"), i)) {
			return
		}
	}
}

// Pool runs f on one thread, inside an autorelease pool.
func Pool(f func()) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	p := Class("NSAutoreleasePool").Send(Sel("new"))
	defer p.Send(Sel("drain"))
	f()
}

// Error is an NSError.
type Error struct {
	Domain string
	Code   int
	Text   string
}

func (e *Error) Error() string { return fmt.Sprintf("%s (%s %d)", e.Text, e.Domain, e.Code) }

// AsError reads an NSError; nil for 0.
func AsError(e objc.ID) error {
	if e == 0 {
		return nil
	}
	return &Error{
		Domain: Text(e.Send(Sel("domain"))),
		Code:   objc.Send[int](e, Sel("code")),
		Text:   Text(e.Send(Sel("localizedDescription"))),
	}
}
