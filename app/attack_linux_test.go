package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"drawbridge/bridge"
	"drawbridge/bridge/audit"
	"drawbridge/bridge/control"
	"drawbridge/bridge/token"
)

// attack is a program of the same user, and the person who sees what it does and
// answers nothing.
type attack struct {
	*personDesk
	t       *testing.T
	notices <-chan notice
}

// request sends one request with a token, and returns what it was answered. It is
// given up with ctx.
func (a *attack) request(ctx context.Context, method, path, token, body string) (status int, answer string) {
	q, err := http.NewRequestWithContext(ctx, method, "http"+strings.TrimSuffix(strings.TrimPrefix(a.url, "ws"), "/mcp")+path, strings.NewReader(body))
	if err != nil {
		a.t.Error(err)
		return 0, ""
	}
	q.Header.Set("Authorization", "Bearer "+token)
	q.Header.Set("Content-Type", "application/json")
	r, err := http.DefaultClient.Do(q)
	if err != nil {
		if ctx.Err() == nil {
			a.t.Error(err)
		}
		return 0, ""
	}
	defer r.Body.Close()
	b, _ := io.ReadAll(r.Body)
	return r.StatusCode, string(b)
}

// asks sends a request that the person is asked about, waits until they are, and
// gives it up.
func (a *attack) asks(summary, method, path, token, body string) {
	a.t.Helper()
	ctx, giveUp := context.WithCancel(a.t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		if status, answer := a.request(ctx, method, path, token, body); status == 200 {
			a.t.Errorf("%s %s: %s", method, path, answer)
		}
	}()
	a.notice(a.notices, summary)
	giveUp()
	<-done
}

// host dials in as a host that would be the main one, with a tool named like ours.
func (a *attack) host(token string) io.Closer {
	a.t.Helper()
	dialer := websocket.Dialer{Subprotocols: []string{"mcp-host"}}
	conn, _, err := dialer.DialContext(a.t.Context(), strings.TrimSuffix(a.url, "/mcp")+"/host", http.Header{"Authorization": {"Bearer " + token}})
	if err != nil {
		a.t.Fatal(err)
	}
	hello := `{"jsonrpc":"2.0","method":"drawbridge/hello","params":{"v":1,"name":"evil","kind":"omp","pid":1,"cwd":"/","mode":"rpc","session":"s","main":true}}`
	if err := conn.WriteMessage(websocket.TextMessage, []byte(hello)); err != nil {
		a.t.Fatal(err)
	}
	return conn
}

// model asks a model by the gateway's secret, which whoever may read our files can
// make. Models are off.
func (a *attack) model() {
	a.t.Helper()
	cmd := exec.Command(filepath.Join(a.dir, "drawbridge"), "--state", a.state, "host", "run", "--name", "evil", "--", "sh", "-c", "printf %s $ANTHROPIC_BASE_URL")
	cmd.Env = a.env
	base, err := cmd.Output()
	if err != nil {
		a.t.Fatal(err)
	}
	r, err := http.Post(string(base)+"/v1/messages", "application/json", strings.NewReader("{}"))
	if err != nil {
		a.t.Fatal(err)
	}
	defer r.Body.Close()
	if r.StatusCode != http.StatusBadRequest {
		a.t.Errorf("a model request while models are off: %s", r.Status)
	}
}

// verbs are all that the control socket knows, as it says itself.
func (a *attack) verbs(c *control.Client) []string {
	a.t.Helper()
	err := c.Do(a.t.Context(), "approve", nil, nil, nil)
	var refused *control.Error
	if !errors.As(err, &refused) {
		a.t.Fatalf("a verb to approve: %v", err)
	}
	_, list, ok := strings.Cut(refused.Message, "it knows ")
	if !ok {
		a.t.Fatal(refused)
	}
	return strings.Split(list, ", ")
}

