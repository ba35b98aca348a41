package host

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"drawbridge/bridge"
)

// reserved are our own tools' names, which no host's tool is listed under.
var reserved = []string{"computer"}

// maxClashes bounds how many name clashes of one host are told one by one.
const maxClashes = 10

// view is what of a host is listed, and what the names mean. It does not change.
type view struct {
	tools  []bridge.Tool
	byName map[string]*Tool // by the listed name
}

// catalogue is what all hosts list. It does not change.
type catalogue struct {
	sources []bridge.Source
	index   map[string]indexed // by listed name
}

type indexed struct {
	source bridge.Source
	tool   bridge.Tool
}

// listed is one line of what is listed, to tell a change by.
type listed struct {
	host, name string
	sum        [sha256.Size]byte
}

// prefix is what stands before the names of a host's tools; s.mu is held.
func (s *Set) prefix(h *Host) string {
	switch {
	case s.isMain(h):
		return ""
	case h.config.Prefix != nil:
		return *h.config.Prefix
	}
	return h.name + "_"
}

// rebuild decides which tool is listed under which name; s.mu is held. A name
// stays with the host that had it first for as long as that host offers it. Who
// comes later with the same name is listed under its own name and an underscore
// where that is free, and is left out where not; both are told. It returns
// whether what is listed has changed.
func (s *Set) rebuild() bool {
	hosts := s.ordered()
	wanted := make([][]string, len(hosts))
	offered := map[string]map[string]bool{} // by listed name: the hosts' names
	for i, h := range hosts {
		prefix := s.prefix(h)
		for j := range h.tools {
			name := prefix + h.tools[j].Name
			wanted[i] = append(wanted[i], name)
			if offered[name] == nil {
				offered[name] = map[string]bool{}
			}
			offered[name][h.name] = true
		}
	}
	owners := map[string]string{}
	for name, owner := range s.owners {
		if offered[name][owner] {
			owners[name] = owner
		}
	}
	for i, h := range hosts {
		for _, name := range wanted[i] {
			if owners[name] == "" && !slices.Contains(reserved, name) {
				owners[name] = h.name
			}
		}
	}
	var sources []bridge.Source
	var listing []listed
	for i, h := range hosts {
		v := &view{byName: map[string]*Tool{}}
		h.clashes = nil
		for j := range h.tools {
			t := &h.tools[j]
			name := wanted[i][j]
			if owner := owners[name]; owner != h.name {
				if owner == "" {
					owner = bridge.OwnSource
				}
				other := h.name + "_" + t.Name
				if _, taken := owners[other]; taken {
					h.clash(fmt.Sprintf("tool %q is not listed: %q is taken by %s, and %q by %s", t.Name, name, owner, other, owners[other]))
					continue
				}
				h.clash(fmt.Sprintf("tool %q is listed as %q: the name %q is taken by %s", t.Name, other, name, owner))
				owners[other] = h.name
				name = other
			}
			v.tools = append(v.tools, bridge.Tool{Name: name, Definition: t.as(name)})
			v.byName[name] = t
			listing = append(listing, listed{h.name, name, t.sum})
		}
		if n := len(h.clashes) - maxClashes; n > 0 {
			h.clashes = append(h.clashes[:maxClashes], fmt.Sprintf("and %d more names are taken", n))
		}
		h.view.Store(v)
		sources = append(sources, h)
	}
	changed := !slices.Equal(listing, s.listing)
	index := map[string]indexed{}
	for _, h := range hosts {
		for _, t := range h.view.Load().tools {
			index[t.Name] = indexed{h, t}
		}
	}
	s.owners, s.listing = owners, listing
	s.catalogue.Store(&catalogue{sources, index})
	return changed
}

func (h *Host) clash(text string) {
	if !slices.Contains(h.clashes, text) {
		h.clashes = append(h.clashes, text)
	}
}
