//go:build darwin || standin

package quartz

import (
	"errors"
	"fmt"
	"sync"
	"time"
	"unsafe"
)

// What is used of Accessibility (AXUIElement.h, AXValue.h).
var (
	axUIElementCreateSystemWide      func() Ref
	axUIElementCreateApplication     func(pid int32) Ref
	axUIElementCopyElementAtPosition func(element Ref, x, y float32, found *Ref) int32
	axUIElementCopyAttributeValue    func(element, attribute Ref, value *Ref) int32
	axUIElementGetPid                func(element Ref, pid *int32) int32
	axUIElementSetMessagingTimeout   func(element Ref, seconds float32) int32
	axValueGetValue                  func(value Ref, kind uint32, into unsafe.Pointer) bool
	axUIElementGetTypeID             func() uint
	axValueGetTypeID                 func() uint
	cfStringGetTypeID                func() uint
	cfStringGetLength                func(Ref) int
)

const (
	kAXErrorCannotComplete int32  = -25204
	kAXErrorAPIDisabled    int32  = -25211
	kAXValueTypeCGPoint    uint32 = 1
	kAXValueTypeCGSize     uint32 = 2
	kCFNumberDoubleType    int    = 13
)

// LoadAX binds what the functions of this file need; later calls return the first
// one's result.
var LoadAX = sync.OnceValue(func() error {
	if err := Load(); err != nil {
		return err
	}
	as := Open("ApplicationServices")
	as.Func(&axUIElementCreateSystemWide, "AXUIElementCreateSystemWide")
	as.Func(&axUIElementCreateApplication, "AXUIElementCreateApplication")
	as.Func(&axUIElementCopyElementAtPosition, "AXUIElementCopyElementAtPosition")
	as.Func(&axUIElementCopyAttributeValue, "AXUIElementCopyAttributeValue")
	as.Func(&axUIElementGetPid, "AXUIElementGetPid")
	as.Func(&axUIElementSetMessagingTimeout, "AXUIElementSetMessagingTimeout")
	as.Func(&axUIElementGetTypeID, "AXUIElementGetTypeID")
	as.Func(&axValueGetTypeID, "AXValueGetTypeID")
	as.Func(&axValueGetValue, "AXValueGetValue")
	cf := Open("CoreFoundation")
	cf.Func(&cfStringGetTypeID, "CFStringGetTypeID")
	cf.Func(&cfStringGetLength, "CFStringGetLength")
	return errors.Join(as.Err(), cf.Err())
})

// Element is a part of an application's interface, as Accessibility tells it: the
// application itself, a window, a control. The application answers, so a question
// takes as long as that is busy, and no longer than the patience that was set.
type Element struct{ ref Ref }

// AXError is why Accessibility did not answer (AXError.h).
type AXError int32

func (e AXError) Error() string {
	switch int32(e) {
	case kAXErrorCannotComplete:
		return "the application does not answer Accessibility in time"
	case kAXErrorAPIDisabled:
		return "Accessibility is not granted"
	}
	return fmt.Sprintf("Accessibility error %d", int32(e))
}

// AXSystem stands for whatever has the keyboard or lies at a place. patience is how
// long this process waits for an answer from now on, of any element.
func AXSystem(patience time.Duration) Element {
	e := Element{axUIElementCreateSystemWide()}
	axUIElementSetMessagingTimeout(e.ref, float32(patience.Seconds()))
	return e
}

// AXApplication is an application by its process.
func AXApplication(pid int) Element { return Element{axUIElementCreateApplication(int32(pid))} }

// Release gives the element back.
func (e Element) Release() { Release(e.ref) }

// PID is the process that the element belongs to.
func (e Element) PID() (int, error) {
	var pid int32
	if st := axUIElementGetPid(e.ref, &pid); st != 0 {
		return 0, AXError(st)
	}
	return int(pid), nil
}

// At finds the element at a place. The caller releases it.
func (e Element) At(x, y float64) (Element, error) {
	var found Ref
	if st := axUIElementCopyElementAtPosition(e.ref, float32(x), float32(y), &found); st != 0 {
		return Element{}, AXError(st)
	}
	return Element{found}, nil
}

// value reads an attribute. The caller releases it.
func (e Element) value(attribute string) (Ref, error) {
	name := NewString(attribute)
	defer Release(name)
	var v Ref
	if st := axUIElementCopyAttributeValue(e.ref, name, &v); st != 0 {
		return 0, AXError(st)
	}
	return v, nil
}

// Element reads an attribute that is an element. The caller releases it.
func (e Element) Element(attribute string) (Element, error) {
	v, err := e.value(attribute)
	if err == nil && (v == 0 || cfGetTypeID(v) != axUIElementGetTypeID()) {
		Release(v)
		err = fmt.Errorf("%s is no element", attribute)
	}
	return Element{v}, err
}

// Text reads an attribute that is a string.
func (e Element) Text(attribute string) (string, error) {
	v, err := e.value(attribute)
	if err != nil {
		return "", err
	}
	defer Release(v)
	if v == 0 || cfGetTypeID(v) != cfStringGetTypeID() {
		return "", fmt.Errorf("%s is no text", attribute)
	}
	const bytesAUnit = 4 // at most, in UTF-8, and the end
	return longString(v, cfStringGetLength(v)*bytesAUnit+1), nil
}

// Number reads an attribute that is a number.
func (e Element) Number(attribute string) (float64, error) {
	v, err := e.value(attribute)
	if err != nil {
		return 0, err
	}
	defer Release(v)
	var f float64
	if v == 0 || cfGetTypeID(v) != cfNumberGetTypeID() || !cfNumberGetValue(v, kCFNumberDoubleType, unsafe.Pointer(&f)) {
		return 0, fmt.Errorf("%s is no number", attribute)
	}
	return f, nil
}

// Bounds is where the element is, in points.
func (e Element) Bounds() (r CGRect, err error) {
	for _, part := range []struct {
		attribute string
		kind      uint32
		into      unsafe.Pointer
	}{{"AXPosition", kAXValueTypeCGPoint, unsafe.Pointer(&r.Origin)}, {"AXSize", kAXValueTypeCGSize, unsafe.Pointer(&r.Size)}} {
		v, err := e.value(part.attribute)
		if err != nil {
			return r, err
		}
		ok := v != 0 && cfGetTypeID(v) == axValueGetTypeID() && axValueGetValue(v, part.kind, part.into)
		Release(v)
		if !ok {
			return r, fmt.Errorf("%s is no place", part.attribute)
		}
	}
	return r, nil
}
