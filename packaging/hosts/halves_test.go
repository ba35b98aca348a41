package hosts

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"drawbridge/bridge/wire"
	"drawbridge/packaging/agent"
)

// TestBothHalves is one session that uses a host's tools and the desktop: a host
// writes a file, computer edits and saves it in a real editor, and the host reads
// the change back.
func TestBothHalves(t *testing.T) {
	cache := install(t, servers)
	for _, name := range []string{"Xvfb", "jwm", "mousepad"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skipf("%s is missing; on Debian: apt-get install xvfb jwm mousepad", name)
		}
	}
	dir := t.TempDir()
	state, files, home := filepath.Join(dir, "state"), filepath.Join(dir, "files"), filepath.Join(dir, "home")
	for _, d := range []string{files, home} {
		if err := os.Mkdir(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(files, "note.txt")
	config := filepath.Join(dir, "config.yaml")
	settings := fmt.Sprintf("hosts:\n  files:\n    command: %q\n    args: [%q]\n",
		filepath.Join(cache, "node_modules", ".bin", "mcp-server-filesystem"), files)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		t.Fatal(err)
	}
	bin, err := agent.Build(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.Start(t.Context(), agent.Options{Bin: bin, State: state,
		Args: []string{"--config", config, "--backend", "virtual", "--allow", "*"}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.Stop(); err != nil {
			t.Error(err)
		}
	})
	s := dialHalves(t, a)

	// The host's half: a file.
	const first, added = "written by the host\n", "typed by computer, äö 日本"
	s.waitFor("files_write_file")
	s.call("files_write_file", map[string]any{"path": file, "content": first})
	if got, err := os.ReadFile(file); err != nil || string(got) != first {
		t.Fatalf("the file holds %q (%v), want %q", got, err, first)
	}

	// The desktop's half: the editor.
	empty := s.look()
	edit(t, a, home, file)
	for last, end := "", time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
		now := s.look()
		if now != empty && now == last {
			break // the window is there, and has come to rest
		}
		if last = now; time.Now().After(end) {
			t.Fatalf("waited %s for the editor's window in vain", patience)
		}
	}
	s.computer(map[string]any{"type": "keypress", "keys": []string{"CTRL", "END"}},
		map[string]any{"type": "type", "text": added},
		map[string]any{"type": "keypress", "keys": []string{"CTRL", "S"}})

	// The host's half again: what the editor saved.
	for end := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		var got struct{ Content []struct{ Text string } }
		result := s.call("files_read_text_file", map[string]any{"path": file})
		if err := json.Unmarshal(result, &got); err != nil {
			t.Fatalf("%v: %s", err, result)
		}
		if len(got.Content) == 1 && (got.Content[0].Text == first+added || got.Content[0].Text == first+added+"\n") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("the host reads %s", result)
		}
	}
}

// edit opens a file in the editor on the agent's display until the test ends.
func edit(t *testing.T, a *agent.Agent, home, file string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), a.Bin, "status", "--state", a.State, "--json").Output()
	if err != nil {
		t.Fatalf("status: %v", err)
	}
	var status struct{ Display string }
	if err := json.Unmarshal(out, &status); err != nil || status.Display == "" {
		t.Fatalf("the agent does not say which display it runs (%v): %s", err, out)
	}
	editor := exec.Command("mousepad", "--disable-server", file)
	editor.Env = append(os.Environ(),
		"DISPLAY="+status.Display, "XAUTHORITY="+filepath.Join(a.State, "virtual", "Xauthority"),
		"WAYLAND_DISPLAY=", "GDK_BACKEND=x11", "NO_AT_BRIDGE=1", "GSETTINGS_BACKEND=memory", "LANG=C.UTF-8",
		"HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+home)
	if err := editor.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = editor.Process.Kill()
		_ = editor.Wait() // it was killed; that is no news
	})
}

// halves is a client's session on the websocket, one call at a time.
type halves struct {
	t    *testing.T
	conn *wire.Conn
	id   int
}

func dialHalves(t *testing.T, a *agent.Agent) *halves {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	conn, err := wire.Dial(ctx, a.WebSocket(), a.Token)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &halves{t: t, conn: conn}
	s.request("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	return s
}

// request returns the result; the tool's own failure is one.
func (s *halves) request(method string, params any) json.RawMessage {
	s.t.Helper()
	s.id++
	frame, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	if err != nil {
		s.t.Fatal(err)
	}
	if err := s.conn.WriteFrame(frame); err != nil {
		s.t.Fatal(err)
	}
	for {
		b, err := s.conn.ReadFrame(64 << 20)
		if err != nil {
			s.t.Fatal(err)
		}
		if wire.Get(b, "method") != nil {
			continue // a notification
		}
		result := wire.Get(b, "result")
		if result == nil {
			s.t.Fatalf("%s: %s", method, b)
		}
		return result
	}
}

func (s *halves) call(tool string, arguments any) json.RawMessage {
	s.t.Helper()
	result := s.request("tools/call", map[string]any{"name": tool, "arguments": arguments})
	if string(wire.Get(result, "isError")) == "true" {
		s.t.Fatalf("%s failed: %.2000s", tool, result)
	}
	return result
}

// computer runs a batch and returns its picture, in Base64.
func (s *halves) computer(actions ...map[string]any) string {
	s.t.Helper()
	result := s.call("computer", map[string]any{"actions": actions})
	var got struct {
		Content []struct{ Type, Data string }
	}
	if err := json.Unmarshal(result, &got); err != nil {
		s.t.Fatal(err)
	}
	for _, block := range got.Content {
		if block.Type == "image" {
			return block.Data
		}
	}
	s.t.Fatalf("the answer holds no picture: %.2000s", result)
	return ""
}

func (s *halves) look() string {
	s.t.Helper()
	return s.computer(map[string]any{"type": "screenshot"})
}

// waitFor waits until a tool is listed: a host's are when it has started.
func (s *halves) waitFor(tool string) {
	s.t.Helper()
	for end := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		var list struct{ Tools []struct{ Name string } }
		if err := json.Unmarshal(s.request("tools/list", map[string]any{}), &list); err != nil {
			s.t.Fatal(err)
		}
		for _, x := range list.Tools {
			if x.Name == tool {
				return
			}
		}
		if time.Now().After(end) {
			s.t.Fatalf("waited %s for %s in vain: %v", patience, tool, list.Tools)
		}
	}
}
