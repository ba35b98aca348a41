package ui

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
)

// pageRig is a page's server over a gate, with a native surface that a test
// plays.
type pageRig struct {
	*gateAgent
	t        *testing.T
	activity *Activity
	history  *History
	native   *nativeDesk
	browsed  []string
	opened   <-chan struct{} // of the address browsed last

	noBrowser error // none could be opened
	injected  time.Time
	models    Models
}

func (r *pageRig) State() State {
	s := r.gateAgent.State()
	s.Models = r.models
	s.Rules = []Rule{{Key: "abc", Text: "{tool: \"\u202e\", then: allow}"}, {Key: "def", Text: "{tool: \"*\", then: ask}", Fixed: true}}
	return s
}

func (r *pageRig) Prompts() []*gate.Pending { return r.gate.List() }
func (r *pageRig) Calls() []bridge.CallStatus {
	return []bridge.CallStatus{{ID: "c1", Client: "claude", Tool: "bash", Host: "omp", Running: true}, {ID: "c2", Client: "waits"}}
}
func (r *pageRig) Audit() (AuditView, error) {
	return AuditView{Records: []json.RawMessage{json.RawMessage(`{"seq":1}`)}, Problems: []string{}, OK: true}, nil
}
func (r *pageRig) StopCall(id string) bool           { return r.Do("stopcall", id) == nil && id == "c1" }
func (r *pageRig) AllowModels(context.Context) error { return r.Do(VerbModels, "") }
func (r *pageRig) Revoke(key string) error           { return r.Do("revoke", key) }
func (r *pageRig) Confirm(ctx context.Context, choices []string, shown string) (bool, error) {
	return r.gate.ConfirmPage(ctx, choices, shown)
}

// nativeDesk is a native surface whose person is a test.
type nativeDesk struct {
	mu    sync.Mutex // guards shown
	shown []*gate.Pending
}

func (d *nativeDesk) Name() string { return "desk" }
func (d *nativeDesk) Ready() bool  { return true }
func (d *nativeDesk) Show(p *gate.Pending) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.shown = append(d.shown, p)
	return nil
}
func (d *nativeDesk) Withdraw(*gate.Pending, string) {}

func (d *nativeDesk) last() *gate.Pending {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.shown[len(d.shown)-1]
}

func newPageRig(t *testing.T) *pageRig {
	r := &pageRig{t: t, history: &History{}, native: &nativeDesk{}}
	r.gateAgent = newGateAgent(gate.Options{Surfaces: []gate.Surface{r.native}, Rules: gate.RulesFile{Path: t.TempDir() + "/rules.yaml"}})
	r.activity = NewActivity(t.Context(), ActivityOptions{
		Agent: r, Previews: &Previews{}, History: r.history, Log: zerolog.Nop(),
		Browse: func(_ context.Context, url string, opened <-chan struct{}) error {
			r.browsed, r.opened = append(r.browsed, url), opened
			return r.noBrowser
		},
		Injected: func() time.Time { return r.injected },
	})
	return r
}

// do sends one request to the page's server and returns status and body.
func (r *pageRig) do(token, method, path, body string) (int, string) {
	r.t.Helper()
	q := httptest.NewRequest(method, "/activity/"+path, strings.NewReader(body)).WithContext(r.t.Context())
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	w := httptest.NewRecorder()
	r.activity.ServeHTTP(w, q)
	b, _ := io.ReadAll(w.Result().Body)
	return w.Code, string(b)
}

