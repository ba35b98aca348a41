package computer

import (
	"context"
	"errors"
	"fmt"
	"math"
	"runtime/debug"
	"strings"
	"time"

	"github.com/rivo/uniseg"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/capture"
	"drawbridge/input"
)

// misplacedBy is how far, in points, the pointer may be from where it was sent,
// where no drift of a watched person's mouse explains it.
const misplacedBy = 2.0

// toldWithin is how much later than the pointer's place a watcher may tell that
// the person moved it.
const toldWithin = 20 * time.Millisecond

// run is one batch on its way, from the lease to the result.
type run struct {
	tool    *Tool
	cfg     *Config
	caller  bridge.Caller
	batch   *batch
	geo     *geometry // of the picture whose coordinates are meant; nil when there are none
	display int       // the index of the display to show

	// tell sends the caller a line of progress; told is when it last did.
	tell func(message string)
	told time.Time

	entries  []Entry
	stopped  *Stopped
	probed   bool
	end      context.CancelCauseFunc // ends the actions, for a reason
	unheed   func()                  // ends the watch over the person
	asleep   func()                  // lets the display sleep again
	looked   time.Time               // when the session was last asked whether it takes input
	now      capture.Display         // as it was right before the last action
	traces   []trace                 // of actions that have not shown yet
	click    *click                  // the last action that may move the keyboard, until keys follow
	secure   bool                    // the last click or keys met a password field
	keyboard *input.Window           // the window with the keyboard when the last keys began
	notes    []string                // sentences about the stop, for the result
	crowded  bool                    // so many wait for the desktop that this one may not
}

// tellEvery is how often a caller hears of a batch that takes its time, so that
// it does not give up on it.
const tellEvery = 5 * time.Second

func newRun(t *Tool, cfg *Config, caller bridge.Caller, b *batch, geo *geometry, display int) *run {
	r := &run{tool: t, cfg: cfg, caller: caller, batch: b, geo: geo, display: display, tell: func(string) {}, told: time.Now(), unheed: func() {}, asleep: func() {}}
	r.entries = make([]Entry, len(b.actions))
	for i := range b.actions {
		a := &b.actions[i]
		e := Entry{Index: i, Type: a.spec.typ, Status: Skipped, Summary: "not run: " + a.describe(false)}
		if targets := a.targets(); targets != nil {
			// The last target is where the pointer ends.
			last := targets[len(targets)-1]
			e.Image, e.Path = &last, a.path
			if geo != nil {
				p := geo.point(last)
				e.Point = &[2]float64{p.X, p.Y}
			}
		}
		r.entries[i] = e
	}
	return r
}

// perform runs the batch and returns its result. It is the one way out of a
// batch: whatever ends the actions, what is held is let go of first, then a
// picture is taken, then the result is made, then the desktop is passed on.
func (r *run) perform(ctx context.Context) bridge.Answer {
	limit := time.Duration(r.cfg.BatchTimeoutMS) * time.Millisecond
	release, err := r.lease(ctx, limit)
	if err != nil {
		r.stop(ctx, 0, err)
		if r.crowded {
			return r.answer(r.unlooked(ctx))
		}
		return r.answer(r.look(ctx, false))
	}
	defer release()

	ctx, cancel := context.WithTimeoutCause(ctx, limit, &stop.Error{
		Reason:  stop.Deadline,
		Message: fmt.Sprintf("the batch ran longer than %v; send fewer actions at a time", limit),
	})
	defer cancel()

	if err := r.tool.guarded("batch", func() error { return r.actions(ctx) }); err != nil {
		r.stop(ctx, r.current(), err)
	}
	err = r.tool.guarded("release", func() error {
		released, err := r.tool.hand.Release(ctx)
		if len(released) > 0 {
			r.notes = append(r.notes, "let go of: "+strings.Join(released, ", "))
		}
		return err
	})
	if err != nil {
		r.notes = append(r.notes, "could not let go of everything: "+oneLine(err))
		r.tool.log.Error().Err(err).Msg("input is still held after a batch")
	}
	settle := r.acted() && ctx.Err() == nil
	s := r.look(ctx, settle)
	if settle {
		r.retrace(ctx)
		r.grade()
	}
	if s.geo == nil {
		r.unseen(ctx, s.err)
	}
	return r.answer(s)
}

// unseen ends a batch that was to show the screen and could not: what it did
// stays done, but its screenshots were none.
func (r *run) unseen(ctx context.Context, err error) {
	for i := range r.entries {
		if a := &r.batch.actions[i]; a.spec.typ == Screenshot && r.entries[i].Status == Executed {
			r.entries[i].Status, r.entries[i].Summary = Refused, "not run: "+a.describe(false)
			r.stop(ctx, i, err)
		}
	}
}

