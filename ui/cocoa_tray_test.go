//go:build standin

package ui

import (
	"context"
	"image"
	"slices"
	"testing"
	"time"

	"github.com/ebitengine/purego/objc"
	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
	"drawbridge/internal/cocoa"
	"drawbridge/internal/quartz"
)

// cocoaTrayRig is the real status item, without an agent.
type cocoaTrayRig struct {
	*macDesk
	t       *testing.T
	tray    *cocoaTray
	clicks  chan Click
	changes chan bool
}

func newCocoaTrayRig(t *testing.T, s State) *cocoaTrayRig {
	t.Helper()
	r := &cocoaTrayRig{macDesk: openMac(t), t: t, clicks: make(chan Click, 4), changes: make(chan bool, 16)}
	r.tray = NewRenderer(zerolog.Nop(), func() { r.changes <- r.tray.Hosted() }).(*cocoaTray)
	if err := r.tray.Start(view(s), r.clicks); err != nil {
		t.Fatal(err)
	}
	if !<-r.changes {
		t.Error("the item is not in the menu bar")
	}
	t.Cleanup(func() {
		r.tray.Close()
		if r.tray.Hosted() {
			t.Error("the item is there after its end")
		}
	})
	return r
}

func view(s State) View {
	icon, status := s.Status()
	return View{Icon: icon, Tooltip: "Drawbridge: " + status, Menu: BuildMenu(s)}
}

// show shows a state and waits until it is drawn.
func (r *cocoaTrayRig) show(s State) {
	r.t.Helper()
	v := view(s)
	r.tray.Show(v)
	until(r.t, "the state is shown", func() (so bool) {
		r.main(r.t, func() { so = r.tray.tooltip == v.Tooltip })
		return so
	})
}

// open clicks on the status item, which opens its menu. GNUstep follows the mouse
// in it until the button is released over an item, or pressed elsewhere.
func (r *cocoaTrayRig) open() {
	r.t.Helper()
	var button objc.ID
	r.main(r.t, func() { button = r.tray.item.Send(cocoa.Sel("button")) })
	x, y, w, h := r.on(r.t, button)
	r.moveTo(r.t, x+w/2, y+h/2)
	r.macDesk.button(r.t, true)
	until(r.t, "the menu is open", func() bool { _, ok := r.window(r.menu()); return ok })
}

func (r *cocoaTrayRig) menu() objc.ID { return r.tray.menu.menu }

// window is that of a menu, if it is up.
func (r *cocoaTrayRig) window(menu objc.ID) (w objc.ID, up bool) {
	r.main(r.t, func() {
		w = menu.Send(cocoa.Sel("window"))
		up = w != 0 && objc.Send[bool](w, cocoa.Sel("isVisible"))
	})
	return w, up
}

// labels are the titles of a menu, "-" for a separator.
func (r *cocoaTrayRig) labels(menu objc.ID) (out []string) {
	r.main(r.t, func() {
		cocoa.Each(menu.Send(cocoa.Sel("itemArray")), func(it objc.ID) bool {
			label := "-"
			if !objc.Send[bool](it, cocoa.Sel("isSeparatorItem")) {
				label = cocoa.Text(it.Send(cocoa.Sel("title")))
				if objc.Send[int](it, cocoa.Sel("state")) == NSControlStateValueOn {
					label = "✓ " + label
				}
				if !objc.Send[bool](it, cocoa.Sel("isEnabled")) {
					label = "(" + label + ")"
				}
			}
			out = append(out, label)
			return true
		})
	})
	return out
}

