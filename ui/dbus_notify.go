//go:build linux && !standin

package ui

import (
	"context"
	"errors"
	"fmt"
	"image"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

const (
	notifyName   = "org.freedesktop.Notifications"
	notifyPath   = "/org/freedesktop/Notifications"
	notifyAction = notifyName + ".ActionInvoked"
	notifyClosed = notifyName + ".NotificationClosed"

	// byPerson is the reason in NotificationClosed of one that was clicked away.
	byPerson = 2
	// mostNotified is how many prompts are up at once; the others wait for a
	// place. The menu and the page show all.
	mostNotified = 4
	// notifyLines of arguments fit into a notification.
	notifyLines = 12
	// notifyRead lines of notifyWidth columns are what daemons show of a body without
	// cutting it.
	notifyRead, notifyWidth = 8, 60
)

// NotificationOptions are what Notifications are made of.
type NotificationOptions struct {
	// Preview makes a call's picture; nil means that there are none.
	Preview func(context.Context, *gate.Pending) image.Image
	// Details shows everything about the prompts elsewhere.
	Details func()
	// Injected is when we last sent an event to the desktop; nil: we never do.
	Injected func() time.Time
	// Changed is called when Ready becomes another.
	Changed func()
	Log     zerolog.Logger
}

// Notifications asks the person by desktop notifications with buttons. Run
// serves it.
type Notifications struct {
	o     NotificationOptions
	ready atomic.Bool

	mu    sync.Mutex // guards todo
	todo  []func(*notifier)
	awake chan struct{}
}

var _ gate.Surface = (*Notifications)(nil)

// NewNotifications makes the surface.
func NewNotifications(o NotificationOptions) *Notifications {
	return &Notifications{o: o, awake: make(chan struct{}, 1)}
}

// Name is "notification".
func (n *Notifications) Name() string { return "notification" }

// Ready tells whether a daemon is there that shows buttons.
func (n *Notifications) Ready() bool { return n.ready.Load() }

// Show puts a prompt up as soon as there is place.
func (n *Notifications) Show(p *gate.Pending) error {
	if !n.Ready() {
		return errors.New("no notification daemon shows buttons")
	}
	n.do(func(d *notifier) { d.waiting = append(d.waiting, p) })
	return nil
}

// Withdraw takes a prompt away.
func (n *Notifications) Withdraw(p *gate.Pending, _ string) {
	n.do(func(d *notifier) { d.withdraw(p) })
}

// Tell shows a sentence that needs no answer, and reports whether it could.
func (n *Notifications) Tell(text string) bool {
	if n.Ready() {
		n.do(func(d *notifier) { d.tell(text) })
	}
	return n.Ready()
}

// do has the goroutine of Run do something.
func (n *Notifications) do(f func(*notifier)) {
	n.mu.Lock()
	n.todo = append(n.todo, f)
	n.mu.Unlock()
	select {
	case n.awake <- struct{}{}:
	default:
	}
}

func (n *Notifications) take() []func(*notifier) {
	n.mu.Lock()
	defer n.mu.Unlock()
	todo := n.todo
	n.todo = nil
	return todo
}

// Run serves prompts until ctx ends. An error tells that there is no session
// bus.
func (n *Notifications) Run(ctx context.Context) error {
	conn, err := sessionBus()
	if err != nil {
		return fmt.Errorf("notifications: %w", err)
	}
	defer conn.Close()
	signals := make(chan *dbus.Signal, 64)
	conn.Signal(signals)
	for _, match := range [][]dbus.MatchOption{
		{dbus.WithMatchInterface("org.freedesktop.DBus"), dbus.WithMatchMember("NameOwnerChanged"), dbus.WithMatchArg(0, notifyName)},
		{dbus.WithMatchInterface(notifyName)},
	} {
		if err := conn.AddMatchSignal(match...); err != nil {
			return fmt.Errorf("notifications: follow the daemon: %w", err)
		}
	}
	d := &notifier{Notifications: n, ctx: ctx, daemon: conn.Object(notifyName, notifyPath), up: map[uint32]*notified{}}
	d.meet(conn)
	defer func() {
		n.ready.Store(false)
		d.closeAll()
	}()
	for {
		for _, f := range n.take() {
			f(d)
		}
		d.fill()
		select {
		case <-ctx.Done():
			return nil
		case <-n.awake:
		case s, ok := <-signals:
			if !ok {
				return errors.New("notifications: the D-Bus session bus is gone")
			}
			if s.Name == ownerChanged {
				d.meet(conn)
			} else if s.Sender == d.owner { // anybody on the bus can send a signal of this name
				d.signal(s)
			}
		}
	}
}

// notifier is what one Run works with.
type notifier struct {
	*Notifications
	ctx     context.Context
	daemon  dbus.BusObject
	owner   string // the daemon's unique name
	markup  bool   // it reads a body's markup
	waiting []*gate.Pending
	lost    []*gate.Pending // this daemon could not show them; the next one may
	up      map[uint32]*notified
}

// notified is a prompt that is up.
type notified struct {
	p     *gate.Pending
	since time.Time
}

// meet asks the daemon what it can, the first time and when it is another. What
// the old one showed is shown anew: a prompt that a daemon lost is no denial.
func (d *notifier) meet(conn *dbus.Conn) {
	ctx, cancel := context.WithTimeout(d.ctx, busTimeout)
	defer cancel()
	var can []string
	err := d.daemon.CallWithContext(ctx, notifyName+".GetCapabilities", 0).Store(&can) // starts it, where the bus can
	var owner string
	if err == nil {
		err = conn.BusObject().CallWithContext(ctx, "org.freedesktop.DBus.GetNameOwner", 0, notifyName).Store(&owner)
	}
	if owner == d.owner && owner != "" {
		return
	}
	for _, u := range d.up {
		d.waiting = append(d.waiting, u.p)
	}
	clear(d.up)
	d.waiting, d.lost = append(d.waiting, d.lost...), nil
	d.owner, d.markup = owner, slices.Contains(can, "body-markup")
	ready := err == nil && slices.Contains(can, "actions")
	if d.ready.Swap(ready) != ready && d.o.Changed != nil {
		d.o.Changed()
	}
}

// fill puts up what waits, as far as there is place.
func (d *notifier) fill() {
	for len(d.waiting) > 0 && len(d.up) < mostNotified && d.ready.Load() {
		p := d.waiting[0]
		d.waiting = d.waiting[1:]
		if isOver(p) {
			continue
		}
		if err := d.show(p); err != nil {
			// A daemon that ends does not answer, and may have shown it all the same.
			d.lost = append(d.lost, p)
			d.o.Log.Warn().Err(err).Msg("a prompt could not be shown as a notification")
		}
	}
}

func (d *notifier) show(p *gate.Pending) error {
	v := NewPrompt(p, time.Now())
	summary, body := notifyText(&v)
	hints := map[string]dbus.Variant{"urgency": dbus.MakeVariant(byte(2))}
	if d.o.Preview != nil && p.Kind == gate.AskCall {
		if im := d.o.Preview(d.ctx, p); im != nil {
			hints["image-data"] = dbus.MakeVariant(imageData(im))
		}
	}
	icon := "dialog-question"
	if hints["image-data"].Value() != nil {
		icon = "" // some daemons show one or the other
	}
	id, err := d.notify(icon, summary, body, notifyActions(&v), hints)
	if err != nil {
		return err
	}
	d.up[id] = &notified{p, time.Now()}
	if isOver(p) { // while it was put up, when there was nothing yet to withdraw
		d.withdraw(p)
	}
	return nil
}

func (d *notifier) notify(icon, summary, body string, actions []string, hints map[string]dbus.Variant) (id uint32, err error) {
	if d.markup {
		body = escapeMarkup(body)
	}
	ctx, cancel := context.WithTimeout(d.ctx, busTimeout)
	defer cancel()
	err = d.daemon.CallWithContext(ctx, notifyName+".Notify", 0,
		"Drawbridge", uint32(0), icon, summary, body, actions, hints, int32(0)).Store(&id)
	return id, err
}

func (d *notifier) tell(text string) {
	if _, err := d.notify("dialog-information", "Drawbridge", Escape(text, 300), []string{}, map[string]dbus.Variant{}); err != nil {
		d.o.Log.Warn().Err(err).Msg("a notification could not be shown")
	}
}

func (d *notifier) withdraw(p *gate.Pending) {
	is := func(w *gate.Pending) bool { return w == p }
	d.waiting, d.lost = slices.DeleteFunc(d.waiting, is), slices.DeleteFunc(d.lost, is)
	for id, u := range d.up {
		if u.p == p {
			delete(d.up, id)
			d.close(id)
		}
	}
}

func (d *notifier) close(id uint32) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(d.ctx), busTimeout)
	defer cancel()
	if err := d.daemon.CallWithContext(ctx, notifyName+".CloseNotification", 0, id).Err; err != nil {
		d.o.Log.Debug().Err(err).Msg("a notification could not be closed") // it is gone already
	}
}