// open opens a page and returns its token.
func (r *pageRig) open() string {
	r.t.Helper()
	if err := r.activity.Open("http://127.0.0.1:7317"); err != nil {
		r.t.Fatal(err)
	}
	base, code, _ := strings.Cut(r.browsed[len(r.browsed)-1], "#")
	if base != "http://127.0.0.1:7317/activity" || len(code) < 26 {
		r.t.Fatalf("browsed %q", r.browsed)
	}
	status, body := r.do("", "POST", "session", `{"code":"`+code+`"}`)
	var v struct{ Token string }
	if err := json.Unmarshal([]byte(body), &v); status != 200 || err != nil || len(v.Token) < 52 {
		r.t.Fatal(status, body, err)
	}
	select {
	case <-r.opened:
	default:
		r.t.Error("a page is open, and who opened it does not know")
	}
	if status, _ := r.do("", "POST", "session", `{"code":"`+code+`"}`); status != 401 {
		r.t.Errorf("a code worked twice: %d", status)
	}
	return v.Token
}

// TestPageNoBrowser holds that a code that no browser got is worth nothing.
func TestPageNoBrowser(t *testing.T) {
	r := newPageRig(t)
	r.noBrowser = errors.New("no browser")
	if err := r.activity.Open("http://127.0.0.1:7317"); !errors.Is(err, r.noBrowser) {
		t.Errorf("opening: %v", err)
	}
	_, code, _ := strings.Cut(r.browsed[0], "#")
	if status, body := r.do("", "POST", "session", `{"code":"`+code+`"}`); status != 401 {
		t.Errorf("its code: %d %s", status, body)
	}
}

func (r *pageRig) state(token string) pageState {
	r.t.Helper()
	status, body := r.do(token, "GET", "state", "")
	var s pageState
	if err := json.Unmarshal([]byte(body), &s); status != 200 || err != nil {
		r.t.Fatal(status, body, err)
	}
	return s
}

// TestPageNeedsToken: the shell is for everybody and holds nothing; everything
// under it wants a page's own token, and the right method.
func TestPageNeedsToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		w := httptest.NewRecorder()
		r.activity.ServeHTTP(w, httptest.NewRequest("GET", "/activity", nil))
		csp := w.Header().Get("Content-Security-Policy")
		if w.Code != 200 || w.Header().Get("Set-Cookie") != "" || w.Header().Get("Cache-Control") != "no-store" {
			t.Error(w.Code, w.Header())
		}
		for _, want := range []string{"default-src 'none'", "connect-src 'self'", "script-src 'sha256-", "style-src 'sha256-", "frame-ancestors 'none'", "form-action 'none'", "base-uri 'none'"} {
			if !strings.Contains(csp, want) {
				t.Errorf("policy lacks %s: %s", want, csp)
			}
		}
		if strings.Contains(csp, "unsafe") || strings.Count(csp, "sha256-") != 2 {
			t.Error(csp)
		}
		for _, path := range []string{"state", "picture/after/x", "audit", "confirm", "answer", "stop", "pause", "resume", "revoke", "deny-models", "allow-models", "x", "../mcp"} {
			for _, token := range []string{"", "wrong"} {
				for _, method := range []string{"GET", "POST"} {
					if status, _ := r.do(token, method, path, "{}"); status != 401 {
						t.Errorf("%s %s with token %q: %d", method, path, token, status)
					}
				}
			}
		}
		token := r.open()
		for path, method := range map[string]string{"state": "POST", "audit": "POST", "confirm": "GET", "answer": "GET", "stop": "GET", "session": "GET"} {
			if status, _ := r.do(token, method, path, "{}"); status != 405 {
				t.Errorf("%s %s: %d", method, path, status)
			}
		}
		if status, _ := r.do(token, "GET", "nothing", ""); status != 404 {
			t.Error(status)
		}
		for _, body := range []string{"{", `{"id":1}`, "[]", strings.Repeat("x", bodyBytes+1)} {
			if status, _ := r.do(token, "POST", "answer", body); status != 400 {
				t.Errorf("%.20q: %d", body, status)
			}
		}
	})
}

