package bridge

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
)

func TestCheckParamHeaders(t *testing.T) {
	const schema = `{"name":"t","inputSchema":{"type":"object","properties":{` +
		`"region":{"type":"string","x-mcp-header":"Region"},` +
		`"n":{"type":"integer","x-mcp-header":"N"},` +
		`"on":{"type":"boolean","x-mcp-header":"On"},` +
		`"deep":{"type":"object","properties":{"id":{"type":"string","x-mcp-header":"Deep-Id"}}},` +
		`"free":{"type":"string"}}}}`
	for _, c := range []struct {
		name, args string
		headers    []string // name, value, name, value, …
		want       string   // part of the error; empty: they agree
	}{
		{name: "nothing to say", args: `{"free":"x"}`},
		{name: "no arguments", args: ``},
		{name: "null is absent", args: `{"region":null}`},
		{name: "equal", args: `{"region":"eu","n":7,"on":true}`, headers: []string{"Region", "eu", "N", "7", "On", "true"}},
		{name: "header names in any case", args: `{"region":"eu"}`, headers: []string{"rEGION", "eu"}},
		{name: "escaped in the body", args: `{"region":"\u0065u"}`, headers: []string{"Region", "eu"}},
		{name: "wrapped", args: `{"region":"Hällo"}`, headers: []string{"Region", "=?base64?SMOkbGxv?="}},
		{name: "half a wrapping is text", args: `{"region":"=?base64?SGVsbG8="}`, headers: []string{"Region", "=?base64?SGVsbG8="}},
		{name: "no wrapping is text", args: `{"region":"SGVsbG8="}`, headers: []string{"Region", "SGVsbG8="}},
		{name: "a number written differently", args: `{"n":1e2}`, headers: []string{"N", "100"}},
		{name: "a big number, digit by digit", args: `{"n":9007199254740993}`, headers: []string{"N", "9007199254740993"}},
		{name: "below the top", args: `{"deep":{"id":"a"}}`, headers: []string{"Deep-Id", "a"}},

		{name: "differs", args: `{"region":"eu"}`, headers: []string{"Region", "us"}, want: "the header Mcp-Param-Region and the argument region differ"},
		{name: "case counts", args: `{"region":"eu"}`, headers: []string{"Region", "EU"}, want: "differ"},
		{name: "missing header", args: `{"region":"eu"}`, want: "the argument region is there and the header Mcp-Param-Region is not"},
		{name: "missing argument", args: `{}`, headers: []string{"Region", "eu"}, want: "the header Mcp-Param-Region is there and the argument region is not"},
		{name: "twice", args: `{"region":"eu"}`, headers: []string{"Region", "eu", "Region", "eu"}, want: "is there 2 times"},
		{name: "padding cut off", args: `{"region":"Hello"}`, headers: []string{"Region", "=?base64?SGVsbG8?="}, want: "not valid Base64"},
		{name: "no Base64", args: `{"region":"Hello"}`, headers: []string{"Region", "=?base64?SGVs!!!bG8=?="}, want: "not valid Base64"},
		{name: "big numbers that are one float", args: `{"n":9007199254740993}`, headers: []string{"N", "9007199254740992"}, want: "differ"},
		{name: "a number is no text", args: `{"region":7}`, headers: []string{"Region", "\"7\""}, want: "differ"},
		{name: "an object is no text", args: `{"region":{}}`, headers: []string{"Region", "{}"}, want: "differ"},
		{name: "missing below the top", args: `{"deep":{"id":"a"}}`, want: "the argument deep.id is there"},
		{name: "arguments that are no object", args: `[1]`, headers: []string{"Region", "eu"}, want: "the argument region is not"},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := http.Header{}
			for i := 0; i < len(c.headers); i += 2 {
				h.Add(paramHeaderPrefix+c.headers[i], c.headers[i+1])
			}
			err := checkParamHeaders(h, json.RawMessage(schema), json.RawMessage(c.args))
			if (c.want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, want %q", err, c.want)
			}
		})
	}
}

// A mark elsewhere in a definition means nothing, and stops no call.
func TestCheckParamHeadersElsewhere(t *testing.T) {
	for _, definition := range []string{
		`{"name":"t","description":"x-mcp-header","inputSchema":{"type":"object","properties":{"a":{"type":"string"}}}}`,
		`{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":7}}}}`,
		`{"name":"t","inputSchema":{"properties":{"a":{"x-mcp-header":""}}}}`,
		`{"name":"t","inputSchema":{"properties":["x-mcp-header"]}}`,
		`{"name":"t","inputSchema":true,"x-mcp-header":"A"}`,
	} {
		if err := checkParamHeaders(http.Header{}, json.RawMessage(definition), json.RawMessage(`{"a":"b"}`)); err != nil {
			t.Errorf("%s: %v", definition, err)
		}
	}
}

func FuzzCheckParamHeaders(f *testing.F) {
	f.Add("eu", `{"region":"eu"}`)
	f.Add("=?base64?SGVsbG8=?=", `{"region":"Hello"}`)
	f.Add("1e2", `{"region":100}`)
	f.Add("", `{"region":null}`)
	const definition = `{"inputSchema":{"properties":{"region":{"x-mcp-header":"Region"}}}}`
	f.Fuzz(func(t *testing.T, header, args string) {
		err := checkParamHeaders(http.Header{paramHeaderPrefix + "Region": {header}}, json.RawMessage(definition), json.RawMessage(args))
		var body map[string]json.RawMessage
		var region *string
		if err != nil || json.Unmarshal([]byte(args), &body) != nil || json.Unmarshal(body["region"], &region) != nil || region == nil {
			return
		}
		// What passed as a string must be what the header says.
		if !headerSays(header, *region) {
			t.Fatalf("header %q passed with %s", header, args)
		}
	})
}
