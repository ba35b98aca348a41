// Package wire is JSON-RPC as bytes: it finds what must be read in a frame and
// leaves the rest as it came, so that ids, arguments, results and metadata go
// through byte for byte. It frames messages over websockets and stdio.
package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// Keys of a request's _meta in the stateless era of MCP.
const (
	MetaProtocolVersion    = "io.modelcontextprotocol/protocolVersion"
	MetaClientCapabilities = "io.modelcontextprotocol/clientCapabilities"
	MetaClientInfo         = "io.modelcontextprotocol/clientInfo"
	MetaServerInfo         = "io.modelcontextprotocol/serverInfo"
	MetaSubscriptionID     = "io.modelcontextprotocol/subscriptionId"
)

// Message is one JSON-RPC message. Its raw fields alias the frame and are nil
// where the frame has no such member.
type Message struct {
	ID     json.RawMessage // a string or a number, as sent
	Method string
	Params json.RawMessage
	Result json.RawMessage
	Error  json.RawMessage

	// Members of params that somebody here reads.
	Name            string          // tools/call
	Arguments       json.RawMessage // tools/call
	ProtocolVersion string          // initialize
	Capabilities    json.RawMessage // initialize
	ClientInfo      json.RawMessage // initialize
	RequestID       json.RawMessage // notifications/cancelled
	Notifications   json.RawMessage // subscriptions/listen
	Cursor          json.RawMessage // tools/list
	Meta            Meta
}

// Meta is what is read of params._meta.
type Meta struct {
	Present         bool
	ProtocolVersion string
	Capabilities    json.RawMessage
	ClientInfo      json.RawMessage
	ProgressToken   json.RawMessage
}

// IsRequest reports whether an answer is due.
func (m *Message) IsRequest() bool { return m.Method != "" && m.ID != nil }

// IsNotification reports whether it is a method call without an id.
func (m *Message) IsNotification() bool { return m.Method != "" && m.ID == nil }

// IsResponse reports whether it answers a request.
func (m *Message) IsResponse() bool { return m.Method == "" }

// Names that are read, per object. Another spelling in upper or lower case is
// refused there, because some parsers would take it for the name.
var (
	envelopeNames = []string{"jsonrpc", "id", "method", "params", "result", "error"}
	paramsNames   = []string{"name", "arguments", "_meta", "protocolVersion", "capabilities", "clientInfo", "requestId", "notifications", "cursor"}
	metaNames     = []string{"progressToken", MetaProtocolVersion, MetaClientCapabilities, MetaClientInfo}
)

// Parse reads one frame. The frame must not change while m is in use. On an
// error m.ID is still set where the frame has one that can be told, so that the
// sender can be answered.
func Parse(frame []byte, m *Message) *Error {
	*m = Message{}
	p := parser{scanner: scanner{b: frame}, m: m}
	if err := p.message(); err != nil {
		*m = Message{ID: FindID(frame)}
		return err
	}
	return nil
}

type parser struct {
	scanner
	m       *Message
	version []byte // raw jsonrpc member
	idSeen  bool
}

// wrap gives a scanning error the code of the object that it was found in.
func wrap(err error, code int) *Error {
	var e *Error
	if errors.As(err, &e) {
		return e
	}
	if errors.Is(err, ErrSyntax) || errors.Is(err, ErrUTF8) {
		return Errorf(CodeParse, "the frame cannot be read: %v", err)
	}
	return Errorf(code, "the frame is refused: %v", err)
}

func (p *parser) message() *Error {
	p.space()
	if p.peek() == '[' {
		return Errorf(CodeInvalidRequest, "batches are not part of MCP; send one message a frame")
	}
	if p.peek() != '{' {
		if err := Validate(p.b); err != nil {
			return wrap(err, CodeInvalidRequest)
		}
		return Errorf(CodeInvalidRequest, "a message is a JSON object")
	}
	if err := p.object(p.envelope); err != nil {
		return wrap(err, CodeInvalidRequest)
	}
	if err := p.end(); err != nil {
		return wrap(err, CodeInvalidRequest)
	}
	return p.check()
}

func (p *parser) envelope(name []byte) error {
	var err error
	switch string(name) {
	case "jsonrpc":
		p.version, err = p.raw()
	case "id":
		p.idSeen = true
		p.m.ID, err = p.raw()
	case "method":
		p.m.Method, err = p.text("method", CodeInvalidRequest)
		if err == nil && p.m.Method == "" {
			err = Errorf(CodeInvalidRequest, "method must not be empty")
		}
	case "params":
		from := p.i
		if p.peek() == '{' {
			err = wrapped(p.object(p.params), CodeInvalidParams)
		} else {
			// Whether this is an error depends on what the message is.
			err = p.value()
		}
		p.m.Params = p.b[from:p.i:p.i]
	case "result":
		p.m.Result, err = p.raw()
	case "error":
		p.m.Error, err = p.raw()
	default:
		if err = p.exactCase(name, envelopeNames); err == nil {
			err = p.value()
		}
	}
	return err
}

