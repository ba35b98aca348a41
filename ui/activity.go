package ui

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"math/big"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge"
	"drawbridge/bridge/gate"
)

// page is the whole activity page: style and script are in it, so that it needs
// nothing else, and nothing under /activity/ is served without a token.
//
//go:embed page/activity.html
var page []byte

// PageName names the page in answers and changes.
const PageName = "activity page"

const (
	codeTime  = 60 * time.Second // how long a code opens a page
	mostPages = 8
	pollTime  = 25 * time.Second
	pollRest  = 100 * time.Millisecond // between two answers to one page
	bodyBytes = 64 << 10
)

// AuditView is the end of the audit, and whether all of it verified.
type AuditView struct {
	Records  []json.RawMessage `json:"records"`
	Problems []string          `json:"problems"`
	OK       bool              `json:"ok"`
}

// PageAgent is what the page shows and steers.
type PageAgent interface {
	State() State
	Changed() <-chan struct{}
	Prompts() []*gate.Pending
	Calls() []bridge.CallStatus
	Audit() (AuditView, error)
	Do(v Verb, arg string) error
	// AllowModels asks the person natively whether hosts may call their models
	// again, and waits for the answer.
	AllowModels(ctx context.Context) error
	// StopCall ends one call; false tells that there is none of this ID.
	StopCall(id string) bool
	// Revoke takes a rule out of the person's file, or ends what was allowed for a
	// while. What loosens is then asked natively.
	Revoke(key string) error
	// Confirm asks the person natively which of the choices a page shows.
	Confirm(ctx context.Context, choices []string, shown string) (bool, error)
}

// ActivityOptions are what an Activity is made of.
type ActivityOptions struct {
	Agent    PageAgent
	Previews *Previews
	History  *History
	// Browse opens an address in the person's browser; opened is closed once a page
	// came from it.
	Browse func(ctx context.Context, url string, opened <-chan struct{}) error
	// Injected is when we last sent an event to the desktop; nil: we never do.
	Injected func() time.Time
	// Count, if set, is told of each request that was refused, by kind: what it was
	// and why, and what was said that is no part of the kind.
	Count func(what, why, said string)
	// Opened, if set, is told when a code was exchanged, so a page is open.
	Opened func()
	Log    zerolog.Logger
}

// Activity serves the page in which a person sees everything and may answer.
//
// The agent opens the browser with a code in the address, which the page
// exchanges for a token that only its memory holds: a browser would send a
// cookie to every port of this machine. The code could be read off a command
// line, so a page only shows; it may answer once the person picked, on a native
// surface, the number that the page shows.
type Activity struct {
	o   ActivityOptions
	ctx context.Context
	csp string

	mu    sync.Mutex // guards everything below
	codes map[[32]byte]code
	pages map[[32]byte]*openPage
}

// code opens one page.
type code struct {
	until time.Time
	used  chan struct{} // closed when it was
}

// openPage is one page that exchanged a code.
type openPage struct {
	opened  time.Time
	answers answering
	note    string               // why it could not be confirmed
	shown   map[string]time.Time // since when it shows a prompt
}

// answering tells whether a page may answer.
type answering string

const (
	answersNo      answering = "no"
	answersAsking  answering = "asking"
	answersYes     answering = "yes"
	answersRefused answering = "refused" // for good: once per page
)

// NewActivity makes the page's server. Its prompts end with ctx.
func NewActivity(ctx context.Context, o ActivityOptions) *Activity {
	return &Activity{o: o, ctx: ctx, csp: policyOf(page), codes: map[[32]byte]code{}, pages: map[[32]byte]*openPage{}}
}

var inline = regexp.MustCompile(`(?s)<(style|script)>(.*?)</(?:style|script)>`)

// policyOf is the Content-Security-Policy that lets in what is in the page, and
// nothing else.
func policyOf(page []byte) string {
	policy := "default-src 'none'; connect-src 'self'; img-src blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
	for _, m := range inline.FindAllSubmatch(page, -1) {
		sum := sha256.Sum256(m[2])
		policy += fmt.Sprintf("; %s-src 'sha256-%s'", m[1], base64.StdEncoding.EncodeToString(sum[:]))
	}
	return policy
}

