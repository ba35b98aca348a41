//go:build darwin || standin

package input

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"drawbridge/internal/quartz"
)

var (
	_ Watched = (*quartzDriver)(nil)
	_ Prover  = (*quartzWatcher)(nil)
)

// proveTime is what an event of ours gets to come by at the tap.
const proveTime = 250 * time.Millisecond

// A tap that has missed so many of our events in a row, for so long, hears nothing
// any more.
const (
	deafAfter = 8
	deafTime  = 500 * time.Millisecond
)

// How the person is seen.
type quartzSight uint8

const (
	unproven quartzSight = iota
	byTap
	byCounters
)

// quartzWatcher sees the person by a tap on the session's events, which tells ours
// by their tag. A tap may need a grant, and can be there and hear nothing; then the
// hardware's counters take its place.
type quartzWatcher struct {
	*sight
	driver *quartzDriver
	ended  sync.WaitGroup // of the goroutine that listens
	closed chan struct{}

	state    sync.Mutex // guards what follows; taken before the sight's
	tap      *quartzTap // nil: there is none yet
	way      quartzSight
	counters quartzCounters
	foreign  bool      // the counters were seen not to have our events in them
	missed   int       // events of ours since the tap last heard one
	own      int64     // what the tap had heard of ours then
	heard    time.Time // and when
}

// Watch implements Watched. It prompts nobody: without the grant to listen there is
// no tap until it was given.
func (d *quartzDriver) Watch(context.Context) (Watcher, error) {
	w := &quartzWatcher{sight: newSight(), driver: d, closed: make(chan struct{})}
	w.listen()
	d.watch = w
	return w, nil
}

// listen makes the tap where it may and is not there yet. Without the grant macOS
// would ask the person, who is asked elsewhere.
func (w *quartzWatcher) listen() *quartzTap {
	w.state.Lock()
	defer w.state.Unlock()
	if w.tap == nil && cgPreflightListenEventAccess() {
		if w.tap = openQuartzTap(); w.tap != nil {
			t := w.tap
			w.ended.Go(func() { w.follow(t) })
		}
	}
	return w.tap
}

// follow tells what a tap counts.
func (w *quartzWatcher) follow(t *quartzTap) {
	var keys, clicks, wheel, moves, dx, dy int64
	var d drift
	grew := func(n *int64, now int64) bool {
		was := *n
		*n = now
		return now != was
	}
	for {
		select {
		case <-t.heard:
		case <-w.closed:
			return
		}
		now := time.Now()
		if grew(&keys, t.keys.Load()) {
			w.act(pressedKey, now)
		}
		if grew(&clicks, t.clicks.Load()) {
			w.act(pressedButton, now)
		}
		if grew(&wheel, t.wheel.Load()) {
			w.act(turnedWheel, now)
		}
		if grew(&moves, t.moves.Load()) {
			x, y := t.dx.Load(), t.dy.Load()
			if d.add(float64(x-dx), float64(y-dy), now) {
				w.act(movedPointer, now)
			}
			dx, dy = x, y
		}
	}
}

// Prove implements Prover: it moves the pointer to where it is, and looks who has
// heard of that.
func (w *quartzWatcher) Prove(ctx context.Context) error {
	at, err := w.driver.read()
	if err != nil {
		return err
	}
	t := w.listen()
	heard, err := w.probe(ctx, at, t)
	if err == nil && !heard {
		// Once more, when the counts stand still: a motion of the person's makes it
		// look as if ours were counted.
		if err = w.still(ctx); err == nil {
			heard, err = w.probe(ctx, at, t)
		}
	}
	if err != nil {
		return err
	}
	w.state.Lock()
	defer w.state.Unlock()
	w.missed, w.heard = 0, time.Now()
	switch {
	case heard:
		w.way, w.own = byTap, t.own.Load()
	case w.counters.anything():
		w.way = byCounters
	default:
		w.way = unproven
		why := "Input Monitoring is not granted"
		if t != nil {
			why = "macOS lets us listen and delivers nothing"
		} else if cgPreflightListenEventAccess() {
			why = "macOS makes no tap on its events"
		}
		err = fmt.Errorf("%w: %s, and no events of them are counted either", ErrUnseen, why)
	}
	if !sameError(w.Err(), err) {
		w.blind(err)
	}
	return err
}

