package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"maps"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"drawbridge/bridge/desk"
	"drawbridge/bridge/doctor"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/stop"
	"drawbridge/bridge/token"
	"drawbridge/ui"
)

// surfaces are the agent as the person meets it beside its terminal: the tray
// and notifications.
type surfaces struct {
	*agent
	ctx   context.Context // of the running agent
	notes asker
	tray  *ui.Tray
	bar   ui.Renderer // the tray's
	ended sync.WaitGroup
}

// asker is where prompts come up by themselves, beside the tray.
type asker interface {
	gate.Surface
	// Run serves it until ctx ends.
	Run(ctx context.Context) error
	// Tell shows a sentence that needs no answer, and reports whether it could.
	Tell(text string) bool
}

var _ ui.Agent = (*surfaces)(nil)

// openSurfaces puts up the tray and lets notifications ask, where the desktop is
// one that a person looks at. Where there is none of them the agent goes on and
// says so once.
func (a *agent) openSurfaces(ctx context.Context) {
	if a.flags.noTray || a.desk.Backend == desk.Simulated {
		return
	}
	// The library under the tray reports to the standard logger.
	log.SetFlags(0)
	log.SetOutput(a.log.With().Str("part", "tray").Logger())
	s := &surfaces{agent: a, ctx: ctx}
	var notesOnce, trayOnce sync.Once
	offer := func(surface gate.Surface, once *sync.Once) {
		a.pulse.Touch()
		if !surface.Ready() {
			return
		}
		once.Do(func() {
			a.gate.AddSurface(surface)
			a.log.Info().Str("surface", surface.Name()).Msg("a person can be asked")
		})
		// What waited for somebody to be asked.
		a.gate.OfferAccept()
		_ = a.gate.OfferResume() // nothing is paused, as a rule
	}
	s.notes = newAsker(s, func() { offer(s.notes, &notesOnce) })
	hosted := make(chan struct{}, 1) // the renderer may tell before the tray is made
	s.bar = newRenderer(a.log, func() {
		select {
		case hosted <- struct{}{}:
		default:
		}
	})
	s.tray = ui.NewTray(ui.TrayOptions{Renderer: s.bar, Agent: s, Injected: a.tool.LastEvent, Log: a.log})
	s.ended.Go(func() {
		if err := s.notes.Run(ctx); err != nil {
			a.log.Warn().Err(err).Str("surface", s.notes.Name()).Msg("no prompts come up by themselves")
		}
	})
	s.ended.Go(func() {
		if err := s.tray.Run(ctx); err != nil {
			a.log.Warn().Err(err).Msg("no tray")
		}
	})
	s.ended.Go(func() {
		for {
			select {
			case <-hosted:
				offer(s.tray, &trayOnce)
			case <-ctx.Done():
				return
			}
		}
	})
	s.ended.Go(func() { s.watchModels(ctx) })
	s.ended.Go(func() { s.readLogin(ctx) })
	s.settle()
	a.mu.Lock()
	a.show = s.show
	a.mu.Unlock()
	a.onClose("tray and notifications", func() error { s.ended.Wait(); return nil })
}

// show makes the agent seen by a person who started it a second time: the status
// item, or the page where there is none to be seen.
func (s *surfaces) show() {
	if r, ok := s.bar.(ui.Revealer); ok {
		r.Reveal()
	}
	if !s.tray.Ready() {
		s.openPage()
	}
}

// openPage opens the page, and does not wait for the browser.
func (s *surfaces) openPage() { s.ended.Go(func() { s.tried(s.openActivity()) }) }

