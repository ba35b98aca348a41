//go:build standin

package standin

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebitengine/purego"

	"drawbridge/internal/quartz"
)

// TestFaultsOfAssertions uses power management as IOPMLib.h does not allow.
func TestFaultsOfAssertions(t *testing.T) {
	if err := quartz.Load(); err != nil {
		t.Fatal(err)
	}
	d, err := Open("", "", "1:0,0,1280,800,1,0,0", filepath.Join(t.TempDir(), "noted"))
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	var create func(kind quartz.Ref, level uint32, name quartz.Ref, id *uint32) int32
	var release func(id uint32) int32
	purego.RegisterLibFunc(&create, purego.RTLD_DEFAULT, "IOPMAssertionCreateWithName")
	purego.RegisterLibFunc(&release, purego.RTLD_DEFAULT, "IOPMAssertionRelease")
	kind, other, name := quartz.NewString("PreventUserIdleDisplaySleep"), quartz.NewString("PreventTea"), quartz.NewString("a test")
	defer quartz.Release(kind)
	defer quartz.Release(other)
	defer quartz.Release(name)

	// IOReturn.h: kIOReturnBadArgument, kIOReturnNotPermitted, kIOReturnNotFound.
	const badArgument, notPermitted, notFound = 0xe00002c2, 0xe00002e2, 0xe00002f0
	status := func(what string, got int32, want uint32) {
		t.Helper()
		if uint32(got) != want {
			t.Errorf("%s: %#x, want %#x", what, uint32(got), want)
		}
	}
	var first, second uint32
	status("no type", create(0, 255, name, &first), badArgument)
	status("no name", create(kind, 255, 0, &first), badArgument)
	status("an unknown type", create(other, 255, name, &first), badArgument)
	status("an unknown level", create(kind, 1, name, &first), badArgument)
	status("nowhere to put the id", create(kind, 255, name, nil), badArgument)
	status("nothing is held", release(0), notFound)
	status("one", create(kind, 255, name, &first), 0)
	status("another", create(kind, 0, name, &second), 0)
	if first == 0 || second == 0 || first == second {
		t.Errorf("ids %d and %d", first, second)
	}
	status("the first", release(first), 0)
	status("the first again", release(first), notFound)
	if err := d.Set("power", "0"); err != nil {
		t.Fatal(err)
	}
	status("refused", create(kind, 255, name, &first), notPermitted)
	status("the second", release(second), 0)
	want := []string{"awake held: a test", "awake not held: a test", "awake given back", "awake given back"}
	if got, err := d.Posted(); err != nil || !slices.Equal(got, want) {
		t.Errorf("noted %q, %v", got, err)
	}
}
