package measured

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestSaveAndLoad(t *testing.T) {
	dir := t.TempDir()
	if _, ok := Load(dir, "15.1"); ok {
		t.Error("something was measured before anything was")
	}
	want := Facts{System: "15.1", When: time.Unix(1e9, 0).UTC(), WheelReversed: true, Typing: true, Watch: "by a tap"}
	for range 2 { // the second one takes the place of the first
		if err := Save(dir, want); err != nil {
			t.Fatal(err)
		}
	}
	if got, ok := Load(dir, "15.1"); !ok || got != want {
		t.Errorf("%+v, %v; want %+v", got, ok, want)
	}
	// Another version may do it another way.
	if got, ok := Load(dir, "15.2"); ok || got != (Facts{}) {
		t.Errorf("on another version: %+v, %v", got, ok)
	}
	path := filepath.Join(dir, FileName)
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info.Mode(), err)
	}
	for _, bad := range []string{"", "{", `{"system":5}`, "null"} {
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, ok := Load(dir, "15.1"); ok {
			t.Errorf("%q is something that was measured", bad)
		}
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "elsewhere"), path); err != nil {
		t.Fatal(err)
	}
	if _, ok := Load(dir, "15.1"); ok {
		t.Error("a link was followed")
	}
	if err := Save(filepath.Join(dir, "nowhere"), want); err == nil {
		t.Error("it was kept in a directory that is not there")
	}
}
