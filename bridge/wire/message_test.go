package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
)

func TestParseCall(t *testing.T) {
	const args = `{"n":9007199254740993,"f":1.0,"e":1e2,"big":1e300,"s":"\u00e9é\ud83d\ude00", "odd" : [ null ]}`
	const token = `"t\/1"`
	frame := `{"jsonrpc":"2.0","id":1.50,"extra":{"a":1},"method":"tools\/call","params":{"name":"n\u0061me","arguments":` + args +
		`,"_meta":{"progressToken":` + token + `,"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"x":1},"io.modelcontextprotocol/clientInfo":{"name":"c"},"other":1}}}`
	var m Message
	if err := Parse([]byte(frame), &m); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, got, want string }{
		{"id", string(m.ID), "1.50"},
		{"method", m.Method, "tools/call"},
		{"name", m.Name, "name"},
		{"arguments", string(m.Arguments), args},
		{"token", string(m.Meta.ProgressToken), token},
		{"version", m.Meta.ProtocolVersion, "2026-07-28"},
		{"capabilities", string(m.Meta.Capabilities), `{"x":1}`},
		{"client info", string(m.Meta.ClientInfo), `{"name":"c"}`},
	} {
		if c.got != c.want {
			t.Errorf("%s: %s, want %s", c.what, c.got, c.want)
		}
	}
	if !m.IsRequest() || m.IsNotification() || m.IsResponse() {
		t.Error("not seen as a request")
	}
}

