// Package conformance runs the official MCP conformance suite against the real
// endpoint. The suite asks a server for tools of certain names and behaviour;
// [Fixtures] is a source that has them, so that the suite also sees whether calls
// and results pass through unchanged. [Front] adds the token that the suite
// cannot send.
package conformance

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
)

// Fixtures is the source of the tools that the suite's server scenarios call.
// What each one must do is written in the scenarios' descriptions, which the
// suite prints with its failures.
type Fixtures struct {
	// Changed is called by test_trigger_tool_change after the list of tools has
	// changed. It may be nil.
	Changed func()

	key [32]byte // signs requestState

	mu    sync.Mutex
	extra bool // guarded by mu: whether test_dynamic_tool is listed
}

var _ bridge.Source = (*Fixtures)(nil)

// NewFixtures makes the source.
func NewFixtures() *Fixtures {
	f := &Fixtures{}
	_, _ = rand.Read(f.key[:]) // never fails
	return f
}

// Name implements [bridge.Source].
func (f *Fixtures) Name() string { return "conformance" }

// Tools implements [bridge.Source].
func (f *Fixtures) Tools(string) []bridge.Tool {
	f.mu.Lock()
	extra := f.extra
	f.mu.Unlock()
	list := make([]bridge.Tool, 0, len(fixtures)+1)
	for _, t := range fixtures {
		list = append(list, t.tool())
	}
	if extra {
		list = append(list, fixture{name: "test_dynamic_tool", about: "Comes and goes with test_trigger_tool_change"}.tool())
	}
	return list
}

// Prepare implements [bridge.Source]. Nothing is asked of a person: the suite has
// none.
func (f *Fixtures) Prepare(_ context.Context, c *bridge.Call) (*bridge.Prepared, *bridge.Answer) {
	for _, t := range fixtures {
		if t.name != c.Tool {
			continue
		}
		return &bridge.Prepared{
			Default: gate.DefaultAllow,
			Run:     func(ctx context.Context) bridge.Answer { return t.run(ctx, f, c) },
		}, nil
	}
	a := text("nothing to do")
	return nil, &a
}

// fixture is one tool of the suite.
type fixture struct {
	name, about string
	schema      string // input schema; empty means: an object without properties
	run         func(ctx context.Context, f *Fixtures, c *bridge.Call) bridge.Answer
}

func (t fixture) tool() bridge.Tool {
	schema := t.schema
	if schema == "" {
		schema = `{"type":"object"}`
	}
	about, _ := json.Marshal(t.about)
	return bridge.Tool{Name: t.name, Definition: fmt.Appendf(nil, `{"name":%q,"description":%s,"inputSchema":%s}`, t.name, about, schema)}
}

// A picture of one red pixel, and a sound of no samples.
const (
	pixelPNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
	emptyWAV = "UklGRiQAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQAAAAA="
)

// pause lies between the notifications of one call, as the scenarios ask.
const pause = 50 * time.Millisecond

const (
	askName    = `{"method":"elicitation/create","params":{"message":"What is your name?","requestedSchema":{"type":"object","properties":{"name":{"type":"string"}},"required":["name"]}}}`
	askConfirm = `{"method":"elicitation/create","params":{"message":"Please confirm","requestedSchema":{"type":"object","properties":{"ok":{"type":"boolean"}},"required":["ok"]}}}`
	askColor   = `{"method":"elicitation/create","params":{"message":"Step 2: What is your favorite color?","requestedSchema":{"type":"object","properties":{"color":{"type":"string"}},"required":["color"]}}}`
	askModel   = `{"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"What is the capital of France?"}}],"maxTokens":100}}`
	askRoots   = `{"method":"roots/list","params":{}}`
)

