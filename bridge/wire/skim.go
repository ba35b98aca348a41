package wire

import (
	"bytes"
	"encoding/json"
	"strings"
)

// maxSkimmed bounds what a Skimmer keeps of a name or a value.
const maxSkimmed = 1024

// Skimmer finds the id and the method of a message that is too large to keep:
// write the message into it piece by piece. It needs constant memory and does
// not check what it passes over. The zero value is ready.
type Skimmer struct {
	size     int64
	depth    int
	started  bool // the message began with {
	broken   bool // it is no object, or something follows it
	inString bool
	escaped  bool
	inValue  bool // at depth 1, after the colon
	over     bool // the text being kept grew too large

	kept   []byte // the name or the value at depth 1 that is being read
	name   string
	id     []byte
	method []byte
	ids    int // members that are or could be taken for the id
	calls  int // the same for the method
}

// Write passes over p. It never fails.
func (k *Skimmer) Write(p []byte) (int, error) {
	k.size += int64(len(p))
	for i := 0; i < len(p); i++ {
		c := p[i]
		if k.inString {
			switch {
			case k.escaped:
				k.escaped = false
			case c == '\\':
				k.escaped = true
			case c == '"':
				k.inString = false
			default:
				if k.depth > 1 || k.over {
					i += skipPlain(p[i:]) - 1
					continue
				}
			}
			k.keep(c)
			continue
		}
		switch c {
		case ' ', '\t', '\n', '\r':
			// One blank stands for a gap, so that "1 2" is not taken for 12.
			if k.inValue && len(k.kept) > 0 && k.kept[len(k.kept)-1] != ' ' {
				k.keep(' ')
			}
			continue
		case '"':
			k.inString = true
			k.keep(c)
			if !k.started || k.depth == 0 {
				k.broken = true
			}
			continue
		case '{', '[':
			if k.depth == 0 && (k.started || c == '[') {
				k.broken = true
			}
			k.started = true
			k.depth++
			if k.depth == 1 {
				continue
			}
		case '}', ']':
			if k.depth == 1 {
				k.member()
			}
			if k.depth--; k.depth < 0 {
				k.broken = true
				k.depth = 0
			}
		case ':':
			if k.depth == 1 && !k.inValue {
				k.name = k.keptName()
				k.kept, k.over, k.inValue = k.kept[:0], false, true
				continue
			}
		case ',':
			if k.depth == 1 {
				k.member()
				continue
			}
		}
		if k.depth == 0 && c != '}' {
			k.broken = true
		}
		k.keep(c)
	}
	return len(p), nil
}

// skipPlain returns how many bytes of a string's inside can be passed over.
func skipPlain(p []byte) int {
	for i, c := range p {
		if c == '"' || c == '\\' {
			return i
		}
	}
	return len(p)
}

func (k *Skimmer) keep(c byte) {
	if k.depth != 1 {
		return
	}
	if len(k.kept) == maxSkimmed {
		k.over = true
		return
	}
	k.kept = append(k.kept, c)
}

func (k *Skimmer) keptName() string {
	var name string
	if k.over || json.Unmarshal(k.kept, &name) != nil {
		return ""
	}
	return name
}

// member ends a member of the outermost object.
func (k *Skimmer) member() {
	if k.inValue {
		switch {
		case strings.EqualFold(k.name, "id"):
			k.ids++
			if k.name == "id" && !k.over {
				k.id = bytes.Clone(bytes.TrimSpace(k.kept))
			}
		case strings.EqualFold(k.name, "method"):
			k.calls++
			if k.name == "method" && !k.over {
				k.method = bytes.Clone(bytes.TrimSpace(k.kept))
			}
		}
	}
	k.kept, k.name, k.over, k.inValue = k.kept[:0], "", false, false
}

// Size returns how many bytes were written.
func (k *Skimmer) Size() int64 { return k.size }

// whole reports whether one object was written, from its first byte to its last.
func (k *Skimmer) whole() bool { return k.started && !k.broken && k.depth == 0 && !k.inString }

// ID returns the message's id, as sent, if the message is one object with
// exactly one id of at most 1024 bytes that is a string or a number; else nil.
func (k *Skimmer) ID() json.RawMessage {
	if !k.whole() || k.ids != 1 || !isID(k.id) || Validate(k.id) != nil {
		return nil
	}
	return k.id
}

// Method returns the message's method, or "" where it cannot be told.
func (k *Skimmer) Method() string {
	var method string
	if !k.whole() || k.calls != 1 || json.Unmarshal(k.method, &method) != nil {
		return ""
	}
	return method
}

// FindID returns the id of a frame that could not be taken, or nil.
func FindID(frame []byte) json.RawMessage {
	var k Skimmer
	_, _ = k.Write(frame)
	return k.ID()
}
