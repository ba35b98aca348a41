//go:build linux

package virtual

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"
)

// spawner starts children that the kernel ends with us. It does so for the
// *thread* that started them, so one goroutine keeps a thread for all of them.
type spawner struct {
	starts chan func()
	done   chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{starts: make(chan func()), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		for f := range s.starts {
			f()
		}
	}()
	return s
}

// close ends the thread, and with it any child that is left.
func (s *spawner) close() {
	close(s.starts)
	<-s.done
}

// start starts cmd in a process group of its own.
func (s *spawner) start(cmd *exec.Cmd) (*child, error) {
	c := &child{cmd: cmd, done: make(chan struct{})}
	cmd.Stderr = &c.stderr
	cmd.WaitDelay = time.Second // in case its own children keep stderr open
	// TERM, not KILL: Xvfb then removes its socket.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGTERM}
	started := make(chan error)
	s.starts <- func() { started <- cmd.Start() }
	if err := <-started; err != nil {
		return nil, err
	}
	go func() {
		c.err = cmd.Wait()
		close(c.done)
	}()
	return c, nil
}

// child is a started program.
type child struct {
	cmd    *exec.Cmd
	stderr tail
	done   chan struct{} // closed when it has ended
	err    error         // what Wait said; to be read after done
}

// stop ends the program's process group, the hard way when it does not listen.
func (c *child) stop(grace time.Duration) {
	group := -c.cmd.Process.Pid
	select {
	case <-c.done:
		return
	default:
	}
	syscall.Kill(group, syscall.SIGTERM)
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		syscall.Kill(group, syscall.SIGKILL)
		<-c.done
	}
}

// failure describes how the program ended, with the last it said. It must have
// ended.
func (c *child) failure() error {
	err := c.err
	if err == nil {
		err = errors.New("it ended by itself")
	}
	if said := c.stderr.String(); said != "" {
		return fmt.Errorf("%w; it said: %s", err, said)
	}
	return err
}

// tail keeps the end of what a program writes.
type tail struct {
	mu sync.Mutex
	b  []byte // guarded by mu
}

const tailBytes = 1024

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = append(t.b, p...)
	if n := len(t.b) - tailBytes; n > 0 {
		t.b = append(t.b[:0], t.b[n:]...)
	}
	return len(p), nil
}

// forget drops what was written up to now.
func (t *tail) forget() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.b = nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.b))
}
