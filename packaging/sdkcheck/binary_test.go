package sdkcheck

import (
	"debug/macho"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestBinary builds the agent for both Macs, without cgo: it may link what macOS
// brings and nothing else. Frameworks that purego loads are not linked.
func TestBinary(t *testing.T) {
	for _, arch := range []string{"arm64", "amd64"} {
		out := filepath.Join(t.TempDir(), arch)
		cmd := exec.Command("go", "build", "-trimpath", "-o", out, "./app")
		cmd.Dir = "../.."
		cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH="+arch, "CGO_ENABLED=0")
		if said, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", arch, err, said)
		}
		f, err := macho.Open(out)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		libs, err := f.ImportedLibraries()
		if err != nil || len(libs) == 0 {
			t.Fatalf("%s: %v, %v", arch, libs, err)
		}
		for _, l := range libs {
			if !strings.HasPrefix(l, "/usr/lib/") && !strings.HasPrefix(l, "/System/Library/Frameworks/") {
				t.Errorf("%s links %s", arch, l)
			}
		}
		t.Logf("%s links %v", arch, libs)
	}
}
