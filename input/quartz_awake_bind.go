//go:build darwin || standin

package input

import (
	"sync"

	"drawbridge/internal/quartz"
)

// What is used of IOKit's power management (IOPMLib.h).

var (
	ioPMAssertionCreateWithName func(kind quartz.Ref, level uint32, name quartz.Ref, id *uint32) int32
	ioPMAssertionRelease        func(id uint32) int32
)

const kIOPMAssertionLevelOn uint32 = 255

// preventDisplaySleep is kIOPMAssertionTypePreventUserIdleDisplaySleep: the header
// makes it a string of the program's own, so no framework exports it.
const preventDisplaySleep = "PreventUserIdleDisplaySleep"

// loadPower binds them, once. Without them the display sleeps as it likes, and all
// else works.
var loadPower = sync.OnceValue(func() error {
	if err := quartz.Load(); err != nil {
		return err
	}
	io := quartz.Open("IOKit")
	io.Func(&ioPMAssertionCreateWithName, "IOPMAssertionCreateWithName")
	io.Func(&ioPMAssertionRelease, "IOPMAssertionRelease")
	return io.Err()
})
