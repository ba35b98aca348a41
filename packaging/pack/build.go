package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"

	"drawbridge/packaging/bundle"
	"drawbridge/packaging/icon"
	"drawbridge/packaging/install"
	"drawbridge/packaging/macho"
)

type appOptions struct {
	version string
	out     string
	tray    string
}

// arches are the processors of the universal executable, in the order of its
// slices.
var arches = []string{"amd64", "arm64"}

// build makes the app, not signed, in a new directory beside its place. remove
// takes that directory away.
func build(ctx context.Context, o appOptions) (app string, remove func(), err error) {
	cgo := "0"
	switch {
	case o.tray == "systray" && runtime.GOOS != "darwin":
		return "", nil, errors.New("-tray systray is built with cgo, which takes a Mac with its command line tools; leave it out for the menu of our own")
	case o.tray == "systray":
		cgo = "1"
	case o.tray != "own":
		return "", nil, fmt.Errorf("-tray %q: use own or systray", o.tray)
	}
	parent := filepath.Dir(o.out)
	if err := os.MkdirAll(parent, 0o755); err != nil {
		return "", nil, err
	}
	dir, err := os.MkdirTemp(parent, ".app-*")
	if err != nil {
		return "", nil, err
	}
	remove = func() { _ = os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			remove()
		}
	}()
	parts := bundle.Parts{Version: o.version}
	if parts.InfoPlist, err = os.ReadFile("Info.plist"); err != nil {
		return "", nil, fmt.Errorf("pack runs in the repository's own directory: %w", err)
	}
	// Side by side, since linking uses one processor.
	slices := make([][]byte, len(arches))
	linked := make([]map[string]bundle.Module, len(arches))
	errs := make([]error, len(arches))
	var built sync.WaitGroup
	for i, arch := range arches {
		built.Go(func() {
			env := []string{"CGO_ENABLED=" + cgo, "GOOS=darwin", "GOARCH=" + arch, "GOFLAGS=", "MACOSX_DEPLOYMENT_TARGET=12.0"}
			if slices[i], errs[i] = buildSlice(ctx, env, o, filepath.Join(dir, arch)); errs[i] == nil {
				linked[i], errs[i] = linkedModules(ctx, env, o)
			}
		})
	}
	built.Wait()
	if err = errors.Join(errs...); err != nil {
		return "", nil, err
	}
	modules := map[string]bundle.Module{}
	for _, m := range linked {
		maps.Copy(modules, m)
	}
	if parts.Program, err = macho.Join(slices...); err != nil {
		return "", nil, err
	}
	var list []bundle.Module
	for _, m := range modules {
		list = append(list, m)
	}
	if parts.Licences, err = bundle.Licences(list); err != nil {
		return "", nil, err
	}
	if parts.Icon, err = icon.ICNS(); err != nil {
		return "", nil, err
	}
	app = filepath.Join(dir, install.Name)
	return app, remove, bundle.Write(app, parts)
}

// tags are the build tags of a menu.
func (o appOptions) tags() string {
	if o.tray == "systray" {
		return "systray"
	}
	return ""
}

// buildSlice builds the executable for one processor and returns it.
func buildSlice(ctx context.Context, env []string, o appOptions, file string) ([]byte, error) {
	// Nothing of the place, the time or the machine goes in. What debuggers read is
	// left out by the linker, so it need not be made, which takes a sixth of the time.
	_, err := goTool(ctx, env, "build", "-trimpath", "-buildvcs=false", "-tags", o.tags(), "-gcflags=all=-dwarf=false",
		"-ldflags", "-s -w -buildid= -X main.version="+o.version, "-o", file, "./app")
	if err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// linkedModules are the modules that ./app is linked from, and Go itself.
func linkedModules(ctx context.Context, env []string, o appOptions) (map[string]bundle.Module, error) {
	to := map[string]bundle.Module{}
	out, err := goTool(ctx, env, "list", "-deps", "-json=Module", "-tags", o.tags(), "./app")
	if err != nil {
		return nil, err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *bundle.Module }
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module != nil {
			to[p.Module.Path] = *p.Module
		}
	}
	root, err := goTool(ctx, env, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return nil, err
	}
	lines := bytes.SplitN(bytes.TrimSpace(root), []byte("\n"), 2)
	if len(lines) != 2 {
		return nil, fmt.Errorf("go env: %q", root)
	}
	to["Go"] = bundle.Module{Path: "Go", Version: string(lines[1]), Dir: string(lines[0])}
	return to, nil
}

// goTool runs the go command of the environment and returns what it prints.
func goTool(ctx context.Context, env []string, args ...string) ([]byte, error) {
	tool := os.Getenv("GO")
	if tool == "" {
		tool = "go"
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", tool, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}

// replace puts a finished app at its place.
func replace(staged, out string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	return os.Rename(staged, out)
}
