package host

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestResolve: what is started is one program, whatever PATH or the folder is later.
func TestResolve(t *testing.T) {
	dir := t.TempDir()
	for name, mode := range map[string]os.FileMode{"notes-server": 0o755, "no-program": 0o644} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"), mode); err != nil {
			t.Fatal(err)
		}
	}
	t.Setenv("PATH", "/nonexistent:"+dir)
	t.Chdir(dir)
	for name, c := range map[string]struct{ config, want Config }{
		"by PATH":         {Config{Command: "notes-server"}, Config{Command: filepath.Join(dir, "notes-server")}},
		"no program":      {Config{Command: "no-program"}, Config{Command: "no-program"}},
		"not there":       {Config{Command: "nothing"}, Config{Command: "nothing"}},
		"absolute":        {Config{Command: "/opt/x/../y"}, Config{Command: "/opt/y"}},
		"in a folder":     {Config{Command: "./x", Cwd: "/srv"}, Config{Command: "/srv/x", Cwd: "/srv"}},
		"relative folder": {Config{Command: "bin/x", Cwd: "srv"}, Config{Command: filepath.Join(dir, "srv/bin/x"), Cwd: filepath.Join(dir, "srv")}},
		"a server":        {Config{URL: "https://t.example"}, Config{URL: "https://t.example"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.config
			if got.Resolve(); !got.equal(c.want) {
				t.Errorf("%+v becomes %+v, want %+v", c.config, got, c.want)
			}
		})
	}
}

func TestCheckWantsAFolder(t *testing.T) {
	for _, command := range []string{"./x", "bin/x", "../x"} {
		c := Config{Command: command}
		if err := c.Check(); err == nil || !strings.Contains(err.Error(), "name the folder in cwd, or write an absolute path") {
			t.Errorf("%s: %v", command, err)
		}
		c.Cwd = "/srv"
		if err := c.Check(); err != nil {
			t.Errorf("%s in a folder: %v", command, err)
		}
	}
}
