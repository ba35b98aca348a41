package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/app/config"
)

func TestLogFormats(t *testing.T) {
	for format, isJSON := range map[string]bool{"auto": true, "json": true, "console": false} {
		dir := t.TempDir()
		var b bytes.Buffer
		log, file, err := newLog(config.Log{Level: "warn", Format: format}, &b, false, dir)
		if err != nil {
			t.Fatal(err)
		}
		log.Info().Msg("quiet")
		log.Warn().Str("k", "v").Msg("loud")
		file.Close()
		if strings.Contains(b.String(), "quiet") || !strings.Contains(b.String(), "loud") {
			t.Errorf("%s at level warn: %q", format, b.String())
		}
		if json.Valid(b.Bytes()) != isJSON {
			t.Errorf("%s: %q; want JSON: %v", format, b.String(), isJSON)
		}
		kept, err := os.ReadFile(filepath.Join(dir, logName))
		if err != nil || !json.Valid(kept) || !bytes.Contains(kept, []byte(`"message":"loud"`)) {
			t.Errorf("%s: the file holds %q, %v", format, kept, err)
		}
		if info, _ := os.Stat(filepath.Join(dir, logName)); info.Mode().Perm() != 0o600 {
			t.Errorf("the file has mode %v", info.Mode())
		}
	}
}

func TestLogFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l, err := openLogFile(path, 100)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.Repeat("x", 59) + "\n"
	for range 5 {
		if _, err := l.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	l.Close()
	for _, p := range []string{path, path + ".1"} {
		if b, err := os.ReadFile(p); err != nil || string(b) != line {
			t.Errorf("%s holds %d bytes, %v; want one whole line", p, len(b), err)
		}
	}
	// It goes on where it was.
	if l, err = openLogFile(path, 100); err != nil || l.size != int64(len(line)) {
		t.Errorf("opened again: size %d, %v", l.size, err)
	}
	l.Close()
}

func TestLogFileFollowsNoLink(t *testing.T) {
	dir := t.TempDir()
	target := filepath.Join(dir, "target")
	if err := os.Symlink(target, filepath.Join(dir, logName)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := newLog(config.Log{Level: "info", Format: "json"}, &bytes.Buffer{}, false, dir); err == nil {
		t.Error("a link was followed")
	}
	if _, err := os.Lstat(target); err == nil {
		t.Error("the link's target was made")
	}
}
