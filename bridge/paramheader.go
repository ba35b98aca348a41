package bridge

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
)

// In 2026-07-28 a tool may mark properties of its input schema with x-mcp-header.
// HTTP clients then repeat those arguments in headers, for whoever routes by
// them, and the server must refuse a request whose headers and body disagree: two
// readers of one request would see two calls.
const (
	paramMark         = "x-mcp-header"
	paramHeaderPrefix = "Mcp-Param-"
)

// schemaNode is what is read of an input schema. The mark counts where a chain of
// properties leads to it.
type schemaNode struct {
	Header     json.RawMessage       `json:"x-mcp-header"`
	Properties map[string]schemaNode `json:"properties"`
}

// MarkedArgument is an argument of a call that an HTTP header repeats.
type MarkedArgument struct {
	Header string          // the header's whole name
	Path   string          // where it is in the arguments, as a.b
	Value  json.RawMessage // nil where the call does not have it
}

// MarkedArguments returns what the tool's definition marks, in no order.
func MarkedArguments(definition, arguments json.RawMessage) []MarkedArgument {
	if !bytes.Contains(definition, []byte(paramMark)) {
		return nil
	}
	var tool struct {
		InputSchema schemaNode `json:"inputSchema"`
	}
	if json.Unmarshal(definition, &tool) != nil {
		return nil // the mark is not where it would mean something
	}
	return tool.InputSchema.marked(nil, arguments, "")
}

// marked walks the properties below n. args is the value that they are in; nil
// when there is none.
func (n schemaNode) marked(found []MarkedArgument, args json.RawMessage, path string) []MarkedArgument {
	if len(n.Properties) == 0 {
		return found
	}
	var members map[string]json.RawMessage
	_ = json.Unmarshal(args, &members) // what is no object has no members
	for name, property := range n.Properties {
		value := members[name]
		var header string
		if json.Unmarshal(property.Header, &header) == nil && header != "" {
			m := MarkedArgument{Header: paramHeaderPrefix + header, Path: path + name}
			if string(value) != "null" {
				m.Value = value
			}
			found = append(found, m)
		}
		found = property.marked(found, value, path+name+".")
	}
	return found
}

// checkParamHeaders compares the headers of a modern tools/call with its
// arguments, by the tool's definition. A nil error says that they agree.
func checkParamHeaders(h http.Header, definition, arguments json.RawMessage) error {
	for _, m := range MarkedArguments(definition, arguments) {
		if err := agrees(h.Values(m.Header), m); err != nil {
			return err
		}
	}
	return nil
}

// agrees compares the values of one header with one argument.
func agrees(values []string, m MarkedArgument) error {
	absent := m.Value == nil
	switch {
	case len(values) > 1:
		return fmt.Errorf("the header %s is there %d times", m.Header, len(values))
	case absent && len(values) == 0:
		return nil
	case absent:
		return fmt.Errorf("the header %s is there and the argument %s is not", m.Header, m.Path)
	case len(values) == 0:
		return fmt.Errorf("the argument %s is there and the header %s is not", m.Path, m.Header)
	}
	said, ok := decodeHeader(values[0])
	if !ok {
		return fmt.Errorf("the header %s is not valid Base64 in its =?base64?…?=", m.Header)
	}
	if !sameValue(said, m.Value) {
		return fmt.Errorf("the header %s and the argument %s differ", m.Header, m.Path)
	}
	return nil
}

// decodeHeader undoes the form =?base64?…?=, which carries what a header cannot.
func decodeHeader(v string) (text string, ok bool) {
	inner, ok := strings.CutPrefix(v, "=?base64?")
	if !ok {
		return v, true
	}
	if inner, ok = strings.CutSuffix(inner, "?="); !ok {
		return v, true
	}
	b, err := base64.StdEncoding.Strict().DecodeString(inner)
	return string(b), err == nil
}

// headerSays reports whether a header carries exactly this text.
func headerSays(v, text string) bool {
	said, ok := decodeHeader(v)
	return ok && said == text
}

// sameValue compares header text with a JSON string, boolean or number. Numbers
// that are written differently are the same while both are exact as a float.
func sameValue(said string, argument json.RawMessage) bool {
	if argument[0] == '"' {
		var s string
		return json.Unmarshal(argument, &s) == nil && s == said
	}
	if said == string(argument) {
		return argument[0] != '{' && argument[0] != '['
	}
	const exact = 1 << 53
	a, err1 := strconv.ParseFloat(said, 64)
	b, err2 := strconv.ParseFloat(string(argument), 64)
	return err1 == nil && err2 == nil && a == b && math.Abs(a) < exact
}