// Open opens the page in the person's browser. base is where the endpoint is, as
// http://127.0.0.1:7317.
func (a *Activity) Open(base string) error {
	text, opened := a.newCode()
	err := a.o.Browse(a.ctx, base+"/activity#"+text, opened)
	if err != nil { // nobody is to use it now
		a.mu.Lock()
		defer a.mu.Unlock()
		delete(a.codes, sha256.Sum256([]byte(text)))
	}
	return err
}

// newCode returns a code, and what is closed when it is used.
func (a *Activity) newCode() (text string, used <-chan struct{}) {
	text = rand.Text()
	a.mu.Lock()
	defer a.mu.Unlock()
	now := time.Now()
	for k, c := range a.codes {
		if now.After(c.until) {
			delete(a.codes, k)
		}
	}
	c := code{until: now.Add(codeTime), used: make(chan struct{})}
	a.codes[sha256.Sum256([]byte(text))] = c
	return text, c.used
}

// exchange takes a code for a page's token. A code works once.
func (a *Activity) exchange(text string) (token string, ok bool) {
	key := sha256.Sum256([]byte(text))
	a.mu.Lock()
	defer a.mu.Unlock()
	c, ok := a.codes[key]
	delete(a.codes, key)
	if !ok || time.Now().After(c.until) {
		return "", false
	}
	close(c.used)
	if len(a.pages) >= mostPages {
		var oldest [32]byte
		var first time.Time
		for k, p := range a.pages {
			if first.IsZero() || p.opened.Before(first) {
				oldest, first = k, p.opened
			}
		}
		delete(a.pages, oldest)
	}
	token = rand.Text() + rand.Text()
	a.pages[sha256.Sum256([]byte(token))] = &openPage{opened: time.Now(), answers: answersNo, shown: map[string]time.Time{}}
	return token, true
}

// pageOf finds the page of a request.
func (a *Activity) pageOf(r *http.Request) *openPage {
	token, ok := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	if !ok {
		return nil
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.pages[sha256.Sum256([]byte(token))]
}

// ServeHTTP serves /activity and what is under it. Host and Origin are checked
// before.
func (a *Activity) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", a.csp)
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	path := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/activity"), "/")
	if path == "" {
		if a.want(w, r, http.MethodGet, "") {
			h.Set("Content-Type", "text/html; charset=utf-8")
			_, _ = w.Write(page)
		}
		return
	}
	if path == "session" {
		a.serveSession(w, r)
		return
	}
	p := a.pageOf(r)
	if p == nil {
		h.Set("WWW-Authenticate", "Bearer")
		a.count(r, path, "no open page has its token")
		say(w, http.StatusUnauthorized, "this page is not open any more; open it again from the tray, or with drawbridge activity")
		return
	}
	what, id, _ := strings.Cut(path, "/")
	method, ok := deeds[what]
	if !ok {
		a.count(r, path, "there is no such route")
		say(w, http.StatusNotFound, "there is nothing here")
		return
	}
	if !a.want(w, r, method, path) {
		return
	}
	switch what {
	case "state":
		a.serveState(w, r, p)
	case "picture":
		a.servePicture(w, r, id)
	case "audit":
		v, err := a.o.Agent.Audit()
		if err != nil {
			say(w, http.StatusInternalServerError, err.Error())
			return
		}
		write(w, http.StatusOK, v)
	default:
		a.serveDeed(w, r, p, what)
	}
}

// deeds are what is under /activity/ for a page, and the method that each takes.
var deeds = map[string]string{
	"state": http.MethodGet, "picture": http.MethodGet, "audit": http.MethodGet,
	"confirm": http.MethodPost, "answer": http.MethodPost, "stop": http.MethodPost, "pause": http.MethodPost,
	"resume": http.MethodPost, "revoke": http.MethodPost, "deny-models": http.MethodPost, "allow-models": http.MethodPost,
}

// count tells of a refused request by kind.
func (a *Activity) count(r *http.Request, path, why string) {
	if a.o.Count == nil {
		return
	}
	what, _, _ := strings.Cut(path, "/")
	said := r.Method
	if _, ok := deeds[what]; !ok && what != "session" && what != "" {
		what, said = "…", said+" "+path
	}
	a.o.Count(strings.TrimSuffix("/activity/"+what, "/"), why, said)
}