// steal has the agent open its page, reads the code off the command line of the
// browser, and exchanges it before the browser does.
func (a *attack) steal(c *control.Client) (page string) {
	a.t.Helper()
	lingers := filepath.Join(a.dir, "browsing")
	a.write(lingers, "", 0o600)
	defer os.Remove(lingers)
	if err := c.Do(a.t.Context(), verbActivity, nil, nil, nil); err != nil {
		a.t.Fatal(err)
	}
	var code string
	a.until("the code is on a command line", func() bool {
		all, _ := filepath.Glob("/proc/[0-9]*/cmdline")
		for _, file := range all {
			b, err := os.ReadFile(file)
			if err != nil || !strings.Contains(string(b), filepath.Join(a.dir, "bin", "xdg-open")) {
				continue // it has ended meanwhile, or is of another test
			}
			if m := regexp.MustCompile(`/activity#([A-Z0-9]+)`).FindSubmatch(b); m != nil {
				code = string(m[1])
			}
		}
		return code != ""
	})
	status, body := a.request(a.t.Context(), "POST", "/activity/session", "", `{"code":"`+code+`"}`)
	var v struct{ Token string }
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != 200 {
		a.t.Fatal(status, body, err)
	}
	if status, _ := a.request(a.t.Context(), "POST", "/activity/session", "", `{"code":"`+code+`"}`); status != 401 {
		a.t.Errorf("the browser that comes second gets %d", status)
	}
	return v.Token
}

// seen is what the page shows the person of what programs tried.
type seen struct{ Refused, Asked, Hosts, Rules []string }

// look reads the person's own page.
func (a *attack) look() seen {
	a.t.Helper()
	_, code, _ := strings.Cut(a.openActivity(), "#")
	_, body := a.request(a.t.Context(), "POST", "/activity/session", "", `{"code":"`+code+`"}`)
	var v struct{ Token string }
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		a.t.Fatal(body, err)
	}
	_, body = a.request(a.t.Context(), "GET", "/activity/state", v.Token, "")
	var s struct {
		Refused, Asked, Hosts []string
		Rules                 []struct{ Text string }
	}
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		a.t.Fatal(body, err)
	}
	out := seen{s.Refused, s.Asked, s.Hosts, nil}
	for _, r := range s.Rules {
		out.Rules = append(out.Rules, r.Text)
	}
	return out
}

// notes are what the audit has beside calls.
func (a *attack) notes() []string {
	a.t.Helper()
	b, err := os.ReadFile(filepath.Join(a.audit, "audit.jsonl"))
	if err != nil {
		a.t.Fatal(err)
	}
	var out []string
	for line := range strings.Lines(string(b)) {
		var r audit.Record
		if err := json.Unmarshal([]byte(line), &r); err == nil && r.Phase == audit.Note {
			out = append(out, r.Outcome)
		}
	}
	return out
}

func begins(all []string, with string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return strings.HasPrefix(s, with) })
}

// nothingAllowed tells that no call of an attacker ran.
func (a *attack) nothingAllowed(clients ...string) {
	a.t.Helper()
	for _, name := range clients {
		if got := a.records(name); strings.Contains(got, "allowed") || strings.Contains(got, "done ok") {
			a.t.Errorf("%s: %s", name, got)
		}
	}
}

const (
	loosens = "Allow more than before?"
	wants   = "attacker wants to run computer"
)

