//go:build darwin || standin

package input

import (
	"unsafe"

	"drawbridge/internal/quartz"
)

// LoadQuartz binds the frameworks' functions; later calls return the first one's
// result.
func LoadQuartz() error { return loadQuartz() }

// What macOS grants. These need [LoadQuartz]. To look never prompts, to ask does,
// once; both report whether it is granted.

// QuartzTrusted: Accessibility.
func QuartzTrusted() bool { return axIsProcessTrusted() }

// QuartzMayPost: posting events. macOS reports success to who may not, and drops
// them.
func QuartzMayPost() bool { return cgPreflightPostEventAccess() }

// QuartzMayListen: Input Monitoring.
func QuartzMayListen() bool { return cgPreflightListenEventAccess() }

// QuartzAskTrust asks for Accessibility.
func QuartzAskTrust() bool {
	keys, values := [1]quartz.Ref{kAXTrustedCheckOptionPrompt}, [1]quartz.Ref{kCFBooleanTrue}
	options := cfDictionaryCreate(0, unsafe.Pointer(&keys), unsafe.Pointer(&values), 1, kCFTypeDictionaryKeyCallBacks, kCFTypeDictionaryValueCallBacks)
	defer quartz.Release(options)
	return axIsProcessTrustedWithOptions(options)
}

// QuartzAskPost asks for the posting of events.
func QuartzAskPost() bool { return cgRequestPostEventAccess() }

// QuartzAskListen asks for Input Monitoring.
func QuartzAskListen() bool { return cgRequestListenEventAccess() }
