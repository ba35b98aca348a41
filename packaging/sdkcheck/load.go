package sdkcheck

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// Package is a type-checked package, as a Mac would build it.
type Package struct {
	Path  string
	Fset  *token.FileSet
	Files []*ast.File
	Info  *types.Info
}

const purego = "github.com/ebitengine/purego"

// listed is what go list says of a package.
type listed struct {
	ImportPath string
	Dir        string
	Export     string
	GoFiles    []string
	Imports    []string
	DepOnly    bool
}

// Load reads the packages of the module in dir that match patterns and reach
// frameworks, as they are built for macOS on arm64.
func Load(dir string, patterns ...string) ([]*Package, error) {
	all, err := list(dir, append([]string{"-e"}, patterns...)...)
	if err != nil {
		return nil, err
	}
	var ours []string
	for _, p := range all {
		if slices.ContainsFunc(p.Imports, reaches) {
			ours = append(ours, p.ImportPath)
		}
	}
	if len(ours) == 0 {
		return nil, fmt.Errorf("no package of %v in %s reaches a framework", patterns, dir)
	}
	if all, err = list(dir, append([]string{"-deps", "-export"}, ours...)...); err != nil {
		return nil, err
	}
	exports := map[string]string{}
	for _, p := range all {
		exports[p.ImportPath] = p.Export
	}
	fset := token.NewFileSet()
	imp := importer.ForCompiler(fset, "gc", func(path string) (io.ReadCloser, error) {
		if exports[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(exports[path])
	})
	var pkgs []*Package
	for _, l := range all {
		if l.DepOnly {
			continue
		}
		p := &Package{Path: l.ImportPath, Fset: fset, Info: &types.Info{
			Types: map[ast.Expr]types.TypeAndValue{}, Uses: map[*ast.Ident]types.Object{}, Defs: map[*ast.Ident]types.Object{},
			Selections: map[*ast.SelectorExpr]*types.Selection{}, Instances: map[*ast.Ident]types.Instance{},
		}}
		for _, name := range l.GoFiles {
			f, err := parser.ParseFile(fset, filepath.Join(l.Dir, name), nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			p.Files = append(p.Files, f)
		}
		conf := types.Config{Importer: imp, Sizes: types.SizesFor("gc", "arm64")}
		if _, err := conf.Check(l.ImportPath, fset, p.Files, p.Info); err != nil {
			return nil, err
		}
		pkgs = append(pkgs, p)
	}
	return pkgs, nil
}

// reaches reports whether whoever imports path may call a framework.
func reaches(path string) bool {
	return path == purego || strings.HasPrefix(path, purego+"/") ||
		path == "drawbridge/internal/quartz" || path == "drawbridge/internal/cocoa"
}

func list(dir string, args ...string) ([]listed, error) {
	cmd := exec.Command("go", append([]string{"list", "-json=ImportPath,Dir,Export,GoFiles,Imports,DepOnly"}, args...)...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=darwin", "GOARCH=arm64", "CGO_ENABLED=0", "GOFLAGS=")
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list: %w\n%s", err, stderr.Bytes())
	}
	var all []listed
	for d := json.NewDecoder(bytes.NewReader(out)); ; {
		var p listed
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			return all, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		all = append(all, p)
	}
}
