package agent

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The stand-ins are shell scripts that do what the real agent promises to do with
// its state folder (docs/protocol.md), or fail to; $3 is the state folder.
const (
	serve = `printf '{"v":1,"pid":%d,"url":"ws://127.0.0.1:1234/mcp"}' $$ > "$3/new" && mv "$3/new" "$3/endpoint.json"; `
	login = `echo sesame > "$3/default.token"; `
	wait  = `while :; do sleep 0.01; done`
)

func TestStart(t *testing.T) {
	for _, c := range []struct {
		name, script      string
		startErr, stopErr string // parts of the errors; empty means none
	}{
		{name: "serves and ends well", script: `trap 'rm "$3/endpoint.json"; exit 0' TERM; ` + login + serve + wait},
		{name: "ends at once", script: `echo no display >&2; exit 2`, startErr: "no display"},
		{name: "has no token", script: serve + wait, startErr: "default.token"},
		{name: "leaves its endpoint", script: `trap 'exit 0' TERM; ` + login + serve + wait, stopErr: "left endpoint.json"},
		{name: "says nonsense", script: `echo '{' > "$3/endpoint.json"; ` + wait, startErr: "endpoint.json: "},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			bin := filepath.Join(dir, "agent.sh")
			// "$1" is run, "$2" is --state.
			if err := os.WriteFile(bin, []byte("#!/bin/sh\n"+c.script+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			a, err := Start(t.Context(), Options{Bin: bin, State: filepath.Join(dir, "state")})
			if !has(err, c.startErr) {
				t.Fatalf("start: %v, want %q", err, c.startErr)
			}
			if err != nil {
				return
			}
			if a.Host != "127.0.0.1:1234" || a.Token != "sesame" || a.WebSocket() != "ws://127.0.0.1:1234/mcp" || a.HTTP() != "http://127.0.0.1:1234/mcp" {
				t.Errorf("got %q, %q", a.Host, a.Token)
			}
			if err := a.Stop(); !has(err, c.stopErr) {
				t.Errorf("stop: %v, want %q", err, c.stopErr)
			}
		})
	}
}

func TestStopOfADeadAgent(t *testing.T) {
	dir := t.TempDir()
	bin := filepath.Join(dir, "agent.sh")
	script := "#!/bin/sh\n" + login + serve + "while [ ! -e \"$3/die\" ]; do sleep 0.01; done; echo died >&2; exit 1\n"
	if err := os.WriteFile(bin, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	a, err := Start(t.Context(), Options{Bin: bin, State: dir})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "die"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	<-a.done
	if err := a.Stop(); !has(err, "ended by itself") || !strings.Contains(a.Output(), "died") {
		t.Fatalf("stop: %v", err)
	}
}

func has(err error, part string) bool {
	if part == "" {
		return err == nil
	}
	return err != nil && strings.Contains(err.Error(), part)
}
