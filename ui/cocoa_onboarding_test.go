//go:build standin

package ui

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"github.com/ebitengine/purego/objc"
	"github.com/rs/zerolog"

	"drawbridge/internal/cocoa"
)

// grants is a Mac that gives grants when the test says so.
type grants struct {
	mu     sync.Mutex // guards all
	list   []Grant
	done   []string
	fail   error
	result chan error
}

func (g *grants) Grants(context.Context) []Grant {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.list)
}

func (g *grants) note(s string) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.done = append(g.done, s)
	return g.fail
}

func (g *grants) deeds() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.done)
}

func (g *grants) give(i int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.list[i].State, g.list[i].Detail = granted, ""
}

func (g *grants) Request(_ context.Context, name string) error { return g.note("request " + name) }
func (g *grants) OpenSettings(_ context.Context, name string) error {
	return g.note("settings " + name)
}

func (g *grants) Measure(ctx context.Context, tell func([]Measure)) error {
	tell([]Measure{{Name: "wheel", Title: "Which way the wheel turns", State: "running"}})
	select {
	case err := <-g.result:
		tell([]Measure{{Name: "wheel", Title: "Which way the wheel turns", State: "done", Detail: "as everywhere"}})
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func twoGrants() *grants {
	return &grants{result: make(chan error, 1), list: []Grant{
		{Name: "accessibility", Title: "Accessibility", Purpose: "For moving the pointer, clicking, scrolling and typing.", State: missing},
		{Name: "screen_recording", Title: "Screen & System Audio Recording", Purpose: "For pictures of the screen.", State: missing,
			Detail: "If it is switched on and still missing here, quit Drawbridge and open it again."},
	}}
}

type onboardingRig struct {
	*macDesk
	t     *testing.T
	ended chan error
}

func newOnboardingRig(t *testing.T, ctx context.Context, o Onboarding) *onboardingRig {
	t.Helper()
	r := &onboardingRig{openMac(t), t, make(chan error, 1)}
	go func() { r.ended <- ShowOnboarding(ctx, o, zerolog.Nop()) }()
	r.window(t, "NSWindow")
	return r
}

func (r *onboardingRig) up() objc.ID { return r.window(r.t, "NSWindow") }

// the button of a title whose turn it is.
func (r *onboardingRig) the(title string) (found objc.ID) {
	r.t.Helper()
	r.views(r.t, r.up(), func(v objc.ID, class, text string) {
		if class == "DrawbridgeButton" && text == title && objc.Send[bool](v, cocoa.Sel("isEnabled")) {
			found = v
		}
	})
	if found == 0 {
		r.t.Fatalf("no button %q can be pressed", title)
	}
	return found
}

func (r *onboardingRig) shows(text string) {
	r.t.Helper()
	until(r.t, "the window says "+text, func() bool { return r.says(r.t, r.up(), text) })
}

func (r *onboardingRig) closed() {
	r.t.Helper()
	if err := <-r.ended; err != nil {
		r.t.Error(err)
	}
	r.gone(r.t, "NSWindow")
}

// TestCocoaOnboarding asks for each grant in turn, shows when it arrives, and then
// measures.
func TestCocoaOnboarding(t *testing.T) {
	g := twoGrants()
	r := newOnboardingRig(t, t.Context(), g)
	r.shows("0 of 2 grants given. Next: Accessibility")
	r.click(t, r.the("Ask for it"))
	until(t, "it was asked for", func() bool { return slices.Equal(g.deeds(), []string{"request accessibility"}) })
	g.give(0)
	r.shows("1 of 2 grants given. Next: Screen & System Audio Recording")
	r.pictureOf(t, "mac-onboarding.png", r.up())
	g.mu.Lock()
	g.fail = errors.New("the settings do not open")
	g.mu.Unlock()
	r.click(t, r.the("Open Settings"))
	r.shows("✗ the settings do not open")
	if got := g.deeds(); !slices.Equal(got, []string{"request accessibility", "settings screen_recording"}) {
		t.Errorf("%q", got)
	}
	g.give(1)
	r.shows("This Mac is being measured")
	r.shows("… Which way the wheel turns")
	g.result <- nil
	r.shows("Drawbridge is ready.")
	r.shows("✓ Which way the wheel turns: as everywhere")
	r.click(t, r.the("Done"))
	r.closed()
}

// TestCocoaOnboardingEnds: the person closes the window, or the agent ends, also
// while it is measured; and a measurement that fails says so.
func TestCocoaOnboardingEnds(t *testing.T) {
	r := newOnboardingRig(t, t.Context(), twoGrants())
	var v objc.ID
	w := r.up()
	r.main(t, func() { v = cocoa.Content(w) })
	x, y, width, _ := r.on(t, v)
	r.moveTo(t, x+width-12, y-11)
	r.press(t)
	r.closed()

	g := twoGrants()
	g.give(0)
	g.give(1)
	ctx, cancel := context.WithCancel(t.Context())
	r = newOnboardingRig(t, ctx, g)
	r.shows("This Mac is being measured")
	cancel()
	r.closed()

	r = newOnboardingRig(t, t.Context(), g)
	g.result <- errors.New("the wheel did not turn")
	r.shows("something could not be measured")
	r.shows("✗ the wheel did not turn")
	r.click(t, r.the("Done"))
	r.closed()
}
