package ui

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/gate"
)

// fakeRenderer keeps what a status item would show. It behaves as the Renderer
// contract says: Show never waits, and clicks carry since when their item has
// stood there.
type fakeRenderer struct {
	mu     sync.Mutex // guards everything below
	view   View       // the last
	shown  int        // how many there were
	clicks chan<- Click
	closed bool
	refuse error
}

func (r *fakeRenderer) Start(v View, clicks chan<- Click) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.refuse != nil {
		return r.refuse
	}
	r.view, r.shown, r.clicks = v, 1, clicks
	return nil
}

func (r *fakeRenderer) Show(v View) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view = v
	r.shown++
}

func (r *fakeRenderer) Hosted() bool { return true }

func (r *fakeRenderer) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
}

func (r *fakeRenderer) started() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.shown > 0
}

func (r *fakeRenderer) last() (View, int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.view, r.shown
}

// click clicks the item of a label, wherever it is.
func (r *fakeRenderer) click(t *testing.T, since time.Time, labels ...string) {
	t.Helper()
	v, _ := r.last()
	var all []Item
	for _, s := range v.Menu {
		all = append(all, s.Items...)
	}
	for depth, l := range labels {
		i := slices.IndexFunc(all, func(it Item) bool { return it.Label == l })
		if i < 0 {
			t.Fatalf("no item %q in\n%s", labels[:depth+1], render(v.Menu))
		}
		if depth == len(labels)-1 {
			r.clicks <- Click{all[i].Action, since}
			return
		}
		all = all[i].Sub
	}
}

// gateAgent is an Agent over a gate alone, as the running agent is one over
// everything.
type gateAgent struct {
	pulse Pulse
	gate  *gate.Gate
	mu    sync.Mutex // guards what follows
	done  []string
	told  []string
	login Login
}

func newGateAgent(o gate.Options) *gateAgent {
	a := &gateAgent{}
	o.Changed = a.pulse.Touch
	a.gate = gate.New(o)
	return a
}

func (a *gateAgent) State() State {
	var s State
	now := time.Now()
	for _, p := range a.gate.List() {
		s.Pending = append(s.Pending, NewPrompt(p, now))
	}
	s.PausedBy, s.Paused = a.gate.Paused()
	a.mu.Lock()
	defer a.mu.Unlock()
	s.Login = a.login
	return s
}

func (a *gateAgent) Changed() <-chan struct{} { return a.pulse.Wait() }

func (a *gateAgent) Answer(id string, answer gate.Answer) error {
	for _, p := range a.gate.List() {
		if p.ID == id {
			return p.Answer(answer)
		}
	}
	return &gate.LateError{How: "it is over"}
}

func (a *gateAgent) Do(v Verb, arg string) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.done = append(a.done, string(v)+arg)
	switch v {
	case VerbLogin:
		a.login.On = arg == "on"
		a.pulse.Touch()
	case VerbDoctor:
		return errors.New("no doctor here")
	}
	return nil
}

func (a *gateAgent) deeds() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.done)
}

func (a *gateAgent) Tell(text string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.told = append(a.told, text)
}

func (a *gateAgent) ask(ctx context.Context, client string) <-chan gate.Verdict {
	c := make(chan gate.Verdict, 1)
	r := &gate.Request{Client: client, Conn: "k", Host: "omp", Tool: "bash", Args: json.RawMessage(`{}`)}
	go func() { c <- a.gate.Decide(ctx, r) }()
	return c
}

// trayRig runs a tray over a gate in a synctest bubble.
func trayRig(t *testing.T, injected func() time.Time, f func(t *testing.T, a *gateAgent, r *fakeRenderer)) {
	synctest.Test(t, func(t *testing.T) {
		a, r := newGateAgent(gate.Options{PerClient: 1000}), &fakeRenderer{}
		tray := NewTray(TrayOptions{Renderer: r, Agent: a, Injected: injected, Log: zerolog.Nop()})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- tray.Run(ctx) }()
		synctest.Wait()
		a.gate.AddSurface(tray)
		f(t, a, r)
		cancel()
		if err := <-ended; err != nil || !r.closed {
			t.Error(err, r.closed)
		}
	})
}

func TestTrayAnswers(t *testing.T) {
	trayRig(t, nil, func(t *testing.T, a *gateAgent, r *fakeRenderer) {
		for label, want := range map[string]gate.Outcome{"Allow once": gate.Allowed, "Deny": gate.Denied} {
			v := a.ask(t.Context(), label)
			time.Sleep(time.Second)
			r.click(t, time.Now().Add(-time.Second), label+": bash {} (2 min left)", label)
			if got := <-v; got.Outcome != want || got.By != "person at the tray" {
				t.Errorf("%s: %+v", label, got)
			}
			time.Sleep(time.Second)
		}
		view, _ := r.last()
		if view.Icon != IconReady || view.Tooltip != "Drawbridge: Ready" {
			t.Errorf("%s, %s", view.Icon, view.Tooltip)
		}
	})
}