// TestParseRefuses holds each refusal's code and the id that it is answered by.
func TestParseRefuses(t *testing.T) {
	deep := strings.Repeat("[", MaxDepth) + strings.Repeat("]", MaxDepth)
	for _, c := range []struct {
		name, frame string
		code        int
		id, says    string
	}{
		{"empty", ``, CodeParse, "", "ends early"},
		{"text", `hello`, CodeParse, "", "no value begins"},
		{"cut", `{"jsonrpc":"2.0","id":1,"method":"ping"`, CodeParse, "", "object lacks"},
		{"two values", `{"jsonrpc":"2.0","id":1,"method":"ping"}{}`, CodeParse, "", "something follows"},
		{"byte", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xff\"}", CodeParse, "1", "UTF-8"},
		{"surrogate bytes", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\xed\xa0\x80\"}", CodeParse, "1", "UTF-8"},
		{"leading zero", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":01}}`, CodeParse, "1", ""},
		{"NaN", `{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":NaN}}`, CodeParse, "1", ""},
		{"trailing comma", `{"jsonrpc":"2.0","id":1,"method":"m",}`, CodeParse, "1", "lacks its name"},
		{"control character", "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"a\nb\"}", CodeParse, "1", "control character"},
		{"batch", `[{"jsonrpc":"2.0","id":1,"method":"ping"}]`, CodeInvalidRequest, "", "batches"},
		{"number", `1`, CodeInvalidRequest, "", "is a JSON object"},
		{"no version", `{"id":1,"method":"ping"}`, CodeInvalidRequest, "1", `jsonrpc must be "2.0"`},
		{"old version", `{"jsonrpc":"1.0","id":1,"method":"ping"}`, CodeInvalidRequest, "1", "jsonrpc"},
		{"number version", `{"jsonrpc":2.0,"id":1,"method":"ping"}`, CodeInvalidRequest, "1", "jsonrpc"},
		{"null id", `{"jsonrpc":"2.0","id":null,"method":"ping"}`, CodeInvalidRequest, "", "id must be"},
		{"bool id", `{"jsonrpc":"2.0","id":true,"method":"ping"}`, CodeInvalidRequest, "", "id must be"},
		{"array id", `{"jsonrpc":"2.0","id":[1],"method":"ping"}`, CodeInvalidRequest, "", "id must be"},
		{"object id", `{"jsonrpc":"2.0","id":{"a":1},"method":"ping"}`, CodeInvalidRequest, "", "id must be"},
		{"no method", `{"jsonrpc":"2.0","id":"x"}`, CodeInvalidRequest, `"x"`, "no method"},
		{"empty method", `{"jsonrpc":"2.0","id":"x","method":""}`, CodeInvalidRequest, `"x"`, "must not be empty"},
		{"number method", `{"jsonrpc":"2.0","id":"x","method":7}`, CodeInvalidRequest, `"x"`, "method must be a string"},
		{"method and result", `{"jsonrpc":"2.0","id":1,"method":"a","result":{}}`, CodeInvalidRequest, "1", "either"},
		{"result and error", `{"jsonrpc":"2.0","id":1,"error":{},"result":{}}`, CodeInvalidRequest, "1", "result and an error"},
		{"two ids", `{"jsonrpc":"2.0","id":1,"method":"ping","id":2}`, CodeInvalidRequest, "", `"id"`},
		{"two methods", `{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/list"}`, CodeInvalidRequest, "1", `"method"`},
		{"escaped twin", `{"jsonrpc":"2.0","id":1,"method":"ping","m\u0065thod":"tools/list"}`, CodeInvalidRequest, "1", `"method"`},
		{"Method", `{"jsonrpc":"2.0","id":1,"Method":"ping"}`, CodeInvalidRequest, "1", `"Method" is written "method"`},
		{"ID", `{"jsonrpc":"2.0","ID":1,"method":"ping"}`, CodeInvalidRequest, "", `is written "id"`},
		{"paramſ", `{"jsonrpc":"2.0","id":1,"method":"ping","paramſ":{}}`, CodeInvalidRequest, "1", "params"},
		{"array params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":["a"]}`, CodeInvalidParams, "1", "must be an object"},
		{"null params", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":null}`, CodeInvalidParams, "1", "must be an object"},
		{"number name", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}`, CodeInvalidParams, "1", "params.name"},
		{"half a pair", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\ud800x"}}`, CodeInvalidParams, "1", "surrogate"},
		{"two names", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}`, CodeInvalidParams, "1", `"name"`},
		{"Arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","Arguments":{}}}`, CodeInvalidParams, "1", "arguments"},
		{"two in arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[{"y":1,"z":2,"y":3}]}}}`, CodeInvalidParams, "1", `"y"`},
		{"half a pair in a key", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"\udc00":1}}}`, CodeInvalidParams, "1", "surrogate"},
		{"array arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":[1]}}`, CodeInvalidParams, "1", "arguments"},
		{"deep arguments", `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":` + deep + `}}}`, CodeInvalidParams, "1", "too deep"},
		{"array _meta", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":[]}}`, CodeInvalidParams, "1", "_meta"},
		{"token", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"progressToken":{}}}}`, CodeInvalidParams, "1", "progressToken"},
		{"ProgressToken", `{"jsonrpc":"2.0","id":1,"method":"ping","params":{"_meta":{"ProgressToken":1}}}`, CodeInvalidParams, "1", "progressToken"},
		{"id last", `{"jsonrpc":"2.0","method":"ping","params":{"a":1,"a":2},"id":"z"}`, CodeInvalidParams, `"z"`, `"a"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			var m Message
			err := Parse([]byte(c.frame), &m)
			if err == nil {
				t.Fatal("taken")
			}
			if err.Code != c.code || string(m.ID) != c.id || !strings.Contains(err.Message, c.says) {
				t.Errorf("code %d, id %q, %q; want code %d, id %q, …%s…", err.Code, m.ID, err.Message, c.code, c.id, c.says)
			}
			if !json.Valid(err.Raw()) {
				t.Errorf("not JSON: %s", err.Raw())
			}
		})
	}
}

