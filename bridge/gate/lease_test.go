package gate

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
)

// TestMain lets the test binary be the other process of the lease tests.
func TestMain(m *testing.M) {
	if path := os.Getenv("LEASE_HOLD"); path != "" {
		if _, err := NewLease(path, 1).Acquire(context.Background(), "theirs", nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("held")
		bufio.NewReader(os.Stdin).ReadString('\n')
		os.Exit(0) // without giving it back
	}
	os.Exit(m.Run())
}

func acquire(t *testing.T, l *Lease, client string) func() {
	t.Helper()
	release, err := l.Acquire(t.Context(), client, nil)
	if err != nil {
		t.Fatal(err)
	}
	return release
}

func TestLeaseIsFair(t *testing.T) {
	l := NewLease(filepath.Join(t.TempDir(), "lease"), 16)
	release := acquire(t, l, "first")
	var mu sync.Mutex
	var order []int
	var wg sync.WaitGroup
	for i := range 10 {
		told := make(chan string, 1)
		wg.Go(func() {
			release, err := l.Acquire(t.Context(), fmt.Sprint(i), func(who string) { told <- who })
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			order = append(order, i)
			mu.Unlock()
			release()
			release() // twice is once
		})
		if who := <-told; who != `client "first"` {
			t.Errorf("holder %q", who)
		}
	}
	if who, n := l.Holder(); who != "first" || n != 10 {
		t.Errorf("holder %q, %d wait", who, n)
	}
	release()
	wg.Wait()
	if got := fmt.Sprint(order); got != "[0 1 2 3 4 5 6 7 8 9]" {
		t.Errorf("served in order %s", got)
	}
	if who, n := l.Holder(); who != "" || n != 0 {
		t.Errorf("left: holder %q, %d wait", who, n)
	}
}

// TestLeaseIsHandedOver: between two holders the desktop is never free for one
// who did not wait.
func TestLeaseIsHandedOver(t *testing.T) {
	l := NewLease(filepath.Join(t.TempDir(), "lease"), 1)
	release := acquire(t, l, "first")
	told, finish, ended := make(chan string, 1), make(chan struct{}), make(chan error, 1)
	go func() {
		release, err := l.Acquire(t.Context(), "second", func(who string) { told <- who })
		if err == nil {
			<-finish
			release()
		}
		ended <- err
	}()
	<-told
	release()
	l.mu.Lock()
	held := l.held
	l.mu.Unlock()
	if !held {
		t.Error("free though one waits")
	}
	close(finish)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestLeaseQueueFullAndCancel(t *testing.T) {
	l := NewLease(filepath.Join(t.TempDir(), "lease"), 1)
	release := acquire(t, l, "claude")
	ctx, cancel := context.WithCancelCause(t.Context())
	told := make(chan string, 1)
	ended := make(chan error, 1)
	go func() {
		_, err := l.Acquire(ctx, "codex", func(who string) { told <- who })
		ended <- err
	}()
	<-told
	if _, err := l.Acquire(t.Context(), "pi", nil); !errors.Is(err, ErrLeaseQueueFull) || !strings.Contains(err.Error(), `client "claude" holds it`) {
		t.Errorf("%v", err)
	}
	why := errors.New("stopped")
	cancel(why)
	if err := <-ended; !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	if _, n := l.Holder(); n != 0 {
		t.Errorf("%d wait", n)
	}
	if _, err := l.Acquire(ctx, "codex", nil); !errors.Is(err, why) {
		t.Errorf("%v", err)
	}
	release()
	acquire(t, l, "codex")()
}

func TestLeaseOverProcesses(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "LEASE_HOLD="+path)
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if line, _ := bufio.NewReader(out).ReadString('\n'); line != "held\n" {
		t.Fatalf("the other process says %q", line)
	}
	l := NewLease(path, 4)
	told := make(chan string, 1)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		_, err := l.Acquire(ctx, "ours", func(who string) { told <- who })
		ended <- err
	}()
	if who, want := <-told, fmt.Sprintf(`client "theirs" of process %d`, cmd.Process.Pid); who != want {
		t.Errorf("holder %q, want %q", who, want)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	got := make(chan error, 1)
	go func() {
		release, err := l.Acquire(t.Context(), "ours", func(string) { in.Close() }) // and the other one dies
		if err == nil {
			release()
		}
		got <- err
	}()
	if err := <-got; err != nil {
		t.Errorf("a dead process kept the desktop: %v", err)
	}
	cmd.Wait()
	if b, err := os.ReadFile(path); err != nil || len(b) != 0 {
		t.Errorf("given back, and the file still says %q, %v", b, err)
	}
}

// TestLeaseNeverTwice has many goroutines over two leases of one file, as two
// processes would.
func TestLeaseNeverTwice(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lease")
	leases := []*Lease{NewLease(path, 100), NewLease(path, 100)}
	var wg sync.WaitGroup
	var mu sync.Mutex
	for i := range 20 {
		wg.Go(func() {
			ctx := t.Context()
			if i%5 == 4 {
				c, cancel := context.WithCancel(ctx)
				cancel()
				ctx = c
			}
			release, err := leases[i%2].Acquire(ctx, "c", nil)
			if err != nil {
				return
			}
			if !mu.TryLock() {
				t.Error("two hold the desktop")
				release()
				return
			}
			runtime.Gosched()
			mu.Unlock()
			release()
		})
	}
	wg.Wait()
}
