package host

import (
	"encoding/json"
	"slices"
	"strconv"

	"drawbridge/bridge/wire"
)

// Members of _meta that the stateless era demands of every request.
const (
	metaVersion = `"` + wire.MetaProtocolVersion + `":"` + modernVersion + `"`
	metaCaps    = `"` + wire.MetaClientCapabilities + `":{}`
	metaInfoKey = `"` + wire.MetaClientInfo + `":`
)

// edit replaces the bytes [start, end) of the caller's params.
type edit struct {
	start, end int
	text       string
	token      bool // the text is the request's id
}

// edits turn the caller's params into those for the host. Everything that no
// edit touches goes through byte for byte.
type edits struct {
	list  []edit
	token json.RawMessage // the caller's progress token; nil when it gave none
	extra int             // bytes that the edits add at most
	// modern: the caller speaks the stateless era.
	modern bool
}

// planParams decides what of a caller's params must differ toward this host: the
// tool's name where it is listed under another, the progress token, and what a
// stateless host needs in _meta where the caller did not send it. A caller of the
// older era so declares no capabilities: it could not be asked anything.
func (c *Conn) planParams(r CallRequest) edits {
	var e edits
	params := r.Params
	meta, last := false, wire.Member{}
	wire.Members(params, func(m wire.Member) bool {
		last = m
		switch m.Name {
		case "name":
			if r.Rename {
				e.add(m.Start, m.End, string(wire.AppendString(nil, r.Name)))
			}
		case "_meta":
			meta = true
			c.planMeta(&e, params, m)
		}
		return true
	})
	if !meta && c.modern {
		// tools/call always has a name, so that a member stands before this one.
		e.add(last.End, last.End, `,"_meta":`+c.meta())
	}
	return e
}

func (c *Conn) planMeta(e *edits, params json.RawMessage, meta wire.Member) {
	raw := params[meta.Start:meta.End]
	var version, caps, client bool
	end := 1 // in raw: behind the last member
	wire.Members(raw, func(m wire.Member) bool {
		end = m.End
		from, to := meta.Start+m.Start, meta.Start+m.End
		switch m.Name {
		case "progressToken":
			e.token = params[from:to:to]
			e.list = append(e.list, edit{start: from, end: to, token: true})
			e.extra += 20
		case wire.MetaProtocolVersion:
			version, e.modern = true, true
		case wire.MetaClientCapabilities:
			caps = true
		case wire.MetaClientInfo:
			client = true
		}
		return true
	})
	if !c.modern {
		return
	}
	add := ""
	for _, m := range []struct {
		have bool
		text string
	}{{version, metaVersion}, {caps, metaCaps}, {client, metaInfoKey + c.info}} {
		if m.have {
			continue
		}
		if end > 1 || add != "" {
			add += ","
		}
		add += m.text
	}
	if add != "" {
		e.add(meta.Start+end, meta.Start+end, add)
	}
}

func (e *edits) add(start, end int, text string) {
	e.list = append(e.list, edit{start: start, end: end, text: text})
	e.extra += len(text)
}

// apply appends params with the edits done. The edits never overlap.
func (e *edits) apply(dst, params []byte, id uint64) []byte {
	slices.SortFunc(e.list, func(a, b edit) int { return a.start - b.start })
	at := 0
	for _, d := range e.list {
		dst = append(dst, params[at:d.start]...)
		if d.token {
			dst = strconv.AppendUint(dst, id, 10)
		} else {
			dst = append(dst, d.text...)
		}
		at = d.end
	}
	return append(dst, params[at:]...)
}
