//go:build darwin || standin

package input

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"drawbridge/internal/quartz"
)

// QuartzTag is what our events carry as their source's user data, so that our
// own can be told from a person's.
const QuartzTag int64 = 0x6472_6177_6272_6467 // "drawbrdg"

// stateAge is how old an answer about the session and the grants may be: asking
// costs a round trip, and events come in bursts.
const stateAge = 200 * time.Millisecond

// arriveTime is how long an event may take to move the pointer: it goes by way
// of the window server.
const arriveTime = 100 * time.Millisecond

// quartzDriver posts Core Graphics events.
type quartzDriver struct {
	source quartz.Ref
	keys   quartzKeyboard
	watch  *quartzWatcher // nil: nobody watches the person
	ax     quartzAX
	wheel  atomic.Bool // the wheel turns the other way round

	at      Point    // where the pointer was last sent
	sent    bool     // at is set
	carry   Point    // of the deltas, which are whole points
	scroll  Point    // pixels that were too small to be sent
	buttons []Button // down, in the order of their presses
	presses int64    // of buttons so far

	mods    []Key                // down, in the order of their presses
	held    map[Key]quartzStroke // keys that are down
	allowed time.Time            // when events were last known to be allowed
}

// OpenQuartz drives the desktop of macOS. It posts nothing and asks for no
// permission until the first event.
func OpenQuartz() (Driver, error) {
	if err := loadQuartz(); err != nil {
		return nil, fmt.Errorf("macOS's frameworks cannot be used: %w", err)
	}
	// A source of our own has a state of its own: what the person holds does not
	// get into our events, and ours are not counted as the hardware's.
	source := cgEventSourceCreate(kCGEventSourceStatePrivate)
	if source == 0 {
		return nil, errors.New("macOS gives no event source: this process has no window server")
	}
	cgEventSourceSetUserData(source, QuartzTag)
	if err := permitPerson(source); err != nil {
		quartz.Release(source)
		return nil, err
	}
	return &quartzDriver{source: source, held: map[Key]quartzStroke{}, ax: quartzAX{make(chan struct{}, 1)}}, nil
}

// permitPerson keeps the person's own mouse and keyboard alive: without it macOS
// ignores them for a quarter of a second after each event of ours.
func permitPerson(source quartz.Ref) error {
	const all = kCGEventFilterMaskPermitLocalMouseEvents | kCGEventFilterMaskPermitLocalKeyboardEvents | kCGEventFilterMaskPermitSystemDefinedEvents
	states := []uint32{kCGEventSuppressionStateSuppressionInterval, kCGEventSuppressionStateRemoteMouseDrag}
	cgEventSourceSetLocalEventsSuppressionInterval(source, 0)
	for _, s := range states {
		cgEventSourceSetLocalEventsFilterDuringSuppressionState(source, all, s)
	}
	for _, s := range states {
		if got := cgEventSourceGetLocalEventsFilterDuringSuppressionState(source, s); got != all {
			return fmt.Errorf("macOS would ignore the person's input while we post events (filter %#x): no events are posted then", got)
		}
	}
	if got := cgEventSourceGetLocalEventsSuppressionInterval(source); got != 0 {
		return fmt.Errorf("macOS would ignore the person's input for %g s after each event: no events are posted then", got)
	}
	return nil
}

// mayPost refuses where events would be dropped, or go where nobody wants them.
// Releases are posted without asking.
func (d *quartzDriver) mayPost(ctx context.Context) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if !d.allowed.IsZero() && time.Since(d.allowed) < stateAge {
		return nil
	}
	s := quartz.CurrentSession()
	switch {
	case !s.Graphic:
		return ErrLoginWindow
	case !s.OnConsole:
		return fmt.Errorf("%w: another user's session is on the screen", ErrLoginWindow)
	case s.Locked:
		return ErrLocked
	case s.Asleep:
		return ErrAsleep
	case !axIsProcessTrusted():
		return fmt.Errorf("%w: Accessibility is not granted", ErrPermission)
	case !cgPreflightPostEventAccess():
		return fmt.Errorf("%w: macOS does not let this process post events", ErrPermission)
	}
	d.allowed = time.Now()
	return nil
}

// mayType refuses also while somebody reads the keyboard securely: a password is
// being entered.
func (d *quartzDriver) mayType(ctx context.Context) error {
	if err := d.mayPost(ctx); err != nil {
		return err
	}
	if !isSecureEventInputEnabled() {
		return nil
	}
	who := "a process that macOS does not name"
	if pid := quartz.CurrentSession().SecureInput; pid != 0 {
		who = quartz.ProcessName(pid)
	}
	return fmt.Errorf("%w, held by %s", ErrSecureInput, who)
}

// post sends an event off and gives it back.
func (d *quartzDriver) post(event quartz.Ref, flags uint64) error {
	if event == 0 {
		return errors.New("macOS made no event: it is out of memory, or the window server is gone")
	}
	defer quartz.Release(event)
	// On every event, for it is the event's own flags that applications read.
	cgEventSetFlags(event, flags)
	cgEventSetIntegerValueField(event, kCGEventSourceUserData, QuartzTag)
	if d.watch != nil {
		d.watch.posting(event)
	}
	cgEventPost(kCGHIDEventTap, event)
	return nil
}