func (d *notifier) closeAll() {
	for _, id := range slices.Collect(maps.Keys(d.up)) {
		d.close(id)
	}
}

func (d *notifier) signal(s *dbus.Signal) {
	if len(s.Body) != 2 {
		return
	}
	id, ok := s.Body[0].(uint32)
	u := d.up[id]
	if !ok || u == nil {
		return
	}
	switch s.Name {
	case notifyAction:
		action, _ := s.Body[1].(string)
		delete(d.up, id) // the daemon takes it away with the click
		d.answer(u, action)
	case notifyClosed:
		delete(d.up, id)
		if reason, _ := s.Body[1].(uint32); reason == byPerson {
			d.answer(u, "deny")
		}
		// Else it expired, or the daemon took it away: no denial. The menu and the
		// page go on showing it.
	}
}

// answer does what a button says.
func (d *notifier) answer(u *notified, action string) {
	if tooSoon(time.Now(), u.since, d.o.Injected) {
		d.waiting = append([]*gate.Pending{u.p}, d.waiting...)
		return
	}
	v := NewPrompt(u.p, time.Now())
	if action != "deny" && !slices.Contains(notifyActions(&v), action) {
		return // none of our buttons
	}
	a := gate.Answer{By: d.Name()}
	choice, chosen := strings.CutPrefix(action, "choice-")
	switch {
	case action == "details":
		if d.o.Details != nil {
			d.o.Details()
		}
		return
	case action == "once":
		a.Scope = gate.Once
	case chosen:
		a.Scope, a.Choice = gate.Once, choice
	}
	if err := u.p.Answer(a); err != nil {
		d.o.Log.Info().Err(err).Msg("an answer to a notification did nothing")
		d.tell(err.Error())
	}
}

