//go:build darwin || standin

package quartz

import (
	"bytes"
	"fmt"
	"unsafe"
)

// Of CFString.h and CFNumber.h.
const (
	kCFStringEncodingUTF8 uint32 = 134217984
	kCFNumberSInt64Type   int    = 4
)

// Release gives a reference back, if there is one.
func Release(r Ref) {
	if r != 0 {
		cfRelease(r)
	}
}

// NewString makes a string that the caller releases.
func NewString(s string) Ref { return cfStringCreateWithCString(0, s, kCFStringEncodingUTF8) }

// String reads a string of less than 1024 bytes, a name as a rule.
func String(r Ref) string {
	if r == 0 {
		return ""
	}
	return longString(r, 1024)
}

// longString reads a string of less than size bytes.
func longString(r Ref, size int) string {
	buf := make([]byte, size)
	if !cfStringGetCString(r, &buf[0], len(buf), kCFStringEncodingUTF8) {
		return ""
	}
	s, _, _ := bytes.Cut(buf, []byte{0})
	return string(s)
}

// lookup finds what a dictionary holds under a key; 0 if nothing.
func lookup(dict Ref, key string) Ref {
	k := NewString(key)
	defer Release(k)
	return cfDictionaryGetValue(dict, k)
}

// Number reads a whole number; not ok for what is none.
func Number(r Ref) (n int64, ok bool) {
	if r == 0 || cfGetTypeID(r) != cfNumberGetTypeID() {
		return 0, false
	}
	ok = cfNumberGetValue(r, kCFNumberSInt64Type, unsafe.Pointer(&n))
	return n, ok
}

// ProcessName names a process for people.
func ProcessName(pid int) string {
	var buf [256]byte
	n := procName(int32(pid), &buf[0], uint32(len(buf)))
	if n <= 0 {
		return fmt.Sprintf("process %d", pid)
	}
	return fmt.Sprintf("%s (process %d)", buf[:n], pid)
}

// SystemVersion is the version of macOS with its build, such as "15.1 (24B83)";
// empty where it does not tell.
func SystemVersion() string {
	version, build := sysctl("kern.osproductversion"), sysctl("kern.osversion")
	if version == "" {
		return ""
	}
	return version + " (" + build + ")"
}

func sysctl(name string) string {
	var buf [64]byte
	size := uint(len(buf))
	if sysctlByName(name, &buf[0], &size, nil, 0) != 0 {
		return ""
	}
	s, _, _ := bytes.Cut(buf[:], []byte{0})
	return string(s)
}
