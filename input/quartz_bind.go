//go:build darwin || standin

package input

import (
	"errors"
	"sync"
	"unsafe"

	"drawbridge/internal/quartz"
)

// What this package uses of Core Graphics and of HIToolbox. Names and values are
// those of Apple's headers; packaging/sdkcheck compares them.

var (
	cgEventSourceCreate                                     func(state int32) quartz.Ref
	cgEventSourceSetUserData                                func(source quartz.Ref, data int64)
	cgEventSourceSetLocalEventsSuppressionInterval          func(source quartz.Ref, seconds float64)
	cgEventSourceGetLocalEventsSuppressionInterval          func(source quartz.Ref) float64
	cgEventSourceSetLocalEventsFilterDuringSuppressionState func(source quartz.Ref, filter, state uint32)
	cgEventSourceGetLocalEventsFilterDuringSuppressionState func(source quartz.Ref, state uint32) uint32
	cgEventSourceKeyState                                   func(state int32, key uint16) bool
	cgEventSourceButtonState                                func(state int32, button uint32) bool

	cgEventCreate                   func(source quartz.Ref) quartz.Ref
	cgEventCreateMouseEvent         func(source quartz.Ref, kind uint32, at quartz.CGPoint, button uint32) quartz.Ref
	cgEventCreateKeyboardEvent      func(source quartz.Ref, key uint16, down bool) quartz.Ref
	cgEventCreateScrollWheelEvent2  func(source quartz.Ref, units, wheels uint32, wheel1, wheel2, wheel3 int32) quartz.Ref
	cgEventKeyboardSetUnicodeString func(event quartz.Ref, n uint, units *uint16)
	cgEventSetType                  func(event quartz.Ref, kind uint32)
	cgEventSetFlags                 func(event quartz.Ref, flags uint64)
	cgEventSetIntegerValueField     func(event quartz.Ref, field uint32, value int64)
	cgEventGetType                  func(event quartz.Ref) uint32
	cgEventGetLocation              func(event quartz.Ref) quartz.CGPoint
	cgEventPost                     func(tap uint32, event quartz.Ref)

	cgEventTapCreate                       func(at, place, options uint32, events uint64, callback, info uintptr) quartz.Ref
	cgEventTapEnable                       func(tap quartz.Ref, on bool)
	cgEventTapIsEnabled                    func(tap quartz.Ref) bool
	cgEventGetIntegerValueField            func(event quartz.Ref, field uint32) int64
	cfMachPortCreateRunLoopSource          func(alloc, port quartz.Ref, order int) quartz.Ref
	cfMachPortInvalidate                   func(port quartz.Ref)
	cgEventSourceCounterForEventType       func(state int32, kind uint32) uint32
	cgEventSourceSecondsSinceLastEventType func(state int32, kind uint32) float64

	cgPreflightListenEventAccess func() bool
	cgPreflightPostEventAccess   func() bool
	axIsProcessTrusted           func() bool

	cgRequestListenEventAccess      func() bool
	cgRequestPostEventAccess        func() bool
	axIsProcessTrustedWithOptions   func(options quartz.Ref) bool
	cfDictionaryCreate              func(alloc quartz.Ref, keys, values unsafe.Pointer, n int, keyCalls, valueCalls uintptr) quartz.Ref
	kAXTrustedCheckOptionPrompt     quartz.Ref
	kCFBooleanTrue                  quartz.Ref
	kCFTypeDictionaryKeyCallBacks   uintptr
	kCFTypeDictionaryValueCallBacks uintptr

	isSecureEventInputEnabled func() bool

	tisCopyCurrentKeyboardInputSource                   func() quartz.Ref
	tisCopyCurrentKeyboardLayoutInputSource             func() quartz.Ref
	tisCopyCurrentASCIICapableKeyboardLayoutInputSource func() quartz.Ref
	tisGetInputSourceProperty                           func(source, property quartz.Ref) quartz.Ref
	tisSelectInputSource                                func(source quartz.Ref) int32
	ucKeyTranslate                                      func(layout unsafe.Pointer, key, action uint16, modifiers, keyboard, options uint32, dead *uint32, most uint, n *uint, units *uint16) int32
	lmGetKbdType                                        func() uint8
	cfDataGetBytePtr                                    func(data quartz.Ref) unsafe.Pointer
	cfDataGetLength                                     func(data quartz.Ref) int
	cfEqual                                             func(a, b quartz.Ref) bool

	cgWindowListCopyWindowInfo             func(options, relative uint32) quartz.Ref
	cgRectMakeWithDictionaryRepresentation func(dict quartz.Ref, rect *quartz.CGRect) bool
	cfArrayGetCount                        func(array quartz.Ref) int
	cfArrayGetValueAtIndex                 func(array quartz.Ref, i int) quartz.Ref
	cfDictionaryGetValue                   func(dict, key quartz.Ref) quartz.Ref

	kCGWindowOwnerName quartz.Ref
	kCGWindowOwnerPID  quartz.Ref
	kCGWindowName      quartz.Ref
	kCGWindowLayer     quartz.Ref
	kCGWindowBounds    quartz.Ref

	kTISPropertyUnicodeKeyLayoutData quartz.Ref
	kTISPropertyInputSourceID        quartz.Ref
	kTISPropertyInputSourceType      quartz.Ref
	kTISTypeKeyboardLayout           quartz.Ref
)

