//go:build darwin || standin

package ui

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/ebitengine/purego/objc"
	"github.com/rs/zerolog"

	"drawbridge/internal/cocoa"
)

// grantTick is how often macOS is asked for the grants while the window is open:
// it tells nobody when one arrives.
const grantTick = time.Second

// ShowOnboarding shows the window that asks for each grant in turn, shows when it
// arrives, and then has the measurements taken. It returns when the person closes
// the window, or ctx ends; an error tells that it cannot be shown.
func ShowOnboarding(ctx context.Context, o Onboarding, log zerolog.Logger) error {
	if err := cocoa.Start(); err != nil {
		return fmt.Errorf("onboarding: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	w := &cocoaOnboarding{asked: make(chan func(), 4)}
	r := &onboardingRun{o: o, window: w, log: log, told: make(chan []Measure, 1), measured: make(chan error, 1)}
	r.grants = o.Grants(ctx)
	for _, g := range r.grants {
		w.names = append(w.names, g.Name)
	}
	v := r.view()
	err := cocoa.Main(func() {
		w.build(&v,
			func(i int) { r.ask(ctx, "request", o.Request, i) },
			func(i int) { r.ask(ctx, "open the settings", o.OpenSettings, i) },
			cancel)
	})
	if err != nil {
		cancel()
		return fmt.Errorf("onboarding: %w", err)
	}
	r.run(ctx)
	cancel()
	if r.measuring {
		<-r.measured // which the end of ctx ends
	}
	return cocoa.Main(w.take)
}

// onboardingRun is one showing of the window.
type onboardingRun struct {
	o      Onboarding
	window *cocoaOnboarding
	log    zerolog.Logger

	grants    []Grant
	measures  []Measure
	told      chan []Measure
	measured  chan error
	measuring bool // a goroutine takes the measurements, and will tell measured
	tried     bool // it told
	err       error
}

func (r *onboardingRun) view() onboardingView {
	return newOnboardingView(r.grants, r.measures, r.tried, r.err)
}

func (r *onboardingRun) run(ctx context.Context) {
	tick := time.NewTicker(grantTick)
	defer tick.Stop()
	for {
		v := r.view()
		if v.step < 0 && !r.measuring && !r.tried {
			r.measuring = true
			go r.measure(ctx)
		}
		_ = cocoa.Main(func() { r.window.show(&v) }) // it fails at the end only
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.grants = r.sameOrder(r.o.Grants(ctx))
		case do := <-r.window.asked:
			do()
			r.grants = r.sameOrder(r.o.Grants(ctx))
		case r.measures = <-r.told:
		case r.err = <-r.measured:
			r.measuring, r.tried = false, true
		}
	}
}

// sameOrder keeps the rows of the window, which was laid out for the first list.
func (r *onboardingRun) sameOrder(now []Grant) []Grant {
	out := slices.Clone(r.grants)
	for i := range out {
		if j := slices.IndexFunc(now, func(g Grant) bool { return g.Name == out[i].Name }); j >= 0 {
			out[i] = now[j]
		}
	}
	return out
}

func (r *onboardingRun) measure(ctx context.Context) {
	r.measured <- r.o.Measure(ctx, func(all []Measure) {
		all = slices.Clone(all)
		select {
		case <-r.told: // it was never shown
		default:
		}
		r.told <- all
	})
}

// ask is called on the main thread, which must not wait.
func (r *onboardingRun) ask(ctx context.Context, what string, do func(context.Context, string) error, i int) {
	name := r.window.names[i]
	asked := func() {
		if r.err = do(ctx, name); r.err != nil {
			r.log.Warn().Err(r.err).Str("grant", name).Msg("onboarding: " + what)
		}
	}
	select {
	case r.window.asked <- asked:
	default: // the person clicks faster than anything is done
	}
}

// cocoaOnboarding is the window. All but asked and names is the main thread's.
type cocoaOnboarding struct {
	asked chan func()
	names []string

	window, title, result, done objc.ID
	rows                        []onboardingRow
	buttons                     []objc.ID
}

type onboardingRow struct{ state, text, ask, settings objc.ID }

// The measures of the window, in points.
const (
	onboardWidth  = 600
	onboardRow    = 92
	onboardResult = 110
)

// build lays the window out, from below.
func (w *cocoaOnboarding) build(v *onboardingView, request, settings func(int), closed func()) {
	const full = onboardWidth - 2*panelMargin
	height := float64(2*panelMargin + panelButton + panelGap + onboardResult + panelGap + len(v.grants)*onboardRow + panelGap + 2*panelLine)
	w.window = cocoa.Window("Set up Drawbridge", onboardWidth, height)
	cocoa.OnClose(w.window, closed)
	in := cocoa.Content(w.window)
	y := float64(panelMargin)
	w.done = cocoa.Button(in, "Later", cocoa.Rect(panelMargin+full-120, y, 120, panelButton), 0, closed)
	w.buttons = append(w.buttons, w.done)
	y += panelButton + panelGap
	w.result = cocoa.Label(in, "", cocoa.Small, cocoa.Rect(panelMargin, y, full, onboardResult), 0, true)
	y += onboardResult + panelGap
	w.rows = make([]onboardingRow, len(v.grants))
	for i := range w.rows {
		bottom := y + float64(len(w.rows)-1-i)*onboardRow
		g := &v.grants[i]
		w.rows[i] = onboardingRow{
			state:    cocoa.Label(in, g.state, cocoa.Small, cocoa.Rect(panelMargin+full-150, bottom+64, 150, panelLine), 0, false),
			text:     cocoa.Label(in, g.text, cocoa.Small, cocoa.Rect(panelMargin, bottom+8, full-270, 56), 0, true),
			ask:      cocoa.Button(in, "Ask for it", cocoa.Rect(panelMargin+full-260, bottom+24, 110, panelButton), 0, func() { request(i) }),
			settings: cocoa.Button(in, "Open Settings", cocoa.Rect(panelMargin+full-140, bottom+24, 140, panelButton), 0, func() { settings(i) }),
		}
		cocoa.Label(in, g.title, cocoa.Bold, cocoa.Rect(panelMargin, bottom+64, full-160, panelLine+2), 0, false)
		w.buttons = append(w.buttons, w.rows[i].ask, w.rows[i].settings)
	}
	y += float64(len(w.rows)*onboardRow) + panelGap
	w.title = cocoa.Label(in, v.title, cocoa.Plain, cocoa.Rect(panelMargin, y, full, 2*panelLine), 0, true)
	w.show(v)
	cocoa.ShowActive(w.window)
}

// show renews the window. Only the grant whose turn it is can be asked for.
func (w *cocoaOnboarding) show(v *onboardingView) {
	cocoa.SetText(w.title, v.title)
	cocoa.SetText(w.result, v.result)
	for i := range w.rows {
		row := &w.rows[i]
		cocoa.SetText(row.state, v.grants[i].state)
		cocoa.SetText(row.text, v.grants[i].text)
		turn := i == v.step
		row.ask.Send(cocoa.Sel("setEnabled:"), turn)
		row.settings.Send(cocoa.Sel("setEnabled:"), turn)
	}
	label := "Later"
	if v.done {
		label = "Done"
	}
	w.done.Send(cocoa.Sel("setTitle:"), cocoa.String(label))
}

func (w *cocoaOnboarding) take() {
	for _, b := range w.buttons {
		cocoa.Forget(b)
	}
	cocoa.CloseWindow(w.window)
}