// watchModels tells the person once of each denial when it begins to refuse.
func (s *surfaces) watchModels(ctx context.Context) {
	var told *hostllm.Refusal
	for {
		_, changed := s.models.Watch()
		if first := s.models.FirstRefusal(); first != nil && first != told {
			s.Tell("Models are off, and a request was refused: " + first.String())
			told = first
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// State is a snapshot of everything that the surfaces show.
func (s *surfaces) State() ui.State { return s.agent.uiState() }

// Changed is closed when State may have become another.
func (s *surfaces) Changed() <-chan struct{} { return s.pulse.Wait() }

func (a *agent) uiState() ui.State {
	st := a.server.Status()
	v := ui.State{Version: st.Version, Backend: st.Backend, Permissions: st.Permissions, Warnings: st.Warnings}
	v.PausedBy, v.Paused = a.gate.Paused()
	models, known := a.models.InForce()
	v.Models = ui.Models{Denied: models.Mode != hostllm.Allow, By: models.By}
	for _, h := range known {
		v.Models.Hosts = append(v.Models.Hosts, ui.ModelHost{Name: h.ID, Denied: h.InForce})
	}
	if l := a.login.Load(); l != nil {
		v.Login = *l
	}
	now := time.Now()
	v.Rules, v.Requests = a.remembered(now), a.requests.List()
	for _, p := range a.gate.List() {
		v.Pending = append(v.Pending, ui.NewPrompt(p, now))
	}
	for _, c := range st.Clients {
		v.Clients = append(v.Clients, ui.Client{Name: c.Name, Connections: c.Connections, Calls: c.Calls})
	}
	for _, h := range st.Hosts {
		var asking []string
		for _, call := range slices.Sorted(maps.Keys(h.Asking)) {
			asking = append(asking, h.Asking[call])
		}
		v.Hosts = append(v.Hosts, ui.Host{Name: h.Name, Kind: h.Kind, State: h.State, Tools: h.Tools, Asking: strings.Join(asking, "; ")})
	}
	for _, c := range a.server.Calls() {
		if c.Running && !slices.Contains(v.Working, c.Client) {
			v.Working = append(v.Working, c.Client)
		}
	}
	return v
}

// Answer answers a prompt by its ID.
func (s *surfaces) Answer(id string, answer gate.Answer) error { return s.agent.answer(id, answer) }

func (a *agent) answer(id string, answer gate.Answer) error {
	for _, p := range a.gate.List() {
		if p.ID == id {
			return p.Answer(answer)
		}
	}
	return &gate.LateError{How: "it was answered elsewhere, or is no longer wanted"}
}

// Do does what an item of the menu says.
func (s *surfaces) Do(v ui.Verb, arg string) error {
	switch v {
	case ui.VerbStop, ui.VerbPause, ui.VerbRevoke, ui.VerbQuit:
		s.note(string(v) + ", the tray")
	}
	switch v {
	case ui.VerbStop:
		s.stopAll(stop.Stopped, "everything was stopped in the tray")
	case ui.VerbPause:
		s.pauseAll("the tray")
	case ui.VerbResume:
		return s.gate.OfferResume()
	case ui.VerbNoModels:
		return s.models.Deny("the tray")
	case ui.VerbModels:
		s.ended.Go(func() { s.tried(s.models.Allow(s.ctx, "the tray")) })
	case ui.VerbActivity:
		s.openPage()
	case ui.VerbRevoke:
		_, err := s.revoke(arg)
		return err
	case ui.VerbCopy:
		return s.copyConfig(arg)
	case ui.VerbDoctor:
		s.ended.Go(func() {
			r := doctor.Run(s.ctx, doctor.Options{Desk: s.desk, InvertScroll: s.config().Computer.InvertScroll})
			s.Tell(diagnosis(r))
		})
	case ui.VerbLogin:
		s.ended.Go(func() { s.tried(s.setLogin(s.ctx, arg == "on")) })
	case ui.VerbQuit:
		s.end(errors.New("quit in the tray"))
	default:
		return fmt.Errorf("this agent knows no %q", v)
	}
	return nil
}

// tried tells the person what did not work.
func (s *surfaces) tried(err error) {
	if err != nil {
		s.log.Warn().Err(err).Msg("tray")
		s.Tell(err.Error())
	}
}

// diagnosis is a doctor's report in a sentence or two.
func diagnosis(r doctor.Report) string {
	if r.OK && len(r.Warnings) == 0 {
		return "Doctor: all is well"
	}
	text := "Doctor: something does not work"
	if r.OK {
		text = "Doctor: all that was asked works"
	}
	return strings.Join(append([]string{text}, r.Warnings...), "; ") + ". See drawbridge doctor."
}

// Tell shows a sentence as a notification; where there are none it is in the
// log.
func (s *surfaces) Tell(text string) {
	if !s.notes.Tell(text) {
		s.log.Info().Str("to", "the person").Msg(text)
	}
}

// copiers are the programs that fill the clipboard, the first that is there.
var copiers = [][]string{{"wl-copy"}, {"xclip", "-selection", "clipboard"}, {"xsel", "--clipboard", "--input"}, {"pbcopy"}}

// copyConfig puts the default client's configuration into the clipboard. It
// holds no token: the stdio end finds that itself.
func (s *surfaces) copyConfig(kind string) error {
	conf, err := s.cli.clientConfig(token.DefaultName)
	if err != nil {
		return err
	}
	k, err := ui.Kind(kind)
	if err != nil {
		return err
	}
	text, where := k.Text(conf), k.Where
	for _, argv := range copiers {
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue
		}
		ctx, cancel := context.WithTimeout(s.ctx, 2*time.Second)
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		cmd.Stdin = strings.NewReader(text)
		err := cmd.Run()
		cancel()
		if err == nil {
			s.Tell(fmt.Sprintf("Copied. It belongs into %s", where))
			return nil
		}
	}
	return fmt.Errorf("no program here fills the clipboard (wl-copy, xclip, xsel); see: drawbridge client config %s --for %s", token.DefaultName, kind)
}
