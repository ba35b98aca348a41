package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"drawbridge/bridge"
	"drawbridge/bridge/control"
	"drawbridge/bridge/desk"
	"drawbridge/bridge/hostllm"
	"drawbridge/bridge/measured"
	"drawbridge/bridge/private"
	"drawbridge/bridge/token"
	"drawbridge/packaging/login"
)

// A tree says what of a directory is Drawbridge's own: files by their names, and
// directories with what is theirs.
type tree struct {
	files []string
	named *regexp.Regexp // files as well; nil: none
	dirs  []subtree
}

type subtree struct {
	named *regexp.Regexp
	tree  tree
}

// anyFile is every file: of a copy that an upgrade made, nothing is anybody else's.
var anyFile = regexp.MustCompile(``)

func exactly(name string) *regexp.Regexp {
	return regexp.MustCompile(`^` + regexp.QuoteMeta(name) + `$`)
}

// stateTree is what a state directory holds.
var stateTree = tree{
	files: []string{
		"lock", formatName, underWay, logName, logName + ".1", journalName, leaseName, acceptedName, rulesName,
		token.FileName, token.DefaultFileName, token.LockName, bridge.EndpointFile, control.Name, measured.FileName,
		hostllm.StateFile, hostllm.GatewayFile, desk.StateFile,
	},
	named: private.Leftover,
	dirs: []subtree{
		{exactly(filepath.Base(auditDir("/"))), tree{named: regexp.MustCompile(`^audit(-[0-9]{20})?\.(jsonl|head|lock|head\.new)$`)}},
		{exactly(picturesName), tree{named: pictureName}},
		{exactly(desk.VirtualDir), tree{files: []string{"jwmrc", "Xauthority"}, named: private.Leftover}},
		{regexp.MustCompile(`^\.?` + backupPrefix + `[0-9]+(-[0-9]+)?$`), tree{named: anyFile}},
	},
}

// logsTree is what launchd keeps of the agent's output.
var logsTree = tree{files: []string{login.Label + ".out.log", login.Label + ".err.log"}}

// remove removes what is Drawbridge's of a directory, and the directory itself if
// nothing else is in it. It returns what stays.
func (t tree) remove(dir string) (kept []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(dir, e.Name())
		if e.IsDir() {
			i := slices.IndexFunc(t.dirs, func(s subtree) bool { return s.named.MatchString(e.Name()) })
			if i < 0 {
				kept = append(kept, path)
				continue
			}
			below, failed := t.dirs[i].tree.remove(path)
			kept, err = append(kept, below...), errors.Join(err, failed)
			continue
		}
		if !slices.Contains(t.files, e.Name()) && (t.named == nil || !t.named.MatchString(e.Name())) {
			kept = append(kept, path)
			continue
		}
		if failed := os.Remove(path); !errors.Is(failed, fs.ErrNotExist) {
			err = errors.Join(err, failed)
		}
	}
	if len(kept) == 0 && err == nil {
		err = os.Remove(dir)
	}
	return kept, err
}

// purge removes what is Drawbridge's of a directory, which a link may lead to, and
// the link with it. What is not Drawbridge's stays, and is an error that names it.
func (t tree) purge(dir string) error {
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return err
	}
	kept, err := t.remove(real)
	if err == nil && len(kept) > 0 {
		if more := len(kept) - 5; more > 0 {
			kept = append(kept[:5], fmt.Sprintf("and %d more", more))
		}
		err = fmt.Errorf("everything of Drawbridge's in it is removed; what is not stays: %s", strings.Join(kept, ", "))
	}
	if err == nil && real != dir {
		err = os.Remove(dir)
	}
	return err
}
