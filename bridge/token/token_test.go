package token

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

func open(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestAddFindRevoke(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	tok, err := s.Add("codex", Client, "no")
	if err != nil {
		t.Fatal(err)
	}
	if b, err := base64.RawURLEncoding.DecodeString(tok); err != nil || len(b) != 32 {
		t.Errorf("the token is %d bytes, %v; want 32 random bytes in base64url", len(b), err)
	}
	e, ok := s.Find(tok)
	if !ok || e.Name != "codex" || e.Role != Client || e.Images != "no" || e.Created.IsZero() || !s.Valid(e) {
		t.Errorf("found %+v, %t", e, ok)
	}
	for _, wrong := range []string{"", tok + "x", tok[:42], e.Hash} {
		if _, ok := s.Find(wrong); ok {
			t.Errorf("%q was found", wrong)
		}
	}
	raw, err := os.ReadFile(filepath.Join(dir, FileName))
	if err != nil || strings.Contains(string(raw), tok) {
		t.Errorf("the file holds the token itself (%v)", err)
	}
	if _, err := s.Add("codex", Client, ""); !errors.Is(err, ErrExists) {
		t.Errorf("a second token of the name: %v", err)
	}
	if _, err := s.Add("codex", Host, ""); err != nil {
		t.Errorf("a host of the same name: %v", err)
	}
	// Another process sees it, and its revocation is seen here.
	other := open(t, dir)
	if _, ok := other.Find(tok); !ok {
		t.Error("another store does not know the token")
	}
	if err := other.Revoke("codex", Client); err != nil {
		t.Fatal(err)
	}
	if changed, err := s.Refresh(); !changed || err != nil {
		t.Errorf("refresh: %t, %v", changed, err)
	}
	if _, ok := s.Find(tok); ok || s.Valid(e) {
		t.Error("a revoked token is still good")
	}
	if err := s.Revoke("codex", Client); !errors.Is(err, ErrUnknown) {
		t.Errorf("revoked twice: %v", err)
	}
	list, err := s.List()
	if err != nil || len(list) != 1 || list[0].Role != Host {
		t.Errorf("list %+v, %v", list, err)
	}
}

func TestAddRefuses(t *testing.T) {
	s := open(t, t.TempDir())
	for _, c := range []struct {
		name, images string
		role         Role
	}{
		{"", "", Client}, {"a b", "", Client}, {"ä", "", Client}, {strings.Repeat("x", 65), "", Client}, {"a/b", "", Client}, {"a\n", "", Client},
		{"a", "maybe", Client}, {"a", "", "admin"},
	} {
		if _, err := s.Add(c.name, c.role, c.images); err == nil {
			t.Errorf("%+v was taken", c)
		}
	}
}

func TestStoresTogether(t *testing.T) {
	dir := t.TempDir()
	var wg sync.WaitGroup
	for i := range 8 {
		s := open(t, dir)
		wg.Go(func() {
			if _, err := s.Add("c"+string(rune('0'+i)), Client, ""); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if list, err := open(t, dir).List(); err != nil || len(list) != 8 {
		t.Errorf("%d entries, %v: an addition was lost", len(list), err)
	}
}

func TestBadFiles(t *testing.T) {
	for _, c := range []struct {
		name, says string
		make       func(path string) error
	}{
		{"others may read", "chmod 600 it, and revoke what you do not know there", func(p string) error { return os.WriteFile(p, []byte(`{"v":1,"tokens":[]}`), 0o644) }},
		{"link", "link", func(p string) error {
			real := p + ".real"
			if err := os.WriteFile(real, []byte(`{"v":1,"tokens":[]}`), 0o600); err != nil {
				return err
			}
			return os.Symlink(real, p)
		}},
		{"directory", "regular file", func(p string) error { return os.Mkdir(p, 0o700) }},
		{"broken", "cannot be read", func(p string) error { return os.WriteFile(p, []byte(`{"v":1,"tok`), 0o600) }},
		{"unknown field", "cannot be read", func(p string) error { return os.WriteFile(p, []byte(`{"v":1,"tokens":[],"x":1}`), 0o600) }},
		{"newer", "version 2", func(p string) error { return os.WriteFile(p, []byte(`{"v":2,"tokens":[]}`), 0o600) }},
		{"short hash", "SHA-256", func(p string) error {
			return os.WriteFile(p, []byte(`{"v":1,"tokens":[{"name":"a","role":"client","sha256":"00","images":"","created":"2026-01-01T00:00:00Z"}]}`), 0o600)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.make(filepath.Join(dir, FileName)); err != nil {
				t.Fatal(err)
			}
			if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("%v; want …%s…", err, c.says)
			}
		})
	}
}

// TestBrokenLater: a file that can no longer be read lets nobody in.
func TestBrokenLater(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	tok, err := s.Add("a", Client, "")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, FileName)
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refresh(); err == nil {
		t.Error("no error")
	}
	if _, ok := s.Find(tok); ok {
		t.Error("a token is good though the file is broken")
	}
	if err := os.WriteFile(path, good, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Find(tok); !ok {
		t.Error("the mended file does not count")
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Refresh(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Find(tok); ok {
		t.Error("a token is good though the file is gone")
	}
}

func TestDefault(t *testing.T) {
	dir := t.TempDir()
	if _, err := ReadDefault(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a token: %v", err)
	}
	s := open(t, dir)
	for range 2 {
		if err := s.EnsureDefault(); err != nil {
			t.Fatal(err)
		}
	}
	tok, err := ReadDefault(dir)
	if err != nil {
		t.Fatal(err)
	}
	if e, ok := s.Find(tok); !ok || e.Name != DefaultName || e.Role != Client {
		t.Errorf("the default token finds %+v, %t", e, ok)
	}
	st, err := os.Stat(filepath.Join(dir, DefaultFileName))
	if err != nil || st.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", st.Mode(), err)
	}
	// A lost token file is made again, with a new token.
	if err := os.Remove(filepath.Join(dir, DefaultFileName)); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureDefault(); err != nil {
		t.Fatal(err)
	}
	if _, ok := s.Find(tok); ok {
		t.Error("the lost token is still good")
	}
	// A revoked one is not.
	if err := s.Revoke(DefaultName, Client); err != nil {
		t.Fatal(err)
	}
	if err := s.EnsureDefault(); err != nil {
		t.Fatal(err)
	}
	if list, _ := s.List(); len(list) != 0 {
		t.Errorf("a revoked default came back: %+v", list)
	}
}
