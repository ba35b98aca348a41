package ui

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

// Agent is what the surfaces show and steer.
type Agent interface {
	State() State
	// Changed returns a channel that is closed when State may have become
	// another. Call it before State, to miss nothing.
	Changed() <-chan struct{}
	// Answer answers the prompt of this ID. A *gate.LateError tells that it was
	// too late.
	Answer(id string, a gate.Answer) error
	// Do does what a verb says. It does not wait for what takes long.
	Do(v Verb, arg string) error
	// Tell shows the person a sentence that needs no answer.
	Tell(text string)
}

// View is what a status item shows.
type View struct {
	Icon    Icon
	Tooltip string
	Menu    Menu
}

// Click is one click on an item.
type Click struct {
	Action Action
	Since  time.Time // since when the item has stood in this place
}

// Renderer puts a status item up. There is one for each platform layer. It is
// driven by one goroutine.
type Renderer interface {
	// Start puts the item up, with the sections of v's menu; clicks go to the
	// channel until Close. An error wraps [ErrNoTray] where there can be no item.
	Start(v View, clicks chan<- Click) error
	// Show shows another view. It does not wait.
	Show(v View)
	// Hosted tells whether a person could see the item right now.
	Hosted() bool
	Close()
}

// Revealer is a Renderer whose item the person can hide.
type Revealer interface {
	Reveal() // shows it again
}

// ErrNoTray tells that a status item has no place here.
var ErrNoTray = errors.New("there is no place for a status item")

// TrayOptions are what a Tray is made of.
type TrayOptions struct {
	Renderer Renderer
	Agent    Agent
	// Injected is when we last sent an event to the desktop; nil: we never do.
	Injected func() time.Time
	Log      zerolog.Logger
}

// Tray is the status item: a surface whose menu holds every prompt and verdict.
type Tray struct{ o TrayOptions }

var _ gate.Surface = (*Tray)(nil)

// NewTray makes a status item, which Run shows.
func NewTray(o TrayOptions) *Tray { return &Tray{o} }

const (
	// trayBatch is how long changes are gathered: a menu that is open flickers
	// with each.
	trayBatch = 50 * time.Millisecond
	// trayTick is how often times that are shown are renewed, while any is.
	trayTick = 15 * time.Second
)

// Name is "tray".
func (t *Tray) Name() string { return "tray" }

// Ready tells whether the item is where a person can see it.
func (t *Tray) Ready() bool { return t.o.Renderer.Hosted() }

// Show has nothing to do: the menu shows every prompt that the agent's state
// holds, and Run follows that.
func (t *Tray) Show(*gate.Pending) error { return nil }

// Withdraw has nothing to do either.
func (t *Tray) Withdraw(*gate.Pending, string) {}

// Run shows the item until ctx ends.
func (t *Tray) Run(ctx context.Context) error {
	clicks := make(chan Click, 16)
	changed := t.o.Agent.Changed()
	view, waiting := t.view()
	if err := t.o.Renderer.Start(view, clicks); err != nil {
		return err
	}
	defer t.o.Renderer.Close()
	tick := time.NewTimer(trayTick)
	defer tick.Stop()
	batch := time.NewTimer(trayBatch)
	batch.Stop()
	defer batch.Stop()
	for {
		var ticks <-chan time.Time
		if waiting {
			ticks = tick.C
		}
		select {
		case <-ctx.Done():
			return nil
		case c := <-clicks:
			t.click(c)
			continue
		case <-changed:
			changed = nil
			batch.Reset(trayBatch)
			continue
		case <-batch.C:
			changed = t.o.Agent.Changed()
		case <-ticks:
		}
		view, waiting = t.view()
		t.o.Renderer.Show(view)
		tick.Reset(trayTick)
	}
}

// view also tells whether it shows times.
func (t *Tray) view() (v View, waiting bool) {
	s := t.o.Agent.State()
	icon, status := s.Status()
	return View{Icon: icon, Tooltip: "Drawbridge: " + status, Menu: BuildMenu(s)}, len(s.Pending) > 0 || slices.ContainsFunc(s.Rules, func(r Rule) bool { return r.Left > 0 })
}

func (t *Tray) click(c Click) {
	if c.Action.Verb != VerbAnswer {
		if err := t.o.Agent.Do(c.Action.Verb, c.Action.Arg); err != nil {
			t.o.Log.Warn().Err(err).Str("verb", string(c.Action.Verb)).Msg("tray")
			t.o.Agent.Tell(err.Error())
		}
		return
	}
	if tooSoon(time.Now(), c.Since, t.o.Injected) {
		t.o.Log.Info().Msg("a click in the tray came too soon after its prompt, or after an event of ours, and does not count")
		return
	}
	a := c.Action.Answer
	a.By = t.Name()
	if err := t.o.Agent.Answer(c.Action.Prompt, a); err != nil {
		t.o.Log.Info().Err(err).Msg("an answer in the tray did nothing")
		t.o.Agent.Tell(err.Error())
	}
}