// lease waits for the desktop.
func (r *run) lease(ctx context.Context, limit time.Duration) (release func(), err error) {
	holder := ""
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	release, err = r.tool.lease.Acquire(ctx, r.caller.Client, func(h string) {
		holder = h
		r.tell(fmt.Sprintf("waiting for the desktop, which %s holds", h))
	})
	if err == nil {
		return release, nil
	}
	if cause := (*stop.Error)(nil); errors.As(context.Cause(ctx), &cause) {
		return nil, cause
	}
	if errors.Is(err, context.DeadlineExceeded) {
		if holder == "" {
			holder = "another batch"
		}
		return nil, &stop.Error{Reason: stop.Lease, Message: fmt.Sprintf("the desktop was not free within %v; it is held by %s; try again later", limit, holder)}
	}
	if ctx.Err() != nil {
		return nil, err
	}
	r.crowded = errors.Is(err, gate.ErrLeaseQueueFull)
	return nil, &stop.Error{Reason: stop.Lease, Message: oneLine(err)}
}

// unlooked is what a batch gets that may not even wait: no picture, since any
// number of them can come at once, and each picture is large.
func (r *run) unlooked(ctx context.Context) (s shot) {
	s.err = gate.ErrLeaseQueueFull
	if d, err := r.tool.display(ctx, r.display); err == nil {
		s.display = d
	}
	return s
}

// guarded runs f and makes an error of a panic, so that a fault in one batch
// ends that batch alone, and by the same way out as everything else.
func (t *Tool) guarded(what string, f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			t.log.Error().Str("in", what).Interface("panic", p).Bytes("stack", debug.Stack()).Msg("fault in the computer tool")
			err = fmt.Errorf("a fault inside Drawbridge in %s; the log has the details", what)
		}
	}()
	return f()
}

// actions runs them in order until one stops the batch.
func (r *run) actions(ctx context.Context) error {
	if len(r.tool.hand.Holding()) > 0 { // an earlier batch could not let go of it
		if _, err := r.tool.hand.Release(ctx); err != nil {
			return fmt.Errorf("an earlier batch left something held: %w", err)
		}
	}
	defer func() { r.asleep() }()
	ctx, r.end = context.WithCancelCause(ctx)
	defer r.end(nil)
	defer func() { r.unheed() }()
	for i := range r.batch.actions {
		if !r.action(ctx, i) {
			break
		}
		if time.Since(r.told) >= tellEvery {
			r.told = time.Now()
			r.tell(fmt.Sprintf("%d of %s done", i+1, plural(len(r.entries), "action")))
		}
	}
	return nil
}

// current is the index of the first action that has not come to its end.
func (r *run) current() int {
	for i := range r.entries {
		if r.entries[i].Status == Skipped {
			return i
		}
	}
	return len(r.entries) - 1
}

// acted reports whether any event of the batch was posted.
func (r *run) acted() bool {
	for i := range r.entries {
		if s := r.entries[i].Status; (s == Executed || s == Partial) && r.batch.actions[i].acts() {
			return true
		}
	}
	return false
}

// stop notes why the batch ends at action index; the first reason stays.
func (r *run) stop(ctx context.Context, index int, err error) {
	if r.stopped != nil {
		return
	}
	reason, message := reasonOf(ctx, err)
	r.stopped = &Stopped{Index: index, Reason: reason, Message: message}
	if reason == stop.HandBack {
		r.tool.handed.Store(true)
	}
	e := &r.entries[index]
	if e.Status == Skipped {
		e.Status = Refused
	}
	r.tool.log.Info().Str("client", r.caller.Client).Int("index", index).Str("reason", string(reason)).Msg("batch stopped")
}

// action runs one action and reports whether the batch goes on.
func (r *run) action(ctx context.Context, i int) bool {
	a, e := &r.batch.actions[i], &r.entries[i]
	start, before := time.Now(), r.tool.hand.Posted()
	begun, typed := false, 0
	// Under guarded, so that the entry is finished also when a driver panics.
	err := r.tool.guarded(string(a.spec.typ), func() (err error) {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := r.ready(ctx, a); err != nil {
			return err
		}
		if err := r.before(ctx, i); err != nil {
			return err
		}
		begun = true
		typed, err = r.do(ctx, a)
		return err
	})
	if begun {
		r.after(ctx, i)
	}
	posted := r.tool.hand.Posted() > before
	switch {
	case err == nil:
		e.Status, e.Summary = Executed, a.describe(true)
		if a.acts() {
			e.effect(Delivered)
		}
		if a.spec.pointer() {
			err = r.readBack(ctx, e)
		}
	case posted || (begun && a.spec.typ == Wait):
		e.Status, e.Summary = Partial, "only partly: "+a.describe(false)
		if a.spec.typ == Type {
			e.Summary = fmt.Sprintf("typed %d of %s", uniseg.GraphemeClusterCount(a.text[:min(typed, len(a.text))]), characters(a.text))
		}
	default:
		e.Status = Refused
	}
	e.MS = math.Round(time.Since(start).Seconds()*1e5) / 100
	if err != nil {
		r.stop(ctx, i, err)
		return false
	}
	return true
}

