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

// Steps returns the names that a JSON pointer of a rule goes by, "*" for every one.
func Steps(text string) ([]string, error) {
	p, err := parsePointer(text)
	if err != nil {
		return nil, err
	}
	names := make([]string, len(p))
	for i, s := range p {
		names[i] = s.name
	}
	return names, nil
}

// errArguments says that arguments are no JSON.
var errArguments = errors.New("the arguments are no JSON")

// errAmbiguous says that a member that a pointer asks for is there twice, or in
// another case besides or instead: a reader less exact than we are would then
// see another call than the one that was decided on.
var errAmbiguous = errors.New("the arguments can be read in two ways")

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
		found := false
		err := eachEntry(v, func(name string, e json.RawMessage) error {
			if !p[0].all && name != p[0].name {
				if strings.EqualFold(name, p[0].name) {
					return errAmbiguous
				}
				return nil
			}
			if found && !p[0].all {
				return errAmbiguous
			}
			found = true
			miss, err := p[1:].walk(e, fn)
			missing = missing || miss
			return err
		})
		return missing || !found, err
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

// eachEntry calls fn with the members of an object, in order.
func eachEntry(object json.RawMessage, fn func(name string, v json.RawMessage) error) error {
	d := json.NewDecoder(bytes.NewReader(object))
	if _, err := d.Token(); err != nil {
		return errArguments
	}
	for d.More() {
		name, err := d.Token()
		if err != nil {
			return errArguments
		}
		var v json.RawMessage
		if err := d.Decode(&v); err != nil {
			return errArguments
		}
		if err := fn(name.(string), v); err != nil { // a member's name is a string
			return err
		}
	}
	return nil
}
