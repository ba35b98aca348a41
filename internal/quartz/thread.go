//go:build darwin || standin

package quartz

import (
	"runtime"
	"sync"

	"github.com/ebitengine/purego"
)

// Thread is a thread with a run loop of its own, on which sources are served
// whatever the main thread is busy with.
type Thread struct {
	loop, end Ref // end is a source that ends the loop
	ended     chan struct{}
}

// endLoop ends the loop of the thread that it is called on. It is made once, since
// purego never frees a callback.
var endLoop = sync.OnceValue(func() uintptr {
	return purego.NewCallback(func(uintptr) { cfRunLoopStop(cfRunLoopGetCurrent()) })
})

// StartThread serves source on a thread of its own until the thread is closed. It
// needs [Load].
func StartThread(source Ref) *Thread {
	t := &Thread{ended: make(chan struct{})}
	ready := make(chan struct{})
	go func() {
		defer close(t.ended)
		// The loop is the thread's, so the thread ends with it.
		runtime.LockOSThread()
		t.loop = cfRetain(cfRunLoopGetCurrent()) // Close may wake it when the thread has gone
		// A stop that comes before the loop runs is forgotten, a signal is not.
		t.end = cfRunLoopSourceCreate(0, 0, &CFRunLoopSourceContext{Perform: endLoop()})
		cfRunLoopAddSource(t.loop, t.end, kCFRunLoopDefaultMode)
		cfRunLoopAddSource(t.loop, source, kCFRunLoopDefaultMode)
		close(ready)
		cfRunLoopRun()
	}()
	<-ready
	return t
}

// Close ends the thread and waits for it.
func (t *Thread) Close() {
	cfRunLoopSourceSignal(t.end)
	cfRunLoopWakeUp(t.loop)
	<-t.ended
	Release(t.end)
	Release(t.loop)
}