// want answers a request with another method, and tells whether it is the right
// one.
func (a *Activity) want(w http.ResponseWriter, r *http.Request, method, path string) bool {
	if r.Method == method {
		return true
	}
	a.count(r, path, "that method is not taken")
	w.Header().Set("Allow", method)
	say(w, http.StatusMethodNotAllowed, "this takes "+method)
	return false
}

// say answers with a sentence.
func say(w http.ResponseWriter, status int, text string) {
	write(w, status, map[string]string{"error": text})
}

func write(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // who left needs no answer
}

// read takes a request's JSON.
func read(w http.ResponseWriter, r *http.Request, v any) bool {
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyBytes))
	if err == nil && len(b) > 0 {
		err = json.Unmarshal(b, v)
	}
	if err != nil {
		say(w, http.StatusBadRequest, "this is no JSON of the shape that is expected here")
		return false
	}
	return true
}

func (a *Activity) serveSession(w http.ResponseWriter, r *http.Request) {
	if !a.want(w, r, http.MethodPost, "session") {
		return
	}
	var body struct {
		Code string `json:"code"`
	}
	if !read(w, r, &body) {
		return
	}
	token, ok := a.exchange(body.Code)
	if !ok {
		a.count(r, "session", "its code was used already, too old or none of ours")
		say(w, http.StatusUnauthorized, "this address was used already, or is older than a minute; open the page again from the tray, or with drawbridge activity")
		return
	}
	if a.o.Opened != nil {
		a.o.Opened()
	}
	write(w, http.StatusOK, map[string]string{"token": token})
}

// serveState answers at once, or, when the page has the state already, as soon
// as there is another.
func (a *Activity) serveState(w http.ResponseWriter, r *http.Request, p *openPage) {
	have := r.URL.Query().Get("after")
	late := time.NewTimer(pollTime)
	defer late.Stop()
	for {
		changed := a.o.Agent.Changed()
		b, version := a.state(p)
		if version != have {
			w.Header().Set("Content-Type", "application/json")
			w.Header().Set("X-Version", version)
			_, _ = w.Write(b)
			return
		}
		select {
		case <-changed:
			select { // what comes at once is told at once
			case <-time.After(pollRest):
			case <-r.Context().Done():
				return
			}
		case <-late.C:
			w.Header().Set("X-Version", version)
			w.WriteHeader(http.StatusNoContent)
			return
		case <-r.Context().Done():
			return
		case <-a.ctx.Done():
			say(w, http.StatusServiceUnavailable, "Drawbridge is ending")
			return
		}
	}
}

// servePicture serves prompt/ID, near/ID, before/ID and after/ID.
func (a *Activity) servePicture(w http.ResponseWriter, r *http.Request, which string) {
	kind, id, _ := strings.Cut(which, "/")
	var data []byte
	switch kind {
	case "prompt", "near":
		for _, p := range a.o.Agent.Prompts() {
			switch {
			case p.ID != id:
			case kind == "near":
				data = a.o.Previews.Near(r.Context(), p)
			default:
				data = a.o.Previews.PNG(r.Context(), p)
			}
		}
	case "before", "after":
		data = a.o.History.Picture(id, kind == "before")
	}
	if len(data) == 0 {
		say(w, http.StatusNotFound, "there is no such picture, or not any more")
		return
	}
	w.Header().Set("Content-Type", http.DetectContentType(data))
	_, _ = w.Write(data)
}

// deed is what the page asks for.
type deed struct {
	ID     string `json:"id"` // of a prompt, a call, or a rule's key
	Answer string `json:"answer"`
	Reason string `json:"reason"`
}

func (a *Activity) serveDeed(w http.ResponseWriter, r *http.Request, p *openPage, what string) {
	var d deed
	if !read(w, r, &d) {
		return
	}
	var err error
	switch what {
	case "confirm":
		a.confirm(w, p)
		return
	case "answer":
		err = a.answer(r.Context(), p, d)
	case "stop":
		if d.ID == "" {
			err = a.o.Agent.Do(VerbStop, "")
		} else if !a.o.Agent.StopCall(d.ID) {
			err = errors.New("that call has ended already")
		}
	case "pause":
		err = a.o.Agent.Do(VerbPause, "")
	case "resume": // asks natively
		err = a.o.Agent.Do(VerbResume, "")
	case "deny-models":
		err = a.o.Agent.Do(VerbNoModels, "")
	case "allow-models": // asks natively
		err = a.o.Agent.AllowModels(r.Context())
	case "revoke":
		err = a.o.Agent.Revoke(d.ID)
	}
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		a.count(r, what, refused.text)
		say(w, http.StatusForbidden, err.Error())
	case err != nil:
		say(w, http.StatusConflict, err.Error())
	default:
		write(w, http.StatusOK, struct{}{})
	}
}

