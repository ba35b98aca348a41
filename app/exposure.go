package main

import (
	"sync/atomic"

	"drawbridge/app/config"
	"drawbridge/bridge/gate"
)

// exposure decides which tools clients see, by the lists of the configuration.
// It can be set while it is asked.
type exposure struct {
	lists atomic.Pointer[exposureLists]
}

type exposureLists struct {
	all     showHide
	clients map[string]showHide
}

// showHide shows what a glob of show fits, or everything where there is none,
// less what a glob of hide fits.
type showHide struct{ show, hide []gate.Glob }

func (s showHide) allows(tool string) bool {
	return (len(s.show) == 0 || fits(s.show, tool)) && !fits(s.hide, tool)
}

func fits(globs []gate.Glob, tool string) bool {
	for i := range globs {
		if globs[i].Match(tool) {
			return true
		}
	}
	return false
}

func (e *exposure) set(c config.Config) {
	l := &exposureLists{all: showHide{globs(c.Expose), globs(c.Hide)}, clients: map[string]showHide{}}
	for name, client := range c.Clients {
		l.clients[name] = showHide{globs(client.Expose), globs(client.Hide)}
	}
	if len(c.Expose) == 0 {
		// An empty global list exposes nothing; only a client's adds nothing.
		l.all.hide = globs([]string{"*"})
	}
	e.lists.Store(l)
}

// globs compiles what the configuration checked already. One that fails all the
// same fits nothing.
func globs(texts []string) []gate.Glob {
	var out []gate.Glob
	for _, t := range texts {
		if g, err := gate.ParseGlob(t); err == nil {
			out = append(out, g)
		}
	}
	return out
}

// allows tells whether a client may see a tool.
func (e *exposure) allows(client, _, tool string) bool {
	l := e.lists.Load()
	return l.all.allows(tool) && l.clients[client].allows(tool)
}