// over moves the pressed mouse over an item.
func (r *cocoaTrayRig) over(menu objc.ID, label string) {
	r.t.Helper()
	var x, y int
	r.main(r.t, func() {
		i := objc.Send[int](menu, cocoa.Sel("indexOfItemWithTitle:"), cocoa.String(label))
		if i < 0 {
			return
		}
		v := menu.Send(cocoa.Sel("menuRepresentation"))
		in := objc.Send[quartz.CGRect](v, cocoa.Sel("rectOfItemAtIndex:"), i)
		in = objc.Send[quartz.CGRect](v, cocoa.Sel("convertRect:toView:"), in, objc.ID(0))
		w := objc.Send[quartz.CGRect](v.Send(cocoa.Sel("window")), cocoa.Sel("frame"))
		x, y = int(w.Origin.X+in.Origin.X+in.Size.Width/2), macHeight-int(w.Origin.Y+in.Origin.Y+in.Size.Height/2)
	})
	if x == 0 {
		r.t.Fatalf("no item %q in %q", label, r.labels(menu))
	}
	r.moveTo(r.t, x, y)
	until(r.t, label+" is under the pointer", func() (so bool) {
		r.main(r.t, func() {
			v := menu.Send(cocoa.Sel("menuRepresentation"))
			i := objc.Send[int](v, cocoa.Sel("highlightedItemIndex"))
			so = i >= 0 && cocoa.Text(menu.Send(cocoa.Sel("itemAtIndex:"), i).Send(cocoa.Sel("title"))) == label
		})
		return so
	})
}

// sub is the sub-menu of an item, once the pointer has opened it.
func (r *cocoaTrayRig) sub(label string) (sub objc.ID) {
	r.t.Helper()
	r.over(r.menu(), label)
	r.main(r.t, func() {
		sub = r.menu().Send(cocoa.Sel("itemWithTitle:"), cocoa.String(label)).Send(cocoa.Sel("submenu"))
	})
	until(r.t, label+" is open", func() bool { _, up := r.window(sub); return up })
	return sub
}

// letGo releases the mouse, which closes the menu.
func (r *cocoaTrayRig) letGo() {
	r.t.Helper()
	r.button(r.t, false)
	until(r.t, "AppKit follows the mouse no longer", func() bool { return r.mode(r.t) == "NSDefaultRunLoopMode" })
}

func (r *cocoaTrayRig) clicked() Click {
	r.t.Helper()
	select {
	case c := <-r.clicks:
		return c
	case <-time.After(30 * time.Second):
		r.t.Fatal("no click within 30 s")
	}
	return Click{}
}

// shown is a menu of a state that has a little of everything.
func shownState() State {
	return State{
		Version: "1.2.3",
		Pending: []Prompt{
			{ID: "a-1", Client: "claude", Tool: "bash", Host: "omp", Args: []string{`{`, `  "command": "ls"`, `}`}, Scopes: []gate.Scope{gate.Deny, gate.Once, gate.ForConn, gate.For15m}},
			{ID: "a-2", Kind: gate.AskResume, Scopes: []gate.Scope{gate.Deny, gate.Once}},
		},
		Working: []string{"claude"},
		Clients: []Client{{Name: "claude", Connections: 1, Calls: 2}},
		Login:   Login{Known: true, On: true},
	}
}

