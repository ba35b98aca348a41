package wire

import (
	"encoding/json"
	"fmt"
	"strconv"
)

// Codes of JSON-RPC errors.
const (
	CodeParse              = -32700
	CodeInvalidRequest     = -32600
	CodeMethodNotFound     = -32601
	CodeInvalidParams      = -32602
	CodeInternal           = -32603
	CodeRefused            = -32000 // a check or a limit of ours, said in the message
	CodeHeaderMismatch     = -32020 // an HTTP header and the body disagree
	CodeMissingCapability  = -32021 // a host's: the client did not declare what the tool needs
	CodeUnsupportedVersion = -32022 // data names the supported revisions
)

// Error is a JSON-RPC error object.
type Error struct {
	Code    int
	Message string
	Data    json.RawMessage // optional
}

// Errorf makes an error object.
func Errorf(code int, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

func (e *Error) Error() string { return e.Message + " (" + strconv.Itoa(e.Code) + ")" }

// Raw returns the object as JSON.
func (e *Error) Raw() json.RawMessage {
	b := append([]byte(`{"code":`), strconv.Itoa(e.Code)...)
	b = append(b, `,"message":`...)
	b = AppendString(b, e.Message)
	if e.Data != nil {
		b = append(b, `,"data":`...)
		b = append(b, e.Data...)
	}
	return append(b, '}')
}

// AppendString appends s as a JSON string. Bytes that are not UTF-8 become
// U+FFFD.
func AppendString(b []byte, s string) []byte {
	raw, err := json.Marshal(s)
	if err != nil {
		// No string fails to marshal.
		panic(err)
	}
	return append(b, raw...)
}
