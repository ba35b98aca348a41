// Package mockmodel is a model host that counts: for tests that must show that
// no request reached one. It speaks enough of four public APIs for their
// official clients: OpenAI's chat completions (platform.openai.com/docs/api-reference/chat)
// and responses, streaming (…/responses-streaming), Anthropic's messages (docs.anthropic.com/en/api/messages), and Google's
// generateContent (ai.google.dev/api/generate-content), all but responses whole, too.
package mockmodel

import (
	"encoding/json"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
)

// HoldHeader makes an answer that streams stop after its first event, until the
// client or the model goes.
const HoldHeader = "X-Mock-Hold"

// Model is a running one.
type Model struct {
	URL  string // http://127.0.0.1:PORT
	Addr string // 127.0.0.1:PORT

	server *httptest.Server
	end    chan struct{}

	mu          sync.Mutex // guards what follows
	connections int
	requests    []Request
	broken      []string
	held        string // below this path; empty: none
	cut         int
}

// Request is one that arrived.
type Request struct {
	Method, URI string
	Header      http.Header
	Body        []byte
}

// Start starts one on a free loopback port.
func Start() *Model {
	m := &Model{end: make(chan struct{})}
	m.server = httptest.NewUnstartedServer(m)
	m.server.Config.ConnState = func(_ net.Conn, s http.ConnState) {
		if s == http.StateNew {
			m.mu.Lock()
			m.connections++
			m.mu.Unlock()
		}
	}
	m.server.Start()
	m.URL, m.Addr = m.server.URL, m.server.Listener.Addr().String()
	return m
}

// Close ends it, and answers that are held.
func (m *Model) Close() {
	close(m.end)
	m.server.Close()
}

// Break has every request below a path answered 503 from now on.
func (m *Model) Break(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.broken = append(m.broken, path)
}

// Hold has every answer below a path that streams stop after its first event, as
// HoldHeader does.
func (m *Model) Hold(path string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.held = path
}

// Cut is how many answers were stopped so, and then ended by the client.
func (m *Model) Cut() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.cut
}

// Connections is how many connections were made to it.
func (m *Model) Connections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.connections
}

// Requests are those that arrived whole.
func (m *Model) Requests() []Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]Request{}, m.requests...)
}

func (m *Model) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the client is gone
	}
	m.mu.Lock()
	m.requests = append(m.requests, Request{r.Method, r.RequestURI, r.Header.Clone(), body})
	broken := slices.ContainsFunc(m.broken, func(path string) bool { return strings.HasPrefix(r.URL.Path, path) })
	m.mu.Unlock()
	if broken {
		http.Error(w, `{"error":{"message":"out of order"}}`, http.StatusServiceUnavailable)
		return
	}
	var q struct {
		Stream bool   `json:"stream"`
		Model  string `json:"model"`
	}
	_ = json.Unmarshal(body, &q) // what has no body streams nothing
	switch path := r.URL.Path; {
	case strings.HasSuffix(path, "/chat/completions"):
		m.answer(w, r, q.Stream, openAI)
	case strings.HasSuffix(path, "/responses") && q.Stream:
		m.answer(w, r, true, responses)
	case strings.HasSuffix(path, "/messages"):
		m.answer(w, r, q.Stream, anthropic)
	case strings.HasSuffix(path, ":generateContent"):
		m.answer(w, r, false, google)
	case strings.HasSuffix(path, ":streamGenerateContent"):
		m.answer(w, r, true, google)
	default:
		http.Error(w, `{"error":{"message":"no such method"}}`, http.StatusNotFound)
	}
}

// api is one answer that says hi, whole and as events.
type api struct {
	whole  string
	events []string
	named  bool // events carry their type as their name
}

var openAI = api{
	whole: `{"id":"c","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
	events: []string{
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"hi"},"finish_reason":null}]}`,
		`{"id":"c","object":"chat.completion.chunk","created":1,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`,
		`[DONE]`,
	},
}

var responses = api{
	events: []string{
		`{"type":"response.created","response":{"id":"r"}}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"message","id":"i","role":"assistant","status":"completed","content":[{"type":"output_text","text":"hi","annotations":[]}]}}`,
		`{"type":"response.completed","response":{"id":"r","usage":{"input_tokens":1,"input_tokens_details":null,"output_tokens":1,"output_tokens_details":null,"total_tokens":2}}}`,
	},
	named: true,
}

var anthropic = api{
	whole: `{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}`,
	events: []string{
		`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
		`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hi"}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":1}}`,
		`{"type":"message_stop"}`,
	},
	named: true,
}

var google = api{
	whole:  `{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`,
	events: []string{`{"candidates":[{"content":{"role":"model","parts":[{"text":"hi"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":1,"candidatesTokenCount":1,"totalTokenCount":2}}`},
}

func (m *Model) answer(w http.ResponseWriter, r *http.Request, stream bool, a api) {
	if !stream {
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, a.whole) // the client may be gone
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range a.events {
		text := "data: " + e + "\n\n"
		if a.named {
			var t struct {
				Type string `json:"type"`
			}
			if err := json.Unmarshal([]byte(e), &t); err != nil {
				panic(err) // they stand above
			}
			text = "event: " + t.Type + "\n" + text
		}
		if _, err := io.WriteString(w, text); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		if m.holds(r) {
			select {
			case <-r.Context().Done():
				m.mu.Lock()
				m.cut++
				m.mu.Unlock()
			case <-m.end:
			}
			return
		}
	}
}

func (m *Model) holds(r *http.Request) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return r.Header.Get(HoldHeader) != "" || m.held != "" && strings.HasPrefix(r.URL.Path, m.held)
}
