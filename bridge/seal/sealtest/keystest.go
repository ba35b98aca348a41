package sealtest

import (
	"bytes"
	"slices"
	"testing"

	"drawbridge/bridge/seal"
)

var _ seal.Keys = (*Keys)(nil)

// Test holds keys to what seal.Keys promises.
func Test(t *testing.T, k seal.Keys) {
	t.Helper()
	get := func(name string, want []byte) {
		t.Helper()
		if got, err := k.Get(name); err != nil || !bytes.Equal(got, want) || (got == nil) != (want == nil) {
			t.Errorf("%q holds %q, %v; want %q", name, got, err, want)
		}
	}
	set := func(name string, secret []byte) {
		t.Helper()
		if err := k.Set(name, secret); err != nil {
			t.Fatal(err)
		}
	}
	remove := func(name string, want bool) {
		t.Helper()
		if is, err := k.Remove(name); err != nil || is != want {
			t.Errorf("removing %q: %v, %v", name, is, err)
		}
	}
	names := func(want ...string) {
		t.Helper()
		got, err := k.Names()
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("kept is %q, %v; want %q", got, err, want)
		}
	}
	names()
	get("a", nil)
	remove("a", false)
	binary := []byte{0, 1, '\n', '\t', 255, 0}
	set("a", binary)
	set("Ünïcode /a b", []byte("two"))
	names("a", "Ünïcode /a b")
	get("a", binary)
	get("Ünïcode /a b", []byte("two"))
	set("a", []byte{})
	get("a", []byte{})
	set("a", []byte("three"))
	get("a", []byte("three"))
	get("b", nil)
	remove("a", true)
	get("a", nil)
	get("Ünïcode /a b", []byte("two"))
	remove("Ünïcode /a b", true)
	names()
}