func (e *Entry) effect(f Effect) { e.Effect = &f }

// ready makes sure that an action may begin.
func (r *run) ready(ctx context.Context, a *action) error {
	if !r.probed {
		r.probed = true
		if err := r.tool.mayLook(ctx); err != nil {
			return err
		}
	}
	if !a.acts() {
		return nil
	}
	d, err := r.tool.display(ctx, r.display)
	if a.spec.pointer() {
		switch {
		case errors.Is(err, errNoDisplay):
			return &stop.Error{Reason: stop.StalePicture, Message: oneLine(err)}
		case err == nil && !sameDisplay(d, r.geo.display):
			return &stop.Error{Reason: stop.StalePicture, Message: staleDisplay}
		}
	}
	if err != nil {
		return err
	}
	r.now = d
	if err := r.open(ctx); err != nil {
		return err
	}
	if n, _ := r.tool.pending(); n > 0 {
		// The person is to answer, which must not look like taking over.
		r.unheed()
		if err := r.tool.untilQuiet(ctx, r.tell); err != nil {
			return err
		}
	}
	if !r.tool.heed.running() {
		r.unheed()
		if r.unheed, err = r.tool.heed.begin(ctx, r.tell, r.end); err != nil {
			return err
		}
	}
	return nil
}

// lookAgain is after how long a batch asks again whether the session takes input:
// to ask costs more than to act, and a screen may be locked while a batch waits.
const lookAgain = time.Second

// open refuses where what is sent would not come to the desktop that is meant. From
// then on the display is kept awake.
func (r *run) open(ctx context.Context) error {
	if !r.looked.IsZero() && time.Since(r.looked) < lookAgain {
		return nil
	}
	if err := r.tool.mayAct(ctx); err != nil {
		return err
	}
	if blocked := r.tool.desk.Blocked; blocked != nil {
		if err := blocked(ctx); err != nil {
			return err
		}
	}
	// A locked screen or a sleeping display shows itself to a look, not to an event.
	f, err := r.tool.desk.Source.Grab(ctx, r.now, onePixel)
	if err != nil {
		return fmt.Errorf("look at the display before acting: %w", err)
	}
	f.Release()
	if r.looked.IsZero() && r.tool.desk.Awake != nil {
		r.asleep = r.tool.desk.Awake(ctx)
	}
	r.looked = time.Now()
	return nil
}

// do runs one action. Of a type action it returns the bytes that were typed.
func (r *run) do(ctx context.Context, a *action) (typed int, err error) {
	h := r.tool.hand
	if !a.acts() {
		if a.spec.typ == Wait {
			return 0, sleep(ctx, time.Duration(r.cfg.WaitMS)*time.Millisecond)
		}
		return 0, nil
	}
	ctx, done := r.tool.whileQuiet(ctx)
	defer done()
	var p input.Point
	if a.spec.pointer() && a.path == nil {
		p = r.geo.point(a.at)
	}
	switch a.spec.typ {
	case Click:
		err = h.Click(ctx, p, a.button, a.mods)
	case DoubleClick:
		err = h.DoubleClick(ctx, p, a.mods)
	case Move:
		err = h.Move(ctx, p, a.mods)
	case Drag:
		path := make([]input.Point, len(a.path))
		for i, at := range a.path {
			path[i] = r.geo.point(at)
		}
		err = h.Drag(ctx, path, a.button, a.mods)
	case Scroll:
		dx, dy := a.scroll[0], a.scroll[1]
		if r.cfg.InvertScroll {
			dx, dy = -dx, -dy
		}
		err = h.Scroll(ctx, p, dx, dy, a.mods)
	case Keypress:
		err = h.Chord(ctx, a.mods, a.key)
	case Type:
		ctx, kept := r.whileKept(ctx)
		typed, err = h.Type(ctx, a.text)
		if stolen := kept(); stolen != nil && typed < len(a.text) {
			return typed, stolen
		}
	}
	if err != nil && ctx.Err() != nil {
		return typed, context.Cause(ctx) // the driver only knows that it was ended
	}
	return typed, err
}

