package computer

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/stop"
	"drawbridge/input"
)

const simulatedBackend = "simulated"

// idleAfter is how long after a look the capture keeps its memory for the next.
const idleAfter = 10 * time.Second

// Lease is the right to drive the desktop: one batch at a time, machine-wide.
type Lease interface {
	// Acquire waits for its turn. holder names who asks; waiting, which may be
	// nil, is told who holds the desktop when there is somebody to wait for. The
	// error, when ctx has not ended, says why there is no turn to be had.
	Acquire(ctx context.Context, holder string, waiting func(holder string)) (release func(), err error)
}

// Limits narrow the configuration for one client.
type Limits struct {
	AllowedActions []ActionType // nil: as the configuration says
	Display        *int         // nil: as the configuration says
}

// Options are what a Tool works with. Desk and Lease are needed.
type Options struct {
	Desk   *Desk
	Config Config
	Lease  Lease
	// Quiet tells how many approvals wait for a person, and when that changes.
	Quiet func() (pending int, changed <-chan struct{})
	// MayLook reports whether a screenshot-only batch of this caller would run
	// unasked. Only then is a picture handed out with a refusal.
	MayLook func(bridge.Caller) bool
	// Limits are asked at each call.
	Limits func(client string) Limits
	// HandBack is asked at each call; nil: DefaultHandBack.
	HandBack func() HandBack
	// Journal notes what is held, for the next process.
	Journal *input.Journal
	Log     zerolog.Logger
}

// Tool is the computer tool: a source of one tool.
type Tool struct {
	desk    *Desk
	lease   Lease
	pending func() (int, <-chan struct{})
	mayShow func(bridge.Caller) bool
	limits  func(string) Limits
	log     zerolog.Logger

	cfg      atomic.Pointer[Config]
	pictures pictures

	handBack func() HandBack
	handed   atomic.Bool // the last batch was handed back, and the quiet time may run

	// hand, heed and aimed belong to whoever holds the lease.
	hand  *input.Hand
	heed  heed
	aimed func(ctx context.Context, p input.Point) error // of the action that runs
	sent  atomic.Int64                                   // when the last event was let go, in Unix ns; 0: never

	idleMu sync.Mutex  // guards idle and closed
	idle   *time.Timer // gives the capture's memory back; nil before the first look
	closed bool
}

var (
	_ bridge.Source       = (*Tool)(nil)
	_ bridge.ConnObserver = (*Tool)(nil)
)

// New returns the tool for a desktop.
func New(o Options) *Tool {
	t := &Tool{desk: o.Desk, lease: o.Lease, pending: o.Quiet, mayShow: o.MayLook, limits: o.Limits, log: o.Log}
	if t.pending == nil {
		t.pending = func() (int, <-chan struct{}) { return 0, nil }
	}
	if t.mayShow == nil {
		t.mayShow = func(bridge.Caller) bool { return false }
	}
	if t.limits == nil {
		t.limits = func(string) Limits { return Limits{} }
	}
	if t.handBack = o.HandBack; t.handBack == nil {
		t.handBack = func() HandBack { return DefaultHandBack }
	}
	t.heed.tool = t
	t.hand = input.NewHand(o.Desk.Input, input.HandOptions{Guard: t.guard, Journal: o.Journal,
		Aimed: func(ctx context.Context, p input.Point) error { return t.aimed(ctx, p) }})
	t.SetConfig(o.Config)
	return t
}

// SetConfig puts another configuration in force, for calls from now on.
func (t *Tool) SetConfig(c Config) { t.cfg.Store(&c) }

// Close ends what the tool itself keeps. It does not close the desktop.
func (t *Tool) Close() {
	t.idleMu.Lock()
	defer t.idleMu.Unlock()
	t.closed = true
	if t.idle != nil {
		t.idle.Stop()
	}
}

// Name implements bridge.Source.
func (t *Tool) Name() string { return "drawbridge" }

// Tools implements bridge.Source: the definition names only the actions that
// this client may use.
func (t *Tool) Tools(client string) []bridge.Tool {
	cfg := t.cfg.Load()
	if !cfg.Enabled {
		return nil
	}
	d, err := definition(t.allowed(cfg, t.limits(client)), cfg.MaxActionsPerCall)
	if err != nil {
		t.log.Error().Err(err).Msg("the definition of the computer tool")
		return nil
	}
	return []bridge.Tool{{Name: toolName, Definition: d}}
}

// allowed is what the configuration and the client's limits allow and the
// backend is able to do, in the vocabulary's order.
func (t *Tool) allowed(cfg *Config, l Limits) []ActionType {
	list := []ActionType{}
	for _, a := range ActionTypes {
		if (cfg.AllowedActions == nil || slices.Contains(cfg.AllowedActions, a)) &&
			(l.AllowedActions == nil || slices.Contains(l.AllowedActions, a)) &&
			(t.desk.Can == nil || slices.Contains(t.desk.Can.Actions, a)) {
			list = append(list, a)
		}
	}
	return list
}

// ConnClosed implements bridge.ConnObserver.
func (t *Tool) ConnClosed(c bridge.Caller) { t.pictures.forget(c) }

