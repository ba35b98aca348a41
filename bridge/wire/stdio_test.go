package wire

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
)

// pipeLink is an agent's end made of channels. Like the websocket's, its
// ReadFrame passes over what is too large and returns io.EOF after Close.
type pipeLink struct {
	sent   chan string // what the stdio end wrote
	frames chan string // what the agent says
	once   sync.Once
	closed chan struct{}
}

func newPipeLink() *pipeLink {
	return &pipeLink{sent: make(chan string, 64), frames: make(chan string, 64), closed: make(chan struct{})}
}

func (l *pipeLink) ReadFrame(limit int64) ([]byte, error) {
	select {
	case f, ok := <-l.frames:
		if !ok {
			return nil, io.EOF
		}
		return ReadMessage(strings.NewReader(f), limit)
	case <-l.closed:
		return nil, io.EOF
	}
}

func (l *pipeLink) WriteFrame(b []byte) error { l.sent <- string(b); return nil }
func (l *pipeLink) Close() error              { l.once.Do(func() { close(l.closed) }); return nil }

type stdioRig struct {
	in   *io.PipeWriter
	out  *bufio.Reader
	link *pipeLink
	done chan error
}

func newStdioRig(t *testing.T, ctx context.Context, maxAnswer int64) *stdioRig {
	inR, inW := io.Pipe()
	outR, outW := io.Pipe()
	r := &stdioRig{in: inW, out: bufio.NewReader(outR), link: newPipeLink(), done: make(chan error, 1)}
	go func() {
		err := Stdio(ctx, inR, outW, r.link, maxAnswer)
		_ = outW.Close()
		r.done <- err
	}()
	t.Cleanup(func() { _ = inW.Close(); _ = outR.Close() })
	return r
}

func (r *stdioRig) line(t *testing.T) string {
	t.Helper()
	line, err := r.out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSuffix(line, "\n")
}

func TestStdioDrainsThenEnds(t *testing.T) {
	r := newStdioRig(t, t.Context(), 0)
	go func() {
		_, _ = io.WriteString(r.in, "\n  {\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"}\r\n{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"subscriptions/listen\"}\n{\"jsonrpc\":\"2.0\",\"method\":\"notifications/x\"}")
		_ = r.in.Close()
	}()
	for _, want := range []string{`{"jsonrpc":"2.0","id":1,"method":"ping"}`, `{"jsonrpc":"2.0","id":2,"method":"subscriptions/listen"}`, `{"jsonrpc":"2.0","method":"notifications/x"}`} {
		if got := <-r.link.sent; got != want {
			t.Errorf("the agent got %s, want %s", got, want)
		}
	}
	select {
	case err := <-r.done:
		t.Fatalf("ended (%v) before the answer", err)
	default:
	}
	r.link.frames <- "{\"jsonrpc\":\"2.0\",\n\r\"id\":1,\"result\":{}}"
	if got, want := r.line(t), `{"jsonrpc":"2.0",  "id":1,"result":{}}`; got != want {
		t.Errorf("the client got %s, want %s", got, want)
	}
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestStdioAnswersWhenTheAgentGoes(t *testing.T) {
	r := newStdioRig(t, t.Context(), 0)
	if _, err := io.WriteString(r.in, callLine(`"a"`)+callLine(`7`)); err != nil {
		t.Fatal(err)
	}
	<-r.link.sent
	<-r.link.sent
	r.link.frames <- `{"jsonrpc":"2.0","id":7,"result":{}}`
	r.line(t)
	close(r.link.frames)
	got := r.line(t)
	var m Message
	if err := Parse([]byte(got), &m); err != nil || string(m.ID) != `"a"` || m.Error == nil {
		t.Errorf("the open request got %s", got)
	}
	if err := <-r.done; err == nil {
		t.Error("no error")
	}
}

func callLine(id string) string {
	return `{"jsonrpc":"2.0","id":` + id + `,"method":"tools/call","params":{"name":"x"}}` + "\n"
}

func TestStdioCaps(t *testing.T) {
	r := newStdioRig(t, t.Context(), 200)
	go func() {
		_, _ = io.WriteString(r.in, `{"params":"`+strings.Repeat("x", MaxLine)+`","method":"tools/call","id":"in"}`+"\n"+callLine("1"))
	}()
	if got := r.line(t); !strings.Contains(got, `"id":"in","result":`) || !strings.Contains(got, "16777216") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("a line over the cap got %.300s", got)
	}
	<-r.link.sent
	r.link.frames <- `{"jsonrpc":"2.0","result":{"text":"` + strings.Repeat("x", 300) + `"},"id":1}`
	if got := r.line(t); !strings.Contains(got, `"id":1,"result":`) || !strings.Contains(got, "cap of 200 bytes") || !strings.Contains(got, `"isError":true`) {
		t.Errorf("an answer over the cap got %s", got)
	}
	_ = r.in.Close()
	if err := <-r.done; err != nil {
		t.Error(err)
	}
}

func TestStdioEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	r := newStdioRig(t, ctx, 0)
	if _, err := io.WriteString(r.in, callLine("1")); err != nil {
		t.Fatal(err)
	}
	<-r.link.sent
	cancel(errors.New("enough"))
	if got := r.line(t); !strings.Contains(got, `"id":1,"error"`) || !strings.Contains(got, "enough") {
		t.Errorf("the open request got %s", got)
	}
	<-r.done
}

func TestLineReader(t *testing.T) {
	text := "one\n" + strings.Repeat("two", 100_000) + "\n\nend"
	for name, in := range map[string]io.Reader{"whole": strings.NewReader(text), "bytes": iotest.OneByteReader(strings.NewReader(text))} {
		var got []string
		b := bufio.NewReaderSize(in, 1<<10)
		for {
			line, err := ReadMessage(&lineReader{r: b}, 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, string(line))
			if _, err := b.Peek(1); err != nil {
				break
			}
		}
		if strings.Join(got, "\n") != text {
			t.Errorf("%s: lines came out otherwise", name)
		}
	}
}