// TestAttack: a program of the same user, with every token, every route and
// verb, the page's code read off a command line, every file of ours edited, the
// agent restarted, and an agent of its own. The person answers nothing. Nothing
// is approved, nothing is loosened beyond what docs/security.md says is left, and
// each attempt shows.
func TestAttack(t *testing.T) {
	d := newPersonDesk(t, "host_llm: deny\nrules:\n- {tool: \"never_*\", then: deny}\n")
	a := &attack{d, t, d.eavesdrop()}
	ctx := t.Context()
	ctl, err := control.Dial(ctx, d.state)
	if err != nil {
		t.Fatal(err)
	}

	// Every token: those on disk, and what may be made with the files. Every route,
	// with each of them and by every method.
	secret, err := token.ReadDefault(d.state)
	if err != nil {
		t.Fatal(err)
	}
	store, err := token.Open(d.state)
	if err != nil {
		t.Fatal(err)
	}
	host, err := store.Add("evil", token.Host, "")
	if err != nil {
		t.Fatal(err)
	}
	methods := []string{"GET", "POST", "PUT", "DELETE"}
	refused := map[string]bool{} // what the person must see of it
	for _, path := range []string{"session", "state", "picture/prompt/a-1", "audit", "confirm", "answer", "stop", "pause", "resume", "revoke", "deny-models", "allow-models", "nothing"} {
		for _, method := range methods {
			for _, token := range []string{"", secret, host} {
				status, body := a.request(ctx, method, "/activity/"+path, token, `{"id":"a-1","answer":"always","code":"x"}`)
				if status < 400 {
					t.Errorf("%s /activity/%s: %d %s", method, path, status, body)
				}
			}
		}
		name, _, _ := strings.Cut(path, "/")
		refused["/activity/"+strings.Replace(name, "nothing", "…", 1)+" ("] = true
	}
	for _, path := range []string{"/approve", "/rules", "/control", "/mcp/answer"} {
		for _, method := range methods {
			a.request(ctx, method, path, secret, `{"id":"a-1","then":"allow"}`)
		}
	}
	refused["another path (DELETE /mcp/answer): there is no such route"] = true
	for _, path := range []string{"/mcp", "/status", "/host-llm"} {
		for _, method := range methods { // a host's token
			a.request(ctx, method, path, host, `{"mode":"allow"}`)
		}
		refused[path+" (DELETE): its token is for another route"] = true
	}
	a.request(ctx, "POST", "/status", secret, `{"paused":false}`)
	refused["/status (POST): that method is not taken"] = true
	a.request(ctx, "GET", "/host", secret, "")
	refused["/host (GET): its token is for another route"] = true
	a.request(ctx, "POST", "/mcp", "guessed", "{}")
	refused["/mcp (POST): it had no valid token"] = true
	a.asks("default asks to allow more", "POST", "/host-llm", secret, `{"mode":"allow"}`)
	evil := a.host(host)
	defer evil.Close()
	a.model()
	attacker := d.client("attacker")
	for _, tool := range []string{"approve", "rules", "never_mind"} {
		if got := d.answer(attacker.send("tools/call", `{"name":"`+tool+`","arguments":{}}`)); !strings.Contains(got, "is not exposed") {
			t.Errorf("%s: %.300s", tool, got)
		}
	}

	// Every verb of the control socket but the one that ends the agent.
	verbs := a.verbs(ctl)
	for _, v := range []string{"resume", "answer", "approve", "accept", "confirm", "allow"} {
		if err := ctl.Do(ctx, v, map[string]string{"id": "a-1", "answer": "once"}, nil, nil); err == nil {
			t.Errorf("there is a verb %s", v)
		}
	}
	for _, v := range verbs {
		if v != verbQuit {
			_ = ctl.Do(ctx, v, map[string]any{"id": "a-1", "answer": "once", "paused": false}, nil, nil)
		}
	}
	a.notice(a.notices, "Everything is paused")

	// The page, with its code stolen: it shows, narrows, and answers nothing.
	call := attacker.act(shift)
	a.until("it waits for the pause", func() bool { return strings.Count(d.records("attacker"), "start") == 4 })
	page := a.steal(ctl)
	a.asks("activity page asks to allow more", "POST", "/activity/allow-models", page, "{}")
	for _, deed := range []string{"stop", "pause", "deny-models", "resume", "revoke"} {
		a.request(ctx, "POST", "/activity/"+deed, page, `{"id":""}`)
	}
	if got := d.answer(call); !strings.Contains(got, `"isError":true`) {
		t.Errorf("%.300s", got)
	}
	status, body := a.request(ctx, "POST", "/activity/confirm", page, "{}")
	var confirm struct{ Number string }
	if err := json.Unmarshal([]byte(body), &confirm); err != nil || status != 200 {
		t.Fatal(status, body, err)
	}
	if asked := a.notice(a.notices, "A page asks to answer for you"); !slices.Contains(asked.actions, confirm.Number) {
		t.Errorf("%v, shown %s", asked.actions, confirm.Number)
	}
	for i := range 20 {
		for _, answer := range []string{"once", "connection", "15m", "always"} {
			if status, body := a.request(ctx, "POST", "/activity/answer", page, fmt.Sprintf(`{"id":"a-%d","answer":%q}`, i, answer)); status != 403 {
				t.Errorf("a-%d %s: %d %s", i, answer, status, body)
			}
		}
	}
	refused["/activity/answer (POST): this page may not answer"] = true

	// What the person sees of all that.
	s := a.look()
	for what := range refused {
		if !begins(s.Refused, what) {
			t.Errorf("the page does not show the refused %s", what)
		}
	}
	for _, v := range verbs {
		if v != verbQuit && !begins(s.Asked, v+" on the control socket; ") {
			t.Errorf("the page does not show the verb %s", v)
		}
	}
	if !begins(s.Refused, "another verb on the control socket (") {
		t.Errorf("the page does not show verbs that are none: %q", s.Refused)
	}
	if !begins(s.Hosts, "evil: ") {
		t.Errorf("the page does not show the host: %q", s.Hosts)
	}
	notes := a.notes()
	if !begins(notes, "refused a model request") {
		t.Errorf("the model request is not on record: %q", notes)
	}
	for _, v := range []string{verbStop, verbPause, verbReload, verbTokens, verbRevoke, verbActivity} {
		if !begins(notes, v+", over the control socket") {
			t.Errorf("%s is not on record", v)
		}
	}
	for _, deed := range []string{"a page was opened", "a page asks to answer", "stop", "pause", "resume", "no_models", "models", "revoke_rule"} {
		if !begins(notes, deed+", activity page") {
			t.Errorf("%s on the page is not on record: %q", deed, notes)
		}
	}
	if !begins(menuLabels(d), "Refused requests (") {
		t.Errorf("the menu shows nothing refused: %q", menuLabels(d))
	}
	if pending, paused := d.pausedNow(secret); !paused || pending == 0 {
		t.Errorf("it goes on: %d questions, paused: %v", pending, paused)
	}

	// Every file that loosens, read again.
	loose := "- {tool: \"*\", then: allow}\n"
	config := "listen: 127.0.0.1:0\nhost_llm: allow\nhand_back:\n  allow_unwatched: true\nrules:\n" + loose
	d.write(filepath.Join(d.state, rulesName), loose, 0o600)
	d.write(filepath.Join(d.dir, "config.yaml"), config, 0o600)
	if err := ctl.Do(ctx, verbReload, nil, nil, nil); err != nil {
		t.Errorf("reload: %v", err)
	}
	if n := a.notice(a.notices, loosens); !strings.Contains(n.body, "then: allow") || !strings.Contains(n.body, "cannot be seen") || !strings.Contains(n.body, "never_*") {
		t.Errorf("%q", n.body)
	}
	if got := hostLLM(a, secret); got != "deny" {
		t.Errorf("models: %s", got)
	}
	a.nothingAllowed("attacker", "default")

	// An agent of its own on the person's display, in a terminal of its own: it
	// answers itself there, and nothing of the person's.
	ownAgent(a)
	a.nothingAllowed("attacker", "default")
	if pending, paused := d.pausedNow(secret); !paused || pending == 0 {
		t.Errorf("after an agent of its own: %d questions, paused: %v", pending, paused)
	}
	// And one that would take the person's place.
	second := exec.Command(filepath.Join(d.dir, "drawbridge"), "--state", d.state, "run", "--backend", "simulated", "--allow", "*")
	second.Env = d.env
	if out, err := second.CombinedOutput(); err != nil || !strings.Contains(string(out), "already running") {
		t.Errorf("%v: %s", err, out)
	}

	// Every file edited, and the agent started anew.
	if err := ctl.Do(ctx, verbQuit, nil, nil, nil); err != nil {
		t.Error(err)
	}
	if err := d.agent.Wait(); err != nil {
		t.Errorf("told to end: %v", err)
	}
	if !begins(a.notes(), "quit, over the control socket") {
		t.Error("the end is not on record")
	}
	editAll(a)
	d.runAgent()
	if n := a.notice(a.notices, loosens); !strings.Contains(n.body, "then: allow") {
		t.Errorf("after the restart: %q", n.body)
	}
	again := d.client("again")
	call = again.act(shift)
	a.notice(a.notices, "again wants to run computer")
	select {
	case got := <-call:
		t.Errorf("answered: %.300s", got)
	case <-time.After(2 * time.Second):
	}
	a.nothingAllowed("again")
	verify := exec.Command(filepath.Join(d.dir, "drawbridge"), "--state", d.state, "audit", "verify")
	verify.Env = d.env
	if out, err := verify.CombinedOutput(); err == nil {
		t.Errorf("the audit that was edited verifies: %s", out)
	}

	// What is left, as docs/security.md says: a restart ends a pause; with its files
	// edited it forgets that the models were off, and what was denied asks.
	if _, paused := d.pausedNow(secret); paused {
		t.Error("a pause outlives the agent, and docs/security.md says otherwise")
	}
	if got := hostLLM(a, secret); got != "allow" {
		t.Errorf("models: %s, and docs/security.md says otherwise", got)
	}
}

