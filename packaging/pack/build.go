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
	"time"

	"drawbridge/bridge/private"
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

// maxText bounds the texts that are read.
const maxText = 1 << 20

// arches are the processors of the universal executable, in the order of its
// slices.
var arches = []string{"amd64", "arm64"}

// check refuses what cannot be built here.
func (o appOptions) check() error {
	switch {
	case o.tray == "systray" && runtime.GOOS != "darwin":
		return errors.New("-tray systray is built with cgo, which takes a Mac with its command line tools; leave it out for the menu of our own")
	case o.tray != "systray" && o.tray != "own":
		return fmt.Errorf("-tray %q: use own or systray", o.tray)
	}
	return checkOut(o.out)
}

// build makes the app, not signed, in a directory, and returns its path.
func build(ctx context.Context, dir string, o appOptions) (string, error) {
	cgo := "0"
	if o.tray == "systray" {
		cgo = "1"
	}
	var err error
	parts := bundle.Parts{Version: o.version}
	if parts.InfoPlist, err = private.ReadPlain("Info.plist", 0, maxText); err != nil {
		return "", fmt.Errorf("pack runs in the repository's own directory: %w", err)
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
		return "", err
	}
	modules := map[string]bundle.Module{}
	for _, m := range linked {
		maps.Copy(modules, m)
	}
	if parts.Program, err = macho.Join(slices...); err != nil {
		return "", err
	}
	var list []bundle.Module
	for _, m := range modules {
		list = append(list, m)
	}
	if parts.Licences, err = bundle.Licences(list); err != nil {
		return "", err
	}
	if parts.Icon, err = icon.ICNS(); err != nil {
		return "", err
	}
	app := filepath.Join(dir, install.Name)
	return app, bundle.Write(app, parts)
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

// toolEnds is how long the go command may take to end once it was told to.
const toolEnds = 5 * time.Second

// goTool runs the go command of the environment and returns what it prints.
func goTool(ctx context.Context, env []string, args ...string) ([]byte, error) {
	tool := os.Getenv("GO")
	if tool == "" {
		tool = "go"
	}
	cmd := exec.CommandContext(ctx, tool, args...)
	cmd.Env = append(os.Environ(), env...)
	// It takes what it made with it.
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = toolEnds
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("%s %s: %w", tool, args[0], context.Cause(ctx))
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w\n%s", tool, args[0], err, bytes.TrimSpace(stderr.Bytes()))
	}
	return out, nil
}
