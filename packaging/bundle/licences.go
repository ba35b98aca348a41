package bundle

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Module is one module that is linked in.
type Module struct {
	Path, Version string
	Dir           string // where its source is
}

// Licences joins the licence texts of modules into one text, in the order of
// their paths. A module without one is an error: it may not be handed out.
func Licences(modules []Module) ([]byte, error) {
	modules = slices.Clone(modules)
	slices.SortFunc(modules, func(a, b Module) int { return cmp.Compare(a.Path, b.Path) })
	var out bytes.Buffer
	out.WriteString("Drawbridge contains the following software.\n")
	var missing error
	for _, m := range modules {
		files, err := licenceFiles(m.Dir)
		if err != nil {
			return nil, err
		}
		if len(files) == 0 {
			missing = errors.Join(missing, fmt.Errorf("%s has no licence file", m.Path))
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				return nil, err
			}
			fmt.Fprintf(&out, "\n%s\n%s %s: %s\n\n%s\n", strings.Repeat("=", 78), m.Path, m.Version, filepath.Base(f), bytes.TrimSpace(text))
		}
	}
	return out.Bytes(), missing
}

func licenceFiles(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		name := strings.ToUpper(e.Name())
		for _, word := range []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"} {
			if strings.HasPrefix(name, word) && !e.IsDir() && !strings.HasSuffix(name, ".GO") {
				out = append(out, filepath.Join(dir, e.Name()))
				break
			}
		}
	}
	return out, nil
}
