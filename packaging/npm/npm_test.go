package npm

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// The lockfile is taken by people behind other registries than ours.
func TestLockfileNamesNoRegistry(t *testing.T) {
	b, err := manifest.ReadFile("package-lock.json")
	if err != nil {
		t.Fatal(err)
	}
	var lock struct {
		Packages map[string]struct {
			Version   string
			Resolved  string
			Integrity string
		}
	}
	if err := json.Unmarshal(b, &lock); err != nil {
		t.Fatal(err)
	}
	if len(lock.Packages) < 3 {
		t.Fatalf("the lockfile pins %d packages", len(lock.Packages))
	}
	for name, p := range lock.Packages {
		if p.Resolved != "" {
			t.Errorf("%s: the lockfile records the address %s", name, p.Resolved)
		}
		if name != "" && !strings.HasPrefix(p.Integrity, "sha512-") {
			t.Errorf("%s: no sha512 pins it", name)
		}
	}
}

func TestMajor(t *testing.T) {
	for _, c := range []struct {
		in   string
		want int
	}{
		{"v24.22.3", 24}, {"v8.0.0", 8}, {"22", 22}, {"", 0}, {"vX.1", 0},
	} {
		if got := major(c.in); got != c.want {
			t.Errorf("major(%q) = %d, want %d", c.in, got, c.want)
		}
	}
}

func TestManifestHashFollowsContent(t *testing.T) {
	dir := t.TempDir()
	a, err := writeManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	b, err := writeManifest(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a != b || len(a) != 64 {
		t.Fatalf("hashes %q and %q", a, b)
	}
	want, _ := manifest.ReadFile("package-lock.json")
	got, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	if err != nil || !bytes.Equal(got, want) {
		t.Fatalf("the lockfile was not written as it is: %v", err)
	}
}

// Without npm there is a clear answer, and no stamp that would claim success.
func TestInstallWithoutNpm(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	dir := t.TempDir()
	_, err := install(t.Context(), dir)
	if !errors.Is(err, ErrMissing) || !strings.Contains(err.Error(), "install nodejs and npm") {
		t.Fatalf("got %v", err)
	}
	if _, err := os.Stat(filepath.Join(dir, "installed")); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a stamp was left: %v", err)
	}
}

func TestModuleRoot(t *testing.T) {
	root, err := moduleRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "packaging", "npm", "npm.go")); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if _, err := moduleRoot(); err == nil {
		t.Fatal("found a module outside of one")
	}
}