var fixtures = []fixture{
	{name: "test_simple_text", about: "Returns a text", run: always(text("This is a simple text response for testing."))},
	{name: "test_image_content", about: "Returns a picture",
		run: always(content(`{"type":"image","data":"` + pixelPNG + `","mimeType":"image/png"}`))},
	{name: "test_audio_content", about: "Returns a sound",
		run: always(content(`{"type":"audio","data":"` + emptyWAV + `","mimeType":"audio/wav"}`))},
	{name: "test_embedded_resource", about: "Returns an embedded resource",
		run: always(content(`{"type":"resource","resource":{"uri":"test://embedded-resource","mimeType":"text/plain","text":"This is an embedded resource content."}}`))},
	{name: "test_multiple_content_types", about: "Returns a text, a picture and a resource",
		run: always(content(`{"type":"text","text":"Multiple content types test:"},` +
			`{"type":"image","data":"` + pixelPNG + `","mimeType":"image/png"},` +
			`{"type":"resource","resource":{"uri":"test://mixed-content-resource","mimeType":"application/json","text":"{\"test\":\"data\",\"value\":123}"}}`))},
	{name: "test_error_handling", about: "Always fails",
		run: always(bridge.Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"This tool intentionally returns an error for testing"}],"isError":true}`)})},
	{name: "test_tool_with_progress", about: "Reports progress three times", run: progress},
	{name: "test_logging_tool", about: "Logs only for callers that asked for a log level", run: logging},
	{name: "json_schema_2020_12_tool", about: "Tool with JSON Schema 2020-12 features", run: always(text("ok")),
		schema: `{"$schema":"https://json-schema.org/draft/2020-12/schema","type":"object",` +
			`"$defs":{"address":{"$anchor":"addressDef","type":"object","properties":{"street":{"type":"string"},"city":{"type":"string"}}}},` +
			`"properties":{"name":{"type":"string"},"address":{"$ref":"#/$defs/address"},"contactMethod":{"type":"string","enum":["phone","email"]},"phone":{"type":"string"},"email":{"type":"string"}},` +
			`"allOf":[{"anyOf":[{"required":["phone"]},{"required":["email"]}]}],` +
			`"if":{"properties":{"contactMethod":{"const":"phone"}},"required":["contactMethod"]},"then":{"required":["phone"]},"else":{"required":["email"]},` +
			`"additionalProperties":false}`},
	{name: "test_custom_headers", about: "Takes a parameter that HTTP clients repeat in a header", run: always(text("ok")),
		schema: `{"type":"object","properties":{"region":{"type":"string","x-mcp-header":"Region"}},"required":["region"]}`},
	{name: "test_missing_capability", about: "Needs a client that can sample", run: missingCapability},
	{name: "test_trigger_tool_change", about: "Changes the list of tools", run: triggerChange},
	{name: "test_streaming_elicitation", about: "Asks for input in its result, never by a request of its own",
		run: always(inputRequired(`"user_name":`+askName, ""))},

	{name: "test_input_required_result_elicitation", about: "Asks for a name", run: askOnce("user_name", askName)},
	{name: "test_input_required_result_sampling", about: "Asks for a model's answer", run: askOnce("capital_question", askModel)},
	{name: "test_input_required_result_list_roots", about: "Asks for the roots", run: askOnce("client_roots", askRoots)},
	{name: "test_input_required_result_request_state", about: "Asks once and checks the state that comes back", run: askWithState},
	{name: "test_input_required_result_tampered_state", about: "Refuses a state that was changed", run: askWithState},
	{name: "test_input_required_result_multiple_inputs", about: "Asks for three things at once", run: askThree},
	{name: "test_input_required_result_multi_round", about: "Asks twice, one after the other", run: askTwice},
	{name: "test_input_required_result_capabilities", about: "Asks only for what the client can do", run: askCapable},
}

// params is what the fixtures read of a call's parameters.
type params struct {
	Meta struct {
		Capabilities map[string]json.RawMessage `json:"io.modelcontextprotocol/clientCapabilities"`
		LogLevel     *string                    `json:"io.modelcontextprotocol/logLevel"`
	} `json:"_meta"`
	InputResponses json.RawMessage `json:"inputResponses"`
	RequestState   *string         `json:"requestState"`
}

func read(c *bridge.Call) (params, *bridge.Answer) {
	var p params
	if err := json.Unmarshal(c.Params, &p); err != nil {
		a := rpcError(-32602, "invalid params: "+err.Error(), "")
		return p, &a
	}
	return p, nil
}

// responses reads inputResponses: absent is empty, anything but an object of
// objects is refused.
func (p params) responses() (map[string]map[string]json.RawMessage, *bridge.Answer) {
	if p.InputResponses == nil {
		return nil, nil
	}
	var m map[string]map[string]json.RawMessage
	if err := json.Unmarshal(p.InputResponses, &m); err != nil || m == nil {
		a := rpcError(-32602, "invalid params: inputResponses must be an object of objects", "")
		return nil, &a
	}
	return m, nil
}

func always(a bridge.Answer) func(context.Context, *Fixtures, *bridge.Call) bridge.Answer {
	return func(context.Context, *Fixtures, *bridge.Call) bridge.Answer { return a }
}

func progress(ctx context.Context, _ *Fixtures, c *bridge.Call) bridge.Answer {
	for i, at := range []int{0, 50, 100} {
		if i > 0 && !sleep(ctx) {
			break
		}
		if c.ProgressToken != nil {
			c.Notify("notifications/progress", fmt.Appendf(nil, `{"progressToken":%s,"progress":%d,"total":100}`, c.ProgressToken, at))
		}
	}
	return text("done")
}

func logging(_ context.Context, _ *Fixtures, c *bridge.Call) bridge.Answer {
	p, bad := read(c)
	if bad != nil {
		return *bad
	}
	if p.Meta.LogLevel != nil {
		c.Notify("notifications/message", json.RawMessage(`{"level":"info","data":"Tool execution started"}`))
	}
	return text("done")
}

func missingCapability(_ context.Context, _ *Fixtures, c *bridge.Call) bridge.Answer {
	p, bad := read(c)
	if bad != nil {
		return *bad
	}
	if _, ok := p.Meta.Capabilities["sampling"]; !ok {
		return rpcError(-32021, "the client did not declare the sampling capability", `{"requiredCapabilities":{"sampling":{}}}`)
	}
	return text("ok")
}

func triggerChange(_ context.Context, f *Fixtures, _ *bridge.Call) bridge.Answer {
	f.mu.Lock()
	f.extra = !f.extra
	f.mu.Unlock()
	if f.Changed != nil {
		f.Changed()
	}
	return text("changed")
}

// askOnce asks until the response named key is there.
func askOnce(key, request string) func(context.Context, *Fixtures, *bridge.Call) bridge.Answer {
	return func(_ context.Context, _ *Fixtures, c *bridge.Call) bridge.Answer {
		p, bad := read(c)
		if bad != nil {
			return *bad
		}
		got, bad := p.responses()
		if bad != nil {
			return *bad
		}
		if r, ok := got[key]; ok {
			b, _ := json.Marshal(r)
			return text("got " + string(b))
		}
		return inputRequired(quote(key)+":"+request, "")
	}
}

func askWithState(_ context.Context, f *Fixtures, c *bridge.Call) bridge.Answer {
	const step = "confirm"
	p, bad := read(c)
	if bad != nil {
		return *bad
	}
	if p.RequestState == nil {
		return inputRequired(`"confirm":`+askConfirm, f.sign(step))
	}
	if !f.signed(step, *p.RequestState) {
		return rpcError(-32602, "requestState was changed on the way", "")
	}
	return text("state-ok")
}

func askThree(_ context.Context, f *Fixtures, c *bridge.Call) bridge.Answer {
	const step = "three"
	p, bad := read(c)
	if bad != nil {
		return *bad
	}
	got, bad := p.responses()
	if bad != nil {
		return *bad
	}
	if p.RequestState != nil && f.signed(step, *p.RequestState) && len(got) == 3 {
		return text("all three arrived")
	}
	return inputRequired(`"user_name":`+askName+`,"greeting":`+askModel+`,"client_roots":`+askRoots, f.sign(step))
}

func askTwice(_ context.Context, f *Fixtures, c *bridge.Call) bridge.Answer {
	p, bad := read(c)
	if bad != nil {
		return *bad
	}
	switch {
	case p.RequestState == nil:
		return inputRequired(`"step1":`+askName, f.sign("step1"))
	case f.signed("step1", *p.RequestState):
		return inputRequired(`"step2":`+askColor, f.sign("step2"))
	case f.signed("step2", *p.RequestState):
		return text("both steps arrived")
	}
	return rpcError(-32602, "requestState was changed on the way", "")
}

func askCapable(_ context.Context, _ *Fixtures, c *bridge.Call) bridge.Answer {
	p, bad := read(c)
	if bad != nil {
		return *bad
	}
	requests := ""
	for _, r := range []struct{ capability, key, request string }{
		{"elicitation", "user_name", askName}, {"sampling", "capital_question", askModel}, {"roots", "client_roots", askRoots},
	} {
		if _, ok := p.Meta.Capabilities[r.capability]; !ok {
			continue
		}
		if requests != "" {
			requests += ","
		}
		requests += quote(r.key) + ":" + r.request
	}
	return inputRequired(requests, "")
}

// sign makes a state that names step and cannot be made by anybody else.
func (f *Fixtures) sign(step string) string {
	mac := hmac.New(sha256.New, f.key[:])
	mac.Write([]byte(step))
	return step + "." + base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}

func (f *Fixtures) signed(step, state string) bool {
	return hmac.Equal([]byte(f.sign(step)), []byte(state))
}

// sleep waits for one pause and reports whether the call is still wanted.
func sleep(ctx context.Context) bool {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-ctx.Done():
		return false
	}
}

func text(s string) bridge.Answer {
	return content(`{"type":"text","text":` + quote(s) + `}`)
}

func content(blocks string) bridge.Answer {
	return bridge.Answer{Result: json.RawMessage(`{"content":[` + blocks + `]}`)}
}

// inputRequired is a result that asks the client; an empty state is left out.
func inputRequired(requests, state string) bridge.Answer {
	r := `{"resultType":"input_required","inputRequests":{` + requests + `}`
	if state != "" {
		r += `,"requestState":` + quote(state)
	}
	return bridge.Answer{Result: json.RawMessage(r + `}`)}
}

func rpcError(code int, message, data string) bridge.Answer {
	e := fmt.Sprintf(`{"code":%d,"message":%s`, code, quote(message))
	if data != "" {
		e += `,"data":` + data
	}
	return bridge.Answer{Error: json.RawMessage(e + `}`)}
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}
