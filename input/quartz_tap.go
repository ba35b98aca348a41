//go:build darwin || standin

package input

import (
	"sync"
	"sync/atomic"

	"github.com/ebitengine/purego"

	"drawbridge/internal/quartz"
)

// quartzTap hears every event of the session and changes none. macOS calls it for
// each event before the application gets it, so it only counts.
type quartzTap struct {
	port   quartz.Ref
	source quartz.Ref
	thread *quartz.Thread
	key    uintptr // in quartzTaps

	heard  chan struct{} // something was counted that nobody has looked at
	own    atomic.Int64  // events that we posted
	keys   atomic.Int64  // events of the person's, by what they did
	clicks atomic.Int64
	wheel  atomic.Int64
	moves  atomic.Int64
	dx, dy atomic.Int64 // points that the person moved the pointer by
	off    atomic.Int64 // how often macOS turned it off
}

// A callback is made once, since purego never frees one; it finds its tap by the
// number that macOS hands back to it.
var (
	quartzTaps   sync.Map // uintptr → *quartzTap
	quartzTapKey atomic.Uintptr
	quartzTapped = sync.OnceValue(func() uintptr {
		return purego.NewCallback(func(_ uintptr, kind uint32, event, key uintptr) uintptr {
			if t, ok := quartzTaps.Load(key); ok {
				t.(*quartzTap).hear(kind, quartz.Ref(event))
			}
			return event
		})
	})
)

// isMotion reports whether a kind of event is that of a pointer that moves.
func isMotion(kind uint32) bool {
	return kind == kCGEventMouseMoved || kind == kCGEventLeftMouseDragged || kind == kCGEventRightMouseDragged || kind == kCGEventOtherMouseDragged
}

// quartzWatched are the kinds of events that are listened to.
var quartzWatched = []uint32{
	kCGEventKeyDown, kCGEventKeyUp, kCGEventFlagsChanged,
	kCGEventLeftMouseDown, kCGEventLeftMouseUp, kCGEventRightMouseDown, kCGEventRightMouseUp, kCGEventOtherMouseDown, kCGEventOtherMouseUp,
	kCGEventScrollWheel,
	kCGEventMouseMoved, kCGEventLeftMouseDragged, kCGEventRightMouseDragged, kCGEventOtherMouseDragged,
}

// openQuartzTap begins to listen; nil where macOS makes no tap.
func openQuartzTap() *quartzTap {
	t := &quartzTap{heard: make(chan struct{}, 1), key: quartzTapKey.Add(1)}
	var mask uint64
	for _, kind := range quartzWatched {
		mask |= 1 << kind
	}
	quartzTaps.Store(t.key, t)
	t.port = cgEventTapCreate(kCGSessionEventTap, kCGTailAppendEventTap, kCGEventTapOptionListenOnly, mask, quartzTapped(), t.key)
	if t.port == 0 {
		quartzTaps.Delete(t.key)
		return nil
	}
	t.source = cfMachPortCreateRunLoopSource(0, t.port, 0)
	t.thread = quartz.StartThread(t.source)
	cgEventTapEnable(t.port, true)
	return t
}

// hear counts an event. macOS turns off a tap that is slow, and when it is not
// sure of the keyboard; it says so here, and the tap is turned on again.
func (t *quartzTap) hear(kind uint32, event quartz.Ref) {
	switch int32(kind) {
	case kCGEventTapDisabledByTimeout, kCGEventTapDisabledByUserInput:
		t.off.Add(1)
		cgEventTapEnable(t.port, true)
		return
	}
	if cgEventGetIntegerValueField(event, kCGEventSourceUserData) == QuartzTag {
		t.own.Add(1)
	} else {
		switch {
		case isMotion(kind):
			t.dx.Add(cgEventGetIntegerValueField(event, kCGMouseEventDeltaX))
			t.dy.Add(cgEventGetIntegerValueField(event, kCGMouseEventDeltaY))
			t.moves.Add(1)
		case kind == kCGEventScrollWheel:
			// What rolls on after the fingers left the trackpad is nobody's doing.
			if cgEventGetIntegerValueField(event, kCGScrollWheelEventMomentumPhase) != 0 {
				return
			}
			t.wheel.Add(1)
		case kind == kCGEventKeyDown, kind == kCGEventKeyUp, kind == kCGEventFlagsChanged:
			t.keys.Add(1)
		default:
			t.clicks.Add(1)
		}
	}
	select {
	case t.heard <- struct{}{}:
	default:
	}
}

// enable turns the tap on if it is off without its having been told.
func (t *quartzTap) enable() {
	if !cgEventTapIsEnabled(t.port) {
		cgEventTapEnable(t.port, true)
	}
}

func (t *quartzTap) close() {
	cgEventTapEnable(t.port, false)
	cfMachPortInvalidate(t.port)
	t.thread.Close()
	quartzTaps.Delete(t.key)
	quartz.Release(t.source)
	quartz.Release(t.port)
}
