package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

func TestPlatformPlaces(t *testing.T) {
	for name, tc := range map[string]struct {
		goos string
		env  map[string]string
		want places
		err  error
	}{
		"mac":             {"darwin", map[string]string{"HOME": "/Users/a", "XDG_STATE_HOME": "/x"}, places{"/Users/a/Library/Application Support/Drawbridge/config.yaml", "/Users/a/Library/Application Support/Drawbridge"}, nil},
		"mac, homeless":   {"darwin", nil, places{}, errNoHome},
		"linux":           {"linux", map[string]string{"HOME": "/home/a"}, places{"/home/a/.config/drawbridge/config.yaml", "/home/a/.local/state/drawbridge"}, nil},
		"linux, xdg":      {"linux", map[string]string{"XDG_CONFIG_HOME": "/c", "XDG_STATE_HOME": "/s"}, places{"/c/drawbridge/config.yaml", "/s/drawbridge"}, nil},
		"linux, relative": {"linux", map[string]string{"HOME": "/home/a", "XDG_CONFIG_HOME": "c"}, places{"/home/a/.config/drawbridge/config.yaml", "/home/a/.local/state/drawbridge"}, nil},
		"linux, homeless": {"linux", nil, places{}, errNoHome},
		"mac, astray":     {"darwin", map[string]string{"HOME": "relative"}, places{}, errRelativeHome},
		"linux, astray":   {"linux", map[string]string{"HOME": "relative"}, places{}, errRelativeHome},
	} {
		got, err := platformPlaces(tc.goos, func(k string) string { return tc.env[k] })
		if got != tc.want || !errors.Is(err, tc.err) {
			t.Errorf("%s: %+v, %v; want %+v, %v", name, got, err, tc.want, tc.err)
		}
	}
}

func TestPlacesInForce(t *testing.T) {
	env := map[string]string{"HOME": "/home/a", "DRAWBRIDGE_STATE": "/env/state", "DRAWBRIDGE_CONFIG": "/env/config"}
	c := &cli{stdio: stdio{getenv: func(k string) string { return env[k] }}}
	state, _ := c.stateDir()
	conf, asked, _ := c.configFile()
	if state != "/env/state" || conf != "/env/config" || !asked {
		t.Errorf("from the environment: %s, %s, %v", state, conf, asked)
	}
	c.flags.state, c.flags.config = "/flag/state", "/flag/config"
	state, _ = c.stateDir()
	conf, _, _ = c.configFile()
	if state != "/flag/state" || conf != "/flag/config" {
		t.Errorf("flags do not come before the environment: %s, %s", state, conf)
	}
	delete(env, "DRAWBRIDGE_CONFIG")
	c.flags.config = ""
	if _, asked, _ = c.configFile(); asked {
		t.Error("the default place counts as asked for")
	}
}

func TestMakeStateDir(t *testing.T) {
	dir := t.TempDir()
	made := filepath.Join(dir, "a", "b")
	if err := makeStateDir(made); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(made); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("made with %v, %v; want mode 0700", info.Mode(), err)
	}
	if err := makeStateDir(made); err != nil {
		t.Errorf("again: %v", err)
	}
	open := filepath.Join(dir, "open")
	if err := os.Mkdir(open, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(made, link); err != nil {
		t.Fatal(err)
	}
	if err := makeStateDir(filepath.Join(link, "below")); err != nil {
		t.Errorf("below a link: %v", err)
	}
	bad := map[string]string{open: "mode 0755", file: "is no directory: move it away", link: "is a link"}
	if os.Geteuid() == 0 {
		foreign := filepath.Join(dir, "foreign")
		if err := os.Mkdir(foreign, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(foreign, 12345, -1); err != nil {
			t.Fatal(err)
		}
		bad[foreign] = "another user (uid 12345)"
	}
	for path, says := range bad {
		err := makeStateDir(path)
		var exit *exitError
		if !errors.As(err, &exit) || exit.code != exitUsage || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v; want exit 2 and %q", path, err, says)
		}
	}
}

func TestLockState(t *testing.T) {
	dir := t.TempDir()
	lock, held, _, err := lockState(dir)
	if err != nil || held {
		t.Fatalf("first: held %v, %v", held, err)
	}
	second, held, pid, err := lockState(dir)
	if err != nil || !held || second != nil || pid != strconv.Itoa(os.Getpid()) {
		t.Errorf("second: held %v by %q, %v; want our pid", held, pid, err)
	}
	lock.Close()
	lock, held, _, err = lockState(dir)
	if err != nil || held {
		t.Errorf("after the first ended: held %v, %v", held, err)
	}
	lock.Close()
}