// TestPageCode: a code lives a minute and is gone with the first use; a wrong
// one opens nothing.
func TestPageCode(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		code, _ := r.activity.newCode()
		time.Sleep(codeTime + time.Second)
		for _, c := range []string{code, "", "wrong"} {
			if status, body := r.do("", "POST", "session", `{"code":"`+c+`"}`); status != 401 || !strings.Contains(body, "older than a minute") {
				t.Error(status, body)
			}
		}
		first := r.open()
		time.Sleep(time.Second)
		for range mostPages {
			time.Sleep(time.Millisecond)
			r.open()
		}
		if status, _ := r.do(first, "GET", "state", ""); status != 401 {
			t.Errorf("%d pages are open", mostPages+1)
		}
	})
}

// TestPageAnswers: a page shows, and answers nothing before the person picked its
// number natively; then every verdict does what it says.
func TestPageAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		token := r.open()
		v := r.ask(t.Context(), "claude")
		synctest.Wait()
		s := r.state(token)
		if len(s.Pending) != 1 || s.Pending[0].Title != "claude runs bash of omp" || s.Answers != "no" || s.Icon != "waiting" {
			t.Fatalf("%+v", s)
		}
		id := s.Pending[0].ID
		var names []string
		for _, a := range s.Pending[0].Answers {
			names = append(names, a.Name)
		}
		if fmt.Sprint(names) != "[deny once connection 15m always]" || !strings.Contains(fmt.Sprint(s.Pending[0].Answers), `{tool: "bash", client: "claude", host: "omp", then: allow}`) {
			t.Errorf("%v", s.Pending[0].Answers)
		}
		time.Sleep(time.Second)
		for _, answer := range []string{"once", "deny"} {
			if status, body := r.do(token, "POST", "answer", `{"id":"`+id+`","answer":"`+answer+`"}`); status != 403 || !strings.Contains(body, "confirmed") {
				t.Errorf("%s before it is confirmed: %d %s", answer, status, body)
			}
		}
		number := r.confirm(token)
		p := r.native.last()
		if p.Kind != gate.AskPage || len(p.Choices) != 3 || !slices.Contains(p.Choices, number) {
			t.Fatalf("%+v, shown %s", p, number)
		}
		// The page cannot confirm itself.
		time.Sleep(time.Second)
		r.state(token)
		if status, _ := r.do(token, "POST", "answer", `{"id":"`+p.ID+`","answer":"once"}`); status != 403 {
			t.Errorf("answered its own question: %d", status)
		}
		if err := p.Answer(gate.Answer{Scope: gate.Once, Choice: number, By: "desk"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := r.state(token); s.Answers != "yes" {
			t.Fatalf("%+v", s)
		}
		if status, _ := r.do(token, "POST", "answer", `{"id":"`+id+`","answer":"maybe"}`); status != 409 {
			t.Error(status)
		}
		if status, body := r.do(token, "POST", "answer", `{"id":"`+id+`","answer":"deny","reason":"not now"}`); status != 200 {
			t.Error(status, body)
		}
		if got := <-v; got.Outcome != gate.Denied || got.By != "person at the activity page" || got.Message != "a person denied this call: not now" {
			t.Errorf("%+v", got)
		}
		if status, body := r.do(token, "POST", "answer", `{"id":"`+id+`","answer":"once"}`); status != 409 || !strings.Contains(body, "too late, nothing was run") {
			t.Error(status, body)
		}
		time.Sleep(time.Minute) // the cool-down
		v = r.ask(t.Context(), "claude")
		synctest.Wait()
		id = r.state(token).Pending[0].ID
		once := `{"id":"` + id + `","answer":"once"}`
		if status, _ := r.do(token, "POST", "answer", once); status != 403 {
			t.Errorf("an answer at once: %d", status)
		}
		time.Sleep(reflex)
		r.injected = time.Now()
		if status, _ := r.do(token, "POST", "answer", once); status != 403 {
			t.Errorf("an answer with our own event: %d", status)
		}
		time.Sleep(afterInput)
		if status, body := r.do(token, "POST", "answer", once); status != 200 {
			t.Error(status, body)
		}
		if got := <-v; got.Outcome != gate.Allowed {
			t.Errorf("%+v", got)
		}
		if r.gate.MayRunUnasked(&gate.Request{Client: "claude", Conn: "k", Host: "omp", Tool: "bash"}) {
			t.Error("further calls run after an answer for one")
		}
		// Another page is not this one.
		if s := r.state(r.open()); s.Answers != "no" {
			t.Error(s.Answers)
		}
	})
}

