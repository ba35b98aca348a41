package wire

import (
	"bytes"
	"encoding/json"
)

// Frame is an outgoing message in pieces, so that a large result is written
// from where it lies and never copied. The pieces must not change.
type Frame [][]byte

// Len returns the message's size in bytes.
func (f Frame) Len() int {
	n := 0
	for _, p := range f {
		n += len(p)
	}
	return n
}

// AppendTo appends the message to b.
func (f Frame) AppendTo(b []byte) []byte {
	for _, p := range f {
		b = append(b, p...)
	}
	return b
}

// Bytes returns the message in one piece.
func (f Frame) Bytes() []byte { return f.AppendTo(make([]byte, 0, f.Len())) }

var (
	frameID     = []byte(`{"jsonrpc":"2.0","id":`)
	frameNull   = []byte(`null`)
	frameResult = []byte(`,"result":`)
	frameError  = []byte(`,"error":`)
	frameMethod = []byte(`{"jsonrpc":"2.0","method":`)
	frameParams = []byte(`,"params":`)
	frameEnd    = []byte(`}`)
)

func orNull(id json.RawMessage) []byte {
	if id == nil {
		return frameNull
	}
	return id
}

// ResultFrame answers the request with this id. The result may come in pieces.
func ResultFrame(id json.RawMessage, result ...[]byte) Frame {
	f := make(Frame, 0, 4+len(result))
	f = append(f, frameID, orNull(id), frameResult)
	f = append(f, result...)
	return append(f, frameEnd)
}

// ErrorFrame answers the request with this id (nil: none could be told) with a
// JSON-RPC error object.
func ErrorFrame(id, object json.RawMessage) Frame {
	return Frame{frameID, orNull(id), frameError, object, frameEnd}
}

// NotificationFrame tells the other side something. Params may be nil.
func NotificationFrame(method string, params json.RawMessage) Frame {
	name := AppendString(nil, method)
	if params == nil {
		return Frame{frameMethod, name, frameEnd}
	}
	return Frame{frameMethod, name, frameParams, params, frameEnd}
}

// Member is one member of an object: where its value lies.
type Member struct {
	Name       string
	Start, End int // of the value
}

// Members walks the top-level members of an object that is known to be valid
// JSON, in order, until yield returns false. It steps over values quickly: a
// picture of many megabytes costs a search for its closing quote.
func Members(object json.RawMessage, yield func(Member) bool) {
	i := skipSpace(object, 0)
	if i == len(object) || object[i] != '{' {
		return
	}
	i++
	for {
		i = skipSpace(object, i)
		if i >= len(object) || object[i] != '"' {
			return
		}
		end := skipString(object, i)
		var m Member
		if inner := object[i+1 : max(i+1, end-1)]; bytes.IndexByte(inner, '\\') < 0 {
			m.Name = string(inner)
		} else if json.Unmarshal(object[i:end], &m.Name) != nil {
			return
		}
		i = skipSpace(object, end)
		if i >= len(object) || object[i] != ':' {
			return
		}
		m.Start = skipSpace(object, i+1)
		m.End = skipValue(object, m.Start)
		if !yield(m) {
			return
		}
		i = skipSpace(object, m.End)
		if i >= len(object) || object[i] != ',' {
			return
		}
		i++
	}
}

// Get returns the value of a top-level member, or nil.
func Get(object json.RawMessage, name string) json.RawMessage {
	var value json.RawMessage
	Members(object, func(m Member) bool {
		if m.Name == name {
			value = object[m.Start:m.End:m.End]
		}
		return value == nil
	})
	return value
}

// Replace returns the object with the value of a top-level member exchanged and
// every other byte as it was. Without such a member it returns the object.
func Replace(object json.RawMessage, name string, value json.RawMessage) json.RawMessage {
	out := object
	Members(object, func(m Member) bool {
		if m.Name != name {
			return true
		}
		out = make(json.RawMessage, 0, len(object)+len(value))
		out = append(out, object[:m.Start]...)
		out = append(out, value...)
		out = append(out, object[m.End:]...)
		return false
	})
	return out
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\t' || b[i] == '\n' || b[i] == '\r') {
		i++
	}
	return i
}

// skipString returns the index after the string that begins at i.
func skipString(b []byte, i int) int {
	i++
	for i < len(b) {
		n := bytes.IndexByte(b[i:], '"')
		if n < 0 {
			return len(b)
		}
		end := i + n
		slashes := 0
		for end-slashes > i && b[end-slashes-1] == '\\' {
			slashes++
		}
		i = end + 1
		if slashes%2 == 0 {
			return i
		}
	}
	return i
}

// skipValue returns the index after the value that begins at i.
func skipValue(b []byte, i int) int {
	depth := 0
	for i < len(b) {
		switch b[i] {
		case '"':
			if i = skipString(b, i); depth == 0 {
				return i
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return i
			}
			if depth--; depth == 0 {
				return i + 1
			}
		case ',', ' ', '\t', '\n', '\r':
			if depth == 0 {
				return i
			}
		}
		i++
	}
	return i
}
