package hosts

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestDir(t *testing.T) {
	none := func(string) string { return "" }
	other := func(name string) string {
		if name == "PI_CODING_AGENT_DIR" {
			return "/elsewhere"
		}
		return ""
	}
	for _, c := range []struct {
		kind   string
		getenv func(string) string
		want   string
	}{
		{"omp", none, "/home/p/.omp/agent/extensions"},
		{"pi", none, "/home/p/.pi/agent/extensions"},
		{"pi", other, "/elsewhere/extensions"},
	} {
		if got, err := Dir(c.kind, "/home/p", c.getenv); err != nil || got != c.want {
			t.Errorf("%s: %q, %v; want %q", c.kind, got, err, c.want)
		}
	}
	if _, err := Dir("vim", "/home/p", none); err == nil || !strings.Contains(err.Error(), "omp and pi") {
		t.Errorf("vim: %v", err)
	}
}

func TestInstall(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "extensions")
	want := Settings{Endpoint: "/state/endpoint.json", Token: "secret", Name: "omp", Main: true}
	for n := range 2 { // the second is an update
		if n > 0 { // after one that was killed
			left, long := filepath.Join(dir, ".drawbridge-42"), time.Now().Add(-time.Hour)
			if err := errors.Join(os.WriteFile(left, nil, 0o600), os.Chtimes(left, long, long)); err != nil {
				t.Fatal(err)
			}
		}
		path, err := Install(dir, want)
		if err != nil {
			t.Fatal(err)
		}
		if b, err := os.ReadFile(path); err != nil || !bytes.Equal(b, extension) || !bytes.HasPrefix(b, ourMark) {
			t.Errorf("%s is not the extension: %v", path, err)
		}
	}
	settings := filepath.Join(dir, settingsFile)
	st, err := os.Stat(settings)
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("settings: %v, %v", st, err)
	}
	var got Settings
	b, err := os.ReadFile(settings)
	if err == nil {
		err = json.Unmarshal(b, &got)
	}
	if err != nil || got != want {
		t.Errorf("settings %+v, %v", got, err)
	}
	if left, err := filepath.Glob(filepath.Join(dir, ".drawbridge-*")); err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
	for _, want := range []bool{true, false} {
		if found, err := Uninstall(dir); err != nil || found != want {
			t.Errorf("uninstall: %t, %v; want %t", found, err, want)
		}
	}
}

func TestInstallLeavesOthersAlone(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, extensionFile)
	if err := os.WriteFile(path, []byte("export default () => {}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Install(dir, Settings{}); err == nil || !strings.Contains(err.Error(), "move it away") {
		t.Errorf("install over another's file: %v", err)
	}
	if _, err := Uninstall(dir); err == nil {
		t.Error("uninstall took another's file away")
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "export default () => {}" {
		t.Errorf("the file holds %q, %v", b, err)
	}
}