// confirm has the page ask, and returns the number that it shows.
func (r *pageRig) confirm(token string) string {
	r.t.Helper()
	status, body := r.do(token, "POST", "confirm", "{}")
	var v struct{ Number string }
	if err := json.Unmarshal([]byte(body), &v); status != 200 || err != nil {
		r.t.Fatal(status, body, err)
	}
	synctest.Wait()
	return v.Number
}

// TestPageRefused: a wrong number ends it for this page.
func TestPageRefused(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		token := r.open()
		number := r.confirm(token)
		p := r.native.last()
		wrong := p.Choices[0]
		if wrong == number {
			wrong = p.Choices[1]
		}
		if err := p.Answer(gate.Answer{Scope: gate.Once, Choice: wrong, By: "desk"}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if s := r.state(token); s.Answers != "refused" {
			t.Error(s.Answers)
		}
		if status, _ := r.do(token, "POST", "confirm", "{}"); status != 409 {
			t.Errorf("asked again: %d", status)
		}
	})
}

// TestPageNobody: where nobody can be asked, the page says so and may ask again.
func TestPageNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		r.gateAgent = newGateAgent(gate.Options{})
		token := r.open()
		r.confirm(token)
		if s := r.state(token); s.Answers != "no" || !strings.Contains(s.Note, "nobody can be asked here") {
			t.Errorf("%s: %s", s.Answers, s.Note)
		}
		r.confirm(token)
	})
}

// TestPageNative: what loosens beyond a call is not answered on a page.
func TestPageNative(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		token := r.open()
		number := r.confirm(token)
		if err := r.native.last().Answer(gate.Answer{Scope: gate.Once, Choice: number, By: "desk"}); err != nil {
			t.Fatal(err)
		}
		r.gate.Pause("a test")
		if err := r.gate.SetPolicy(gate.Policy{Rules: []gate.Rule{{Tool: "*", Then: gate.ThenAllow}}}); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		s := r.state(token)
		if len(s.Pending) != 2 {
			t.Fatalf("%+v", s.Pending)
		}
		time.Sleep(time.Second)
		for _, p := range s.Pending {
			if !p.Native || len(p.Answers) != 0 {
				t.Errorf("%+v", p)
			}
			if status, _ := r.do(token, "POST", "answer", `{"id":"`+p.ID+`","answer":"once"}`); status != 403 {
				t.Errorf("%s: %d", p.Title, status)
			}
		}
		if _, paused := r.gate.Paused(); !paused || len(r.gate.List()) != 2 {
			t.Error("loosened from a page")
		}
	})
}

// TestPageDeeds: what stops and narrows needs no confirmation.
func TestPageDeeds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		token := r.open()
		for _, tt := range []struct {
			path, body string
			want       int
		}{{"stop", `{"id":"c1"}`, 200}, {"stop", `{"id":"gone"}`, 409}, {"stop", "", 200}, {"pause", "{}", 200}, {"resume", "{}", 200}, {"revoke", `{"id":"abc"}`, 200},
			{"deny-models", "", 200}, {"allow-models", "", 200}} {
			if status, body := r.do(token, "POST", tt.path, tt.body); status != tt.want {
				t.Errorf("%s: %d %s", tt.path, status, body)
			}
		}
		if got := fmt.Sprint(r.deeds()); got != "[stopcallc1 stopcallgone stop pause resume revokeabc no_models models]" {
			t.Error(got)
		}
		s := r.state(token)
		if len(s.Running) != 1 || s.Running[0].Title != "claude runs bash of omp" || len(s.Rules) != 2 || s.Rules[0].Text != `{tool: "⟨U+202E⟩", then: allow}` {
			t.Errorf("%+v", s)
		}
		if status, body := r.do(token, "GET", "audit", ""); status != 200 || body != `{"records":[{"seq":1}],"problems":[],"ok":true}`+"\n" {
			t.Error(status, body)
		}
	})
}

