package sdkcheck

import (
	"encoding/json"
	"errors"
	"fmt"
)

// SDK is the whole of the headers, as the tables made from them have it.
type SDK struct {
	Selectors map[string][]string
	Functions map[string]Function
	Constants map[string]json.Number
	// Overrides are what those headers lacked, by hand.
	Overrides struct {
		Functions map[string]Function `json:"functions"`
		Selectors map[string][]string `json:"selectors"`
	}
	// Additions are ours, with their sources; they come first.
	Additions Table
}

const (
	headers  = "macOS 14.2 headers"
	byHand   = "Apple's documentation, by hand: the copy of the headers lacked it"
	tableAbt = "What our macOS code uses of Apple's headers. Written by packaging/sdkcheck/extract; do not edit."
)

// Extract keeps what uses need.
func (s *SDK) Extract(uses []Use) (*Table, error) {
	t := &Table{About: tableAbt, Functions: map[string]Function{}, Selectors: map[string]Selector{},
		Blocks: map[string]Function{}, Structs: map[string]Struct{}, Constants: map[string]Constant{}}
	var errs []error
	for _, u := range uses {
		found := true
		switch u.Of {
		case ofFunction:
			var f Function
			if f, found = s.function(u.Name); found {
				t.Functions[u.Name] = f
			}
		case ofSelector:
			var x Selector
			if x, found = s.selector(u.Name); found {
				t.Selectors[u.Name] = x
			}
		case ofBlock:
			var f Function
			if f, found = s.Additions.Blocks[u.Name]; found {
				t.Blocks[u.Name] = f
			}
		case ofStruct:
			var x Struct
			if x, found = s.Additions.Structs[u.Name]; found {
				t.Structs[u.Name] = x
			}
		case ofConstant:
			var c Constant
			if c, found = s.constant(u.Name); found {
				t.Constants[u.Name] = c
			}
		}
		if !found {
			errs = append(errs, fmt.Errorf("%s:%d: no header has the %s %s", u.Pos.Filename, u.Pos.Line, u.Of, u.Name))
		}
	}
	return t, errors.Join(errs...)
}

func (s *SDK) function(name string) (Function, bool) {
	if f, ok := s.Additions.Functions[name]; ok {
		return f, true
	}
	if f, ok := s.Functions[name]; ok {
		f.Source = headers
		return f, true
	}
	f, ok := s.Overrides.Functions[name]
	return f, ok
}

// selector joins the signatures: the same name may be another class's too.
func (s *SDK) selector(name string) (Selector, bool) {
	if x, ok := s.Additions.Selectors[name]; ok {
		return x, true
	}
	if sigs, ok := s.Overrides.Selectors[name]; ok {
		return Selector{Sigs: sigs, Source: byHand}, true
	}
	sigs, ok := s.Selectors[name]
	return Selector{Sigs: sigs, Source: headers}, ok
}

func (s *SDK) constant(name string) (Constant, bool) {
	if c, ok := s.Additions.Constants[name]; ok {
		return c, true
	}
	v, ok := s.Constants[name]
	return Constant{Value: v, Source: headers}, ok
}
