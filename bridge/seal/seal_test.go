package seal_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"drawbridge/bridge/seal"
	"drawbridge/bridge/seal/sealtest"
)

func store(t *testing.T, keys seal.Keys) seal.File {
	return seal.File{Path: filepath.Join(t.TempDir(), "accepted"), Seal: seal.New(keys, "accepted")}
}

// again is the file as the next start of the program has it.
func again(f seal.File, keys seal.Keys) seal.File {
	return seal.File{Path: f.Path, Seal: seal.New(keys, "accepted")}
}

func save(t *testing.T, f seal.File, content string) []byte {
	t.Helper()
	if err := f.Save([]byte(content)); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(f.Path)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestFile(t *testing.T) {
	keys := &sealtest.Keys{}
	f := store(t, keys)
	if b, err := f.Load(); b != nil || err != nil {
		t.Errorf("at the first start: %q, %v", b, err)
	}
	for _, content := range []string{"one", "two\nlines", "", "two\nlines", "two\nlines"} {
		save(t, f, content)
		for _, f := range []seal.File{f, again(f, keys)} {
			if b, err := f.Load(); err != nil || string(b) != content || b == nil {
				t.Errorf("%q, %v; want %q", b, err, content)
			}
		}
	}
	if st, err := os.Stat(f.Path); err != nil || st.Mode() != 0o600 {
		t.Errorf("%v, %v", st.Mode(), err)
	}
	// What did not change needs no new key, which is as long to write.
	before, _ := keys.Get("accepted")
	save(t, f, "two\nlines")
	if after, _ := keys.Get("accepted"); string(after) != string(before) {
		t.Error("the same content has another key")
	}
}

// TestForged changes what another program of the same person can change.
func TestForged(t *testing.T) {
	for name, forge := range map[string]func(t *testing.T, path string, old, now []byte) error{
		"removed": func(t *testing.T, path string, old, now []byte) error { return os.Remove(path) },
		"another text": func(t *testing.T, path string, old, now []byte) error {
			return os.WriteFile(path, append(now, 'x'), 0o600)
		},
		"an older one": func(t *testing.T, path string, old, now []byte) error { return os.WriteFile(path, old, 0o600) },
		"no seal": func(t *testing.T, path string, old, now []byte) error {
			return os.WriteFile(path, []byte("looser"), 0o600)
		},
		"empty":        func(t *testing.T, path string, old, now []byte) error { return os.WriteFile(path, nil, 0o600) },
		"others' mode": func(t *testing.T, path string, old, now []byte) error { return os.Chmod(path, 0o644) },
		"another's": func(t *testing.T, path string, old, now []byte) error {
			elsewhere := store(t, &sealtest.Keys{})
			return os.WriteFile(path, save(t, elsewhere, "looser"), 0o600)
		},
		"no hash": func(t *testing.T, path string, old, now []byte) error {
			return os.WriteFile(path, []byte("drawbridge sealed 1 \nlooser"), 0o600)
		},
	} {
		keys := &sealtest.Keys{}
		f := store(t, keys)
		old := save(t, f, "looser")
		now := save(t, f, "strict")
		if err := forge(t, f.Path, old, now); err != nil {
			t.Fatal(err)
		}
		f = again(f, keys)
		b, err := f.Load()
		if b != nil || err == nil || name != "others' mode" && !errors.Is(err, seal.ErrBroken) {
			t.Errorf("%s: %q, %v", name, b, err)
		}
		if made, err := f.Seal.Made(); !made || err != nil {
			t.Errorf("%s: made %v, %v", name, made, err)
		}
		// The next save puts it in order.
		save(t, f, "stricter")
		if b, err := again(f, keys).Load(); err != nil || string(b) != "stricter" {
			t.Errorf("%s: afterwards %q, %v", name, b, err)
		}
	}
}

// TestNames: the seal of one thing is none of another, under one key too.
func TestNames(t *testing.T) {
	keys := &sealtest.Keys{}
	for _, name := range []string{"a", "b"} {
		if err := keys.Set(name, make([]byte, 32)); err != nil {
			t.Fatal(err)
		}
	}
	var mac string
	a, b := seal.New(keys, "a"), seal.New(keys, "b")
	if err := a.Write([]byte("x"), func(m string) error { mac = m; return nil }); err != nil {
		t.Fatal(err)
	}
	key, err := keys.Get("a")
	if err != nil || keys.Set("b", key) != nil {
		t.Fatal(err)
	}
	if err := a.Check([]byte("x"), mac); err != nil {
		t.Error(err)
	}
	if err := b.Check([]byte("x"), mac); !errors.Is(err, seal.ErrBroken) {
		t.Error(err)
	}
}

// TestFailures: after a full disk, what was there is believed no more, and the new
// content is once it can be written; locked keys keep what was there; a kill between
// the two leaves what cannot be believed.
func TestFailures(t *testing.T) {
	keys := &sealtest.Keys{}
	f := store(t, keys)
	save(t, f, "one")

	full := errors.New("no space")
	for _, s := range []*seal.Seal{f.Seal, seal.New(keys, "accepted")} {
		for range 2 {
			if err := s.Write([]byte("two"), func(string) error { return full }); !errors.Is(err, full) {
				t.Errorf("a full disk: %v", err)
			}
			if b, err := again(f, keys).Load(); b != nil || !errors.Is(err, seal.ErrBroken) {
				t.Errorf("after a full disk: %q, %v", b, err)
			}
		}
		f.Seal = s
		save(t, f, "two")
		if b, err := again(f, keys).Load(); err != nil || string(b) != "two" {
			t.Errorf("with room again: %q, %v", b, err)
		}
		save(t, f, "one")
	}
	// So it is with the first of all.
	other := seal.New(keys, "other")
	if err := other.Write([]byte("two"), func(string) error { return full }); !errors.Is(err, full) {
		t.Errorf("a full disk: %v", err)
	}
	if made, err := other.Made(); !made || err != nil {
		t.Errorf("made %v, %v", made, err)
	}

	keys.Lock(true)
	if err := f.Save([]byte("two")); !errors.Is(err, sealtest.ErrLocked) {
		t.Errorf("locked: %v", err)
	}
	if _, err := again(f, keys).Load(); !errors.Is(err, sealtest.ErrLocked) || errors.Is(err, seal.ErrBroken) {
		t.Errorf("locked: %v", err)
	}
	none := store(t, keys)
	if b, err := none.Load(); b != nil || !errors.Is(err, sealtest.ErrLocked) {
		t.Errorf("locked, and no file: %q, %v", b, err)
	}
	keys.Lock(false)
	if b, err := again(f, keys).Load(); err != nil || string(b) != "one" {
		t.Errorf("unlocked again: %q, %v", b, err)
	}

	func() {
		defer func() { _ = recover() }()
		_ = again(f, keys).Seal.Write([]byte("two"), func(string) error { panic("killed") })
	}()
	if b, err := again(f, keys).Load(); b != nil || !errors.Is(err, seal.ErrBroken) {
		t.Errorf("killed: %q, %v", b, err)
	}
}

// TestAmong: a place that is new counts as lost, as long as another one was sealed.
func TestAmong(t *testing.T) {
	keys := &sealtest.Keys{}
	at := func(place, name string) *seal.Seal {
		return seal.Among(keys, name+place, "a"+place, "b"+place)
	}
	made := func(place, name string, want bool) {
		t.Helper()
		if is, err := at(place, name).Made(); is != want || err != nil {
			t.Errorf("%s%s: made %v, %v", name, place, is, err)
		}
	}
	put := func(string) error { return nil }
	made("1", "a", false)
	if err := at("1", "a").Write([]byte("x"), put); err != nil {
		t.Fatal(err)
	}
	made("1", "a", true)
	made("1", "b", false) // it comes later, in the same place
	made("2", "a", true)
	made("2", "b", true)
	// What is sealed in the new place makes it no better.
	if err := at("2", "b").Write([]byte("x"), put); err != nil {
		t.Fatal(err)
	}
	made("2", "a", true)
	f := seal.File{Path: filepath.Join(t.TempDir(), "a"), Seal: at("2", "a")}
	if b, err := f.Load(); b != nil || !errors.Is(err, seal.ErrBroken) {
		t.Errorf("%q, %v", b, err)
	}
	keys.Lock(true)
	if _, err := at("2", "a").Made(); !errors.Is(err, sealtest.ErrLocked) {
		t.Error(err)
	}
}

func FuzzFile(f *testing.F) {
	f.Add([]byte("drawbridge sealed 1 00\nx"))
	f.Add([]byte("drawbridge sealed 1 " + strings.Repeat("0", 64) + "\n"))
	f.Add([]byte("\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		keys := &sealtest.Keys{}
		file := seal.File{Path: filepath.Join(t.TempDir(), "f"), Seal: seal.New(keys, "accepted")}
		good := save(t, file, "content")
		if err := os.WriteFile(file.Path, b, 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := again(file, keys).Load(); err == nil && string(b) != string(good) {
			t.Errorf("%q was taken for %q", b, got)
		}
	})
}
