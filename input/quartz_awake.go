//go:build darwin || standin

package input

import (
	"context"
	"fmt"

	"drawbridge/internal/quartz"
)

var (
	_ Waker = (*quartzDriver)(nil)
	_ Waker = (*appleScript)(nil)
)

// KeepAwake implements Waker.
func (d *quartzDriver) KeepAwake(context.Context) (release func(), err error) { return keepAwake() }

// KeepAwake implements Waker.
func (d *appleScript) KeepAwake(context.Context) (release func(), err error) { return keepAwake() }

// awakeReason is what macOS shows of it, by `pmset -g assertions` for one.
const awakeReason = "Drawbridge: a program uses the desktop"

// keepAwake holds an assertion of power management: while it is held neither display
// nor system goes to sleep for want of a person. It lights no display that sleeps
// already. macOS ends the assertions of a process that dies.
func keepAwake() (release func(), err error) {
	if err := loadPower(); err != nil {
		return func() {}, fmt.Errorf("keep the display awake: %w", err)
	}
	kind, why := quartz.NewString(preventDisplaySleep), quartz.NewString(awakeReason)
	defer quartz.Release(kind)
	defer quartz.Release(why)
	var id uint32
	if status := ioPMAssertionCreateWithName(kind, kIOPMAssertionLevelOn, why, &id); status != 0 {
		return func() {}, fmt.Errorf("keep the display awake: power management answers %#x", uint32(status))
	}
	return func() { ioPMAssertionRelease(id) }, nil // it fails only for what is no assertion
}