// loadQuartz binds them, once.
var loadQuartz = sync.OnceValue(func() error {
	if err := quartz.Load(); err != nil {
		return err
	}
	cg := quartz.Open("CoreGraphics")
	cg.Func(&cgEventSourceCreate, "CGEventSourceCreate")
	cg.Func(&cgEventSourceSetUserData, "CGEventSourceSetUserData")
	cg.Func(&cgEventSourceSetLocalEventsSuppressionInterval, "CGEventSourceSetLocalEventsSuppressionInterval")
	cg.Func(&cgEventSourceGetLocalEventsSuppressionInterval, "CGEventSourceGetLocalEventsSuppressionInterval")
	cg.Func(&cgEventSourceSetLocalEventsFilterDuringSuppressionState, "CGEventSourceSetLocalEventsFilterDuringSuppressionState")
	cg.Func(&cgEventSourceGetLocalEventsFilterDuringSuppressionState, "CGEventSourceGetLocalEventsFilterDuringSuppressionState")
	cg.Func(&cgEventSourceKeyState, "CGEventSourceKeyState")
	cg.Func(&cgEventSourceButtonState, "CGEventSourceButtonState")
	cg.Func(&cgEventCreate, "CGEventCreate")
	cg.Func(&cgEventCreateMouseEvent, "CGEventCreateMouseEvent")
	cg.Func(&cgEventCreateKeyboardEvent, "CGEventCreateKeyboardEvent")
	cg.Func(&cgEventCreateScrollWheelEvent2, "CGEventCreateScrollWheelEvent2")
	cg.Func(&cgEventKeyboardSetUnicodeString, "CGEventKeyboardSetUnicodeString")
	cg.Func(&cgEventSetType, "CGEventSetType")
	cg.Func(&cgEventSetFlags, "CGEventSetFlags")
	cg.Func(&cgEventSetIntegerValueField, "CGEventSetIntegerValueField")
	cg.Func(&cgEventGetType, "CGEventGetType")
	cg.Func(&cgEventGetLocation, "CGEventGetLocation")
	cg.Func(&cgEventPost, "CGEventPost")
	cg.Func(&cgEventTapCreate, "CGEventTapCreate")
	cg.Func(&cgEventTapEnable, "CGEventTapEnable")
	cg.Func(&cgEventTapIsEnabled, "CGEventTapIsEnabled")
	cg.Func(&cgEventGetIntegerValueField, "CGEventGetIntegerValueField")
	cg.Func(&cgEventSourceCounterForEventType, "CGEventSourceCounterForEventType")
	cg.Func(&cgEventSourceSecondsSinceLastEventType, "CGEventSourceSecondsSinceLastEventType")
	cg.Func(&cgPreflightListenEventAccess, "CGPreflightListenEventAccess")
	cg.Func(&cgRequestListenEventAccess, "CGRequestListenEventAccess")
	cg.Func(&cgRequestPostEventAccess, "CGRequestPostEventAccess")
	cg.Func(&cgPreflightPostEventAccess, "CGPreflightPostEventAccess")
	cg.Func(&cgWindowListCopyWindowInfo, "CGWindowListCopyWindowInfo")
	cg.Func(&cgRectMakeWithDictionaryRepresentation, "CGRectMakeWithDictionaryRepresentation")
	cg.Var(&kCGWindowOwnerName, "kCGWindowOwnerName")
	cg.Var(&kCGWindowOwnerPID, "kCGWindowOwnerPID")
	cg.Var(&kCGWindowName, "kCGWindowName")
	cg.Var(&kCGWindowLayer, "kCGWindowLayer")
	cg.Var(&kCGWindowBounds, "kCGWindowBounds")

	as := quartz.Open("ApplicationServices")
	as.Func(&axIsProcessTrusted, "AXIsProcessTrusted")
	as.Func(&axIsProcessTrustedWithOptions, "AXIsProcessTrustedWithOptions")
	as.Var(&kAXTrustedCheckOptionPrompt, "kAXTrustedCheckOptionPrompt")

	hi := quartz.Open("Carbon")
	hi.Func(&isSecureEventInputEnabled, "IsSecureEventInputEnabled")
	hi.Func(&tisCopyCurrentKeyboardInputSource, "TISCopyCurrentKeyboardInputSource")
	hi.Func(&tisCopyCurrentKeyboardLayoutInputSource, "TISCopyCurrentKeyboardLayoutInputSource")
	hi.Func(&tisCopyCurrentASCIICapableKeyboardLayoutInputSource, "TISCopyCurrentASCIICapableKeyboardLayoutInputSource")
	hi.Func(&tisGetInputSourceProperty, "TISGetInputSourceProperty")
	hi.Func(&tisSelectInputSource, "TISSelectInputSource")
	hi.Func(&ucKeyTranslate, "UCKeyTranslate")
	hi.Func(&lmGetKbdType, "LMGetKbdType")
	hi.Var(&kTISPropertyUnicodeKeyLayoutData, "kTISPropertyUnicodeKeyLayoutData")
	hi.Var(&kTISPropertyInputSourceID, "kTISPropertyInputSourceID")
	hi.Var(&kTISPropertyInputSourceType, "kTISPropertyInputSourceType")
	hi.Var(&kTISTypeKeyboardLayout, "kTISTypeKeyboardLayout")

	cf := quartz.Open("CoreFoundation")
	cf.Func(&cfDataGetBytePtr, "CFDataGetBytePtr")
	cf.Func(&cfDataGetLength, "CFDataGetLength")
	cf.Func(&cfMachPortCreateRunLoopSource, "CFMachPortCreateRunLoopSource")
	cf.Func(&cfMachPortInvalidate, "CFMachPortInvalidate")
	cf.Func(&cfDictionaryCreate, "CFDictionaryCreate")
	cf.Var(&kCFBooleanTrue, "kCFBooleanTrue")
	cf.Address(&kCFTypeDictionaryKeyCallBacks, "kCFTypeDictionaryKeyCallBacks")
	cf.Address(&kCFTypeDictionaryValueCallBacks, "kCFTypeDictionaryValueCallBacks")
	cf.Func(&cfEqual, "CFEqual")
	cf.Func(&cfArrayGetCount, "CFArrayGetCount")
	cf.Func(&cfArrayGetValueAtIndex, "CFArrayGetValueAtIndex")
	cf.Func(&cfDictionaryGetValue, "CFDictionaryGetValue")
	return errors.Join(quartz.LoadAX(), cg.Err(), as.Err(), hi.Err(), cf.Err())
})