// TestPagePoll: a page that has the state hears of the next one at once, and
// otherwise nothing for a while.
func TestPagePoll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newPageRig(t)
		token := r.open()
		get := func(after string) *httptest.ResponseRecorder {
			q := httptest.NewRequest("GET", "/activity/state?after="+after, nil).WithContext(t.Context())
			q.Header.Set("Authorization", "Bearer "+token)
			w := httptest.NewRecorder()
			r.activity.ServeHTTP(w, q)
			return w
		}
		version := get("").Header().Get("X-Version")
		begin := time.Now()
		if w := get(version); w.Code != http.StatusNoContent || w.Header().Get("X-Version") != version || time.Since(begin) != pollTime {
			t.Errorf("%d after %s", w.Code, time.Since(begin))
		}
		begin = time.Now()
		time.AfterFunc(time.Second, func() { r.ask(t.Context(), "claude") })
		if w := get(version); w.Code != 200 || !strings.Contains(w.Body.String(), "claude runs bash") || time.Since(begin) > time.Second+200*time.Millisecond {
			t.Errorf("%d after %s", w.Code, time.Since(begin))
		}
	})
}

func TestHistory(t *testing.T) {
	var h History
	png := IconReady.PNG(FormDark, 22)
	result := func(text string, data []byte) bridge.Answer {
		return bridge.Answer{Result: json.RawMessage(`{"content":[{"type":"text","text":"` + text + `"},{"type":"image","mimeType":"image/png","data":"` + base64.StdEncoding.EncodeToString(data) + `"}]}`)}
	}
	h.Before("a", []byte("before a"))
	h.Add(bridge.CallStatus{ID: "a", Tool: "x", Outcome: "ok"}, result("done\\n\\u202e", png))
	h.Add(bridge.CallStatus{ID: "b"}, bridge.Answer{Error: json.RawMessage(`{"code":1}`)})
	list := h.List()
	if len(list) != 2 || list[0].ID != "b" || list[0].Text != `{"code":1}` || list[1].Text != "done\n\u202e" {
		t.Fatalf("%+v", list)
	}
	if got := h.Picture("a", true); string(got) != "before a" {
		t.Errorf("%q", got)
	}
	if got := h.Picture("a", false); string(got) != string(png) {
		t.Errorf("%d bytes", len(got))
	}
	if h.Picture("b", false) != nil || h.Picture("none", true) != nil {
		t.Error("pictures out of nothing")
	}
	// Bounded in number and in bytes.
	big := make([]byte, historyBytes/3)
	for i := range mostFinished + 5 {
		a := bridge.Answer{Result: json.RawMessage(`{"content":[]}`)}
		if i > mostFinished {
			a = result("", big)
		}
		h.Add(bridge.CallStatus{ID: fmt.Sprint(i)}, a)
	}
	h.Add(bridge.CallStatus{}, bridge.Answer{Result: make(json.RawMessage, historyBytes+1)})
	list = h.List()
	kept, bytes := 0, 0
	for _, f := range list {
		if f.after != "" {
			kept++
			bytes += len(f.after)
		}
	}
	if len(list) != mostFinished || kept != 2 || bytes > historyBytes || list[1].after == "" || list[0].Text != "(too long to keep)" {
		t.Errorf("%d calls, %d pictures, %d bytes", len(list), kept, bytes)
	}
}