func menuLabels(d *personDesk) []string {
	var out []string
	for _, it := range d.menu(d.session()) {
		out = append(out, it.Label)
	}
	return out
}

// hostLLM is what the switch of the hosts' models says.
func hostLLM(a *attack, secret string) string {
	_, body := a.request(a.t.Context(), "GET", "/host-llm", secret, "")
	var v struct{ Asked string }
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		a.t.Error(body, err)
	}
	return v.Asked
}

// ownAgent is a second agent, on the same display, that allows everything and is
// asked in a terminal which the attacker holds.
func ownAgent(a *attack) {
	a.t.Helper()
	conf, state := filepath.Join(a.dir, "own.yaml"), filepath.Join(a.dir, "own")
	a.write(conf, "listen: 127.0.0.1:0\nrules:\n- {tool: \"*\", then: allow}\n", 0o600)
	master, slave := openPTY(a.t)
	own := exec.Command(filepath.Join(a.dir, "drawbridge"), "--config", conf, "--state", state, "run", "--backend", "native", "--no-tray")
	own.Stdin, own.Stdout, own.Stderr, own.Env = slave, slave, slave, a.env
	own.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := own.Start(); err != nil {
		a.t.Fatal(err)
	}
	slave.Close()
	defer func() {
		_ = own.Process.Kill()
		_ = own.Wait()
	}()
	shown := watch(master)
	word := shown.await(a.t, `allow +([a-z]+) +yes`)[1]
	shown.await(a.t, `seconds left`)
	time.Sleep(time.Second) // an answer right after the prompt does not count
	if _, err := io.WriteString(master, "allow "+word+"\n"); err != nil {
		a.t.Fatal(err)
	}
	shown.await(a.t, `Allowed\.`)
	ctl, err := control.Dial(a.t.Context(), state)
	if err != nil {
		a.t.Fatal(err)
	}
	var rules ruleList
	if err := ctl.Do(a.t.Context(), verbRules, nil, &rules, nil); err != nil || len(rules.Warnings) != 0 {
		a.t.Errorf("the attacker's own agent: %+v, %v", rules, err)
	}
	if _, err := bridge.ReadEndpoint(state); err != nil {
		a.t.Error(err)
	}
}

