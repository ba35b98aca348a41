package host

import (
	"bytes"
	"encoding/json"
	"net/http/httptest"
	"strings"
	"testing"

	"context"

	"drawbridge/bridge/host/hosttest"
)

// Every odd value that a gateway has been seen to change: numbers over 2^53,
// 1.0, 1e2, odd key order, vendor fields at every level, unknown content types,
// isError:false, schemas that are no objects, escapes that could be written
// otherwise, white space.
var oddTools = []string{
	`{"name":"zeta","title":"Z","description":"read <b>&amp;</b>   x","inputSchema":{"type":"object","$schema":"https://json-schema.org/draft/2020-12/schema","required":["path"],"properties":{"path":{"type":"string","description":"p"},"n":{"type":"integer","maximum":9007199254740993,"default":12345678901234567890},"f":{"type":"number","multipleOf":0.10,"const":1.0e2},"t":{"type":"array","prefixItems":[{"type":"string"}],"items":false}},"$defs":{"a":{"$dynamicAnchor":"x"}},"unevaluatedProperties":false},"annotations":{"readOnlyHint":true,"vendorHint":"keep me","destructiveHint":false},"execution":{"taskSupport":"optional"},"_meta":{"com.example/x":{"big":9007199254740993,"z":1,"a":2}},"icons":[{"src":"data:image/png;base64,AA==","mimeType":"image/png","sizes":["48x48"],"theme":"dark"}],"x-vendor":{"k":[1,2,3]}}`,
	`{"inputSchema":true,"name":"alpha"}`,
	`{"name":"no ascii 名","inputSchema":{"type":"object","properties":{}},"annotations":{}}`,
	`{ "name" : "space\u0064" , "inputSchema" : [ ] , "outputSchema" : null }`,
	`{"name":"ref","inputSchema":{"$ref":"https://schemas.invalid/never-fetched.json"}}`,
	`{"name":"odd","inputSchema":{"type":"object"}}`,
	`{"name":"fails","inputSchema":{"type":"object"}}`,
	`{"name":"big","inputSchema":{"type":"object"}}`,
}

var oddNames = []string{"zeta", "alpha", "no ascii 名", "spaced", "ref", "odd", "fails", "big"}

const (
	oddResult = `{"content":[{"type":"text","text":"<ok>\u2028\/","_meta":{"k":9007199254740993},"vendor":1},{"type":"image","data":"AAEC","mimeType":"image/png","annotations":{"audience":["user"],"priority":0.50,"vendor":true}},{"type":"com.example/custom","blob":"x"}], "structuredContent":{"z":1,"a":9007199254740993,"f":1.0,"e":1e2,"n":-0},"isError":false,"_meta":{"io.example/x":{"b":1,"a":9007199254740993}},"vendorField":{"k":1}}`
	oddError  = `{"code":-32055,"message":"no <way>\u00e9","data":{"n":9007199254740993,"f":1.0},"vendor":[1e2]}`
	oddArgs   = `{"z":1,"a":9007199254740993,"f":1.0,"e":1e2,"s":"<&>\u2028 é","deep":{"b":null,"a":[[],{}]}}`
)

// bigResult is a result of bigSize bytes of base64.
func bigResult() json.RawMessage {
	b := make([]byte, 0, bigSize+128)
	b = append(b, `{"content":[{"type":"image","mimeType":"image/png","data":"`...)
	b = append(b, bytes.Repeat([]byte("QUJD"), bigSize/4)...)
	return append(b, `"}]}`...)
}

// oddHost is the fixture host in this process, for the bindings that need no
// child.
func oddHost(era string) *hosttest.Server {
	s := &hosttest.Server{Era: era, PageSize: 3}
	s.Call = func(ctx context.Context, c *hosttest.Call) (json.RawMessage, json.RawMessage) {
		switch c.Name {
		case "odd":
			return json.RawMessage(oddResult), nil
		case "fails":
			return nil, json.RawMessage(oddError)
		case "big":
			return bigResult(), nil
		}
		return hosttest.Echo(ctx, c)
	}
	s.SetTools(oddTools...)
	return s
}

