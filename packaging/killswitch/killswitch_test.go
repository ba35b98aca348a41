package killswitch

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/token"
	"drawbridge/packaging/agent"
	"drawbridge/packaging/mockmodel"
	"drawbridge/packaging/npm"
)

// bin is the command as it ships, built once.
var bin string

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	dir, err := os.MkdirTemp("", "killswitch")
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if bin, err = agent.Build(context.Background(), dir); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

// rig is an agent before a model host that counts.
type rig struct {
	t     testing.TB
	agent *agent.Agent
	model *mockmodel.Model
	state string
	conf  string
}

func newRig(t testing.TB) *rig {
	t.Helper()
	r := &rig{t: t, model: mockmodel.Start(), state: filepath.Join(t.TempDir(), "state"), conf: filepath.Join(t.TempDir(), "c.yaml")}
	t.Cleanup(r.model.Close)
	text := fmt.Sprintf("model_gateway:\n  providers: {openai: %[1]q, anthropic: %[1]q, google: %[1]q}\n", r.model.URL)
	if err := os.WriteFile(r.conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.start()
	t.Cleanup(func() {
		if err := r.agent.Stop(); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *rig) start() {
	r.t.Helper()
	a, err := agent.Start(context.Background(), agent.Options{Bin: bin, State: r.state, Args: []string{"--backend", "simulated", "--config", r.conf}})
	if err != nil {
		r.t.Fatal(err)
	}
	r.agent = a
}

// do runs a command of the agent and returns its output and exit code.
func (r *rig) do(env []string, args ...string) (out []byte, code int) {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), bin, append([]string{"--state", r.state}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		r.t.Fatalf("%s: %v\n%s", args, err, &errs)
	}
	return append(out, errs.Bytes()...), cmd.ProcessState.ExitCode()
}

func (r *rig) deny() {
	r.t.Helper()
	if out, code := r.do(nil, "host-llm", "deny"); code != 0 {
		r.t.Fatalf("host-llm deny: exit %d\n%s", code, out)
	}
}

// report is what is known of a host.
func (r *rig) report(host string) (all hostllm.Report, one hostllm.HostReport) {
	r.t.Helper()
	req, err := http.NewRequestWithContext(r.t.Context(), http.MethodGet, "http://"+r.agent.Host+"/host-llm", nil)
	if err != nil {
		r.t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+r.agent.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		r.t.Fatal(err)
	}
	defer res.Body.Close()
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		r.t.Fatal(err)
	}
	for _, h := range all.Hosts {
		if h.ID == host {
			one = h
		}
	}
	return all, one
}

// base is a provider's address at the gateway, for a host.
func (r *rig) base(host, provider string) string {
	r.t.Helper()
	end, err := bridge.ReadEndpoint(r.state)
	if err != nil {
		r.t.Fatal(err)
	}
	a, err := hostllm.AccessFor(r.state, host)
	if err != nil {
		r.t.Fatal(err)
	}
	return a.Base(end.Gateway, provider)
}

// TestClients is the table of attempts: every official client under deny makes
// one request at the gateway, and none reaches the model host.
func TestClients(t *testing.T) {
	tools := npm.Require(t)
	r := newRig(t)
	type result struct {
		Text, Error string
		Status      *int
	}
	ask := func(host string, args ...string) result {
		t.Helper()
		full := append([]string{"host", "run", "--name", host, "--", tools.Node, "testdata/attempts.mjs"}, args...)
		out, code := r.do([]string{"PACKAGES=" + tools.Dir}, full...)
		var res result
		if line, _, _ := bytes.Cut(out, []byte("\n")); code != 0 || json.Unmarshal(line, &res) != nil {
			t.Fatalf("%s: exit %d\n%s", args, code, out)
		}
		return res
	}
	clients := []string{"openai", "openai-stream", "anthropic", "anthropic-stream", "google", "google-stream"}
	for _, c := range clients {
		if res := ask(c+".allow", c); res.Text != "hi" {
			t.Errorf("%s at allow: %+v", c, res)
		}
		if _, h := r.report(c + ".allow"); h.Attempts != 1 || h.Left != 1 || h.Refused != 0 {
			t.Errorf("%s at allow: %+v", c, h)
		}
	}
	r.deny()
	before := r.model.Connections()
	t.Logf("| client | layer | attempts | refused | left | error |")
	for _, c := range clients {
		res := ask(c, c)
		_, h := r.report(c)
		t.Logf("| %s | gateway | %d | %d | %d | %.60s |", c, h.Attempts, h.Refused, h.Left, res.Error)
		if h.Attempts != 1 || h.Refused != 1 || h.Left != 0 {
			t.Errorf("%s: %d attempts, %d refused, %d left; want one, refused", c, h.Attempts, h.Refused, h.Left)
		}
		if !strings.Contains(res.Error, hostllm.RefusalText) || res.Status == nil || *res.Status != 400 {
			t.Errorf("%s: its user reads %q", c, res.Error)
		}
	}
	if n := r.model.Connections() - before; n != 0 {
		t.Errorf("%d connections reached the model host", n)
	}
	// Past the gateway, to the provider's own address: the proxy is the net below.
	for c, args := range map[string][]string{
		"openai.direct":    {"openai", "https://api.openai.com/v1"},
		"anthropic.direct": {"anthropic", "https://api.anthropic.com"},
		"google.direct":    {"google", "https://generativelanguage.googleapis.com"},
		"plain.direct":     {"fetch", "http://api.openai.com/v1/chat/completions"},
	} {
		res := ask(c, args...)
		_, h := r.report(c)
		t.Logf("| %s | proxy | %d | %d | %d | %.60s |", c, h.Attempts, h.Refused, h.Left, res.Error+res.Text)
		if h.Attempts == 0 || h.Refused != h.Attempts || h.Left != 0 {
			t.Errorf("%s: %d attempts, %d refused, %d left; want all refused", c, h.Attempts, h.Refused, h.Left)
		}
	}
}

// TestKilled: the agent is killed under deny and started again while requests
// come in; none gets through.
func TestKilled(t *testing.T) {
	const all = 10_000
	r := newRig(t)
	r.deny()
	url := r.base("codex", "openai") + "/v1/chat/completions"
	var next, refused, again, failed atomic.Int64
	var restarted atomic.Bool
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}, Timeout: time.Minute}
	var wg sync.WaitGroup
	half := make(chan struct{})
	for range 8 {
		wg.Go(func() {
			for {
				n := next.Add(1)
				if n > all {
					return
				}
				if n == all/3 {
					close(half)
				}
				late := restarted.Load()
				res, err := client.Post(url, "application/json", strings.NewReader(`{"stream":true}`))
				if err != nil {
					failed.Add(1)
					if !restarted.Load() {
						time.Sleep(time.Millisecond) // nobody listens; let the others see the restart
					}
					continue
				}
				_, _ = io.Copy(io.Discard, res.Body)
				res.Body.Close()
				if res.StatusCode != 400 {
					t.Errorf("answered %s", res.Status)
				}
				refused.Add(1)
				if late {
					again.Add(1)
				}
			}
		})
	}
	<-half
	if err := syscall.Kill(r.agent.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	if err := r.agent.Stop(); err == nil {
		t.Error("a killed agent ended well")
	}
	r.start()
	if got := r.base("codex", "openai") + "/v1/chat/completions"; got != url {
		t.Errorf("after the restart the gateway is at %s, was %s", got, url)
	}
	restarted.Store(true)
	wg.Wait()
	t.Logf("%d refused (%d of them after the restart), %d found nobody", refused.Load(), again.Load(), failed.Load())
	if n := r.model.Connections(); n != 0 {
		t.Errorf("%d connections reached the model host", n)
	}
	if again.Load() == 0 {
		// The storm was over before the agent was back.
		if res, err := client.Post(url, "application/json", strings.NewReader(`{}`)); err != nil || res.StatusCode != 400 {
			t.Errorf("after the restart: %v %v", res, err)
		}
	}
	if st, _ := r.report("codex"); st.Asked != hostllm.Deny {
		t.Errorf("after the restart it is at %s", st.Asked)
	}
}

