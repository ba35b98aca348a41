//go:build darwin || standin

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/doctor"
	"drawbridge/bridge/grant"
	"drawbridge/bridge/measured"
	"drawbridge/internal/cocoa"
	"drawbridge/ui"
)

// newAsker asks by a panel of our own.
func newAsker(s *surfaces, changed func()) asker {
	return ui.NewPanels(ui.PanelOptions{Preview: s.previews.PNG, Injected: s.tool.LastEvent, Changed: changed, Log: s.log})
}

// hearSystem ends the agent in order when macOS asks the application to quit.
func (a *agent) hearSystem() {
	cocoa.OnQuit(func() { a.end(told("macOS asked the application to quit")) })
}

// settle shows the agent to a person who opens it again, and has one who starts it
// for the first time give the grants.
func (s *surfaces) settle() {
	cocoa.OnReopen(s.show)
	if s.desk.Backend == desk.Native && s.unsettled() {
		s.ended.Go(func() {
			if err := ui.ShowOnboarding(s.ctx, onboarding{s.agent}, s.log); err != nil {
				s.log.Warn().Err(err).Msg("what macOS must grant cannot be asked for; see drawbridge doctor")
			}
		})
	}
}

// unsettled reports whether a grant is missing, or this version of macOS has not
// been measured.
func (s *surfaces) unsettled() bool {
	_, known := measured.Load(s.dir, s.desk.System)
	return !known || slices.ContainsFunc(grant.List(), func(g grant.Grant) bool {
		return g.Needed && grant.Look(g.Name) == computer.Missing
	})
}

// onboarding is the agent as the onboarding window sees it.
type onboarding struct{ *agent }

func (o onboarding) Grants(context.Context) []ui.Grant {
	var out []ui.Grant
	for _, g := range grant.List() {
		v := ui.Grant{Name: g.Name, Title: g.Title, Purpose: "For " + g.Purpose + ".", State: string(grant.Look(g.Name))}
		if v.State != string(computer.Granted) {
			v.Detail = "If it is switched on and still missing here, quit Drawbridge and open it again."
		}
		out = append(out, v)
	}
	return out
}

func (o onboarding) Request(_ context.Context, name string) error { return grant.Request(name) }

func (o onboarding) OpenSettings(ctx context.Context, name string) error {
	return grant.OpenSettings(ctx, name)
}

// Measure runs the doctor's test of every gesture.
func (o onboarding) Measure(ctx context.Context, tell func([]ui.Measure)) error {
	tell([]ui.Measure{{Name: "gestures", Title: "Every kind of gesture, in a window of its own", State: "running"}})
	request, err := json.Marshal(doctorRequest{TestInput: true})
	if err != nil {
		return err
	}
	answer, err := o.examine(ctx, request, nil)
	if err != nil {
		return err
	}
	report, ok := answer.(doctor.Report)
	if !ok {
		return errors.New("the doctor gave no report")
	}
	sum := ui.Measure{Name: "gestures", Title: "Gestures", State: "done"}
	var failed []ui.Measure
	for _, c := range report.Checks {
		if !c.OK {
			failed = append(failed, ui.Measure{Name: c.Name, Title: c.Name, State: "failed", Detail: c.Detail})
		}
	}
	if len(failed) > 0 {
		sum.State = "failed"
	}
	sum.Detail = fmt.Sprintf("%d of %d arrived", len(report.Checks)-len(failed), len(report.Checks))
	tell(append([]ui.Measure{sum}, failed...))
	if !report.OK {
		return errors.New("not everything works yet: see drawbridge doctor --test-input")
	}
	return nil
}
