package bridge

import (
	"encoding/json"
	"iter"

	"drawbridge/bridge/wire"
)

// OwnSource is the name of our own source. Its tools keep their names whatever
// hosts offer.
const OwnSource = "drawbridge"

// ownTools are names that no host's tool is listed under.
var ownTools = []string{"computer"}

// Listed is one tool as a client sees it.
type Listed struct {
	Name       string          // as listed
	Host       string          // the source's name
	Definition json.RawMessage // the source's bytes; only a changed name differs
	source     Source
	tool       Tool
}

// catalogue walks what one client may see, in order: sources as registered,
// tools as the source lists them. A name that is taken gets the source's name
// before it. Listing and calling both read this.
func (s *Server) catalogue(client string) iter.Seq[Listed] {
	return func(yield func(Listed) bool) {
		var taken map[string]bool
		if len(s.opts.Sources) > 1 || s.opts.Hosts != nil {
			taken = make(map[string]bool)
			for _, name := range ownTools {
				taken[name] = true
			}
		}
		for _, source := range s.sources() {
			host := source.Name()
			for _, tool := range source.Tools(client) {
				name := tool.Name
				if taken != nil {
					if taken[name] && host != OwnSource {
						name = host + "_" + name
						if taken[name] {
							continue
						}
					}
					taken[name] = true
				}
				if s.opts.Exposed != nil && !s.opts.Exposed(client, host, name) {
					continue
				}
				if !yield(Listed{Name: name, Host: host, source: source, tool: tool}) {
					return
				}
			}
		}
	}
}

// definition returns the tool's definition under its listed name.
func (l Listed) definition() json.RawMessage {
	if l.Name == l.tool.Name {
		return l.tool.Definition
	}
	return wire.Replace(l.tool.Definition, "name", wire.AppendString(nil, l.Name))
}

// Catalogue lists what a client would see.
func (s *Server) Catalogue(client string) []Listed {
	all := []Listed{}
	for l := range s.catalogue(client) {
		l.Definition = l.definition()
		all = append(all, l)
	}
	return all
}

// lookup finds a tool by its listed name. Hosts may have many thousands, so they
// are asked first whose it is.
func (s *Server) lookup(client, name string) (Listed, bool) {
	if s.opts.Hosts != nil {
		if source, tool, ok := s.opts.Hosts.Find(name); ok {
			host := source.Name()
			if s.opts.Exposed != nil && !s.opts.Exposed(client, host, name) {
				return Listed{}, false
			}
			return Listed{Name: name, Host: host, source: source, tool: tool}, true
		}
	}
	for l := range s.catalogue(client) {
		if l.Name == name {
			return l, true
		}
	}
	return Listed{}, false
}
