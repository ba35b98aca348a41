//go:build darwin || standin

package input_test

import (
	"runtime"

	"drawbridge/internal/quartz"
)

func init() {
	runtime.LockOSThread()
	onFirstThread = func(run func() int) (code int) {
		quartz.Loop(func() { code = run() })
		return code
	}
}