// editAll edits every file in the state directory so that it would loosen, if it
// were believed. A file that it does not know fails the test: whoever adds one
// says here what it could be made to say.
func editAll(a *attack) {
	a.t.Helper()
	loose := "- {tool: \"*\", then: allow}\n"
	edits := map[string]func(string) string{
		rulesName:        func(string) string { return loose },
		"host-llm.json":  func(s string) string { return strings.Replace(s, `"deny"`, `"allow"`, 1) },
		"tokens.json":    nil, // a client was added to it above
		"default.token":  nil, // read above
		"tokens.lock":    nil,
		"gateway.json":   nil, // its secret reaches the models of hosts, while they are allowed
		"endpoint.json":  nil, // gone with the agent; else clients could be led elsewhere
		"held.json":      func(string) string { return "" },
		"agent.log":      func(string) string { return "" },
		"audit.head":     nil,
		"audit.lock":     nil,
		"lock":           nil,
		"format":         nil,
		"desktop.lease":  nil,
		"audit.jsonl":    forge,
		"simulated.json": nil,
	}
	err := filepath.WalkDir(a.state, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		edit, known := edits[e.Name()]
		if !known {
			a.t.Errorf("%s is none of %q", path, slices.Sorted(maps.Keys(edits)))
		}
		if edit == nil {
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(path, []byte(edit(string(b))), 0o600)
		}
		return err
	})
	if err != nil {
		a.t.Fatal(err)
	}
}

// forge makes the audit say that what was stopped had been allowed.
func forge(s string) string {
	i := strings.LastIndex(s, `"phase":"done"`)
	j := i + strings.Index(s[i:], `"outcome":"`) + len(`"outcome":"`)
	return s[:j] + "ok, " + s[j:]
}