func TestParseTakes(t *testing.T) {
	wide := `{"a0":0`
	for _, c := range "bcdefghijklmnopqrstuvwxyz" {
		wide += `,"` + string(c) + `":0`
	}
	wide += "}"
	for _, frame := range []string{
		` {"jsonrpc":"2.0","id":-0.5e-3,"method":"ping"} ` + "\r\n",
		`{"jsonrpc":"2.0","id":"","method":"ping","params":{}}`,
		`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":7,"result":null}`,
		`{"jsonrpc":"2.0","id":7,"error":{"code":1,"message":"x"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":null}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"Name":1,"name":2,"ID":3,"id":4,"t":"\ud800"}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":` + wide + `}}`,
	} {
		var m Message
		if err := Parse([]byte(frame), &m); err != nil {
			t.Errorf("%s: %v", frame, err)
		}
	}
	var m Message
	twice := strings.Replace(wide, `"z":0`, `"c":0`, 1)
	err := Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"m","params":{"x":`+twice+`}}`), &m)
	if err == nil || !strings.Contains(err.Message, `"c"`) {
		t.Errorf("a name twice among many: %v", err)
	}
}

func TestIDKey(t *testing.T) {
	for _, c := range []struct {
		a, b string
		same bool
	}{
		{`"a"`, `"\u0061"`, true},
		{`"1"`, `1`, false},
		{`1`, `1.0`, false},
		{`"a"`, `"b"`, false},
	} {
		if got := IDKey(json.RawMessage(c.a)) == IDKey(json.RawMessage(c.b)); got != c.same {
			t.Errorf("%s and %s: same %t", c.a, c.b, got)
		}
	}
}

var seeds = []string{
	`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","arguments":{"x":[1,2.5e-3,"\u00e9\ud83d\ude00",null,true,{}]},"_meta":{"progressToken":"p"}}}`,
	`{"jsonrpc":"2.0","params":{"id":7,"s":"}{\"id\":9"},"method":"m","id":"last"}`,
	`{"jsonrpc":"2.0","id":null,"method":"x"}`,
	`{"id":1,"id":2}`, `{"ID":1}`, `[1,2]`, `{}`, `{"a":{"a":{"a":[]}},"a":1}`, "\xff", `{"\ud800":1}`, `{"":""}`, ` {"id" : 1 } `,
}

// FuzzParse: what is taken is valid to encoding/json, which reads the same
// values in it.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		var m Message
		if err := Parse(frame, &m); err != nil {
			if !json.Valid(err.Raw()) {
				t.Fatalf("the error is not JSON: %s", err.Raw())
			}
			return
		}
		var want struct {
			ID     json.RawMessage
			Method string
			Params json.RawMessage
			Result json.RawMessage
			Error  json.RawMessage
		}
		if err := json.Unmarshal(frame, &want); err != nil {
			t.Fatalf("taken, but encoding/json says %v", err)
		}
		var params struct {
			Name      string
			Arguments json.RawMessage
			RequestID json.RawMessage
		}
		if want.Params != nil {
			if err := json.Unmarshal(want.Params, &params); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(m.ID, want.ID) || m.Method != want.Method || !bytes.Equal(m.Params, want.Params) ||
			!bytes.Equal(m.Result, want.Result) || !bytes.Equal(m.Error, want.Error) ||
			m.Name != params.Name || !bytes.Equal(m.Arguments, params.Arguments) || !bytes.Equal(m.RequestID, params.RequestID) {
			t.Fatalf("read %+v, encoding/json %+v %+v", m, want, params)
		}
		if got := FindID(frame); m.ID != nil && len(m.ID) <= maxSkimmed && !bytes.Equal(got, m.ID) {
			t.Fatalf("the skimmer found id %q, the parser %q", got, m.ID)
		}
	})
}