// flags are those of the modifiers that are down.
func (d *quartzDriver) flags() uint64 {
	var f uint64
	for _, m := range d.mods {
		f |= quartzModifiers[m].flag
	}
	return f
}

func (d *quartzDriver) Move(ctx context.Context, p Point) error {
	// What is farther away than this is no place on any desktop; NaN is none either.
	const far = 1e6
	if !(math.Abs(p.X) <= far && math.Abs(p.Y) <= far) {
		return fmt.Errorf("(%g, %g) is no place on a desktop", p.X, p.Y)
	}
	if err := d.mayPost(ctx); err != nil {
		return err
	}
	from, err := d.place()
	if err != nil {
		return err
	}
	kind, number := kCGEventMouseMoved, kCGMouseButtonLeft
	if n := len(d.buttons); n > 0 {
		b := quartzButtons[d.buttons[n-1]]
		kind, number = b.dragged, b.number
	}
	event := cgEventCreateMouseEvent(d.source, kind, quartz.CGPoint{X: p.X, Y: p.Y}, number)
	if event != 0 {
		if len(d.buttons) > 0 {
			d.name(event, number, 1)
		}
		// Games, and whoever else reads motion instead of places, need these.
		var dx, dy int64
		dx, d.carry.X = whole(d.carry.X + p.X - from.X)
		dy, d.carry.Y = whole(d.carry.Y + p.Y - from.Y)
		cgEventSetIntegerValueField(event, kCGMouseEventDeltaX, dx)
		cgEventSetIntegerValueField(event, kCGMouseEventDeltaY, dy)
	}
	if err := d.post(event, d.flags()); err != nil {
		return err
	}
	d.at, d.sent, d.scroll = p, true, Point{}
	return nil
}

// whole cuts x into a whole number and a rest.
func whole(x float64) (int64, float64) {
	n := math.Round(x)
	return int64(n), x - n
}

// place is where the next event happens.
func (d *quartzDriver) place() (Point, error) {
	if d.sent {
		return d.at, nil
	}
	return d.read()
}

func (d *quartzDriver) read() (Point, error) {
	event := cgEventCreate(0)
	if event == 0 {
		return Point{}, errors.New("read the pointer's place: macOS made no event")
	}
	defer quartz.Release(event)
	p := cgEventGetLocation(event)
	return Point{p.X, p.Y}, nil
}

// name gives a button's event its number among the presses and its click state.
func (d *quartzDriver) name(event quartz.Ref, button uint32, clicks int) {
	cgEventSetIntegerValueField(event, kCGMouseEventNumber, d.presses)
	cgEventSetIntegerValueField(event, kCGMouseEventClickState, int64(clicks))
	cgEventSetIntegerValueField(event, kCGMouseEventButtonNumber, int64(button))
}

func (d *quartzDriver) Button(ctx context.Context, b Button, down bool, clicks int) error {
	q, ok := quartzButtons[b]
	if !ok {
		return fmt.Errorf("there is no %s", b)
	}
	if down {
		if err := d.mayPost(ctx); err != nil {
			return err
		}
	}
	at, err := d.place()
	if err != nil {
		return err
	}
	kind := q.up
	if down {
		kind = q.down
		d.presses++
	}
	event := cgEventCreateMouseEvent(d.source, kind, quartz.CGPoint{X: at.X, Y: at.Y}, q.number)
	if event != 0 {
		d.name(event, q.number, clicks)
	}
	if err := d.post(event, d.flags()); err != nil {
		return err
	}
	d.buttons = slices.DeleteFunc(d.buttons, func(x Button) bool { return x == b })
	if down {
		d.buttons = append(d.buttons, b)
	}
	return nil
}

func (d *quartzDriver) Scroll(ctx context.Context, dx, dy float64) error {
	x, y := d.scroll.X+dx, d.scroll.Y+dy
	if !(math.Abs(x) <= math.MaxInt32 && math.Abs(y) <= math.MaxInt32) {
		return fmt.Errorf("scroll: %g, %g is more than a wheel can turn", dx, dy)
	}
	if err := d.mayPost(ctx); err != nil {
		return err
	}
	nx, rx := whole(x)
	ny, ry := whole(y)
	if nx != 0 || ny != 0 {
		// To Core Graphics a positive wheel is up, and left, where nothing else was
		// measured.
		if d.wheel.Load() {
			nx, ny = -nx, -ny
		}
		const wheels uint32 = 2
		event := cgEventCreateScrollWheelEvent2(d.source, kCGScrollEventUnitPixel, wheels, int32(-ny), int32(-nx), 0)
		if err := d.post(event, d.flags()); err != nil {
			return err
		}
	}
	d.scroll = Point{rx, ry}
	return nil
}

// ReverseWheel implements Wheeler.
func (d *quartzDriver) ReverseWheel(reversed bool) { d.wheel.Store(reversed) }

