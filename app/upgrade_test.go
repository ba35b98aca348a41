package main

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"drawbridge/bridge/private"
)

// oldState is a state directory as an agent of a format wrote it; see
// testdata/state.
func oldState(t *testing.T, format int) string {
	t.Helper()
	from, dir := filepath.Join("testdata", "state", strconv.Itoa(format)), filepath.Join(t.TempDir(), "s")
	err := filepath.WalkDir(from, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dir, rel)
		if d.IsDir() {
			return os.Mkdir(to, 0o700)
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, b, 0o600)
	})
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// contents are the files of a directory itself, by name.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue
		}
		b, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(b)
	}
	return all
}

func sameContents(t *testing.T, what string, got, want map[string]string) {
	t.Helper()
	for name := range want {
		if got[name] != want[name] {
			t.Errorf("%s: %s holds %q, want %q", what, name, got[name], want[name])
		}
	}
	for name := range got {
		if _, is := want[name]; !is {
			t.Errorf("%s: %s is there", what, name)
		}
	}
}

// changeTwo is a step that changes two files, one after the other.
func changeTwo(at func(string)) []func(string) error {
	return []func(string) error{nil, func(dir string) error {
		for _, name := range []string{"one", "two"} {
			at("change " + name)
			if err := private.WriteFile(filepath.Join(dir, name), []byte("new "+name)); err != nil {
				return err
			}
		}
		return nil
	}}
}

// killedUpgrade is a program that upgrades a directory and is killed before its
// nth step.
func killedUpgrade() {
	n, err := strconv.Atoi(os.Args[2])
	if err != nil {
		panic(err)
	}
	at := func(string) {
		if n--; n == 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	u := upgrade{dir: os.Args[1], from: 1, steps: changeTwo(at), at: at}
	if err := u.run(); err != nil {
		panic(err)
	}
}

// TestUpgradeKilled kills an upgrade before each of its steps. The old state is
// whole each time, in its place or in the copy, and the next start has the new.
func TestUpgradeKilled(t *testing.T) {
	old := map[string]string{formatName: "1\n", "one": "old one", "two": "old two"}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	kills := 0
	for n := 1; ; n++ {
		dir := t.TempDir()
		for name, text := range old {
			if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		if err := os.WriteFile(filepath.Join(dir, "lock"), []byte("1"), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(exe)
		cmd.Args = []string{"killedupgrade", dir, strconv.Itoa(n)}
		out, err := cmd.CombinedOutput()
		var exit *exec.ExitError
		switch {
		case err == nil:
		case errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL:
			kills++
		default:
			t.Fatalf("%v\n%s", err, out)
		}
		backup := filepath.Join(dir, "backup-format-1")
		if _, serr := os.Stat(backup); serr == nil {
			sameContents(t, "the copy", contents(t, backup), old)
		} else {
			got := contents(t, dir)
			delete(got, "lock")
			delete(got, underWay)
			sameContents(t, "the old state", got, old)
		}
		// The next start; the agent before marks it last.
		from, err2 := readFormat(dir)
		if err2 != nil {
			t.Fatal(err2)
		}
		if from == 1 || upgrading(dir) {
			u := upgrade{dir: dir, from: from, steps: changeTwo(func(string) {})}
			if err := u.run(); err != nil {
				t.Fatalf("killed at %d: %v", n, err)
			}
			if u.from != 1 || u.backup != backup {
				t.Errorf("killed at %d: from %d, %s", n, u.from, u.backup)
			}
		}
		sameContents(t, "the new state", contents(t, dir), map[string]string{formatName: "2\n", "one": "new one", "two": "new two", "lock": "1"})
		sameContents(t, "the copy", contents(t, backup), old)
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
			t.Errorf("killed at %d: left %v", n, left)
		}
		if err == nil {
			break
		}
	}
	if kills < 8 {
		t.Errorf("only %d kills", kills)
	}
}

// TestUpgradeTakenBack keeps a second copy beside the first: a person went back to
// an older agent meanwhile.
func TestUpgradeTakenBack(t *testing.T) {
	dir := oldState(t, 1)
	for i, want := range []string{"backup-format-1", "backup-format-1-2"} {
		if err := os.WriteFile(filepath.Join(dir, formatName), []byte("1\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		rules := "# " + strconv.Itoa(i) + "\n"
		if err := os.WriteFile(filepath.Join(dir, rulesName), []byte(rules), 0o600); err != nil {
			t.Fatal(err)
		}
		told, err := openState(dir)
		if err != nil || !strings.HasSuffix(told, want) {
			t.Errorf("%q, %v", told, err)
		}
		if got := contents(t, filepath.Join(dir, want))[rulesName]; got != rules {
			t.Errorf("%s has %q", want, got)
		}
	}
}

func TestUpgradeRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(dir string) error
		want    string
	}{
		"what was begun is broken": {func(dir string) error { return os.WriteFile(filepath.Join(dir, underWay), []byte("{"), 0o600) }, "does not say what was begun"},
		"what was begun is elsewhere": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, underWay), []byte(`{"v":1,"from":1,"backup":"backup-format-/../../x"}`), 0o600)
		}, "does not say what was begun"},
		"too large": {func(dir string) error { return os.Truncate(filepath.Join(dir, rulesName), maxBackedUp+1) }, "no file of ours"},
	} {
		dir := oldState(t, 1)
		if err := c.prepare(dir); err != nil {
			t.Fatal(err)
		}
		before := contents(t, dir)
		if _, err := openState(dir); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		after := contents(t, dir)
		delete(after, underWay)
		delete(before, underWay)
		sameContents(t, name, after, before)
		if left, _ := filepath.Glob(filepath.Join(dir, ".*")); len(left) != 0 {
			t.Errorf("%s: left %v", name, left)
		}
	}
}