// FuzzValidate: the scanner takes exactly what encoding/json takes, apart from
// the reasons for which it is stricter.
func FuzzValidate(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := Validate(text)
		stricter := errors.Is(err, ErrUTF8) || errors.Is(err, ErrDepth) || errors.Is(err, ErrDuplicate) || errors.Is(err, ErrSurrogate)
		if valid := json.Valid(text); valid != (err == nil) && !(valid && stricter) {
			t.Fatalf("valid to encoding/json: %t; here: %v", valid, err)
		}
	})
}

func FuzzSkimmer(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), 3)
	}
	f.Fuzz(func(t *testing.T, frame []byte, cut int) {
		var whole, pieces Skimmer
		_, _ = whole.Write(frame)
		if cut < 1 {
			cut = 1
		}
		for rest := frame; len(rest) > 0; {
			n := min(cut, len(rest))
			_, _ = pieces.Write(rest[:n])
			rest = rest[n:]
		}
		if !bytes.Equal(whole.ID(), pieces.ID()) || whole.Method() != pieces.Method() || whole.Size() != int64(len(frame)) || pieces.Size() != whole.Size() {
			t.Fatalf("in one piece %q %q, in pieces %q %q", whole.ID(), whole.Method(), pieces.ID(), pieces.Method())
		}
		// Where encoding/json reads one object, the id is the one it reads.
		if Validate(frame) != nil || whole.ID() == nil {
			return
		}
		var want map[string]json.RawMessage
		if err := json.Unmarshal(frame, &want); err != nil {
			t.Fatal(err)
		}
		if !bytes.Equal(bytes.TrimSpace(want["id"]), whole.ID()) {
			t.Fatalf("skimmed id %q, encoding/json %q", whole.ID(), want["id"])
		}
	})
}

func TestSkimmer(t *testing.T) {
	long := strings.Repeat("x", 3*maxSkimmed)
	for _, c := range []struct{ name, frame, id, method string }{
		{"id first", `{"id":1,"method":"tools/call","params":{"a":"` + long + `"}}`, "1", "tools/call"},
		{"id last", `{"params":{"id":9,"a":"` + long + `\"}"},"method":"tools\/call" , "id" : "z" }`, `"z"`, "tools/call"},
		{"escaped name", `{"\u0069d":5}`, "5", ""},
		{"id too long", `{"id":"` + long + `"}`, "", ""},
		{"long name before", `{"` + long + `":1,"id":2}`, "2", ""},
		{"two ids", `{"id":1,"id":2}`, "", ""},
		{"case twin", `{"id":1,"ID":2}`, "", ""},
		{"null id", `{"id":null}`, "", ""},
		{"array id", `{"id":[1]}`, "", ""},
		{"two numbers", `{"id":1 2}`, "", ""},
		{"cut", `{"id":1`, "", ""},
		{"array", `[{"id":1}]`, "", ""},
		{"after", `{"id":1}x`, "", ""},
		{"closed wrong", `{"id":1]`, "", ""},
	} {
		var k Skimmer
		_, _ = k.Write([]byte(c.frame))
		if string(k.ID()) != c.id || k.Method() != c.method {
			t.Errorf("%s: id %q, method %q; want %q, %q", c.name, k.ID(), k.Method(), c.id, c.method)
		}
	}
}

func TestReadMessage(t *testing.T) {
	if b, err := ReadMessage(strings.NewReader(strings.Repeat("a", 10)), 10); err != nil || len(b) != 10 {
		t.Errorf("at the cap: %d bytes, %v", len(b), err)
	}
	frame := `{"method":"tools/call","params":"` + strings.Repeat("x", 5<<20) + `","id":42}`
	_, err := ReadMessage(strings.NewReader(frame), 1<<20)
	var large *ErrTooLarge
	if !errors.As(err, &large) {
		t.Fatal(err)
	}
	if string(large.ID()) != "42" || large.Method() != "tools/call" || large.Size() != int64(len(frame)) || large.Cap != 1<<20 {
		t.Errorf("id %s, method %s, size %d, cap %d", large.ID(), large.Method(), large.Size(), large.Cap)
	}
}

