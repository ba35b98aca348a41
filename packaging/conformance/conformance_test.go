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

	"drawbridge/packaging/endpoint"
	"drawbridge/packaging/npm"
)

// revisions are the newest of each era.
var revisions = []string{"2025-11-25", "2026-07-28"}

// TestSuite runs every scenario that the suite has for servers, in both
// revisions, and compares each check with baseline.txt.
func TestSuite(t *testing.T) {
	tools := npm.Require(t)
	text, err := os.ReadFile("baseline.txt")
	if err != nil {
		t.Fatal(err)
	}
	baseline, err := ReadBaseline(bytes.NewReader(text), revisions)
	if err != nil {
		t.Fatalf("baseline.txt: %v", err)
	}

	fixtures := NewFixtures()
	e, err := endpoint.Serve(t.Context(), t.TempDir(), fixtures)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	fixtures.Changed = e.Server.ToolsChanged
	front := httptest.NewServer(Front(&url.URL{Scheme: "http", Host: e.Host}, e.Token))
	defer front.Close()

	suite := suite{tools}
	offered, err := suite.list(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var ran []Check
	for _, revision := range revisions {
		checks, err := suite.run(t.Context(), front.URL+"/mcp", revision, t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		ran = append(ran, checks...)
	}
	t.Logf("\n%s", baseline.Table(ran, offered, revisions))
	for _, wrong := range baseline.Judge(ran, offered) {
		t.Error(wrong)
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