// CGEventTypes.h, CGEventSource.h and CGRemoteOperation.h.
const (
	kCGEventLeftMouseDown     uint32 = 1
	kCGEventLeftMouseUp       uint32 = 2
	kCGEventRightMouseDown    uint32 = 3
	kCGEventRightMouseUp      uint32 = 4
	kCGEventMouseMoved        uint32 = 5
	kCGEventLeftMouseDragged  uint32 = 6
	kCGEventRightMouseDragged uint32 = 7
	kCGEventKeyDown           uint32 = 10
	kCGEventKeyUp             uint32 = 11
	kCGEventFlagsChanged      uint32 = 12
	kCGEventScrollWheel       uint32 = 22
	kCGEventOtherMouseDown    uint32 = 25
	kCGEventOtherMouseUp      uint32 = 26
	kCGEventOtherMouseDragged uint32 = 27

	kCGMouseButtonLeft   uint32 = 0
	kCGMouseButtonRight  uint32 = 1
	kCGMouseButtonCenter uint32 = 2

	kCGMouseEventNumber              uint32 = 0
	kCGMouseEventClickState          uint32 = 1
	kCGMouseEventButtonNumber        uint32 = 3
	kCGMouseEventDeltaX              uint32 = 4
	kCGMouseEventDeltaY              uint32 = 5
	kCGEventSourceUserData           uint32 = 42
	kCGScrollWheelEventMomentumPhase uint32 = 123

	kCGEventFlagMaskShift       uint64 = 0x20000
	kCGEventFlagMaskControl     uint64 = 0x40000
	kCGEventFlagMaskAlternate   uint64 = 0x80000
	kCGEventFlagMaskCommand     uint64 = 0x100000
	kCGEventFlagMaskNumericPad  uint64 = 0x200000
	kCGEventFlagMaskSecondaryFn uint64 = 0x800000

	kCGWindowListOptionOnScreenOnly     uint32 = 1
	kCGWindowListExcludeDesktopElements uint32 = 16

	kCGScrollEventUnitPixel     uint32 = 0
	kCGAnyInputEventType        uint32 = 0xffff_ffff
	kCGHIDEventTap              uint32 = 0
	kCGSessionEventTap          uint32 = 1
	kCGTailAppendEventTap       uint32 = 1
	kCGEventTapOptionListenOnly uint32 = 1

	// Not kinds of events, but what a tap is told of itself.
	kCGEventTapDisabledByTimeout   int32 = -2
	kCGEventTapDisabledByUserInput int32 = -1

	kCGEventSourceStatePrivate              int32 = -1
	kCGEventSourceStateCombinedSessionState int32 = 0
	kCGEventSourceStateHIDSystemState       int32 = 1

	kCGEventFilterMaskPermitLocalMouseEvents    uint32 = 1
	kCGEventFilterMaskPermitLocalKeyboardEvents uint32 = 2
	kCGEventFilterMaskPermitSystemDefinedEvents uint32 = 4
	kCGEventSuppressionStateSuppressionInterval uint32 = 0
	kCGEventSuppressionStateRemoteMouseDrag     uint32 = 1
)