// probe posts a motion to where the pointer is. heard tells whether the tap, if
// there is one, has heard it.
func (w *quartzWatcher) probe(ctx context.Context, at Point, t *quartzTap) (heard bool, err error) {
	w.state.Lock()
	w.counters.begin(at)
	w.state.Unlock()
	counted := hardwareCount(kCGEventMouseMoved)
	var before int64
	if t != nil {
		t.enable()
		before = t.own.Load()
	}
	if err := w.driver.stay(ctx, at); err != nil {
		return false, err
	}
	rose := func() bool { return hardwareCount(kCGEventMouseMoved) != counted }
	for end := time.Now().Add(proveTime); time.Now().Before(end); {
		if heard = t != nil && t.own.Load() > before; heard || t == nil && rose() {
			break
		}
		if err := sleepFor(ctx, time.Millisecond); err != nil {
			return false, err
		}
	}
	w.state.Lock()
	defer w.state.Unlock()
	w.foreign = w.foreign || !rose()
	w.counters.ours = !w.foreign
	return heard, nil
}

// still waits a little for a time without motion.
func (w *quartzWatcher) still(ctx context.Context) error {
	const long, most = 30 * time.Millisecond, 10
	last := hardwareCount(kCGEventMouseMoved)
	for range most {
		if err := sleepFor(ctx, long); err != nil {
			return err
		}
		now := hardwareCount(kCGEventMouseMoved)
		if now == last {
			break
		}
		last = now
	}
	return nil
}

func sameError(a, b error) bool {
	return a == nil && b == nil || a != nil && b != nil && a.Error() == b.Error()
}

// How implements Prover.
func (w *quartzWatcher) How() string {
	w.state.Lock()
	defer w.state.Unlock()
	return [...]string{unproven: "", byTap: "by a tap on their events", byCounters: "by counters of their events"}[w.way]
}

// posting notes an event of ours, before it is posted.
func (w *quartzWatcher) posting(event quartz.Ref) {
	kind := cgEventGetType(event)
	w.state.Lock()
	defer w.state.Unlock()
	w.counters.post(kind)
	if isMotion(kind) {
		p := cgEventGetLocation(event)
		w.counters.move(Point{p.X, p.Y})
	}
	w.missed++
	w.look()
}

// Person implements Watcher.
func (w *quartzWatcher) Person() (Person, <-chan struct{}) {
	w.state.Lock()
	w.look()
	w.state.Unlock()
	return w.sight.Person()
}

// look asks the counters, where they are what is left to ask. The caller holds
// state.
func (w *quartzWatcher) look() {
	if w.way == byTap {
		if now := w.tap.own.Load(); now != w.own {
			w.own, w.missed, w.heard = now, 0, time.Now()
		}
		if w.missed >= deafAfter && time.Since(w.heard) >= deafTime {
			w.way = byCounters
		}
	}
	if w.way != byCounters {
		return
	}
	if what := w.counters.look(w.driver.read); what != "" {
		w.act(what, hardwareLast(time.Now()))
		if at, err := w.driver.read(); err == nil {
			w.counters.begin(at)
		}
	}
}

// Close implements Watcher.
func (w *quartzWatcher) Close() error {
	w.driver.watch = nil
	close(w.closed)
	w.ended.Wait()
	w.state.Lock()
	defer w.state.Unlock()
	if w.tap != nil {
		w.tap.close()
		w.tap, w.way = nil, unproven
	}
	w.sight.blind(errors.New("nobody watches any more"))
	return nil
}

// stay moves the pointer to where it is.
func (d *quartzDriver) stay(ctx context.Context, at Point) error {
	d.at, d.sent, d.carry = at, true, Point{}
	return d.Move(ctx, at)
}
