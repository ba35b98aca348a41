package conformance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge"
	"drawbridge/bridge/host/hosttest"
	"drawbridge/bridge/wire"
	"drawbridge/packaging/endpoint"
	"drawbridge/packaging/npm"
)

// revisions are the newest of each era.
var revisions = []string{"2025-11-25", "2026-07-28"}

// TestSuite runs every scenario that the suite has for servers, in both
// revisions, and compares each check with the baseline.
func TestSuite(t *testing.T) {
	tools := npm.Require(t)
	suite := suite{tools}
	offered, err := suite.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Once with the tools in the agent's own process; once in a host that has
	// dialled in, in the era of the revision: then the suite also sees whether
	// everything passes through; and once over the endpoint's websocket.
	for _, where := range []string{"own", "host", "websocket"} {
		t.Run(where, func(t *testing.T) {
			files := []string{"baseline.txt"}
			if where == "websocket" {
				files = append(files, "baseline-websocket.txt")
			}
			baseline := readBaseline(t, files...)
			var ran []Check
			for _, revision := range revisions {
				checks, err := suite.run(t.Context(), serve(t, where, revision), revision, t.TempDir())
				if err != nil {
					t.Fatal(err)
				}
				ran = append(ran, checks...)
			}
			t.Logf("\n%s", baseline.Table(ran, offered, revisions))
			for _, wrong := range baseline.Judge(ran, offered) {
				t.Error(wrong)
			}
		})
	}
}

// readBaseline reads files as if they were one.
func readBaseline(t *testing.T, files ...string) *Baseline {
	t.Helper()
	var text []byte
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text = append(text, b...)
	}
	baseline, err := ReadBaseline(bytes.NewReader(text), revisions)
	if err != nil {
		t.Fatalf("%s: %v", strings.Join(files, " and "), err)
	}
	return baseline
}

// serve serves the fixtures and returns the address that the suite is given.
func serve(t *testing.T, where, revision string) string {
	t.Helper()
	fixtures := NewFixtures()
	var own []bridge.Source
	if where != "host" {
		own = append(own, fixtures)
	}
	e, err := endpoint.Serve(t.Context(), t.TempDir(), own...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	fixtures.Changed = e.Server.ToolsChanged
	if where == "host" {
		attach(t, e, fixtures, revision)
	}
	if where == "websocket" {
		front := NewSocketFront(e.WebSocket(), e.Token)
		server := httptest.NewServer(front)
		t.Cleanup(func() { front.Close(); server.Close() })
		return server.URL + "/mcp"
	}
	front := httptest.NewServer(Front(&url.URL{Scheme: "http", Host: e.Host}, e.Token))
	t.Cleanup(front.Close)
	return front.URL + "/mcp"
}

// attach puts the fixtures into a host and waits until its tools are listed.
func attach(t *testing.T, e *endpoint.Endpoint, fixtures *Fixtures, revision string) {
	t.Helper()
	h := &hosttest.Server{Era: revision, Call: func(ctx context.Context, c *hosttest.Call) (result, rpcErr json.RawMessage) {
		p, a := fixtures.Prepare(ctx, &bridge.Call{
			Tool: c.Name, SourceTool: c.Name, Params: c.Params, Arguments: wire.Get(c.Params, "arguments"),
			ProgressToken: wire.Get(wire.Get(c.Params, "_meta"), "progressToken"),
			Notify:        func(method string, params json.RawMessage) { c.Peer.Notify(method, string(params)) },
		})
		if a == nil {
			answer := p.Run(ctx)
			a = &answer
		}
		return a.Result, a.Error
	}}
	list := func() {
		var defs []string
		for _, tool := range fixtures.Tools("") {
			defs = append(defs, string(tool.Definition))
		}
		h.SetTools(defs...)
	}
	list()
	fixtures.Changed = list
	session, err := h.Dial(e.HostSocket(), e.HostToken, fmt.Sprintf(`{"v":1,"protocolVersion":%q}`, revision))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = session.WS.Close(); <-session.Done })
	for end := time.Now().Add(time.Minute); len(e.Server.Catalogue("default")) < len(fixtures.Tools("")); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the host's tools were not listed")
		}
	}
}

// suite is the installed conformance suite.
type suite struct{ tools npm.Tools }

func (s suite) command(ctx context.Context, args ...string) *exec.Cmd {
	script := filepath.Join(s.tools.Dir, "node_modules", "@modelcontextprotocol", "conformance", "dist", "index.js")
	return exec.CommandContext(ctx, s.tools.Node, append([]string{script}, args...)...)
}

// list names all scenarios for servers.
func (s suite) list(ctx context.Context) ([]string, error) {
	out, err := s.command(ctx, "list", "--server").Output()
	if err != nil {
		return nil, fmt.Errorf("conformance list: %w", err)
	}
	var names []string
	lines := bufio.NewScanner(bytes.NewReader(out))
	for lines.Scan() {
		if f := strings.Fields(lines.Text()); len(f) == 3 && f[0] == "-" {
			names = append(names, f[1])
		}
	}
	if len(names) == 0 {
		return nil, fmt.Errorf("conformance list names no scenario: %s", out)
	}
	return names, nil
}

// resultDir is how the suite names the folder of one scenario's results.
var resultDir = regexp.MustCompile(`^server-(.+)-\d{4}-\d{2}-\d{2}T[\d-]+Z$`)

// run runs all scenarios of one revision against url and returns their checks.
// The suite's own verdict is not asked: it knows no baseline of ours.
func (s suite) run(ctx context.Context, url, revision, dir string) ([]Check, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Minute)
	defer cancel()
	cmd := s.command(ctx, "server", "--url", url, "--suite", "all", "--spec-version", revision, "--output-dir", dir)
	out, runErr := cmd.CombinedOutput()
	folders, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var checks []Check
	for _, folder := range folders {
		m := resultDir.FindStringSubmatch(folder.Name())
		if m == nil {
			return nil, fmt.Errorf("the suite left %s, which is no result's name", folder.Name())
		}
		b, err := os.ReadFile(filepath.Join(dir, folder.Name(), "checks.json"))
		if err != nil {
			return nil, err
		}
		var list []struct{ ID, Status, ErrorMessage string }
		if err := json.Unmarshal(b, &list); err != nil {
			return nil, fmt.Errorf("%s: %w", folder.Name(), err)
		}
		for _, c := range list {
			checks = append(checks, Check{revision, m[1], c.ID, c.Status, c.ErrorMessage})
		}
	}
	if len(checks) == 0 {
		return nil, fmt.Errorf("the suite checked nothing (%w):\n%s", runErr, out)
	}
	return checks, nil
}
