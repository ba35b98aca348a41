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

// ErrNoLoop: the process has no main loop, so nothing can be done on its main
// thread, which some parts of macOS insist on.
var ErrNoLoop = errors.New("this process runs no main loop of macOS")

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
	serving atomic.Bool              // somebody is in Loop
	wanted  = make(chan struct{}, 1) // OnMain has something for the main thread

	onMain    sync.Map // uintptr → func(), what the main thread is to run
	onMainKey atomic.Uintptr

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
)

// mainLoop is a loop that serves the main queue on the main thread. stop is called
// from within it, and ends it.
type mainLoop struct{ run, stop func() }

var (
	taking  = make(chan mainLoop, 1)      // what the next loop is to be
	running atomic.Pointer[mainLoop]      // stored by the main thread
	core    = mainLoop{coreRun, coreStop} // until somebody takes over
)

// Loop calls f and lends it the main thread: the main loop runs, from the first
// OnMain or TakeOver on, until f returns. Only main may call it, whose package
// locks it to the first thread with runtime.LockOSThread in an init function.
func Loop(f func()) {
	done := make(chan struct{})
	serving.Store(true)
	go func() {
		defer close(done)
		defer serving.Store(false)
		f()
	}()
	l := core
	select {
	case <-done:
		return
	case <-wanted:
	case l = <-taking:
	}
	go func() {
		<-done
		// From within the loop, since a stop that comes before the start is forgotten.
		post(func() { running.Load().stop() })
	}()
	for {
		running.Store(&l)
		l.run()
		select {
		case <-done:
			return
		case next := <-taking:
			l = next
		}
	}
}

// TakeOver has another loop serve the main thread from now on, in the place of
// Core Foundation's bare one: AppKit has one of its own, without which no window
// gets an event. run must serve the main queue until stop, which is called from
// within it, on the main thread. It is for one caller in a process.
func TakeOver(run, stop func()) error {
	if !serving.Load() {
		return ErrNoLoop
	}
	mine := mainLoop{run, stop}
	taking <- mine
	post(func() {
		select {
		case next := <-taking: // the bare loop runs: it must end first
			taking <- next
			coreStop()
		default: // ours was the first
		}
	})
	return nil
}

func coreRun() {
	// A loop without a source ends at once.
	source := cfRunLoopSourceCreate(0, 0, &CFRunLoopSourceContext{Perform: callbacks().nothing})
	cfRunLoopAddSource(cfRunLoopGetMain(), source, kCFRunLoopDefaultMode)
	Release(source) // the loop keeps it
	cfRunLoopRun()
}

func coreStop() { cfRunLoopStop(cfRunLoopGetMain()) }

// OnMain runs f on the main thread and returns when it has, or when ctx ends: f
// may then still run later. It needs [Load] and [Loop].
func OnMain(ctx context.Context, f func()) error {
	if !serving.Load() {
		return ErrNoLoop
	}
	select {
	case wanted <- struct{}{}:
	default:
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