func TestCocoaTrayMenu(t *testing.T) {
	r := newCocoaTrayRig(t, State{Version: "1.2.3"})
	want := []string{
		"(Ready)", "-", "(Stop now)", "Pause everything", "-", "(No client yet)", "Models: allowed", "-", "Open activity",
		"Copy client configuration", "Run doctor", "-", "(Drawbridge 1.2.3)", "Quit",
	}
	if got := r.labels(r.menu()); !slices.Equal(got, want) {
		t.Errorf("at first %q", got)
	}
	r.show(shownState())
	want = []string{
		"(1 question for you)", `claude: bash {"command": "ls"}`, "Everything is paused: go on?", "-", "Stop now", "Pause everything", "-",
		"Clients (1)", "Models: allowed", "-", "Open activity", "Copy client configuration", "Run doctor", "✓ Start at login", "-", "(Drawbridge 1.2.3)", "Quit",
	}
	if got := r.labels(r.menu()); !slices.Equal(got, want) {
		t.Errorf("then %q", got)
	}

	// An answer in a sub-menu.
	r.open()
	sub := r.sub(want[1])
	if got := r.labels(sub); !slices.Contains(got, `({"command": "ls"})`) || !slices.Contains(got, "(claude runs bash of omp)") {
		t.Errorf("its prompt says %q", got)
	}
	r.over(sub, "Allow bash for 15 minutes")
	r.save(t, "mac-menu.png", image.Rect(macWidth/2, 0, macWidth/2+470, 360))
	r.letGo()
	if c := r.clicked(); c.Action.Verb != VerbAnswer || c.Action.Prompt != "a-1" || c.Action.Answer != (gate.Answer{Scope: gate.For15m}) || c.Since.IsZero() {
		t.Errorf("%+v", c)
	}
	// An item of the first level.
	r.open()
	r.over(r.menu(), "Pause everything")
	r.letGo()
	if c := r.clicked(); c.Action != (Action{Verb: VerbPause}) {
		t.Errorf("%+v", c)
	}
	// What is disabled does nothing.
	r.main(t, func() {
		it := r.menu().Send(cocoa.Sel("itemWithTitle:"), cocoa.String("Drawbridge 1.2.3"))
		cocoa.Class("NSApplication").Send(cocoa.Sel("sharedApplication")).Send(cocoa.Sel("sendAction:to:from:"),
			objc.Send[objc.SEL](it, cocoa.Sel("action")), it.Send(cocoa.Sel("target")), it)
	})
	select {
	case c := <-r.clicks:
		t.Errorf("a disabled item did %+v", c)
	default:
	}

	// Prompts go, the one that stays keeps its item; and the mark goes.
	s := shownState()
	s.Pending = s.Pending[1:]
	s.Working = nil
	s.Login.On = false
	r.show(s)
	want = slices.Delete(want, 1, 2)
	want[0], want[len(want)-4] = "(Ready)", "Start at login"
	if got := r.labels(r.menu()); !slices.Equal(got, want) {
		t.Errorf("in the end %q", got)
	}
}

// TestCocoaTrayAnswers: an answer that the person clicks in the menu reaches the
// gate.
func TestCocoaTrayAnswers(t *testing.T) {
	m := openMac(t)
	a := newGateAgent(gate.Options{CoolDown: time.Nanosecond})
	r := &cocoaTrayRig{macDesk: m, t: t}
	hosted := make(chan struct{}, 1)
	r.tray = NewRenderer(zerolog.Nop(), func() { hosted <- struct{}{} }).(*cocoaTray)
	tray := NewTray(TrayOptions{Renderer: r.tray, Agent: a, Log: zerolog.Nop()})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- tray.Run(ctx) }()
	<-hosted
	a.gate.AddSurface(tray)
	for answer, want := range map[string]gate.Outcome{"Allow once": gate.Allowed, "Deny": gate.Denied} {
		v := a.ask(t.Context(), "claude")
		const prompt = "claude: bash {} (2 min left)"
		until(t, "the prompt is in the menu", func() bool { return slices.Contains(r.labels(r.menu()), prompt) })
		time.Sleep(2 * reflex) // the person reads it
		r.open()
		r.over(r.sub(prompt), answer)
		r.letGo()
		if got := <-v; got.Outcome != want || got.By != "person at the tray" {
			t.Errorf("%s: %+v", answer, got)
		}
		until(t, "the prompt is gone", func() bool { return !slices.Contains(r.labels(r.menu()), prompt) })
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestCocoaTrayReveal: the person can take the item off the menu bar, and a
// second start of the program puts it back.
func TestCocoaTrayReveal(t *testing.T) {
	r := newCocoaTrayRig(t, State{})
	r.main(t, func() { r.tray.item.Send(cocoa.Sel("setVisible:"), false) })
	r.show(shownState())
	if <-r.changes || r.tray.Hosted() {
		t.Error("the item is still in the menu bar")
	}
	r.tray.Reveal()
	if !<-r.changes || !r.tray.Hosted() {
		t.Error("the item did not come back")
	}
}
