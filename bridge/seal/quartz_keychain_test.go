//go:build standin

package seal_test

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"drawbridge/bridge/seal"
	"drawbridge/bridge/seal/sealtest"
	"drawbridge/packaging/standin"
)

const (
	service = "io.github.drawbridge.Test"
	// In the environment of a copy of this program that is another one.
	envThief = "DRAWBRIDGE_TEST_THIEF"
)

func TestMain(m *testing.M) {
	if os.Getenv(envThief) == "" {
		os.Exit(m.Run())
	}
	k := seal.Platform(service)
	secret, err := k.Get("a")
	fmt.Printf("get %q %v\n", secret, err)
	fmt.Printf("set %v\n", k.Set("a", []byte("mine")))
	is, err := k.Remove("a")
	fmt.Printf("remove %v %v\n", is, err)
	fmt.Printf("set another %v\n", k.Set("b", []byte("mine")))
}

// openKeychain has the items in a file, which it returns.
func openKeychain(t *testing.T) (file string, d *standin.Desk) {
	t.Helper()
	d, err := standin.Open("", "", "1:0,0,1280,800,1,0,0", "")
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "keychain")
	t.Cleanup(func() {
		if err := errors.Join(d.Set("keychain", ""), d.Set("keylock", "0"), d.Close()); err != nil {
			t.Error(err)
		}
	})
	if err := d.Set("keychain", file); err != nil {
		t.Fatal(err)
	}
	return file, d
}

func TestQuartzKeychain(t *testing.T) {
	openKeychain(t)
	k := seal.Platform(service)
	sealtest.Test(t, k)
	if err := k.Set("a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if names, err := k.Names(); err != nil || !slices.Equal(names, []string{"a"}) {
		t.Errorf("%q, %v", names, err)
	}
	// Of another service there is nothing.
	if names, err := seal.Platform(service + ".other").Names(); names != nil || err != nil {
		t.Errorf("%q, %v", names, err)
	}
	if b, err := seal.Platform(service + ".other").Get("a"); b != nil || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// TestQuartzKeychainOfOthers has another program at the item: it learns nothing,
// and what it puts there itself is not taken.
func TestQuartzKeychainOfOthers(t *testing.T) {
	file, _ := openKeychain(t)
	k := seal.Platform(service)
	if err := k.Set("a", []byte("one")); err != nil {
		t.Fatal(err)
	}
	thief := filepath.Join(t.TempDir(), "thief")
	program, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(thief, append(program, 0), 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(thief)
	cmd.Env = append(os.Environ(), envThief+"=1", "STANDIN_keychain="+file)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if len(lines) != 4 {
		t.Fatalf("%s", out)
	}
	for i, want := range []string{`get ""`, "set ", "remove true "} {
		if !strings.HasPrefix(lines[i], want) || !strings.Contains(lines[i], "User interaction is not allowed. (-25308)") || !strings.Contains(lines[i], "Keychain Access") {
			t.Errorf("%s, want %s… -25308", lines[i], want)
		}
	}
	if b, err := k.Get("a"); err != nil || string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
	if lines[3] != "set another <nil>" {
		t.Error(lines[3])
	}
	if b, err := k.Get("b"); b != nil || err == nil {
		t.Errorf("an item of another program was read: %q", b)
	}
	if err := k.Set("b", []byte("one")); err == nil || !strings.Contains(err.Error(), "another program's") {
		t.Errorf("an item of another program was replaced: %v", err)
	}
}

func TestQuartzKeychainLocked(t *testing.T) {
	_, d := openKeychain(t)
	k := seal.Platform(service)
	if err := errors.Join(k.Set("a", []byte("one")), d.Set("keylock", "1")); err != nil {
		t.Fatal(err)
	}
	_, get := k.Get("a")
	_, remove := k.Remove("a")
	for what, err := range map[string]error{"get": get, "set": k.Set("a", nil), "remove": remove, "set a new one": k.Set("c", nil)} {
		if err == nil || !strings.Contains(err.Error(), "(-25308); the keychain is locked") {
			t.Errorf("%s: %v", what, err)
		}
	}
	if err := d.Set("keylock", "0"); err != nil {
		t.Fatal(err)
	}
	if b, err := k.Get("a"); err != nil || string(b) != "one" {
		t.Errorf("%q, %v", b, err)
	}
}
