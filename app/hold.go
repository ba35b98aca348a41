package main

import (
	"context"
	"slices"
	"strings"
	"time"

	"drawbridge/app/config"
	"drawbridge/bridge/gate"
	"drawbridge/bridge/grant"
	"drawbridge/bridge/hostllm"
)

// holdsGrants tells whether programs that the agent starts act with what was
// granted to it.
func holdsGrants() bool { return len(grant.List()) > 0 }

// hold puts what was read in force, as far as a person accepted it, and returns it.
// The parts are not told: see apply.
func (a *agent) hold() (*config.Loaded, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	next, waiting, err := a.read.Hold(a.gate.InForce(), holdsGrants())
	if err != nil {
		return nil, err
	}
	a.conf, a.waiting = next, waiting
	return next, nil
}

// isWaiting tells whether a host waits for a person to accept it.
func (a *agent) isWaiting(host string) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.waiting[host]
}

// restartOnly are the fields that are read only at the start, as prefixes.
var restartOnly = []string{
	"listen", "allow_xwayland", "virtual.", "approvals.", "limits.", "audit.", "log.",
	"computer.backend", "computer.capture", "computer.lease_queue", "model_gateway.",
}

func takesRestart(name string) bool {
	return slices.ContainsFunc(restartOnly, func(p string) bool { return strings.HasPrefix(name, p) })
}

// apply puts what was read in force and tells the parts. It returns the fields that
// changed by it, and those that take a restart.
func (a *agent) apply() (changed, restart []string, err error) {
	a.holding.Lock()
	defer a.holding.Unlock()
	a.mu.Lock()
	old := a.conf.Without(a.waiting)
	a.mu.Unlock()
	next, err := a.hold()
	if err != nil {
		return nil, nil, err
	}
	a.mu.Lock()
	inForce := next.Without(a.waiting) // a host that waits changes nothing yet
	a.mu.Unlock()
	changed, restart = []string{}, []string{}
	for _, name := range old.Changed(inForce) {
		if takesRestart(name) {
			restart = append(restart, name)
		} else {
			changed = append(changed, name)
		}
	}
	if err := a.hosts.Configure(next.MainHost, next.Hosts); err != nil {
		return changed, restart, err // checked when it was read
	}
	a.exposed.set(next.Config)
	a.tool.SetConfig(toolConfig(next.Config))
	a.server.Admit(next.AllowedHosts, next.AllowedOrigins)
	a.grabPanicChord(next.HandBack.PanicChord)
	a.server.ToolsChanged()
	return changed, restart, nil
}

// followAccepted puts in force what a person accepts, from now on until ctx ends,
// and what they have accepted already.
func (a *agent) followAccepted(ctx context.Context) {
	put := func() {
		changed, restart, err := a.apply()
		switch {
		case err != nil:
			a.log.Error().Err(err).Msg("what was accepted is not in force")
		case len(changed)+len(restart) > 0:
			a.log.Info().Strs("changed", changed).Strs("restart", restart).Msg("accepted")
		}
		a.pulse.Touch()
	}
	// The agent may be closed without its ctx having ended, when it does not come to
	// serve.
	ctx, cancel := context.WithCancel(ctx)
	a.holding.Lock()
	a.chord.ctx = ctx
	a.holding.Unlock()
	put()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			select {
			case <-a.accepted:
				put()
			case <-ctx.Done():
				return
			}
		}
	}()
	a.onClose("panic chord", func() error {
		cancel()
		<-ended
		a.holding.Lock()
		defer a.holding.Unlock()
		a.chord.ctx = nil
		return a.chord.release()
	})
}

// saveEvery is how often what could not be saved is tried again.
const saveEvery = 10 * time.Second

// tellUnsaved is called, also with locks held, when something could not be saved.
func (a *agent) tellUnsaved() {
	select {
	case a.unsaved <- struct{}{}:
	default: // it has been told, and tries all of it
	}
}

// saveAgain saves what could not be saved, from now on until ctx ends: a disk may
// have room again, or a Keychain be open.
func (a *agent) saveAgain(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		// It wakes for nothing where all is saved.
		for {
			select {
			case <-a.unsaved:
			case <-ctx.Done():
				return
			}
			select {
			case <-time.After(saveEvery):
			case <-ctx.Done():
				return
			}
			a.gate.SaveAgain()
			a.models.SaveAgain()
		}
	}()
	a.onClose("saving", func() error { cancel(); <-ended; return nil })
}

// awaitsRestart lists the fields that are in force only after a restart.
func (a *agent) awaitsRestart() []string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.DeleteFunc(a.begun.Changed(a.conf), func(name string) bool { return !takesRestart(name) })
}

// reload reads configuration and rules again. With an error nothing changed.
func (a *agent) reload() (reloaded, error) {
	a.reloading.Lock()
	defer a.reloading.Unlock()
	next, err := a.cli.loadConfig(a.flags)
	if err != nil {
		return reloaded{}, err
	}
	before := a.gate.InForce().Rules
	policy, err := readPolicy(next.Written, rulesFile(a.dir))
	if err == nil {
		err = a.gate.SetPolicy(policy)
	}
	if err != nil {
		return reloaded{}, err
	}
	a.mu.Lock()
	a.read = next
	a.mu.Unlock()
	r := reloaded{}
	if r.Changed, r.Restart, err = a.apply(); err != nil {
		return reloaded{}, err
	}
	if !slices.EqualFunc(before, a.gate.InForce().Rules, gate.Rule.Equal) {
		r.Changed = append(r.Changed, rulesName)
	}
	r.Waiting = a.gate.Waiting()
	r.Warnings = slices.DeleteFunc(a.gate.Warnings(), func(w string) bool { return strings.HasPrefix(w, gate.NotInForce) })
	if next.HostLLM == hostllm.Deny {
		if err := a.models.Deny("configuration"); err != nil {
			r.Warnings = append(r.Warnings, err.Error())
		}
	} else if a.models.Denied() {
		r.Warnings = append(r.Warnings, "models stay off until a person allows them: drawbridge host-llm allow")
	}
	a.log.Info().Strs("changed", r.Changed).Strs("restart", r.Restart).Strs("waiting", r.Waiting).Msg("reloaded")
	return r, nil
}