// notifyText is what a notification says. It is safe to show, and no markup.
func notifyText(p *Prompt) (summary, body string) {
	var b strings.Builder
	lines := func(all []string) {
		for _, l := range condensed(all, notifyLines) {
			b.WriteString(l + "\n")
		}
	}
	switch p.Kind {
	case gate.AskResume, gate.AskPage:
		return headline(p), question(p)
	case gate.AskAccept, gate.AskLoosen:
		for _, l := range notifyReading(p).lines {
			b.WriteString(l + "\n")
		}
	default:
		if p.Again {
			b.WriteString("You allowed it; the screen around its targets has changed since.\n")
		}
		lines(p.Args)
		fmt.Fprintf(&b, "of host %s", Escape(p.Host, 40))
		if p.Left > 0 {
			fmt.Fprintf(&b, ", %s", roughly(p.Left))
		}
	}
	return headline(p), strings.TrimSpace(b.String())
}

// notifyReading is what loosens, if there is place for all of it. The daemon breaks
// the lines.
func notifyReading(p *Prompt) reading {
	if r := p.reading(notifyWidth, notifyRead); !r.whole {
		return r
	}
	return p.reading(0, 0)
}

// notifyActions are the buttons: pairs of what they are called for us and for
// the person.
func notifyActions(p *Prompt) []string {
	r := notifyReading(p)
	var out []string
	for _, v := range verdicts(p, r, false) {
		switch {
		case v.answer.Choice != "":
			out = append(out, "choice-"+v.answer.Choice, v.label)
		case v.answer.Scope == gate.Once:
			out = append(out, "once", v.label)
		case v.answer.Scope == gate.Deny:
			out = append(out, "deny", v.label)
		}
	}
	if p.Kind == gate.AskCall || p.loosens() && !r.whole {
		out = append(out, "details", "Details")
	}
	return out
}

// escapeMarkup keeps a daemon from reading markup in what is none.
func escapeMarkup(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(s)
}

// pixels is a picture as notification daemons take it.
type pixels struct {
	Width, Height, Stride int32
	Alpha                 bool
	Bits, Channels        int32
	Data                  []byte
}

func imageData(im image.Image) pixels {
	b := im.Bounds()
	p := pixels{Width: int32(b.Dx()), Height: int32(b.Dy()), Stride: int32(b.Dx() * 3), Bits: 8, Channels: 3}
	p.Data = make([]byte, 0, b.Dx()*b.Dy()*3)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			r, g, bl, _ := im.At(x, y).RGBA()
			p.Data = append(p.Data, byte(r>>8), byte(g>>8), byte(bl>>8))
		}
	}
	return p
}
