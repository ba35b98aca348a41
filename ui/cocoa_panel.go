//go:build darwin || standin

package ui

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/png"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ebitengine/purego/objc"
	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

// PanelOptions are what Panels are made of.
type PanelOptions struct {
	// Preview makes a call's picture, as a PNG; nil means that there are none.
	Preview func(context.Context, *gate.Pending) []byte
	// Injected is when we last sent an event to the desktop; nil: we never do.
	Injected func() time.Time
	// Changed is called when Ready becomes another.
	Changed func()
	Log     zerolog.Logger
}

// Panels asks the person by a panel that floats above everything and does not
// take the keyboard: one prompt at a time, the oldest first, until it is answered
// or over. Run serves it.
type Panels struct {
	o       PanelOptions
	ready   atomic.Bool // after notices, which are there from then on
	notices notices

	mu      sync.Mutex // guards queue
	queue   []*gate.Pending
	awake   chan struct{}
	pressed chan press
}

// press is what the person did in a panel.
type press struct {
	in     *cocoaPanel
	answer gate.Answer
	unread bool // it is a yes, and the end of the text was not in view yet
}

var _ gate.Surface = (*Panels)(nil)

// NewPanels makes the surface.
func NewPanels(o PanelOptions) *Panels {
	return &Panels{o: o, awake: make(chan struct{}, 1), pressed: make(chan press, 4)}
}

// Name is "panel".
func (s *Panels) Name() string { return "panel" }

// Ready tells whether our login session is the one on the screen.
func (s *Panels) Ready() bool {
	if !s.ready.Load() {
		return false
	}
	session := quartz.CurrentSession()
	return session.Graphic && session.OnConsole
}

// Show puts a prompt at the end of the queue.
func (s *Panels) Show(p *gate.Pending) error {
	if !s.Ready() {
		return errors.New("no panel can be seen here: our login session is not on the screen")
	}
	s.mu.Lock()
	s.queue = append(s.queue, p)
	s.mu.Unlock()
	s.wake()
	return nil
}

// Withdraw takes a prompt away, wherever in the queue it is.
func (s *Panels) Withdraw(p *gate.Pending, _ string) {
	s.drop(p)
	s.wake()
}

// Tell shows a sentence that needs no answer, as a notification, and reports
// whether it could.
func (s *Panels) Tell(text string) bool { return s.ready.Load() && s.notices.tell(text) }

func (s *Panels) wake() {
	select {
	case s.awake <- struct{}{}:
	default:
	}
}

func (s *Panels) drop(p *gate.Pending) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, func(q *gate.Pending) bool { return q == p })
}

// first is the prompt to be shown, and how many wait behind it.
func (s *Panels) first() (p *gate.Pending, more int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = slices.DeleteFunc(s.queue, isOver)
	if len(s.queue) == 0 {
		return nil, 0
	}
	return s.queue[0], len(s.queue) - 1
}

// Run serves prompts until ctx ends. An error tells that no panel can be shown.
func (s *Panels) Run(ctx context.Context) error {
	if err := cocoa.Start(); err != nil {
		return fmt.Errorf("panel: %w", err)
	}
	s.notices.open(s.o.Log)
	s.ready.Store(true)
	s.changed()
	defer s.ready.Store(false)
	var up *cocoaPanel
	defer func() { s.close(up) }()
	tick := time.NewTicker(time.Second)
	tick.Stop()
	defer tick.Stop()
	for {
		p, more := s.first()
		if up != nil && up.p != p {
			s.close(up)
			up = nil
			tick.Stop()
		}
		switch {
		case p == nil:
		case up == nil:
			var err error
			if up, err = s.open(ctx, p, more); err != nil {
				return fmt.Errorf("panel: %w", err)
			}
			s.wake() // it may be over by now
			tick.Reset(time.Second)
		default:
			up.stand(more)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-s.awake:
		case <-tick.C:
		case c := <-s.pressed:
			if c.in == up {
				s.answer(c)
			}
		}
	}
}

func (s *Panels) changed() {
	if s.o.Changed != nil {
		s.o.Changed()
	}
}

// answer does what the person said, if it can be a person's who read the panel.
func (s *Panels) answer(c press) {
	if tooSoon(time.Now(), c.in.since, s.o.Injected) {
		c.in.say("Too quick to have been read: nothing was answered.")
		s.o.Log.Info().Msg("an answer in the panel came too soon after it came up, or after an event of ours, and does not count")
		return
	}
	if c.unread {
		c.in.say("Scroll to the end of the text first: nothing was answered.")
		return
	}
	c.answer.By = s.Name()
	if err := c.in.p.Answer(c.answer); err != nil {
		s.o.Log.Info().Err(err).Msg("an answer in the panel did nothing")
		s.Tell(err.Error())
	}
	s.drop(c.in.p)
}

func (s *Panels) open(ctx context.Context, p *gate.Pending, more int) (*cocoaPanel, error) {
	var picture []byte
	if s.o.Preview != nil && p.Kind == gate.AskCall {
		picture = s.o.Preview(ctx, p)
	}
	v := NewPrompt(p, time.Now())
	if p.Request != nil {
		v.Args = argumentLines(p, whole)
	}
	c := &cocoaPanel{p: p}
	laid := newPanelView(&v)
	if err := cocoa.Main(func() { c.build(&laid, picture, more, s.press) }); err != nil {
		return nil, err
	}
	c.since = time.Now()
	s.notices.up(p.ID, laid.title)
	return c, nil
}

// press is called on the main thread, which must not wait.
func (s *Panels) press(c *cocoaPanel, a gate.Answer) {
	select {
	case s.pressed <- press{c, a, a.Scope != gate.Deny && !c.read()}:
	default: // the person clicks faster than anything is done
	}
}