// modifier presses or releases a modifier key.
func (d *quartzDriver) modifier(k Key, down bool) error {
	mods := slices.DeleteFunc(slices.Clone(d.mods), func(x Key) bool { return x == k })
	if down {
		mods = append(mods, k)
	}
	before := d.mods
	d.mods = mods
	event := cgEventCreateKeyboardEvent(d.source, quartzModifiers[k].code, down)
	if event != 0 {
		cgEventSetType(event, kCGEventFlagsChanged)
	}
	if err := d.post(event, d.flags()); err != nil {
		d.mods = before
		return err
	}
	return nil
}

// key presses or releases any other key. units, if not nil, is what it enters.
func (d *quartzDriver) key(code uint16, down bool, flags uint64, units []uint16) error {
	event := cgEventCreateKeyboardEvent(d.source, code, down)
	if event != 0 && units != nil {
		cgEventKeyboardSetUnicodeString(event, uint(len(units)), &units[0])
	}
	return d.post(event, d.flags()|flags)
}

func (d *quartzDriver) Key(ctx context.Context, k Key, down bool) error {
	if !down {
		return d.keyUp(ctx, k)
	}
	if err := d.mayType(ctx); err != nil {
		return err
	}
	if _, ok := quartzModifiers[k]; ok {
		if slices.Contains(d.mods, k) {
			return nil
		}
		return d.modifier(k, true)
	}
	if _, ok := d.held[k]; ok {
		return nil
	}
	s, err := d.keys.stroke(ctx, k, slices.Contains(d.mods, Command))
	if err != nil {
		return err
	}
	// A modifier that the chord holds already is not pressed twice: its release
	// with this key would end the chord.
	s.mods = slices.DeleteFunc(slices.Clone(s.mods), func(m Key) bool { return slices.Contains(d.mods, m) })
	// Noted first: on an error some of it may be down.
	d.held[k] = s
	for _, m := range s.mods {
		if err := d.modifier(m, true); err != nil {
			return err
		}
	}
	return d.key(s.code, true, s.flags, nil)
}

func (d *quartzDriver) keyUp(ctx context.Context, k Key) error {
	if _, ok := quartzModifiers[k]; ok {
		return d.modifier(k, false)
	}
	s, ok := d.held[k]
	if !ok {
		// Not pressed by us, or before a ReleaseStray: let go of what it would be.
		var err error
		if s, err = d.keys.stroke(ctx, k, slices.Contains(d.mods, Command)); err != nil {
			return err
		}
		s.mods = nil
	}
	if err := d.key(s.code, false, s.flags, nil); err != nil {
		return err
	}
	for _, m := range slices.Backward(s.mods) {
		if err := d.modifier(m, false); err != nil {
			return err
		}
	}
	delete(d.held, k)
	return nil
}

// Pointer waits a little for the pointer to arrive where it was sent.
func (d *quartzDriver) Pointer(ctx context.Context) (Point, error) {
	p, err := d.read()
	for end := time.Now().Add(arriveTime); err == nil && d.sent && !near(p, d.at) && time.Now().Before(end); p, err = d.read() {
		if err := sleepFor(ctx, 2*time.Millisecond); err != nil {
			return Point{}, err
		}
	}
	return p, err
}

func near(a, b Point) bool { return math.Abs(a.X-b.X) <= 1 && math.Abs(a.Y-b.Y) <= 1 }

// Sync waits until the pointer has arrived: events stay in their order, so those
// before its last motion have too. macOS tells nothing of the applications.
func (d *quartzDriver) Sync(ctx context.Context) error {
	_, err := d.Pointer(ctx)
	return err
}

// ReleaseStray lets go of what is down without the hardware's knowledge: that was
// posted by somebody, and it is us.
func (d *quartzDriver) ReleaseStray(ctx context.Context) error {
	d.mods = nil
	clear(d.held)
	var errs []error
	stray := func(code uint16) bool {
		return cgEventSourceKeyState(kCGEventSourceStateCombinedSessionState, code) && !cgEventSourceKeyState(kCGEventSourceStateHIDSystemState, code)
	}
	for _, b := range []Button{Left, Right, Middle, Back, Forward} {
		n := quartzButtons[b].number
		if slices.Contains(d.buttons, b) ||
			cgEventSourceButtonState(kCGEventSourceStateCombinedSessionState, n) && !cgEventSourceButtonState(kCGEventSourceStateHIDSystemState, n) {
			errs = append(errs, d.Button(ctx, b, false, 1))
		}
	}
	for code := range uint16(lastPlace) {
		if stray(code) && !modifierPlace(code) {
			errs = append(errs, d.key(code, false, 0, nil))
		}
	}
	for k, m := range quartzModifiers {
		if stray(m.code) {
			errs = append(errs, d.modifier(k, false))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("release what is held: %w", err)
	}
	return nil
}

func modifierPlace(code uint16) bool {
	for _, m := range quartzModifiers {
		if m.code == code {
			return true
		}
	}
	return false
}

func (d *quartzDriver) Close() error {
	quartz.Release(d.source)
	d.source = 0
	return nil
}