// TestByteIdentity holds what goes through against what was sent, byte by byte,
// for every binding and both eras on either side.
func TestByteIdentity(t *testing.T) {
	const modernMeta = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"c","version":"1e2"}`
	const ours = `"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"io.modelcontextprotocol/clientInfo":{"name":"drawbridge","version":"test"}`
	sampling := strings.Replace(modernMeta, `{}`, `{"sampling":{}}`, 1)
	const toolHead = `{"vendorParam":true,"name":"zeta","arguments":` + oddArgs

	for _, era := range []string{hosttest.Legacy, hosttest.Modern} {
		// What a host gets for what a caller sends. To a legacy host everything
		// goes as it came; to a modern one what its era demands is added.
		cases := []struct{ name, sent, legacy, modern string }{
			{"no meta", toolHead + `}`, toolHead + `}`, toolHead + `,"_meta":{` + ours + `}}`},
			{"empty meta", toolHead + `,"_meta":{ }}`, toolHead + `,"_meta":{ }}`, toolHead + `,"_meta":{` + ours + ` }}`},
			{"legacy meta", toolHead + `,"_meta":{"com.example/t":{"b":9007199254740993}} , "x":1.0}`,
				toolHead + `,"_meta":{"com.example/t":{"b":9007199254740993}} , "x":1.0}`,
				toolHead + `,"_meta":{"com.example/t":{"b":9007199254740993},` + ours + `} , "x":1.0}`},
			{"modern meta", toolHead + `,"_meta":{` + modernMeta + `,"com.example/t":1.0}}`, toolHead + `,"_meta":{` + modernMeta + `,"com.example/t":1.0}}`, toolHead + `,"_meta":{` + modernMeta + `,"com.example/t":1.0}}`},
			// What a caller can be asked is between it and the host.
			{"modern meta with sampling", toolHead + `,"_meta":{` + sampling + `}}`, toolHead + `,"_meta":{` + sampling + `}}`, toolHead + `,"_meta":{` + sampling + `}}`},
		}
		for _, kind := range []string{KindAttached, KindChild, KindRemote} {
			t.Run(kind+" "+era, func(t *testing.T) {
				t.Parallel()
				o := Options{Main: "h"}
				switch kind {
				case KindChild:
					mode := "legacy"
					if era == hosttest.Modern {
						mode = "modern"
					}
					o.Hosts = map[string]Config{"h": childConfig(mode)}
				case KindRemote:
					remote := httptest.NewServer(oddHost(era))
					t.Cleanup(remote.Close)
					o.Hosts = map[string]Config{"h": {URL: remote.URL}}
				}
				f := newFixture(t, o)
				if kind == KindAttached {
					hello := `{"v":1,"name":"h","session":"s"}`
					if era == hosttest.Modern {
						hello = `{"v":1,"name":"h","session":"s","protocolVersion":"2026-07-28"}`
					}
					f.dial(oddHost(era), "h", hello)
				}
				eventually(t, "the host's tools", func() bool { s, _ := f.find("zeta"); return s != nil })

				for i, name := range oddNames {
					if _, def := f.find(name); string(def) != oddTools[i] {
						t.Errorf("definition of %s:\n got %s\nwant %s", name, def, oddTools[i])
					}
				}
				ctx := within(t)
				for _, c := range cases {
					want := c.legacy
					if era == hosttest.Modern {
						want = c.modern
					}
					a := f.call(ctx, "zeta", c.sent, nil)
					if got, want := string(a.Result), `{"content":[],"structuredContent":{"params":`+want+`}}`; got != want {
						t.Errorf("%s:\n got %s\nwant %s\nerror %s", c.name, got, want, a.Error)
					}
				}
				if a := f.call(ctx, "odd", `{"name":"odd"}`, nil); string(a.Result) != oddResult || a.Error != nil {
					t.Errorf("result:\n got %s\nwant %s", a.Result, oddResult)
				}
				if a := f.call(ctx, "fails", `{"name":"fails"}`, nil); string(a.Error) != oddError || a.Result != nil {
					t.Errorf("error:\n got %s\nwant %s", a.Error, oddError)
				}
				if a := f.call(ctx, "big", `{"name":"big"}`, nil); !bytes.Equal(a.Result, bigResult()) {
					t.Errorf("a result of %d bytes has changed: %d bytes", bigSize, len(a.Result))
				}
			})
		}
	}
}

// TestRenamed shows that under a prefix only the name differs.
func TestRenamed(t *testing.T) {
	f := newFixture(t, Options{})
	f.dial(oddHost(hosttest.Legacy), "h", `{"v":1}`)
	f.waitNames("h/h_zeta h/h_alpha h/h_no ascii 名 h/h_spaced h/h_ref h/h_odd h/h_fails h/h_big")
	_, def := f.find("h_spaced")
	if want := `{ "name" : "h_spaced" , "inputSchema" : [ ] , "outputSchema" : null }`; string(def) != want {
		t.Errorf("definition:\n got %s\nwant %s", def, want)
	}
	a := f.call(within(t), "h_no ascii 名", `{"arguments":{"n":1.0},"name":"h_no ascii 名","x":1}`, nil)
	if want := `{"content":[],"structuredContent":{"params":{"arguments":{"n":1.0},"name":"no ascii 名","x":1}}}`; string(a.Result) != want {
		t.Errorf("params:\n got %s\nwant %s", a.Result, want)
	}
}
