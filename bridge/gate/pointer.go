package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
)

// pointer is a JSON pointer (RFC 6901) in which a step that is just * means
// every element of an array and every member of an object.
type pointer []step

type step struct {
	name string
	all  bool
}

func parsePointer(s string) (pointer, error) {
	if s == "" {
		return pointer{}, nil
	}
	if s[0] != '/' {
		return nil, fmt.Errorf(`pointer %q must begin with a slash, as in "/actions/*/type"`, s)
	}
	var p pointer
	for _, part := range strings.Split(s[1:], "/") {
		for i := 0; i < len(part); i++ {
			if part[i] == '~' && (i+1 == len(part) || part[i+1] != '0' && part[i+1] != '1') {
				return nil, fmt.Errorf("pointer %q: ~ must be written ~0, and a slash in a name ~1", s)
			}
		}
		name := strings.ReplaceAll(strings.ReplaceAll(part, "~1", "/"), "~0", "~")
		p = append(p, step{name, part == "*"})
	}
	return p, nil
}

// errArguments says that arguments are no JSON.
var errArguments = errors.New("the arguments are no JSON")

// find calls fn with the text of every value that p leads to: a string's
// content, anything else's raw JSON. missing is set if a way led nowhere: an
// element without the member that was asked for, or nothing at all.
func (p pointer) find(doc []byte, fn func(text string)) (missing bool, err error) {
	if !json.Valid(doc) {
		return true, errArguments
	}
	return p.walk(bytes.TrimSpace(doc), fn)
}

// walk is find for a valid value without space around it.
func (p pointer) walk(v json.RawMessage, fn func(string)) (missing bool, err error) {
	if len(p) == 0 {
		text := string(v)
		if v[0] == '"' {
			if err := json.Unmarshal(v, &text); err != nil {
				return true, errArguments
			}
		}
		fn(text)
		return false, nil
	}
	switch v[0] {
	case '{':
		var m map[string]json.RawMessage
		if err := json.Unmarshal(v, &m); err != nil {
			return true, errArguments
		}
		if !p[0].all {
			e, ok := m[p[0].name]
			if !ok {
				return true, nil
			}
			return p[1:].walk(e, fn)
		}
		missing = len(m) == 0
		for _, e := range m {
			miss, err := p[1:].walk(e, fn)
			if err != nil {
				return true, err
			}
			missing = missing || miss
		}
		return missing, nil
	case '[':
		var a []json.RawMessage
		if err := json.Unmarshal(v, &a); err != nil {
			return true, errArguments
		}
		missing = len(a) == 0
		for i, e := range a {
			if !p[0].all && p[0].name != fmt.Sprint(i) {
				continue
			}
			miss, err := p[1:].walk(e, fn)
			if err != nil || !p[0].all {
				return miss, err
			}
			missing = missing || miss
		}
		return missing || !p[0].all, nil
	}
	return true, nil
}
