package main

import (
	"context"
	"fmt"
	"io"

	"drawbridge/bridge/computer"
	"drawbridge/bridge/stop"
	"drawbridge/input"
)

// panicChord is the chord by which the person stops everything at once.
// agent.holding guards it.
type panicChord struct {
	ctx  context.Context // of the running agent; nil before it runs
	keys string
	grab io.Closer // nil: nothing is grabbed
}

func (p *panicChord) release() error {
	if p.grab == nil {
		return nil
	}
	err := p.grab.Close()
	p.grab = nil
	return err
}

// grabPanicChord puts other keys in the place of those that stopped everything.
// Where they cannot be had, that is told, and the other ways to stop remain. It is
// called with holding held.
func (a *agent) grabPanicChord(keys string) {
	g, ok := a.desk.Input.(input.Grabber)
	if a.chord.ctx == nil || !ok || keys == a.chord.keys {
		return
	}
	a.chord.keys = keys
	err := a.chord.release()
	if err == nil && keys != "" {
		var mods []input.Key
		var key input.Key
		if mods, key, err = computer.ParseChord(keys); err == nil {
			a.chord.grab, err = g.Grab(a.chord.ctx, mods, key, func() {
				a.stopAll(stop.Stopped, "everything was stopped by the panic chord, "+keys)
				a.note(verbStop + ", by the panic chord")
			})
		}
	}
	why := ""
	if err != nil {
		why = fmt.Sprintf("the panic chord %s stops nothing: %v", keys, err)
		a.log.Warn().Err(err).Str("chord", keys).Msg("the panic chord is not to be had")
	}
	a.mu.Lock()
	a.noChord = why
	a.mu.Unlock()
}
