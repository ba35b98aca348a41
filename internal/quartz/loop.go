//go:build darwin || standin

package quartz

import (
	"context"
	"errors"
	"structs"
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"
)

// ErrNoLoop: the main loop does not run, so nothing can be done on the main
// thread, which some parts of macOS insist on.
var ErrNoLoop = errors.New("the main loop of macOS does not run in this process")

// CFRunLoopSourceContext is that of CFRunLoop.h, version 0.
type CFRunLoopSourceContext struct {
	_               structs.HostLayout
	Version         int
	Info            uintptr
	Retain          uintptr
	Release         uintptr
	CopyDescription uintptr
	Equal           uintptr
	Hash            uintptr
	Schedule        uintptr
	Cancel          uintptr
	Perform         uintptr
}

var (
	looping atomic.Bool

	// callbacks are made once each, since purego never frees one.
	callbacks = sync.OnceValue(func() (c struct{ run, nothing uintptr }) {
		c.run = purego.NewCallback(func(key uintptr) {
			if f, ok := onMain.LoadAndDelete(key); ok {
				f.(func())()
			}
		})
		c.nothing = purego.NewCallback(func(uintptr) {})
		return c
	})
	onMain    sync.Map // uintptr → func(), what the main thread is to run
	onMainKey atomic.Uintptr
)

// Loop runs the main loop until f, which runs beside it, returns. It must be
// called on the process's first thread: by main, whose package locks it there
// with runtime.LockOSThread in an init function.
func Loop(f func()) error {
	if err := Load(); err != nil {
		return err
	}
	if !looping.CompareAndSwap(false, true) {
		return errors.New("the main loop runs already")
	}
	defer looping.Store(false)
	// A loop without a source ends at once.
	source := cfRunLoopSourceCreate(0, 0, &CFRunLoopSourceContext{Perform: callbacks().nothing})
	cfRunLoopAddSource(cfRunLoopGetMain(), source, kCFRunLoopDefaultMode)
	Release(source) // the loop keeps it
	done := make(chan struct{})
	go func() {
		defer close(done)
		f()
		// From within, since a stop that comes before the start is forgotten.
		post(func() { cfRunLoopStop(cfRunLoopGetMain()) })
	}()
	cfRunLoopRun()
	<-done
	return nil
}

// OnMain runs f on the main thread and returns when it has, or when ctx ends: f
// may then still run later.
func OnMain(ctx context.Context, f func()) error {
	if !looping.Load() {
		return ErrNoLoop
	}
	ran := make(chan struct{})
	post(func() { f(); close(ran) })
	select {
	case <-ran:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func post(f func()) {
	key := onMainKey.Add(1)
	onMain.Store(key, f)
	dispatchAsyncF(mainQueue, key, callbacks().run)
}
