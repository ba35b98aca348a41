package host

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/rs/zerolog"

	"drawbridge/bridge/wire"
)

// FuzzEnvelope holds what is read of a host's frame against encoding/json, which
// takes more.
func FuzzEnvelope(f *testing.F) {
	for _, s := range []string{
		`{"jsonrpc":"2.0","id":1,"result":` + oddResult + `}`,
		`{"jsonrpc":"2.0","id":"a\u0031","method":"ping"}`,
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":1.0}}`,
		`{"jsonrpc":"2.0","id":1,"error":` + oddError + `}`,
		`{"id":1,"result":{},"error":null,"jsonrpc":"2.0"}`,
		`{"jsonrpc":"2.0","id":1,"id":2,"result":{}}`, `[]`, `{`, ``, "\xff",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, frame []byte) {
		e, err := parseEnvelope(frame)
		var std struct {
			ID     json.RawMessage `json:"id"`
			Result json.RawMessage `json:"result"`
		}
		if err != nil {
			return
		}
		if err := json.Unmarshal(frame, &std); err != nil {
			t.Fatalf("taken, but encoding/json refuses it: %v", err)
		}
		for _, raw := range []json.RawMessage{e.id, e.params, e.result, e.rpcErr} {
			if raw != nil && !json.Valid(raw) {
				t.Fatalf("%q is no JSON", raw)
			}
		}
		if e.result != nil && e.rpcErr != nil {
			t.Fatal("a result and an error")
		}
	})
}

// FuzzParams turns a caller's params into those for a host and checks that what
// comes out is valid, has what it must have, and keeps everything else.
func FuzzParams(f *testing.F) {
	for _, s := range []string{
		`{"name":"x"}`, `{ "name" : "x" , "_meta" : { } }`,
		`{"name":"x","arguments":` + oddArgs + `,"_meta":{"progressToken":"t","k":1.0}}`,
		`{"_meta":{"io.modelcontextprotocol/clientCapabilities":{"roots":{}},"progressToken":1},"name":"x"}`,
	} {
		f.Add([]byte(s), true, true)
		f.Add([]byte(s), false, false)
	}
	f.Fuzz(func(t *testing.T, params []byte, modern, rename bool) {
		// The endpoint lets nothing else come so far.
		var m wire.Message
		if wire.Parse([]byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":`+string(params)+`}`), &m) != nil || m.Name == "" {
			return
		}
		c := newConn(newPipeOf(), Events{}, "test", zerolog.Nop())
		c.modern = modern
		r := CallRequest{Name: "other", Params: m.Params, Rename: rename}
		e := c.planParams(r)
		out := e.apply(nil, m.Params, 42)
		if err := wire.Validate(out); err != nil {
			t.Fatalf("%s: %v", out, err)
		}
		want := m.Name
		if rename {
			want = "other"
		}
		var got string
		if err := json.Unmarshal(wire.Get(out, "name"), &got); err != nil || got != want {
			t.Errorf("name %q, %v; want %q in %s", got, err, want, out)
		}
		meta := wire.Get(out, "_meta")
		if m.Meta.ProgressToken != nil && string(wire.Get(meta, "progressToken")) != "42" {
			t.Errorf("no token of ours in %s", out)
		}
		if modern && (wire.Get(meta, wire.MetaProtocolVersion) == nil || wire.Get(meta, wire.MetaClientCapabilities) == nil || wire.Get(meta, wire.MetaClientInfo) == nil) {
			t.Errorf("not what a stateless host needs: %s", out)
		}
		if !bytes.Equal(wire.Get(out, "arguments"), m.Arguments) {
			t.Errorf("arguments %s; want %s", wire.Get(out, "arguments"), m.Arguments)
		}
		if !modern && !rename && m.Meta.ProgressToken == nil && !bytes.Equal(out, m.Params) {
			t.Errorf("%s has become %s", m.Params, out)
		}
	})
}

// FuzzEvents reads any bytes as an event stream: it must end, and deliver only
// what stood in it.
func FuzzEvents(f *testing.F) {
	for _, s := range []string{
		"data: {}\n\n", "data: a\ndata: b\n\n", ":\n\nid: 7\nretry: 5\n\n", "data:x\r\n\r\n", "data: {\"id\":1}", "event: message\ndata:\n\n", strings.Repeat("x", 300),
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		p := newHTTPPipe("http://127.0.0.1:1/", nil, 200)
		p.in = make(chan Incoming, len(body)+1)
		var s stream
		if _, err := p.events(&s, bytes.NewReader(body), 0); err != nil && !strings.Contains(err.Error(), "an event has more than") {
			t.Fatal(err)
		}
		close(p.in)
		var large *wire.ErrTooLarge
		for in := range p.in {
			for _, line := range bytes.Split(in.Frame, []byte("\n")) {
				if !bytes.Contains(body, line) {
					t.Errorf("%q did not stand in the stream", line)
				}
			}
			if in.Err != nil && !errors.As(in.Err, &large) {
				t.Error(in.Err)
			}
		}
	})
}

// FuzzChildOutput reads any bytes as what a child writes.
func FuzzChildOutput(f *testing.F) {
	f.Add([]byte("{}\n\n{\"a\":1}\r\nrest"))
	f.Add(bytes.Repeat([]byte("x"), 500))
	f.Fuzz(func(t *testing.T, out []byte) {
		p := newStdioPipe(nopCloser{io.Discard}, io.NopCloser(bytes.NewReader(out)), 100)
		defer p.Close()
		for {
			in, err := p.Receive()
			if err == io.EOF {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if in.Err == nil && (len(in.Frame) == 0 || len(in.Frame) > 100 || !bytes.Contains(out, in.Frame)) {
				t.Errorf("frame %q of %q", in.Frame, out)
			}
		}
	})
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }
