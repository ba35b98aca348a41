// Package sdkcheck holds our calls of macOS's frameworks against Apple's
// headers. purego passes arguments by their Go kind and asks nobody, so an int
// where a CGFloat belongs compiles and is silently wrong: this package finds it.
//
// It knows the calls that bind and send (quartz.Library.Func, objc.Send,
// objc.ID.Send, cocoa.Block, objc.MethodDef), the structs that they pass, and
// every constant that carries Apple's name. table.json has the header's side of
// what we use, and of nothing else; the command in extract writes it.
package sdkcheck

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Table is the headers' side. Signatures are kinds, "ret(arg,arg)": v void,
// @ object, # class, : selector, @? block, B bool, i1 u1 … i8 u8 integers by
// sign and bytes, d and f floats, * C string, ^ pointer or Core Foundation
// reference, {Name} struct by value.
type Table struct {
	About     string              `json:"about"`
	Functions map[string]Function `json:"functions"`
	Selectors map[string]Selector `json:"selectors"`
	Blocks    map[string]Function `json:"blocks"` // by the selector of the method that takes it
	Structs   map[string]Struct   `json:"structs"`
	Constants map[string]Constant `json:"constants"`
}

// Function is a C function, or a block.
type Function struct {
	Sig    string `json:"sig"`
	C      string `json:"c,omitempty"`
	Source string `json:"source"`
}

// Selector has one signature for each class that has another: a call must match
// one of them.
type Selector struct {
	Sigs   []string `json:"sigs"`
	Source string   `json:"source"`
}

// Struct has the kinds of the fields, in order.
type Struct struct {
	Fields []string `json:"fields"`
	Source string   `json:"source"`
}

// Constant is an enumeration's value.
type Constant struct {
	Value  json.Number `json:"value"`
	Source string      `json:"source"`
}

//go:embed table.json
var tableJSON []byte

// Committed returns the table of what we use.
func Committed() (*Table, error) {
	t := new(Table)
	if err := json.Unmarshal(tableJSON, t); err != nil {
		return nil, fmt.Errorf("table.json: %w", err)
	}
	return t, nil
}
