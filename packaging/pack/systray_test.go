package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	gobuild "go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// TestSystrayTypes type-checks what make app TRAY=systray builds, as a Mac with cgo
// chooses the files: fyne.io/systray with its C left out, and our packages over it.
// What its C does, and that it compiles, takes a Mac.
func TestSystrayTypes(t *testing.T) {
	cmd := exec.Command("go", "list", "-deps", "-export", "-json=ImportPath,Export", "./app",
		"fyne.io/systray/internal/generated/notifier", "github.com/godbus/dbus/v5") // which it imports on a Mac too
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, &stderr)
	}
	exports := map[string]string{}
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	compiled := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	checked := map[string]*types.Package{}
	mac := gobuild.Default
	mac.GOOS, mac.GOARCH, mac.CgoEnabled, mac.BuildTags = "darwin", "arm64", true, []string{appOptions{tray: "systray"}.tags()}
	check := func(path, dir string, wants string) {
		t.Helper()
		p, err := mac.ImportDir(dir, 0)
		if err != nil {
			t.Fatal(err)
		}
		var files []*ast.File
		found := false
		for _, name := range append(p.GoFiles, p.CgoFiles...) {
			f, err := parser.ParseFile(fset, filepath.Join(dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, f)
			found = found || name == wants
		}
		if !found {
			t.Errorf("%s is not built with %s", path, wants)
		}
		conf := types.Config{FakeImportC: true, Sizes: types.SizesFor("gc", "arm64"), Error: func(err error) { t.Error(err) }, Importer: importing(func(path string) (*types.Package, error) {
			if p := checked[path]; p != nil {
				return p, nil
			}
			return compiled.Import(path)
		})}
		checked[path], _ = conf.Check(path, fset, files, nil)
	}
	where, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "fyne.io/systray").Output()
	if err != nil {
		t.Fatal(err)
	}
	check("fyne.io/systray", string(bytes.TrimSpace(where)), "systray_darwin.go")
	check("drawbridge/ui", "../../ui", "systray_tray.go")
	check("drawbridge/app", "../../app", "tray_systray.go")
}

type importing func(path string) (*types.Package, error)

func (f importing) Import(path string) (*types.Package, error) { return f(path) }