// TestTrayTooSoon: a click on what has just come under the pointer, or right
// after an event of ours, answers nothing.
func TestTrayTooSoon(t *testing.T) {
	var sent time.Time
	trayRig(t, func() time.Time { return sent }, func(t *testing.T, a *gateAgent, r *fakeRenderer) {
		v := a.ask(t.Context(), "c")
		time.Sleep(10 * time.Second)
		const prompt = "c: bash {} (2 min left)"
		r.click(t, time.Now().Add(-399*time.Millisecond), prompt, "Allow once")
		synctest.Wait()
		sent = time.Now().Add(-299 * time.Millisecond)
		r.click(t, time.Now().Add(-time.Hour), prompt, "Allow once")
		synctest.Wait()
		if len(a.gate.List()) != 1 {
			t.Fatal("answered")
		}
		time.Sleep(time.Millisecond)
		r.click(t, time.Now().Add(-400*time.Millisecond), prompt, "Allow once")
		if got := <-v; got.Outcome != gate.Allowed {
			t.Errorf("%+v", got)
		}
	})
}

// TestTrayLate: a click on a prompt that is over says so and runs nothing.
func TestTrayLate(t *testing.T) {
	trayRig(t, nil, func(t *testing.T, a *gateAgent, r *fakeRenderer) {
		v := a.ask(t.Context(), "c")
		time.Sleep(time.Second)
		if err := a.gate.List()[0].Answer(gate.Answer{By: "elsewhere"}); err != nil {
			t.Fatal(err)
		}
		r.click(t, time.Time{}, "c: bash {} (2 min left)", "Allow once")
		synctest.Wait()
		if got := <-v; got.Outcome != gate.Denied {
			t.Errorf("%+v", got)
		}
		if len(a.told) != 1 || a.told[0] != "too late, nothing was run: it is over" {
			t.Errorf("told %q", a.told)
		}
	})
}

// TestTrayBatches: many changes at once are one new menu, which is there within
// 200 ms; and with nothing to show that changes, nothing is drawn.
func TestTrayBatches(t *testing.T) {
	trayRig(t, nil, func(t *testing.T, a *gateAgent, r *fakeRenderer) {
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 100 {
			a.ask(ctx, fmt.Sprint("c", i))
		}
		time.Sleep(199 * time.Millisecond)
		v, n := r.last()
		if len(section(v.Menu, "prompts")) != mostPrompts || section(v.Menu, "more")[0].Label != "88 more questions: open activity" || n > 4 {
			t.Errorf("%d prompts after %d views", len(section(v.Menu, "prompts")), n)
		}
		time.Sleep(time.Minute) // times that are shown are renewed
		if _, m := r.last(); m < n+3 || m > n+5 {
			t.Errorf("%d views in a minute", m-n)
		}
		cancel()
		time.Sleep(199 * time.Millisecond)
		v, n = r.last()
		if len(section(v.Menu, "prompts")) != 0 {
			t.Errorf("%d prompts are left", len(section(v.Menu, "prompts")))
		}
		time.Sleep(time.Hour)
		if _, m := r.last(); m != n {
			t.Errorf("%d views in an idle hour", m-n)
		}
	})
}

func TestTrayVerbs(t *testing.T) {
	trayRig(t, nil, func(t *testing.T, a *gateAgent, r *fakeRenderer) {
		r.click(t, time.Now(), "Pause everything")
		r.click(t, time.Now(), "Open activity")
		r.click(t, time.Now(), "Copy client configuration", "goose")
		r.click(t, time.Now(), "Run doctor")
		synctest.Wait()
		if fmt.Sprint(a.deeds()) != "[pause activity copygoose doctor]" || fmt.Sprint(a.told) != "[no doctor here]" {
			t.Errorf("%v, told %v", a.done, a.told)
		}
	})
}

func TestTrayRefused(t *testing.T) {
	err := NewTray(TrayOptions{Renderer: &fakeRenderer{refuse: ErrNoTray}, Agent: newGateAgent(gate.Options{}), Log: zerolog.Nop()}).Run(t.Context())
	if !errors.Is(err, ErrNoTray) {
		t.Error(err)
	}
}

func TestPulse(t *testing.T) {
	var p Pulse
	p.Touch() // nobody waits
	a := p.Wait()
	if b := p.Wait(); a != b {
		t.Error("two channels for one change")
	}
	select {
	case <-a:
		t.Error("a change before there was one")
	default:
	}
	p.Touch()
	<-a
	p.Touch()
	select {
	case <-p.Wait():
		t.Error("an old change wakes who waits for a new one")
	default:
	}
}
