package bridge

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/bridge/wire"
)

var update = flag.Bool("update", false, "write what the server says into testdata/wire")

// goldenTools are what the scripts in testdata/wire call.
func goldenTools(f *fixture) {
	f.addRaw("echo", `{"name":"echo","x-unknown":1.0,"inputSchema":{"type":"object","properties":{"n":{"type":"integer","maximum":9007199254740993}}},"annotations":{"readOnlyHint":true,"odd":null}}`,
		func(_ context.Context, c *Call) Answer {
			return Answer{Result: json.RawMessage(`{"content":[],"structuredContent":` + string(c.Arguments) + `,"isError":false,"odd":1e2}`)}
		})
	f.add("meta", func(context.Context, *Call) Answer {
		return Answer{Result: json.RawMessage(`{"content":[],"_meta":{"a":9007199254740993}}`)}
	})
	f.add("fail", func(context.Context, *Call) Answer {
		return Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"no"}],"isError":true}`)}
	})
	f.add("broken", func(context.Context, *Call) Answer {
		return Answer{Error: json.RawMessage(`{"code":-32099,"message":"odd","data":{"n":1.0}}`)}
	})
	f.add("progress", func(_ context.Context, c *Call) Answer {
		c.Notify("notifications/progress", json.RawMessage(`{"progressToken":`+string(c.ProgressToken)+`,"progress":1.0,"total":2}`))
		return Answer{Result: json.RawMessage("{\"content\":[],\n\"pretty\":true}")}
	})
}

// TestGolden plays the scripts in testdata/wire. A line "C> " is what the client
// sends, the "S> " lines after it are all that the server says to it. With
// -update the S lines are written; their number is kept. Over HTTP a C line is
// METHOD [Header=value …] [body], an S line is status, content type and body.
// ⏎ stands for a line end
// and $SESSION for the id of the session.
func TestGolden(t *testing.T) {
	files, err := filepath.Glob("testdata/wire/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no scripts", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			script, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r := newRig(t, nil)
			goldenTools(r.source)
			play := playWebsocket(t, r)
			if strings.HasPrefix(filepath.Base(file), "http") {
				play = playHTTP(t, r)
			}
			var out bytes.Buffer
			for line := range strings.Lines(string(script)) {
				line = strings.TrimSuffix(line, "\n")
				switch {
				case strings.HasPrefix(line, "C> "):
					play.send(line[3:])
				case strings.HasPrefix(line, "S> "):
					got := "S> " + play.recv()
					if !*update && got != line {
						t.Errorf("the server said\n%s\nwant\n%s", got, line)
					}
					line = got
				}
				out.WriteString(line + "\n")
			}
			play.end()
			if *update {
				if err := os.WriteFile(file, out.Bytes(), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

type player struct {
	send func(string)
	recv func() string
	end  func() // fails if the server said more
}

func playWebsocket(t *testing.T, r *rig) player {
	c := r.dial()
	return player{
		send: func(s string) { send(t, c, s) },
		recv: func() string { return strings.ReplaceAll(recv(t, c), "\n", "⏎") },
		end: func() {
			send(t, c, `{"jsonrpc":"2.0","id":"the end","method":"ping"}`)
			if got := recv(t, c); got != `{"jsonrpc":"2.0","id":"the end","result":{}}` {
				t.Errorf("the server said more: %s", got)
			}
		},
	}
}

func playHTTP(t *testing.T, r *rig) player {
	session := ""
	var said []string
	return player{
		send: func(line string) {
			method, rest, _ := strings.Cut(line, " ")
			header := http.Header{"Authorization": {"Bearer " + r.token}}
			header.Set("Content-Type", "application/json")
			header.Set("Accept", "application/json, text/event-stream")
			for rest != "" && !strings.HasPrefix(rest, "{") {
				var field string
				field, rest, _ = strings.Cut(rest, " ")
				k, v, _ := strings.Cut(field, "=")
				header.Set(k, strings.ReplaceAll(v, "$SESSION", session))
			}
			req, err := http.NewRequestWithContext(t.Context(), method, r.http.URL+"/mcp", strings.NewReader(rest))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = header
			resp, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			body, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			text := resp.Status[:3]
			if ct := resp.Header.Get("Content-Type"); ct != "" {
				text += " " + ct
			}
			if id := resp.Header.Get(headerSession); id != "" {
				session = id
				text += " Mcp-Session-Id"
			}
			if len(body) > 0 {
				text += " " + strings.ReplaceAll(string(body), "\n", "⏎")
			}
			said = append(said, text)
		},
		recv: func() string {
			if len(said) == 0 {
				t.Fatal("the server said less")
			}
			text := said[0]
			said = said[1:]
			return text
		},
		end: func() {
			if len(said) > 0 {
				t.Errorf("the server said more: %q", said)
			}
		},
	}
}

// TestRawThroughWebsocket holds that odd values go both ways byte for byte.
func TestRawThroughWebsocket(t *testing.T) {
	const args = "{ \"big\":9007199254740993, \"one\":1.0,\"e\":1e2 ,\"z\":-0, \"u\":\"\\u00e9\\/\",\r\n \"nested\":{\"b\":[ ],\"a\":{ }}}"
	const result = "{ \"content\" : [ {\"type\":\"video\",\"x\":1.0} ],\"isError\":false, \"n\":18446744073709551616 }"
	const params = `{"x-before":1e1,"name":"odd","arguments":` + args + `,"_meta":{"z":1.0}, "task":{}}`
	r := newRig(t, nil)
	var got Call
	r.source.add("odd", func(_ context.Context, c *Call) Answer {
		got = *c
		return Answer{Result: json.RawMessage(result)}
	})
	c := r.dial()
	for _, id := range []string{`1`, `-7`, `1.50`, `1e3`, `9007199254740993`, `""`, `"\u0061\/b"`, `"é"`, `"null"`} {
		send(t, c, `{"jsonrpc":"2.0","params":`+params+`,"method":"tools/call","id":`+id+`}`)
		if want, got := `{"jsonrpc":"2.0","id":`+id+`,"result":`+result+`}`, recv(t, c); got != want {
			t.Errorf("answer\n%s\nwant\n%s", got, want)
		}
		if string(got.Arguments) != args || string(got.Params) != params {
			t.Errorf("the source got\n%s\n%s", got.Params, got.Arguments)
		}
	}
}

// TestLargeResult holds that a result far over one buffer comes whole, also
// where something is added to it.
func TestLargeResult(t *testing.T) {
	big := `{"content":[{"type":"text","text":"` + strings.Repeat("A", 3<<20) + `"}],"_meta":{"k":1}}`
	r := newRig(t, nil)
	r.source.add("big", func(context.Context, *Call) Answer { return Answer{Result: json.RawMessage(big)} })
	c := r.dial()
	send(t, c, callFrame("1", "big", "{}"))
	if got := recv(t, c); got != `{"jsonrpc":"2.0","id":1,"result":`+big+`}` {
		t.Errorf("came otherwise: %d bytes, %.80s…", len(got), got)
	}
	send(t, c, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"big","_meta":{"`+wire.MetaProtocolVersion+`":"2026-07-28","`+wire.MetaClientCapabilities+`":{}}}}`)
	want := strings.Replace(big, `"_meta":{`, `"_meta":{"`+wire.MetaServerInfo+`":{"name":"drawbridge","title":"Drawbridge","version":"test"},`, 1)
	want = `{"jsonrpc":"2.0","id":2,"result":` + want[:len(want)-1] + `,"resultType":"complete"}}`
	if got := recv(t, c); got != want {
		t.Errorf("came otherwise: %d bytes of %d, …%s", len(got), len(want), got[max(0, len(got)-200):])
	}
}