// readBack compares the pointer's place with where the action sent it. A
// platform may take a moment to move it, so a miss is looked at again once the
// events have arrived.
func (r *run) readBack(ctx context.Context, e *Entry) error {
	want := input.Point{X: e.Point[0], Y: e.Point[1]}
	// The action is done, so its record is completed also when the batch ends now.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), syncTime)
	defer cancel()
	got, err := r.tool.desk.Input.Pointer(own)
	if errors.Is(err, input.ErrNoPointer) {
		return nil
	}
	near := misplacedBy
	if r.tool.desk.Person != nil {
		near = input.DriftPoints
	}
	if err == nil && off(got, want, near) {
		if err = r.tool.desk.Input.Sync(own); err == nil {
			got, err = r.tool.desk.Input.Pointer(own)
		}
	}
	if err != nil {
		return fmt.Errorf("read the pointer back: %w", err)
	}
	e.Pointer = &[2]float64{got.X, got.Y}
	if off(got, want, near) {
		e.Effect = nil
		// If it was the person, their watcher is about to tell.
		if sleep(ctx, toldWithin) != nil {
			return context.Cause(ctx)
		}
		return &stop.Error{Reason: stop.Misplaced, Message: fmt.Sprintf(
			"the pointer is at %s,%s after the action, not at %s,%s where it was sent; somebody may have moved it, or the display's scale is another than reported; look again before acting",
			number(got.X), number(got.Y), number(want.X), number(want.Y))}
	}
	if e.Type == Move {
		e.effect(Confirmed)
	}
	return nil
}

func off(got, want input.Point, near float64) bool {
	return math.Abs(got.X-want.X) > near || math.Abs(got.Y-want.Y) > near
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// reasonOf finds the word and the sentence for what ended a batch.
func reasonOf(ctx context.Context, err error) (stop.Reason, string) {
	if e := (*stop.Error)(nil); errors.As(err, &e) || errors.As(context.Cause(ctx), &e) {
		return e.Reason, e.Message
	}
	for _, k := range []struct {
		kind   error
		reason stop.Reason
		next   string
	}{
		{capture.ErrPermission, stop.Permission, "grant Screen Recording to Drawbridge in System Settings, Privacy & Security"},
		{input.ErrPermission, stop.Permission, "grant Accessibility to Drawbridge in System Settings, Privacy & Security"},
		{capture.ErrLocked, stop.Locked, "a person must unlock it"},
		{capture.ErrLoginWindow, stop.LoginWindow, "a person must log in"},
		{capture.ErrAsleep, stop.Asleep, "wake it up first"},
		{input.ErrLocked, stop.Locked, "a person must unlock it"},
		{input.ErrLoginWindow, stop.LoginWindow, "a person must log in"},
		{input.ErrAsleep, stop.Asleep, "wake it up first"},
		{input.ErrSecureInput, stop.SecureInput, "nothing is typed into a password prompt: a person must finish or close it"},
		{capture.ErrDisplayChanged, stop.StalePicture, "take a new screenshot"},
		{capture.ErrGone, stop.Err, "a person must start the desktop and then the agent again"},
		{input.ErrGone, stop.Err, "a person must start the desktop and then the agent again"},
		{context.DeadlineExceeded, stop.Deadline, "send fewer actions at a time"},
		{context.Canceled, stop.Cancelled, "the caller cancelled or hung up"},
	} {
		if errors.Is(err, k.kind) {
			return k.reason, oneLine(err) + "; " + k.next
		}
	}
	return stop.Err, oneLine(err)
}

// oneLine flattens joined errors.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// describe says in a few words what the action does, or what it did. Typed text
// is counted, never repeated.
func (a *action) describe(done bool) string {
	verb := a.spec.verb
	if done {
		verb = a.spec.past
	}
	at := fmt.Sprintf(" at %s,%s", number(a.at[0]), number(a.at[1]))
	switch a.spec.typ {
	case Click:
		verb += " " + a.button.String() + at
	case DoubleClick:
		verb += at
	case Move:
		verb += fmt.Sprintf(" to %s,%s", number(a.at[0]), number(a.at[1]))
	case Drag:
		from, to := a.path[0], a.path[len(a.path)-1]
		verb += fmt.Sprintf(" %s from %s,%s to %s,%s, a path of %d points", a.button,
			number(from[0]), number(from[1]), number(to[0]), number(to[1]), len(a.path))
	case Scroll:
		verb += fmt.Sprintf(" by %s,%s px%s", number(a.scroll[0]), number(a.scroll[1]), at)
	case Keypress:
		keys := a.mods
		if a.key != "" {
			keys = append(keys[:len(keys):len(keys)], a.key)
		}
		return verb + " " + joinKeys(keys)
	case Type:
		return verb + " " + characters(a.text)
	}
	if len(a.mods) > 0 {
		verb += " with " + joinKeys(a.mods) + " held"
	}
	return verb
}

func characters(text string) string { return plural(uniseg.GraphemeClusterCount(text), "character") }

func joinKeys(keys []input.Key) string {
	words := make([]string, len(keys))
	for i, k := range keys {
		words[i] = string(k)
	}
	return strings.Join(words, "+")
}
