//go:build darwin || standin

package capture

import (
	"errors"
	"sync"
	"unsafe"

	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

// What this package uses of Core Graphics. Names and values are those of Apple's
// headers; packaging/sdkcheck compares them.

var (
	cgMainDisplayID            func() uint32
	cgGetActiveDisplayList     func(most uint32, ids *uint32, n *uint32) int32
	cgDisplayBounds            func(display uint32) quartz.CGRect
	cgDisplayMirrorsDisplay    func(display uint32) uint32
	cgDisplayCopyDisplayMode   func(display uint32) quartz.Ref
	cgDisplayModeGetWidth      func(mode quartz.Ref) uint
	cgDisplayModeGetPixelWidth func(mode quartz.Ref) uint

	cgPreflightScreenCaptureAccess func() bool
	cgRequestScreenCaptureAccess   func() bool

	cgImageGetWidth            func(image quartz.Ref) uint
	cgImageGetHeight           func(image quartz.Ref) uint
	cgColorSpaceCreateWithName func(name quartz.Ref) quartz.Ref
	cgBitmapContextCreate      func(data unsafe.Pointer, width, height, bits, stride uint, space quartz.Ref, info uint32) quartz.Ref
	cgContextDrawImage         func(context quartz.Ref, at quartz.CGRect, image quartz.Ref)
	cfRetain                   func(object quartz.Ref) quartz.Ref
	kCGColorSpaceSRGB          quartz.Ref
)

// CGImage.h: four bytes a pixel, blue first, the last one ignored.
const (
	kCGImageAlphaNoneSkipFirst uint32 = 6
	kCGBitmapByteOrder32Little uint32 = 8192
)

// loadQuartz binds them, once.
var loadQuartz = sync.OnceValue(func() error {
	if err := quartz.Load(); err != nil {
		return err
	}
	cg := quartz.Open("CoreGraphics")
	cg.Func(&cgMainDisplayID, "CGMainDisplayID")
	cg.Func(&cgGetActiveDisplayList, "CGGetActiveDisplayList")
	cg.Func(&cgDisplayBounds, "CGDisplayBounds")
	cg.Func(&cgDisplayMirrorsDisplay, "CGDisplayMirrorsDisplay")
	cg.Func(&cgDisplayCopyDisplayMode, "CGDisplayCopyDisplayMode")
	cg.Func(&cgDisplayModeGetWidth, "CGDisplayModeGetWidth")
	cg.Func(&cgDisplayModeGetPixelWidth, "CGDisplayModeGetPixelWidth")
	cg.Func(&cgRequestScreenCaptureAccess, "CGRequestScreenCaptureAccess")
	cg.Func(&cgPreflightScreenCaptureAccess, "CGPreflightScreenCaptureAccess")
	cg.Func(&cgImageGetWidth, "CGImageGetWidth")
	cg.Func(&cgImageGetHeight, "CGImageGetHeight")
	cg.Func(&cgColorSpaceCreateWithName, "CGColorSpaceCreateWithName")
	cg.Func(&cgBitmapContextCreate, "CGBitmapContextCreate")
	cg.Func(&cgContextDrawImage, "CGContextDrawImage")
	cg.Var(&kCGColorSpaceSRGB, "kCGColorSpaceSRGB")
	cf := quartz.Open("CoreFoundation")
	cf.Func(&cfRetain, "CFRetain")
	return errors.Join(cg.Err(), cf.Err())
})

// loadKit loads ScreenCaptureKit's classes, once. What takes single pictures is
// there since macOS 14.
var loadKit = sync.OnceValue(func() error {
	if err := errors.Join(cocoa.Load("Foundation"), cocoa.Load("ScreenCaptureKit")); err != nil {
		return err
	}
	if cocoa.Class("SCScreenshotManager") == 0 {
		return errors.New("this version of macOS has no SCScreenshotManager, which came with macOS 14")
	}
	return nil
})