// refusedError is what a page may not do.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// confirm shows a number on the page and has the person pick it natively.
func (a *Activity) confirm(w http.ResponseWriter, p *openPage) {
	a.mu.Lock()
	if p.answers != answersNo {
		a.mu.Unlock()
		say(w, http.StatusConflict, "this page has asked already; to ask again, open another")
		return
	}
	p.answers, p.note = answersAsking, ""
	a.mu.Unlock()
	choices := numbers()
	shown := choices[pick(len(choices))]
	go func() { // ends with the prompt, which has a deadline
		ok, err := a.o.Agent.Confirm(a.ctx, choices, shown)
		a.mu.Lock()
		defer a.mu.Unlock()
		switch {
		case err != nil: // nobody was asked
			a.o.Log.Warn().Err(err).Msg("a page could not be confirmed")
			p.answers, p.note = answersNo, err.Error()
		case ok:
			p.answers = answersYes
		default:
			p.answers = answersRefused
		}
	}()
	write(w, http.StatusOK, map[string]string{"number": shown})
}

// numbers makes three different numbers of two digits.
func numbers() []string {
	var out []string
	for len(out) < 3 {
		n := fmt.Sprint(10 + pick(90))
		if !strings.Contains(strings.Join(out, " "), n) {
			out = append(out, n)
		}
	}
	return out
}

func pick(n int) int {
	v, err := rand.Int(rand.Reader, big.NewInt(int64(n)))
	if err != nil { // never fails
		panic(err)
	}
	return int(v.Int64())
}

// scopeNames are the answers as the page names them.
var scopeNames = map[gate.Scope]string{gate.Deny: "deny", gate.Once: "once", gate.ForConn: "connection", gate.For15m: "15m", gate.Always: "always"}

// answer gives a page's answer to a call. A page does not loosen by itself: what
// would let later calls run unasked is asked natively.
func (a *Activity) answer(ctx context.Context, p *openPage, d deed) error {
	a.mu.Lock()
	may, since := p.answers == answersYes, p.shown[d.ID]
	a.mu.Unlock()
	if !may {
		return &refusedError{"this page may not answer before you confirmed it on the tray, a notification or the terminal"}
	}
	for _, pending := range a.o.Agent.Prompts() {
		if pending.ID != d.ID {
			continue
		}
		if pending.Kind != gate.AskCall {
			return &refusedError{"this is answered only on the tray, a notification or the terminal"}
		}
		if since.IsZero() || tooSoon(time.Now(), since, a.o.Injected) {
			return &refusedError{"that was too quick to have been read, and does not count"}
		}
		for scope, name := range scopeNames {
			if name != d.Answer {
				continue
			}
			return pending.AnswerHere(ctx, gate.Answer{Scope: scope, Reason: strings.ToValidUTF8(d.Reason, "\ufffd"), By: PageName})
		}
		return fmt.Errorf("there is no answer %q", d.Answer)
	}
	return &gate.LateError{How: "it was answered elsewhere, or is no longer wanted"}
}

// state is what a page shows, and a name for it that is another when it is.
func (a *Activity) state(p *openPage) (b []byte, version string) {
	s := a.o.Agent.State()
	v := newPageState(&s, a.o.Agent, a.o.History, time.Now())
	a.mu.Lock()
	v.Answers, v.Note = p.answers, p.note
	now := map[string]time.Time{}
	for _, x := range v.Pending {
		now[x.ID] = p.shown[x.ID]
		if now[x.ID].IsZero() {
			now[x.ID] = time.Now()
		}
	}
	p.shown = now
	a.mu.Unlock()
	b, err := json.Marshal(v)
	if err != nil { // texts and numbers always marshal
		panic(err)
	}
	h := fnv.New64a()
	_, _ = h.Write(b)
	return b, fmt.Sprintf("%x", h.Sum64())
}