func (s *Panels) close(c *cocoaPanel) {
	if c == nil {
		return
	}
	if err := cocoa.Main(c.take); err != nil {
		s.o.Log.Warn().Err(err).Msg("a panel could not be closed")
	}
	s.notices.down(c.p.ID)
}

// cocoaPanel is one prompt on the screen.
type cocoaPanel struct {
	p     *gate.Pending
	since time.Time // when it was up

	// The main thread's.
	window, left, note, reason objc.ID
	buttons                    []objc.ID
	scroller                   objc.ID // of a text whose end must be seen before a yes; 0: none, or it was seen
}

// read tells whether everything was in view that a yes takes.
func (c *cocoaPanel) read() bool {
	if c.scroller != 0 && cocoa.AtEnd(c.scroller) {
		c.scroller = 0
	}
	return c.scroller == 0
}

// The measures of a panel, in points.
const (
	panelWidth   = 520
	panelMargin  = 16
	panelGap     = 8
	panelButton  = 30
	panelLine    = 18
	panelText    = 170
	panelPicture = 280 // at most
	panelRule    = 32
)

// build makes the panel and shows it. From below: the answers, what is left of
// the time, the rule, the text, which grows with the window, the picture, the
// headline.
func (c *cocoaPanel) build(v *panelView, picture []byte, more int, press func(*cocoaPanel, gate.Answer)) {
	const full = panelWidth - 2*panelMargin
	pictureHeight := 0.0
	if im, err := png.DecodeConfig(bytes.NewReader(picture)); err == nil && im.Width > 0 {
		pictureHeight = min(panelPicture, full*float64(im.Height)/float64(im.Width))
	}
	allows, deny := v.answers[:len(v.answers)-1], v.answers[len(v.answers)-1]
	rows := (len(allows) + 1) / 2
	height := float64(2*panelMargin + (rows+1)*(panelButton+panelGap) + 2*panelLine + panelGap + 2*panelLine + panelGap)
	if v.rule != "" {
		height += panelRule + panelGap
	}
	if v.text != "" {
		height += panelText + panelGap
	}
	if pictureHeight > 0 {
		height += pictureHeight + panelGap
	}
	c.window = cocoa.Panel("Drawbridge", panelWidth, height)
	in := cocoa.Content(c.window)
	const bottom, top = cocoa.NSViewWidthSizable | cocoa.NSViewMaxYMargin, cocoa.NSViewWidthSizable | cocoa.NSViewMinYMargin

	// The denial, and why.
	denied := func() {
		press(c, gate.Answer{Scope: deny.answer.Scope, Reason: cocoa.Written(c.reason)})
	}
	y := float64(panelMargin)
	half := float64(full-panelGap) / 2
	c.reason = cocoa.Field(in, "Why not? It is told to the program.", cocoa.Rect(panelMargin, y+4, half, panelButton-8), bottom)
	no := cocoa.Button(in, deny.label, cocoa.Rect(panelMargin+half+panelGap, y, half, panelButton), cocoa.NSViewMaxYMargin|cocoa.NSViewMinXMargin, denied)
	cocoa.DefaultButton(no)
	c.buttons = append(c.buttons, no)
	cocoa.OnClose(c.window, denied)
	y += panelButton + panelGap
	// Everything that allows, the narrowest first, from the top.
	for i, a := range allows {
		x := float64(panelMargin) + float64(i%2)*(half+panelGap)
		row := y + float64(rows-1-i/2)*(panelButton+panelGap)
		b := cocoa.Button(in, a.label, cocoa.Rect(x, row, half, panelButton), cocoa.NSViewMaxYMargin, func() { press(c, a.answer) })
		c.buttons = append(c.buttons, b)
	}
	y += float64(rows * (panelButton + panelGap))

	c.note = cocoa.Label(in, "", cocoa.Small, cocoa.Rect(panelMargin, y, full, panelLine), bottom, false)
	y += panelLine
	c.left = cocoa.Label(in, standing(c.p.Deadline, time.Now(), more), cocoa.Small, cocoa.Rect(panelMargin, y, full, panelLine), bottom, false)
	y += panelLine + panelGap
	if v.rule != "" {
		cocoa.Label(in, v.rule, cocoa.Small, cocoa.Rect(panelMargin, y, full, panelRule), bottom, true)
		y += panelRule + panelGap
	}
	if v.text != "" {
		scroller := cocoa.Scrolled(in, v.text, cocoa.Rect(panelMargin, y, full, panelText), cocoa.NSViewWidthSizable|cocoa.NSViewHeightSizable)
		if v.toEnd {
			c.scroller = scroller
		}
		y += panelText + panelGap
	}
	if pictureHeight > 0 {
		cocoa.Picture(in, picture, cocoa.Rect(panelMargin, y, full, pictureHeight), top)
		y += pictureHeight + panelGap
	}
	cocoa.Label(in, v.about, cocoa.Small, cocoa.Rect(panelMargin, y, full, panelLine), top, false)
	y += panelLine
	cocoa.Label(in, v.title, cocoa.Bold, cocoa.Rect(panelMargin, y, full, panelLine+2), top, false)
	cocoa.Show(c.window)
}

// stand renews what is left of the time.
func (c *cocoaPanel) stand(more int) {
	_ = cocoa.Main(func() { // it fails at the end only
		cocoa.SetText(c.left, standing(c.p.Deadline, time.Now(), more))
		c.read() // who scrolls back has seen the end
	})
}

// say tells the person something in the panel.
func (c *cocoaPanel) say(text string) {
	_ = cocoa.Main(func() { cocoa.SetText(c.note, text) })
}

// take takes the panel away.
func (c *cocoaPanel) take() {
	for _, b := range c.buttons {
		cocoa.Forget(b)
	}
	cocoa.CloseWindow(c.window)
}