// endless is a frame whose end is far: reading it must not keep it.
type endless struct{ left int64 }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, errors.New("cut off")
	}
	n := int(min(e.left, int64(len(p))))
	for i := range p[:n] {
		p[i] = '"'
	}
	e.left -= int64(n)
	return n, nil
}

func TestReadThroughInConstantMemory(t *testing.T) {
	const limit = 1 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadMessage(&endless{16 << 20}, limit); err == nil {
		t.Fatal("a cut frame was taken")
	}
	runtime.ReadMemStats(&after)
	if got := after.TotalAlloc - before.TotalAlloc; got > 8*limit {
		t.Errorf("reading 16 MiB over a cap of 1 MiB allocated %d bytes", got)
	}
}

func TestMembers(t *testing.T) {
	object := json.RawMessage(` { "a" : "x\\" , "b\"" : [1,{"a":2}] ,"c":-1.5e3,"d":{"e":"}"}, "f":null } `)
	got := map[string]string{}
	Members(object, func(m Member) bool {
		got[m.Name] = string(object[m.Start:m.End])
		return true
	})
	want := map[string]string{"a": `"x\\"`, `b"`: `[1,{"a":2}]`, "c": "-1.5e3", "d": `{"e":"}"}`, "f": "null"}
	if len(got) != len(want) {
		t.Errorf("got %v", got)
	}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %q, want %q", k, got[k], v)
		}
	}
	if got := Replace(object, "c", json.RawMessage(`"n"`)); string(got) != strings.Replace(string(object), "-1.5e3", `"n"`, 1) {
		t.Errorf("replaced: %s", got)
	}
	if got := Get(object, "none"); got != nil {
		t.Errorf("a missing member: %s", got)
	}
}

// FuzzMembers: on valid objects the quick walk sees what encoding/json sees; on
// anything it ends and stays inside.
func FuzzMembers(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		got := map[string]string{}
		Members(text, func(m Member) bool {
			got[m.Name] = string(text[m.Start:m.End])
			return true
		})
		if Validate(text) != nil {
			return
		}
		var want map[string]json.RawMessage
		if json.Unmarshal(text, &want) != nil {
			return // no object
		}
		if len(got) != len(want) {
			t.Fatalf("walked %q, encoding/json %q", got, want)
		}
		for k, v := range want {
			if got[k] != string(v) {
				t.Fatalf("%q: walked %q, encoding/json %q", k, got[k], v)
			}
		}
	})
}

// The steps by which a message of unknown size grows: doubled while it is small,
// and a large one gets what a host's message may have (80 MiB) in one step, so
// that two large buffers are never there together.
func TestGrow(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		begun, room, n int
		limit          int64
		want           int
	}{
		{0, 1024, 1, 80 * mib, 1024},       // there is room
		{1024, 1024, 1, 80 * mib, 2048},    // doubled
		{1024, 1024, 5000, 80 * mib, 6024}, // what is needed
		{1024, 1024, 1, 1500, 2048},        // a little over the limit costs nothing
		{8 * mib, 8 * mib, 1, 80 * mib, 16 * mib},
		{16 * mib, 16 * mib, 1, 80 * mib, 80*mib + 1},
		{16 * mib, 16 * mib, 1, 512 * mib, 96*mib + 1},
		{12 * mib, 12 * mib, 1, 16 * mib, 16*mib + 1},
	} {
		begun := make([]byte, c.begun, c.room)
		if c.begun > 0 {
			begun[0], begun[c.begun-1] = 'a', 'z'
		}
		got := Grow(begun, c.n, c.limit)
		if cap(got) != c.want || len(got) != c.begun || c.begun > 0 && (got[0] != 'a' || got[c.begun-1] != 'z') {
			t.Errorf("%d of %d and %d more, limit %d: length %d, room %d, want %d", c.begun, c.room, c.n, c.limit, len(got), cap(got), c.want)
		}
	}
}
