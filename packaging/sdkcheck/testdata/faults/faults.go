//go:build darwin

// Package faults has every kind of fault that sdkcheck must find, and beside
// each the same thing done right. A comment "want" says what is reported for its
// line. It is built by nobody.
package faults

import (
	"structs"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

const (
	kCGEventMouseMoved    = 5
	kCGEventLeftMouseDown = 3     // want "kCGEventLeftMouseDown is 3, in the headers 1"
	kCGNoSuchThing        = 1     // want "the table has no constant kCGNoSuchThing"
	NSRightMouseDown      = 1     // want "NSRightMouseDown is 1, in the headers 3"
	eventHotKeyExistsErr  = -9879 // want "eventHotKeyExistsErr is -9879, in the headers -9878"
	typeEventHotKeyID     = 1     // want "the table has no constant typeEventHotKeyID"
	kindOfOurs            = 7
)

type CGPoint struct { // want "struct CGPoint has the fields f,f, in the headers d,d"
	_    structs.HostLayout
	X, Y float32
}

type CGSize struct { // want "no _ structs.HostLayout"
	Width, Height float64
}

type CGOdd struct { // want "the table has no struct CGOdd"
	_ structs.HostLayout
	X int32
}

var (
	create  func(source quartz.Ref, kind uint32, at quartz.CGPoint, button uint32) quartz.Ref
	signed  func(source quartz.Ref, kind int32, at quartz.CGPoint, button uint32) quartz.Ref
	narrow  func(source quartz.Ref, kind uint16, at quartz.CGPoint, button uint32) quartz.Ref
	few     func(source quartz.Ref, kind uint32, at quartz.CGPoint) quartz.Ref
	swapped func(source quartz.Ref, at quartz.CGPoint, kind, button uint32) quartz.Ref
	nothing func(source quartz.Ref, kind uint32, at quartz.CGPoint, button uint32)
	seconds func(source quartz.Ref, seconds int)
	flags   func(event quartz.Ref, flags uint32)
	point   func(event quartz.Ref) CGPoint
	size    func(event quartz.Ref) CGSize
	odd     func(event quartz.Ref, o *CGOdd)
	word    = "CGEventCreate"
)

func bind(l *quartz.Library) {
	l.Func(&create, "CGEventCreateMouseEvent")
	l.Func(&signed, "CGEventCreateMouseEvent")                         // want "used as \^\(\^,i4,{CGPoint},u4\), in the headers it is \^\(\^,u4,{CGPoint},u4\)"
	l.Func(&narrow, "CGEventCreateMouseEvent")                         // want "used as \^\(\^,u2,"
	l.Func(&few, "CGEventCreateMouseEvent")                            // want "used as \^\(\^,u4,{CGPoint}\),"
	l.Func(&swapped, "CGEventCreateMouseEvent")                        // want "used as \^\(\^,{CGPoint},u4,u4\)"
	l.Func(&nothing, "CGEventCreateMouseEvent")                        // want "used as v\("
	l.Func(&seconds, "CGEventSourceSetLocalEventsSuppressionInterval") // want "used as v\(\^,i8\), in the headers it is v\(\^,d\)"
	l.Func(&flags, "CGEventSetFlags")                                  // want "used as v\(\^,u4\)"
	l.Func(&point, "CGEventGetLocation")
	l.Func(&size, "CGEventGetLocation")                           // want "used as {CGSize}\(\^\)"
	l.Func(&odd, "CGEventPost")                                   // want "used as v\(\^,\^\), in the headers it is v\(u4,\^\)"
	l.Func(&create, "CGEventCreateMouse")                         // want "the table has no function CGEventCreateMouse:"
	l.Func(&create, word)                                         // want "the function's name is no constant"
	l.Func(create, "CGEventCreateMouseEvent")                     // want "no variable of a function type"
	purego.RegisterLibFunc(&create, 0, "CGEventCreateMouseEvent") // want "RegisterLibFunc is not checked"
	create(0, kCGEventMouseMoved, quartz.CGPoint{}, 0)
	create(0, 5, quartz.CGPoint{}, 0)         // want "the bare number 5"
	create(0, uint32(5), quartz.CGPoint{}, 0) // want "the bare number 5"
}

func send(o objc.ID, s objc.SEL) {
	o.Send(cocoa.Sel("setWidth:"), uint(kindOfOurs))
	o.Send(cocoa.Sel("setLineWidth:"), float64(kindOfOurs))
	o.Send(cocoa.Sel("setLineWidth:"), kindOfOurs) // want "used as _\(i8\), in the headers it is v\(d\)"
	o.Send(cocoa.Sel("setLineWidth:"), float32(1)) // want "used as _\(f\)"
	o.Send(cocoa.Sel("setLineWidth:"))             // want "used as _\(\)"
	o.Send(cocoa.Sel("setLineWidth"), float64(1))  // want "the table has no selector setLineWidth:"
	o.Send(cocoa.Sel("setHidden:"), 1)             // want "used as _\(i8\), in the headers it is v\(B\)"
	o.Send(cocoa.Sel("performSelector:"), "print") // want "used as _\(\*\), in the headers it is @\(:\)"
	o.Send(cocoa.Sel("addObject:"), unsafe.Pointer(&word))
	_ = o.Send(cocoa.Sel("addObject:"), o)                     // want "used as @\(@\), in the headers it is v\(@\)"
	_ = objc.Send[int](o, cocoa.Sel("count"))                  // want "used as i8\(\), in the headers it is u8\(\)"
	_ = objc.Send[float32](o, cocoa.Sel("backingScaleFactor")) // want "used as f\(\), in the headers it is d\(\)"
	o.Send(cocoa.Sel("backingScaleFactor"))                    // want "used as _\(\), in the headers it is d\(\)"
	_ = objc.Send[quartz.CGRect](o, cocoa.Sel("frame"))
	o.Send(s)                                    // want "the selector is no cocoa.Sel of a constant"
	o.Send(cocoa.Sel(word))                      // want "the selector is no cocoa.Sel of a constant"
	o.Send(cocoa.Sel("addObject:"), []any{o}...) // want "arguments from a slice"
	o.SendSuper(cocoa.Sel("addObject:"), o)      // want "SendSuper recurses"
	o.Send(objc.RegisterName("addObject:"), o)   // want "the selector is no cocoa.Sel" "RegisterName is not checked"
}

func blocks() {
	const sel = "captureImageWithFilter:configuration:completionHandler:"
	cocoa.Block(sel, func(_ objc.Block, image quartz.Ref, err objc.ID) {})
	cocoa.Block(sel, func(_ objc.Block, err objc.ID) {})              // want "used as v\(@\), in the headers it is v\(\^,@\)"
	cocoa.Block(sel, func(image quartz.Ref, err objc.ID) {})          // want "takes an objc.Block first"
	cocoa.Block("addObject:", func(_ objc.Block) {})                  // want "the table has no block addObject:"
	cocoa.Block(word, func(_ objc.Block, i quartz.Ref, e objc.ID) {}) // want "no constant"
	objc.NewBlock(func(_ objc.Block) {})                              // want "NewBlock is not checked"
}

func methods() []objc.MethodDef {
	return []objc.MethodDef{
		{Cmd: cocoa.Sel("drawbridgeItem:"), Fn: func(objc.ID, objc.SEL, objc.ID) {}},
		{Cmd: cocoa.Sel("drawbridgeItem:"), Fn: func(objc.ID, objc.SEL) {}}, // want "AppKit calls an action as v\(@\)"
		{Cmd: cocoa.Sel("windowShouldClose:"), Fn: func(objc.ID, objc.SEL, objc.ID) bool { return true }},
		{Cmd: cocoa.Sel("windowShouldClose:"), Fn: func(objc.ID, objc.SEL, objc.ID) {}},         // want "used as v\(@\), in the headers it is B\(@\)"
		{Cmd: cocoa.Sel("windowShouldClose:"), Fn: func(objc.ID, objc.ID) bool { return true }}, // want "takes an objc.ID and an objc.SEL first"
		{Cmd: objc.RegisterName("x:"), Fn: func(objc.ID, objc.SEL) {}},                          // want "no cocoa.Sel of a constant" "RegisterName is not checked"
	}
}