// TestPageModels: what the page shows of the model switch.
func TestPageModels(t *testing.T) {
	r := newPageRig(t)
	for name, s := range states() {
		if strings.HasPrefix(name, "models-") {
			b, err := json.MarshalIndent(newPageState(&s, r, r.history, noon).Models, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			golden(t, "page/"+name+".json", string(b)+"\n")
		}
	}
}

// TestPageLoosen: what loosens is shown on the page, and offers no answer there.
func TestPageLoosen(t *testing.T) {
	p := &gate.Pending{ID: "a-7", Kind: gate.AskLoosen, Request: &gate.Request{Client: "edi\u202etor"},
		Items: []gate.Item{{Key: "k", Text: "hosts may call their own models again (host_llm: allow)"}}, Since: noon, Deadline: noon.Add(2 * time.Minute)}
	b, err := json.MarshalIndent(newPagePrompt(p, noon), "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "page/loosen.json", string(b)+"\n")
}

// TestPageLasting: of a page's answers that cover later calls the yes to this call
// counts, and the rest is asked natively; nothing lasts before the person accepts
// it there.
func TestPageLasting(t *testing.T) {
	for _, scope := range []struct{ name, asked string }{
		{"connection", `client "claude" may run "bash" of host "omp" unasked while its connection lives`},
		{"15m", `client "claude" may run "bash" of host "omp" unasked for 15 minutes`},
		{"always", `new rule in the rules file: {tool: "bash", client: "claude", host: "omp", then: allow}`},
	} {
		for _, tt := range []struct {
			name   string
			answer gate.Answer
			status int
			want   string // of the page's answer
		}{
			{"refused", gate.Answer{Reason: "too much"}, 409, "the call was allowed once, and nothing beyond it: a person said no: too much"},
			{"accepted", gate.Answer{Scope: gate.Once}, 200, "{}"},
		} {
			t.Run(scope.name+" "+tt.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newPageRig(t)
					defer r.gate.Close()
					token := r.open()
					number := r.confirm(token)
					if err := r.native.last().Answer(gate.Answer{Scope: gate.Once, Choice: number, By: "desk"}); err != nil {
						t.Fatal(err)
					}
					synctest.Wait()
					v := r.ask(t.Context(), "claude")
					synctest.Wait()
					id := r.state(token).Pending[0].ID
					time.Sleep(time.Minute) // for reading
					type reply struct {
						status int
						body   string
					}
					replied := make(chan reply, 1)
					go func() {
						status, body := r.do(token, "POST", "answer", `{"id":"`+id+`","answer":"`+scope.name+`"}`)
						replied <- reply{status, body}
					}()
					synctest.Wait()
					if got := <-v; got.Outcome != gate.Allowed {
						t.Fatalf("the call: %+v", got)
					}
					p := r.native.last()
					if p.Kind != gate.AskLoosen || p.Request.Client != PageName || p.Items[0].Text != scope.asked {
						t.Fatalf("asked natively: %+v", p)
					}
					// The page shows that question and cannot answer it.
					s := r.state(token)
					time.Sleep(time.Second)
					if status, _ := r.do(token, "POST", "answer", `{"id":"`+p.ID+`","answer":"once"}`); len(s.Pending) != 1 || !s.Pending[0].Native || status != 403 {
						t.Errorf("%d, %+v", status, s.Pending)
					}
					again := &gate.Request{Client: "claude", Conn: "k", Host: "omp", Tool: "bash"}
					if r.gate.MayRunUnasked(again) || len(r.gate.Rules())+len(r.gate.Grants()) > 0 {
						t.Error("something lasts before the person accepted it")
					}
					tt.answer.By = "desk"
					if err := p.Answer(tt.answer); err != nil {
						t.Fatal(err)
					}
					if got := <-replied; got.status != tt.status || !strings.Contains(got.body, tt.want) {
						t.Errorf("%+v", got)
					}
					if got := r.gate.MayRunUnasked(again); got != (tt.status == 200) {
						t.Errorf("further calls run unasked: %v", got)
					}
					if n := len(r.gate.Rules()) + len(r.gate.Grants()); (n == 1) != (tt.status == 200) {
						t.Errorf("%d things are remembered", n)
					}
				})
			})
		}
	}
}
