//go:build darwin || standin

package input

import (
	"math"
	"time"
)

// quartzCounters see the person by the hardware's counts of events, which need no
// grant. What was counted beyond our own events is the person's. The counts tell of
// motion, not how far it went: that is seen by where the pointer is.
type quartzCounters struct {
	// ours: the counts have our own events in them, too. It is found out by
	// posting one.
	ours bool

	base map[uint32]uint32 // by kind: the counts when all was last begun
	sent map[uint32]uint32 // events of ours since
	from Point             // the pointer's last two places that we sent it to
	to   Point
}

// begin forgets what was. The pointer is at p.
func (c *quartzCounters) begin(p Point) {
	c.base, c.sent = map[uint32]uint32{}, map[uint32]uint32{}
	for _, kind := range quartzWatched {
		c.base[kind] = hardwareCount(kind)
	}
	c.from, c.to = p, p
}

func hardwareCount(kind uint32) uint32 {
	return cgEventSourceCounterForEventType(kCGEventSourceStateHIDSystemState, kind)
}

// anything reports whether the hardware's events are counted at all.
func (c *quartzCounters) anything() bool {
	for _, kind := range quartzWatched {
		if hardwareCount(kind) > 0 {
			return true
		}
	}
	return false
}

// post notes an event that we are about to post.
func (c *quartzCounters) post(kind uint32) {
	if c.sent != nil {
		c.sent[kind]++
	}
}

// move notes where the pointer is about to be sent.
func (c *quartzCounters) move(p Point) { c.from, c.to = c.to, p }

// look tells what the person did since begin; empty: nothing. at reads the
// pointer's place.
func (c *quartzCounters) look(at func() (Point, error)) string {
	moved := false
	for _, kind := range quartzWatched {
		// In the counts' own width, for they begin again when they overflow.
		more := int32(hardwareCount(kind) - c.base[kind])
		if c.ours {
			more -= int32(c.sent[kind])
		}
		switch {
		case more <= 0:
		case isMotion(kind):
			moved = true
		case kind == kCGEventScrollWheel:
			return turnedWheel
		case kind == kCGEventKeyDown, kind == kCGEventKeyUp, kind == kCGEventFlagsChanged:
			return pressedKey
		default:
			return pressedButton
		}
	}
	if !moved {
		return ""
	}
	p, err := at()
	if err != nil || off(p, c.from, c.to) < DriftPoints {
		return ""
	}
	return movedPointer
}

// off is how far p is from the way between a and b, on which our own motion may
// still be.
func off(p, a, b Point) float64 {
	dx, dy := b.X-a.X, b.Y-a.Y
	t := 0.0
	if n := dx*dx + dy*dy; n > 0 {
		t = min(max(((p.X-a.X)*dx+(p.Y-a.Y)*dy)/n, 0), 1)
	}
	return math.Hypot(p.X-a.X-t*dx, p.Y-a.Y-t*dy)
}

// hardwareLast is when the hardware last sent anything; with our own events in it
// that may be us, so it is no earlier than the truth.
func hardwareLast(now time.Time) time.Time {
	s := cgEventSourceSecondsSinceLastEventType(kCGEventSourceStateHIDSystemState, kCGAnyInputEventType)
	if !(s >= 0) || s > time.Hour.Seconds() {
		return now
	}
	return now.Add(-time.Duration(s * float64(time.Second)))
}