// TestNoProgramAllows: with every token, on every route, by every command and by
// editing files while the agent runs, deny stays.
func TestNoProgramAllows(t *testing.T) {
	r := newRig(t)
	r.deny()
	store, err := token.Open(r.state)
	if err != nil {
		t.Fatal(err)
	}
	secrets := map[string]string{"default": r.agent.Token, "nobody": "", "wrong": strings.Repeat("A", 43)}
	for name, role := range map[string]token.Role{"other": token.Client, "host": token.Host} {
		if secrets[name], err = store.Add(name, role, ""); err != nil {
			t.Fatal(err)
		}
	}
	end, err := bridge.ReadEndpoint(r.state)
	if err != nil {
		t.Fatal(err)
	}
	still := func(how string) {
		t.Helper()
		if st, _ := r.report(""); st.Asked != hostllm.Deny {
			t.Fatalf("%s allowed", how)
		}
	}
	for name, secret := range secrets {
		for _, at := range []string{"http://" + r.agent.Host, end.Gateway, r.base("codex", "openai"), r.base("codex", "")} {
			for _, method := range []string{"POST", "PUT", "PATCH"} {
				req, err := http.NewRequestWithContext(t.Context(), method, at+"/host-llm", strings.NewReader(`{"mode":"allow"}`))
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("Authorization", "Bearer "+secret)
				req.Header.Set("Content-Type", "application/json")
				res, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				res.Body.Close()
				if res.StatusCode < 400 {
					t.Errorf("%s %s with the token %s: %s", method, at, name, res.Status)
				}
				still(method + " by " + name)
			}
		}
	}
	for _, args := range [][]string{{"host-llm", "allow"}, {"reload"}, {"stop"}, {"pause"}, {"doctor"}, {"host-llm", "status"}} {
		r.do(nil, args...)
		still(strings.Join(args, " "))
	}
	if err := os.WriteFile(r.conf, []byte("host_llm: allow\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	const allowed = `{"v":1,"mode":"allow","since":"2026-01-02T03:04:05Z","by":"x","model_hosts":[]}`
	if err := os.WriteFile(filepath.Join(r.state, hostllm.StateFile), []byte(allowed), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(r.state, hostllm.GatewayFile)); err != nil {
		t.Fatal(err)
	}
	r.do(nil, "reload")
	if err := syscall.Kill(r.agent.PID, syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	still("editing files")
	if n := r.model.Connections(); n != 0 {
		t.Errorf("%d connections reached the model host", n)
	}
}
