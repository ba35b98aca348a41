package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"

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
	var slices [][]byte
	modules := map[string]bundle.Module{}
	for _, arch := range arches {
		env := []string{"CGO_ENABLED=" + cgo, "GOOS=darwin", "GOARCH=" + arch, "GOFLAGS=", "MACOSX_DEPLOYMENT_TARGET=12.0"}
		file := filepath.Join(dir, arch)
		// Nothing of the place, the time or the machine goes in.
		_, err := goTool(ctx, env, "build", "-trimpath", "-buildvcs=false",
			"-ldflags", "-s -w -buildid= -X main.version="+o.version, "-o", file, "./app")
		if err != nil {
			return "", nil, err
		}
		b, err := os.ReadFile(file)
		if err != nil {
			return "", nil, err
		}
		slices = append(slices, b)
		if err := linkedModules(ctx, env, modules); err != nil {
			return "", nil, err
		}
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

// linkedModules adds the modules that ./app is linked from, and Go itself.
func linkedModules(ctx context.Context, env []string, to map[string]bundle.Module) error {
	out, err := goTool(ctx, env, "list", "-deps", "-json=Module", "./app")
	if err != nil {
		return err
	}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ Module *bundle.Module }
		err := d.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("go list: %w", err)
		}
		if p.Module != nil {
			to[p.Module.Path] = *p.Module
		}
	}
	root, err := goTool(ctx, env, "env", "GOROOT", "GOVERSION")
	if err != nil {
		return err
	}
	lines := bytes.SplitN(bytes.TrimSpace(root), []byte("\n"), 2)
	if len(lines) != 2 {
		return fmt.Errorf("go env: %q", root)
	}
	to["Go"] = bundle.Module{Path: "Go", Version: string(lines[1]), Dir: string(lines[0])}
	return nil
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
