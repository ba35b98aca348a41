package input

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"
)

// The pauses and steps that applications need to recognise a gesture.
const (
	clickHold   = 20 * time.Millisecond // down to up
	doubleGap   = 50 * time.Millisecond // first up to second down: 70 ms from press to press
	dragSettle  = 40 * time.Millisecond // before and after the press of a drag
	dragStep    = 5 * time.Millisecond  // between the motions of a drag
	scrollDelay = 20 * time.Millisecond // from the motion to the first wheel event
	scrollGap   = 10 * time.Millisecond // between the pieces of a large scroll
	keyHold     = 12 * time.Millisecond // down to up

	dragStride   = 4.0 // points a motion
	dragStepsMin = 10
	dragStepsMax = 60

	scrollPiece = 480.0 // pixels an event at most

	mostLate = 20 * time.Millisecond // what is caught up with from one gesture to the next

	releaseTime = 2 * time.Second // for letting go, whatever became of the gesture
)

// HandOptions are what a Hand may be given; the zero value is fine.
type HandOptions struct {
	// Guard is asked before every event that a gesture posts. An error means
	// that the event is not posted, and ends the gesture with that error. It is
	// not asked about releases by Release.
	Guard func(ctx context.Context) error
	// Aimed is asked once the pointer has come to where a gesture begins, right
	// before the first press or turn of the wheel there: what was at that place
	// may have moved away from the pointer. An error ends the gesture with it.
	Aimed func(ctx context.Context, p Point) error
	// Journal notes what is held, so that the next process can let go of it
	// should this one die.
	Journal *Journal
}

// Hand makes gestures out of a driver's events. It knows what it holds down.
//
// A gesture that fails may leave keys or a button down: whoever runs gestures
// calls Release on every way out. A Hand serves one goroutine at a time.
type Hand struct {
	driver  Driver
	guard   func(ctx context.Context) error
	aimed   func(ctx context.Context, p Point) error
	journal *Journal

	held   []hold // in the order of their presses
	posted int
	paused time.Duration // the pauses as stated, without what timers overslept
	due    time.Time     // when the gesture's pauses so far should have ended
	late   time.Duration // by how much the last gesture ended too late
}

// hold is one thing that is down: a button, or a key where button is 0.
type hold struct {
	button Button
	key    Key
}

func (h hold) String() string {
	if h.button != 0 {
		return h.button.String() + " button"
	}
	return string(h.key) + " key"
}

// NewHand returns a hand that holds nothing.
func NewHand(d Driver, o HandOptions) *Hand {
	h := &Hand{driver: d, guard: o.Guard, aimed: o.Aimed, journal: o.Journal}
	if h.aimed == nil {
		h.aimed = func(context.Context, Point) error { return nil }
	}
	return h
}

// Posted counts the events posted so far. A Type that sent anything counts as
// one.
func (h *Hand) Posted() int { return h.posted }

// Paused is the sum of the pauses that the gestures so far asked for.
func (h *Hand) Paused() time.Duration { return h.paused }

// Holding lists what is down, in the order of the presses.
func (h *Hand) Holding() []string {
	names := make([]string, len(h.held))
	for i, x := range h.held {
		names[i] = x.String()
	}
	return names
}

// Move moves the pointer to p while mods are held.
func (h *Hand) Move(ctx context.Context, p Point, mods []Key) error {
	return h.with(ctx, mods, func() error { return h.move(ctx, p) })
}

// Click presses and releases b at p while mods are held.
func (h *Hand) Click(ctx context.Context, p Point, b Button, mods []Key) error {
	return h.with(ctx, mods, func() error {
		if err := h.move(ctx, p); err != nil {
			return err
		}
		if err := h.aimed(ctx, p); err != nil {
			return err
		}
		return h.press(ctx, b, 1)
	})
}

// DoubleClick clicks the left button twice at p, the second time with click
// state 2, while mods are held.
func (h *Hand) DoubleClick(ctx context.Context, p Point, mods []Key) error {
	return h.with(ctx, mods, func() error {
		if err := h.move(ctx, p); err != nil {
			return err
		}
		if err := h.aimed(ctx, p); err != nil {
			return err
		}
		if err := h.press(ctx, Left, 1); err != nil {
			return err
		}
		if err := h.pause(ctx, doubleGap); err != nil {
			return err
		}
		return h.press(ctx, Left, 2)
	})
}

