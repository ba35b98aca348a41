//go:build darwin || standin

package quartz

import (
	"errors"
	"sync"
	"unsafe"
)

var (
	cfRelease                 func(Ref)
	cfRetain                  func(Ref) Ref
	cfStringCreateWithCString func(alloc Ref, s string, encoding uint32) Ref
	cfStringGetCString        func(s Ref, buf *byte, size int, encoding uint32) bool
	cfDictionaryGetValue      func(dict, key Ref) Ref
	cfGetTypeID               func(Ref) uint
	cfBooleanGetTypeID        func() uint
	cfNumberGetTypeID         func() uint
	cfNumberGetValue          func(number Ref, kind int, value unsafe.Pointer) bool
	cfBooleanGetValue         func(Ref) bool
	cfRunLoopGetMain          func() Ref
	cfRunLoopGetCurrent       func() Ref
	cfRunLoopRun              func()
	cfRunLoopStop             func(loop Ref)
	cfRunLoopSourceCreate     func(alloc Ref, order int, context *CFRunLoopSourceContext) Ref
	cfRunLoopAddSource        func(loop, source, mode Ref)
	cfRunLoopSourceSignal     func(source Ref)
	cfRunLoopWakeUp           func(loop Ref)
	kCFRunLoopDefaultMode     Ref

	cgSessionCopyCurrentDictionary func() Ref
	cgMainDisplayID                func() uint32
	cgDisplayIsAsleep              func(display uint32) int32

	dispatchAsyncF func(queue, context, work uintptr)
	mainQueue      uintptr // the address of libdispatch's main queue

	sysctlByName func(name string, old *byte, size *uint, value *byte, length uint) int32

	procName func(pid int32, buf *byte, size uint32) int32
)

// Load binds what the functions of this package need. Whoever opens input or
// capture calls it first; later calls return the first one's result.
var Load = sync.OnceValue(func() error {
	cf := Open("CoreFoundation")
	cf.Func(&cfRelease, "CFRelease")
	cf.Func(&cfRetain, "CFRetain")
	cf.Func(&cfStringCreateWithCString, "CFStringCreateWithCString")
	cf.Func(&cfStringGetCString, "CFStringGetCString")
	cf.Func(&cfDictionaryGetValue, "CFDictionaryGetValue")
	cf.Func(&cfGetTypeID, "CFGetTypeID")
	cf.Func(&cfBooleanGetTypeID, "CFBooleanGetTypeID")
	cf.Func(&cfNumberGetTypeID, "CFNumberGetTypeID")
	cf.Func(&cfNumberGetValue, "CFNumberGetValue")
	cf.Func(&cfBooleanGetValue, "CFBooleanGetValue")
	cf.Func(&cfRunLoopGetMain, "CFRunLoopGetMain")
	cf.Func(&cfRunLoopGetCurrent, "CFRunLoopGetCurrent")
	cf.Func(&cfRunLoopRun, "CFRunLoopRun")
	cf.Func(&cfRunLoopStop, "CFRunLoopStop")
	cf.Func(&cfRunLoopSourceCreate, "CFRunLoopSourceCreate")
	cf.Func(&cfRunLoopAddSource, "CFRunLoopAddSource")
	cf.Func(&cfRunLoopSourceSignal, "CFRunLoopSourceSignal")
	cf.Func(&cfRunLoopWakeUp, "CFRunLoopWakeUp")
	cf.Var(&kCFRunLoopDefaultMode, "kCFRunLoopDefaultMode")

	cg := Open("CoreGraphics")
	cg.Func(&cgSessionCopyCurrentDictionary, "CGSessionCopyCurrentDictionary")
	cg.Func(&cgMainDisplayID, "CGMainDisplayID")
	cg.Func(&cgDisplayIsAsleep, "CGDisplayIsAsleep")

	sys := OpenSystem()
	sys.Func(&dispatchAsyncF, "dispatch_async_f")
	sys.Address(&mainQueue, "_dispatch_main_q")
	sys.Func(&sysctlByName, "sysctlbyname")
	sys.Func(&procName, "proc_name")
	return errors.Join(cf.Err(), cg.Err(), sys.Err())
})