// wrapped is wrap for code that passes plain errors on.
func wrapped(err error, code int) error {
	if err == nil {
		return nil
	}
	return wrap(err, code)
}

func (p *parser) params(name []byte) error {
	m := p.m
	var err error
	switch string(name) {
	case "name":
		m.Name, err = p.text("params.name", CodeInvalidParams)
	case "arguments":
		m.Arguments, err = p.raw()
	case "_meta":
		if p.peek() != '{' {
			return Errorf(CodeInvalidParams, "params._meta must be an object")
		}
		m.Meta.Present = true
		err = p.object(p.meta)
	case "protocolVersion":
		m.ProtocolVersion, err = p.text("params.protocolVersion", CodeInvalidParams)
	case "capabilities":
		m.Capabilities, err = p.raw()
	case "clientInfo":
		m.ClientInfo, err = p.raw()
	case "requestId":
		m.RequestID, err = p.raw()
	case "notifications":
		m.Notifications, err = p.raw()
	case "cursor":
		m.Cursor, err = p.raw()
	default:
		if err = p.exactCase(name, paramsNames); err == nil {
			err = p.value()
		}
	}
	return err
}

func (p *parser) meta(name []byte) error {
	meta := &p.m.Meta
	var err error
	switch string(name) {
	case MetaProtocolVersion:
		meta.ProtocolVersion, err = p.text("params._meta."+MetaProtocolVersion, CodeInvalidParams)
	case MetaClientCapabilities:
		meta.Capabilities, err = p.raw()
	case MetaClientInfo:
		meta.ClientInfo, err = p.raw()
	case "progressToken":
		meta.ProgressToken, err = p.raw()
		if err == nil && !isID(meta.ProgressToken) {
			err = Errorf(CodeInvalidParams, "params._meta.progressToken must be a string or a number")
		}
	default:
		if err = p.exactCase(name, metaNames); err == nil {
			err = p.value()
		}
	}
	return err
}

// raw scans a value and returns its bytes.
func (p *parser) raw() (json.RawMessage, error) {
	from := p.i
	if err := p.value(); err != nil {
		return nil, err
	}
	return p.b[from:p.i:p.i], nil
}

// text scans a string that is read here. Half a surrogate pair is refused in it.
func (p *parser) text(where string, code int) (string, error) {
	if p.peek() != '"' {
		if err := p.value(); err != nil {
			return "", err
		}
		return "", Errorf(code, "%s must be a string", where)
	}
	from := p.i
	inner, err := p.str()
	if err != nil {
		return "", err
	}
	if bytes.IndexByte(inner, '\\') < 0 {
		return string(inner), nil
	}
	if loneSurrogate(inner) {
		return "", Errorf(code, "%s holds half of a surrogate pair", where)
	}
	var s string
	if err := json.Unmarshal(p.b[from:p.i], &s); err != nil {
		return "", err
	}
	return s, nil
}

func (p *parser) exactCase(name []byte, known []string) error {
	for _, k := range known {
		if len(name) >= len(k) && bytes.EqualFold(name, []byte(k)) {
			return p.fail(ErrCase, fmt.Sprintf("%s is written %q", quoteName(name), k))
		}
	}
	return nil
}

// check holds the whole message against JSON-RPC and MCP.
func (p *parser) check() *Error {
	m := p.m
	if string(p.version) != `"2.0"` {
		return Errorf(CodeInvalidRequest, `jsonrpc must be "2.0"`)
	}
	if p.idSeen && !isID(m.ID) {
		return Errorf(CodeInvalidRequest, "id must be a string or a number")
	}
	answer := m.Result != nil || m.Error != nil
	switch {
	case m.Method == "" && !answer:
		return Errorf(CodeInvalidRequest, "the message has no method")
	case m.Method != "" && answer:
		return Errorf(CodeInvalidRequest, "the message has a method and a result; it is either a request or an answer")
	case m.Result != nil && m.Error != nil:
		return Errorf(CodeInvalidRequest, "the answer has a result and an error")
	case m.Params != nil && m.Params[0] != '{':
		return Errorf(CodeInvalidParams, "params must be an object")
	case m.Method == "tools/call" && m.Arguments != nil && m.Arguments[0] != '{' && m.Arguments[0] != 'n':
		return Errorf(CodeInvalidParams, "params.arguments must be an object")
	}
	return nil
}

// isID reports whether a valid JSON value may be a JSON-RPC id.
func isID(raw []byte) bool {
	return len(raw) > 0 && (raw[0] == '"' || raw[0] == '-' || '0' <= raw[0] && raw[0] <= '9')
}

// IDKey returns what to compare ids by. The same string written with other
// escapes is the same id; numbers are compared as written.
func IDKey(id json.RawMessage) string {
	if len(id) > 0 && id[0] == '"' && bytes.IndexByte(id, '\\') >= 0 {
		var s string
		if json.Unmarshal(id, &s) == nil {
			return `"` + s + `"`
		}
	}
	return string(id)
}
