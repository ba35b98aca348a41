//go:build darwin || standin

// Package quartz reaches macOS's C frameworks without cgo: it loads them, binds
// their functions, and holds what input and capture share of them.
//
// Every binding is checked against Apple's headers by packaging/sdkcheck, which
// finds the calls of [Library.Func]: bind with it and with nothing else.
package quartz

import (
	"errors"
	"fmt"
	"structs"
	"unsafe"

	"github.com/ebitengine/purego"
)

// Ref is a reference to a Core Foundation or Core Graphics object; 0 is NULL.
type Ref uintptr

// CGPoint, CGSize and CGRect are those of CGGeometry.h.
type CGPoint struct {
	_    structs.HostLayout
	X, Y float64
}

type CGSize struct {
	_             structs.HostLayout
	Width, Height float64
}

type CGRect struct {
	_      structs.HostLayout
	Origin CGPoint
	Size   CGSize
}

// Library is a loaded framework. What it lacks is collected, for [Library.Err].
type Library struct {
	name   string
	handle uintptr
	errs   []error
}

// Open loads a framework by its name. A framework that cannot be loaded makes
// every later use of the library fail.
func Open(framework string) *Library {
	return open(framework, root+"/System/Library/Frameworks/"+framework+".framework/"+framework)
}

// OpenSystem loads libSystem: the C library and dispatch.
func OpenSystem() *Library { return open("libSystem", root+"/usr/lib/libSystem.B.dylib") }

func open(name, path string) *Library {
	l := &Library{name: name}
	var err error
	if l.handle, err = purego.Dlopen(path, purego.RTLD_NOW|purego.RTLD_GLOBAL); err != nil {
		l.errs = append(l.errs, fmt.Errorf("load %s: %w", name, err))
	}
	return l
}

// Func sets *f, a variable of a function type, to the library's function of that
// name.
func (l *Library) Func(f any, symbol string) {
	if p := l.find(symbol); p != 0 {
		purego.RegisterFunc(f, p)
	}
}

// Var sets *v to the object that an exported variable holds.
func (l *Library) Var(v *Ref, symbol string) {
	if p := l.find(symbol); p != 0 {
		// By way of the variable, since p points outside of Go's memory.
		*v = **(**Ref)(unsafe.Pointer(&p))
	}
}

// Address sets *a to the place of an exported variable.
func (l *Library) Address(a *uintptr, symbol string) { *a = l.find(symbol) }

func (l *Library) find(symbol string) uintptr {
	if l.handle == 0 {
		return 0
	}
	p, err := purego.Dlsym(l.handle, symbol)
	if err != nil {
		l.errs = append(l.errs, fmt.Errorf("%s has no %s on this version of macOS: %w", l.name, symbol, err))
		return 0
	}
	return p
}

// Err says what could not be loaded.
func (l *Library) Err() error { return errors.Join(l.errs...) }