// UnicodeUtilities.h and Events.h.
const (
	kUCKeyActionDown              uint16 = 0
	kUCKeyTranslateNoDeadKeysMask uint32 = 1

	cmdKey    = 256
	shiftKey  = 512
	optionKey = 2048
)

// Virtual key codes are places on the keyboard, named in Events.h after what
// they type on a US one.
const (
	kVK_Return              uint16 = 36
	kVK_Tab                 uint16 = 48
	kVK_Space               uint16 = 49
	kVK_Delete              uint16 = 51
	kVK_Escape              uint16 = 53
	kVK_Command             uint16 = 55
	kVK_Shift               uint16 = 56
	kVK_Option              uint16 = 58
	kVK_Control             uint16 = 59
	kVK_Function            uint16 = 63
	kVK_F17                 uint16 = 64
	kVK_ANSI_KeypadDecimal  uint16 = 65
	kVK_ANSI_KeypadMultiply uint16 = 67
	kVK_ANSI_KeypadPlus     uint16 = 69
	kVK_ANSI_KeypadClear    uint16 = 71
	kVK_VolumeUp            uint16 = 72
	kVK_VolumeDown          uint16 = 73
	kVK_Mute                uint16 = 74
	kVK_ANSI_KeypadDivide   uint16 = 75
	kVK_ANSI_KeypadEnter    uint16 = 76
	kVK_ANSI_KeypadMinus    uint16 = 78
	kVK_F18                 uint16 = 79
	kVK_F19                 uint16 = 80
	kVK_ANSI_KeypadEquals   uint16 = 81
	kVK_ANSI_Keypad0        uint16 = 82
	kVK_ANSI_Keypad1        uint16 = 83
	kVK_ANSI_Keypad2        uint16 = 84
	kVK_ANSI_Keypad3        uint16 = 85
	kVK_ANSI_Keypad4        uint16 = 86
	kVK_ANSI_Keypad5        uint16 = 87
	kVK_ANSI_Keypad6        uint16 = 88
	kVK_ANSI_Keypad7        uint16 = 89
	kVK_F20                 uint16 = 90
	kVK_ANSI_Keypad8        uint16 = 91
	kVK_ANSI_Keypad9        uint16 = 92
	kVK_JIS_KeypadComma     uint16 = 95
	kVK_F5                  uint16 = 96
	kVK_F6                  uint16 = 97
	kVK_F7                  uint16 = 98
	kVK_F3                  uint16 = 99
	kVK_F8                  uint16 = 100
	kVK_F9                  uint16 = 101
	kVK_F11                 uint16 = 103
	kVK_F13                 uint16 = 105
	kVK_F16                 uint16 = 106
	kVK_F14                 uint16 = 107
	kVK_F10                 uint16 = 109
	kVK_F12                 uint16 = 111
	kVK_F15                 uint16 = 113
	kVK_Help                uint16 = 114
	kVK_Home                uint16 = 115
	kVK_PageUp              uint16 = 116
	kVK_ForwardDelete       uint16 = 117
	kVK_F4                  uint16 = 118
	kVK_End                 uint16 = 119
	kVK_F2                  uint16 = 120
	kVK_PageDown            uint16 = 121
	kVK_F1                  uint16 = 122
	kVK_LeftArrow           uint16 = 123
	kVK_RightArrow          uint16 = 124
	kVK_DownArrow           uint16 = 125
	kVK_UpArrow             uint16 = 126
)
