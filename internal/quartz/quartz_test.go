//go:build standin

package quartz

import (
	"context"
	"errors"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"
)

func init() { runtime.LockOSThread() }

func TestMain(m *testing.M) {
	code := 0
	Loop(func() { code = m.Run() })
	os.Exit(code)
}

func TestQuartzLibraryTellsWhatIsMissing(t *testing.T) {
	l := Open("CoreGraphics")
	var f func()
	var v Ref
	var a uintptr
	l.Func(&f, "CGNoSuchFunction")
	l.Var(&v, "kCGNoSuchVariable")
	l.Address(&a, "CGMainDisplayID")
	err := l.Err()
	if err == nil || !strings.Contains(err.Error(), "CoreGraphics has no CGNoSuchFunction") || !strings.Contains(err.Error(), "kCGNoSuchVariable") {
		t.Error(err)
	}
	if f != nil || v != 0 || a == 0 {
		t.Errorf("f is set: %v, v %d, a %d", f != nil, v, a)
	}
	l = Open("NoSuchFramework")
	l.Func(&f, "NoSuchFunction")
	if err := l.Err(); err == nil || !strings.HasPrefix(err.Error(), "load NoSuchFramework: ") || strings.Contains(err.Error(), "NoSuchFunction") {
		t.Error(err)
	}
}

func TestQuartzOnMain(t *testing.T) {
	if err := Load(); err != nil {
		t.Fatal(err)
	}
	// What is asked for runs in order, on one thread.
	var ran []int
	for i := range 3 {
		if err := OnMain(t.Context(), func() { ran = append(ran, i) }); err != nil {
			t.Fatal(err)
		}
	}
	if len(ran) != 3 || ran[2] != 2 {
		t.Errorf("ran %v", ran)
	}
	// Whoever has no time waits no longer, and what it asked for runs all the same.
	gate, late := make(chan struct{}), make(chan struct{})
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if err := OnMain(ctx, func() { <-gate; close(late) }); !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	close(gate)
	<-late
	serving.Store(false)
	defer serving.Store(true)
	if err := OnMain(t.Context(), func() {}); !errors.Is(err, ErrNoLoop) {
		t.Errorf("without a loop: %v", err)
	}
	if err := TakeOver(func() {}, func() {}); !errors.Is(err, ErrNoLoop) {
		t.Errorf("taken over without a loop: %v", err)
	}
}

func TestQuartzStrings(t *testing.T) {
	if err := Load(); err != nil {
		t.Fatal(err)
	}
	s := NewString("Ünïcode")
	defer Release(s)
	if got := String(s); got != "Ünïcode" {
		t.Error(got)
	}
	long := NewString(strings.Repeat("x", 2000))
	defer Release(long)
	if String(0) != "" || String(long) != "" {
		t.Error("nothing, or what is too long, is some string")
	}
	Release(0)
	if n, ok := Number(s); ok {
		t.Errorf("a string is the number %d", n)
	}
	if boolean(s, true) {
		t.Error("a string is true")
	}
	if got := ProcessName(os.Getpid()); !strings.HasPrefix(got, "quartz.test (process ") {
		t.Error(got)
	}
}

// A thread ends when it is told to, also before its loop has begun.
func TestQuartzThread(t *testing.T) {
	if err := Load(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		source := cfRunLoopSourceCreate(0, 0, &CFRunLoopSourceContext{Perform: callbacks().nothing})
		StartThread(source).Close()
		Release(source)
	}
}