// Drag presses b at the first point of path, follows it in small steps, and
// releases at the last, while mods are held. path has two points or more.
func (h *Hand) Drag(ctx context.Context, path []Point, b Button, mods []Key) error {
	if len(path) < 2 {
		return fmt.Errorf("a drag needs two points or more, got %d", len(path))
	}
	return h.with(ctx, mods, func() error {
		if err := h.move(ctx, path[0]); err != nil {
			return err
		}
		if err := h.pause(ctx, dragSettle); err != nil {
			return err
		}
		if err := h.aimed(ctx, path[0]); err != nil {
			return err
		}
		if err := h.button(ctx, b, true, 1); err != nil {
			return err
		}
		if err := h.pause(ctx, dragSettle); err != nil {
			return err
		}
		for _, p := range dragSteps(path) {
			if err := h.move(ctx, p); err != nil {
				return err
			}
			if err := h.pause(ctx, dragStep); err != nil {
				return err
			}
		}
		return h.button(ctx, b, false, 1)
	})
}

// Scroll moves the pointer to p and turns the wheel there by dx, dy pixels (see
// Driver.Scroll for the signs) while mods are held. Large amounts are split.
func (h *Hand) Scroll(ctx context.Context, p Point, dx, dy float64, mods []Key) error {
	return h.with(ctx, mods, func() error {
		if err := h.move(ctx, p); err != nil {
			return err
		}
		pieces := math.Ceil(max(math.Abs(dx), math.Abs(dy)) / scrollPiece)
		gap := scrollDelay
		for left := pieces; left > 0; left-- {
			if err := h.pause(ctx, gap); err != nil {
				return err
			}
			if left == pieces {
				if err := h.aimed(ctx, p); err != nil {
					return err
				}
			}
			// Whole pixels in all but the last piece, so that the sum is exact.
			px, py := dx, dy
			if left > 1 {
				px, py = math.Trunc(dx/left), math.Trunc(dy/left)
			}
			err := h.post(ctx, func() error { return h.driver.Scroll(ctx, px, py) })
			if err != nil {
				return fmt.Errorf("scroll: %w", err)
			}
			dx, dy, gap = dx-px, dy-py, scrollGap
		}
		return nil
	})
}

// Chord presses k while mods are held. With an empty k the modifiers themselves
// are pressed and released.
func (h *Hand) Chord(ctx context.Context, mods []Key, k Key) error {
	return h.with(ctx, mods, func() error {
		if k == "" {
			return h.pause(ctx, keyHold)
		}
		if err := h.key(ctx, k, true); err != nil {
			return err
		}
		if err := h.pause(ctx, keyHold); err != nil {
			return err
		}
		return h.key(ctx, k, false)
	})
}

// Type enters text. On an error n tells how many bytes of it were sent. The
// driver paces it and asks nobody: end ctx to stop it.
func (h *Hand) Type(ctx context.Context, text string) (n int, err error) {
	if text == "" {
		return 0, nil
	}
	if err := h.ready(ctx); err != nil {
		return 0, err
	}
	if err := h.note(); err != nil {
		return 0, err
	}
	n, err = h.driver.Type(ctx, text)
	if n > 0 || err == nil {
		h.posted++
	}
	if err != nil {
		return n, fmt.Errorf("type: %w", err)
	}
	return n, nil
}

// Release lets go of everything that is held: buttons first, so that nothing is
// dropped under a modifier's meaning, then keys, the last one pressed first. It
// works after ctx has ended, for at most two seconds of its own, and asks no
// guard. It returns what it let go of, and an error that names what it could
// not; calling it again tries those again.
func (h *Hand) Release(ctx context.Context) (released []string, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
	defer cancel()
	order := releaseOrder(h.held)
	var errs []error
	for _, x := range order {
		if e := letGo(ctx, h.driver, x); e != nil {
			errs = append(errs, fmt.Errorf("release the %s: %w", x, e))
			continue
		}
		h.forget(x)
		released = append(released, x.String())
	}
	if len(h.held) > 0 {
		errs = append(errs, h.note())
	} else if h.journal != nil {
		errs = append(errs, h.journal.clear())
	}
	return released, errors.Join(errs...)
}

// releaseOrder is the one order in which held things are let go.
func releaseOrder(held []hold) []hold {
	order := slices.Clone(held)
	slices.Reverse(order)
	slices.SortStableFunc(order, func(a, b hold) int {
		switch {
		case a.button != 0 && b.button == 0:
			return -1
		case a.button == 0 && b.button != 0:
			return 1
		}
		return 0
	})
	return order
}

// letGo posts the release of x. A driver that panics over one thing must not
// keep the others held.
func letGo(ctx context.Context, d Driver, x hold) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("the driver failed: %v", p)
		}
	}()
	if x.button != 0 {
		return d.Button(ctx, x.button, false, 1)
	}
	return d.Key(ctx, x.key, false)
}