// Prepare implements bridge.Source. It checks the whole batch; nothing has
// happened when it refuses.
func (t *Tool) Prepare(ctx context.Context, c *bridge.Call) (*bridge.Prepared, *bridge.Answer) {
	cfg, limits := t.cfg.Load(), t.limits(c.Caller.Client)
	if cfg.RequireImageCapableModel && c.Caller.Images == bridge.ImagesNo {
		return nil, refusal(fmt.Sprintf("nothing was run: the client %q is registered as one whose model reads no pictures, and this tool answers with pictures. "+
			"If its model does read them, a person can say so with: drawbridge client add %s --images=yes. "+
			"To run without pictures being read, set computer.require_image_capable_model to false in the configuration.", c.Caller.Client, c.Caller.Client))
	}
	b, err := decode(c.Arguments, decodeLimits{maxActions: cfg.MaxActionsPerCall, allowed: t.allowed(cfg, limits)})
	if err != nil {
		return nil, refusal(err.Error())
	}
	display := cfg.Display
	if limits.Display != nil {
		display = *limits.Display
	}
	if err := t.desk.Can.check(b, display); err != nil {
		return nil, refusal(fmt.Sprintf("nothing was run: %v (the %s backend cannot do it)", err, t.desk.Backend))
	}
	var geo *geometry
	if first := b.firstTarget(); first >= 0 {
		if geo, err = t.geometryFor(ctx, c.Caller, b.picture, display); err != nil {
			r := newRun(t, cfg, c.Caller, b, nil, display)
			return nil, r.refuse(ctx, first, err)
		}
		if err := b.inside(geo.id, geo.width, geo.height); err != nil {
			return nil, refusal(err.Error())
		}
	}
	p := &bridge.Prepared{
		Default: gate.DefaultAsk,
		Run: func(ctx context.Context) bridge.Answer {
			defer t.idleSoon()
			r := newRun(t, cfg, c.Caller, b, geo, display)
			r.tell = progress(c)
			return r.perform(ctx)
		},
	}
	switch {
	case !b.acts() && t.desk.Own:
		p.Default = gate.DefaultAllow
	case !b.acts():
		p.Default = gate.DefaultAskFirst
	default:
		v := t.newView(cfg, b, geo, display)
		p.Preview = v.preview
		if geo != nil {
			p.Closeup = v.closeup
			v.remember(ctx)
			p.Changed = v.changed
		}
	}
	return p, nil
}

// geometryFor finds the picture whose coordinates a batch means, and makes sure
// that they still mean the same places.
func (t *Tool) geometryFor(ctx context.Context, c bridge.Caller, id string, display int) (*geometry, error) {
	stale := func(message string) error { return &stop.Error{Reason: stop.StalePicture, Message: message} }
	geo := t.pictures.find(c, id)
	switch {
	case geo == nil && id != "":
		return nil, stale(fmt.Sprintf("the picture %s is not known; the last %d pictures given to this client are; take a new screenshot", quote(id), keptPictures))
	case geo == nil:
		return nil, stale(`no screenshot was given to this client yet, so coordinates mean no place; send {"actions":[{"type":"screenshot"}]} first`)
	}
	now, err := t.display(ctx, display)
	if errors.Is(err, errNoDisplay) {
		return nil, stale(oneLine(err))
	}
	if err != nil {
		return nil, err
	}
	if !sameDisplay(now, geo.display) {
		return nil, stale(staleDisplay)
	}
	return geo, nil
}

var errNotShown = errors.New("it is only given with a batch that may run; send a screenshot batch")

// refuse answers a batch that cannot run because of its picture, with a fresh
// picture where this caller would get one unasked.
func (r *run) refuse(ctx context.Context, index int, err error) *bridge.Answer {
	r.stop(ctx, index, err)
	s := shot{err: errNotShown}
	if r.tool.mayShow(r.caller) {
		defer r.tool.idleSoon()
		if s = r.look(ctx, false); s.geo != nil {
			r.notes = append(r.notes, "a fresh screenshot is attached: measure on it and send the batch again")
		}
	} else if d, err := r.tool.display(ctx, r.display); err == nil {
		s.display = d
	}
	a := r.answer(s)
	return &a
}

// idleSoon gives the capture's memory back when no further look follows.
func (t *Tool) idleSoon() {
	t.idleMu.Lock()
	defer t.idleMu.Unlock()
	switch {
	case t.closed:
	case t.idle == nil:
		t.idle = time.AfterFunc(idleAfter, t.desk.Source.Idle)
	default:
		t.idle.Reset(idleAfter)
	}
}

// progress returns what tells a caller how its call is getting on. It does
// nothing for a caller that gave no progress token.
func progress(c *bridge.Call) func(message string) {
	if c.Notify == nil || c.ProgressToken == nil {
		return func(string) {}
	}
	return func(message string) {
		params, err := json.Marshal(map[string]any{
			"progressToken": c.ProgressToken,
			// Progress must rise from one notification to the next, and others
			// were perhaps sent while a person was asked: the clock does.
			"progress": float64(time.Now().UnixMilli()) / 1000,
			"message":  message,
		})
		if err == nil { // it fails on a token that is no JSON alone
			c.Notify("notifications/progress", params)
		}
	}
}
