//go:build standin

package standin

import (
	"syscall"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego/objc"

	"drawbridge/internal/quartz"
)

// TestFaultsOfSignals: what GNUstep would do with the signal of ended children, on
// Go's small stacks, is kept from it.
func TestFaultsOfSignals(t *testing.T) {
	handler := func() (a struct{ handler, flags, restorer, mask uintptr }) { // the kernel's struct sigaction
		if _, _, errno := syscall.RawSyscall6(syscall.SYS_RT_SIGACTION, uintptr(syscall.SIGCHLD), 0, uintptr(unsafe.Pointer(&a)), unsafe.Sizeof(a.mask), 0, 0); errno != 0 {
			t.Fatal(errno)
		}
		return a
	}
	before := handler()
	for _, framework := range []string{"Foundation", "AppKit"} {
		if err := quartz.Open(framework).Err(); err != nil {
			t.Fatal(err)
		}
	}
	objc.ID(objc.GetClass("NSTask")).Send(objc.RegisterName("class"))
	const onStack = 0x08000000 // SA_ONSTACK
	if now := handler(); now.handler != before.handler || now.flags&onStack == 0 {
		t.Errorf("the handler is %+v, was %+v", now, before)
	}
}
