//go:build darwin || standin

package input

import (
	"structs"
	"sync"

	"drawbridge/internal/quartz"
)

// What the panic chord uses of Carbon, which is all that macOS has for hot keys.

var (
	registerEventHotKey       func(key, modifiers uint32, id EventHotKeyID, target quartz.Ref, options uint32, ref *quartz.Ref) int32
	unregisterEventHotKey     func(ref quartz.Ref) int32
	installEventHandler       func(target quartz.Ref, handler uintptr, n uint, types *EventTypeSpec, data uintptr, ref *quartz.Ref) int32
	getApplicationEventTarget func() quartz.Ref
	getEventParameter         func(event quartz.Ref, name, kind uint32, actual *uint32, size uint, got *uint, data *EventHotKeyID) int32
)

// EventHotKeyID is that of CarbonEvents.h.
type EventHotKeyID struct {
	_         structs.HostLayout
	Signature uint32
	ID        uint32
}

// EventTypeSpec is that of CarbonEventsCore.h.
type EventTypeSpec struct {
	_     structs.HostLayout
	Class uint32
	Kind  uint32
}

// loadHotKeys binds them, once.
var loadHotKeys = sync.OnceValue(func() error {
	hi := quartz.Open("Carbon")
	hi.Func(&registerEventHotKey, "RegisterEventHotKey")
	hi.Func(&unregisterEventHotKey, "UnregisterEventHotKey")
	hi.Func(&installEventHandler, "InstallEventHandler")
	hi.Func(&getApplicationEventTarget, "GetApplicationEventTarget")
	hi.Func(&getEventParameter, "GetEventParameter")
	return hi.Err()
})

// CarbonEvents.h, CarbonEventsCore.h and Events.h.
const (
	kEventClassKeyboard     uint32 = 1801812322
	kEventHotKeyPressed     uint32 = 5
	kEventParamDirectObject uint32 = 757935405
	kEventHotKeyExclusive   uint32 = 1
	typeEventHotKeyID       uint32 = 1751869796
	eventHotKeyExistsErr    int32  = -9878
	eventNotHandledErr      int32  = -9874

	controlKey = 4096
)