// with makes a gesture: it holds mods around f. When f fails they stay down for
// Release.
func (h *Hand) with(ctx context.Context, mods []Key, f func() error) error {
	h.due = time.Now().Add(-h.late)
	defer func() { h.late = min(max(time.Since(h.due), 0), mostLate) }()
	for _, k := range mods {
		if err := h.key(ctx, k, true); err != nil {
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	for _, k := range slices.Backward(mods) {
		if err := h.key(ctx, k, false); err != nil {
			return err
		}
	}
	return nil
}

func (h *Hand) move(ctx context.Context, p Point) error {
	err := h.post(ctx, func() error { return h.driver.Move(ctx, p) })
	if err != nil {
		return fmt.Errorf("move the pointer: %w", err)
	}
	return nil
}

func (h *Hand) press(ctx context.Context, b Button, clicks int) error {
	if err := h.button(ctx, b, true, clicks); err != nil {
		return err
	}
	if err := h.pause(ctx, clickHold); err != nil {
		return err
	}
	return h.button(ctx, b, false, clicks)
}

func (h *Hand) button(ctx context.Context, b Button, down bool, clicks int) error {
	err := h.change(ctx, hold{button: b}, down, func() error { return h.driver.Button(ctx, b, down, clicks) })
	if err != nil {
		return fmt.Errorf("%s the %s button: %w", verb(down), b, err)
	}
	return nil
}

func (h *Hand) key(ctx context.Context, k Key, down bool) error {
	err := h.change(ctx, hold{key: k}, down, func() error { return h.driver.Key(ctx, k, down) })
	if err != nil {
		return fmt.Errorf("%s the %s key: %w", verb(down), k, err)
	}
	return nil
}

func verb(down bool) string {
	if down {
		return "press"
	}
	return "release"
}

// change posts a press or release of x. x counts as held from before its press
// is posted until after its release was: whoever dies in between, or cannot
// tell whether an event was posted, lets go once too often, never too rarely.
func (h *Hand) change(ctx context.Context, x hold, down bool, f func() error) error {
	if err := h.ready(ctx); err != nil {
		return err
	}
	if down {
		h.held = append(h.held, x)
		if err := h.note(); err != nil {
			h.forget(x)
			return err
		}
	}
	if err := f(); err != nil {
		return err
	}
	h.posted++
	if !down {
		h.forget(x)
		return h.note()
	}
	return nil
}

// post posts an event that holds nothing.
func (h *Hand) post(ctx context.Context, f func() error) error {
	if err := h.ready(ctx); err != nil {
		return err
	}
	if err := f(); err != nil {
		return err
	}
	h.posted++
	return nil
}

func (h *Hand) ready(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if h.guard != nil {
		return h.guard(ctx)
	}
	return nil
}

func (h *Hand) forget(x hold) {
	if i := slices.Index(h.held, x); i >= 0 {
		h.held = slices.Delete(h.held, i, i+1)
	}
}

func (h *Hand) note() error {
	if h.journal == nil {
		return nil
	}
	return h.journal.write(h.held)
}

// pause waits for d. Timers oversleep a little each time, and over many pauses
// that adds up: what a gesture is late by is taken off its later pauses, at most
// an eighth of each, which leaves them as long as applications need them.
func (h *Hand) pause(ctx context.Context, d time.Duration) error {
	h.paused += d
	h.due = h.due.Add(d)
	t := time.NewTimer(max(time.Until(h.due), d-d/8))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// dragSteps returns the motions of a drag after its press: about dragStride
// points apart, dragStepsMin to dragStepsMax in all, each point of the path
// among them. A path of more points than that gets one motion for each.
func dragSteps(path []Point) []Point {
	lengths := make([]float64, len(path)-1)
	total := 0.0
	for i := range lengths {
		lengths[i] = math.Hypot(path[i+1].X-path[i].X, path[i+1].Y-path[i].Y)
		total += lengths[i]
	}
	want := min(max(math.Ceil(total/dragStride), dragStepsMin), dragStepsMax)
	steps := make([]Point, 0, int(want)+len(path))
	spare := max(want-float64(len(lengths)), 0)
	shared, along := 0.0, 0.0
	for i, length := range lengths {
		// Every segment ends on its point, so it takes one motion at least; what
		// is left of the wanted number is shared out by length.
		along += length
		upTo := spare * float64(i+1) / float64(len(lengths))
		if total > 0 {
			upTo = spare * along / total
		}
		upTo = math.Round(upTo)
		n := 1 + upTo - shared
		shared = upTo
		a, b := path[i], path[i+1]
		for s := 1.0; s < n; s++ {
			steps = append(steps, Point{a.X + (b.X-a.X)*s/n, a.Y + (b.Y-a.Y)*s/n})
		}
		steps = append(steps, b)
	}
	return steps
}
