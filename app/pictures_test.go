package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"
)

func TestPictureDir(t *testing.T) {
	c := &cli{}
	c.flags.state = t.TempDir()
	dir, prefix, err := c.pictureDir()
	if err != nil || filepath.Dir(dir) != c.flags.state || prefix == "" {
		t.Fatal(dir, prefix, err)
	}
	if st, err := os.Stat(dir); err != nil || st.Mode().Perm() != 0o700 {
		t.Fatal(st.Mode(), err)
	}
	add := func(name string, size int, age time.Duration) {
		t.Helper()
		path := filepath.Join(dir, name)
		at := time.Now().Add(-age)
		if err := os.WriteFile(path, make([]byte, size), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(path, at, at); err != nil {
			t.Fatal(err)
		}
	}
	left := func() map[string]bool {
		t.Helper()
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		names := map[string]bool{}
		for _, e := range entries {
			names[e.Name()] = true
		}
		return names
	}
	add("theirs", 1, 10000*time.Hour) // a person's own stays
	add("my-cat.png", 1, 10000*time.Hour)
	for i := range keptPictures + 10 {
		add(fmt.Sprintf("20260101-000000-a-%02d.png", i), 10, time.Duration(1000-i)*time.Hour)
	}
	if _, _, err := c.pictureDir(); err != nil {
		t.Fatal(err)
	}
	if names := left(); len(names) != keptPictures+1 || !names["theirs"] || !names["my-cat.png"] || names["20260101-000000-a-10.png"] || !names["20260101-000000-a-11.png"] {
		t.Errorf("after too many: %v", names)
	}
	add("20260102-000000-big-1.png", keptBytes-100, time.Hour)
	if _, _, err := c.pictureDir(); err != nil {
		t.Fatal(err)
	}
	if names := left(); len(names) != 13 || !names["20260102-000000-big-1.png"] || !names["20260101-000000-a-59.png"] || names["20260101-000000-a-49.png"] {
		t.Errorf("after too much: %v", names)
	}
}
