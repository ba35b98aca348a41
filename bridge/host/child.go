package host

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"drawbridge/bridge/wire"
)

// How a child is ended: its input ends, then it is asked, then it is killed.
const (
	inputGrace = 300 * time.Millisecond
	termGrace  = 700 * time.Millisecond
)

// Limits of what a child's stderr may put into the log.
const (
	stderrLine  = 2 << 10 // bytes of one line
	stderrBurst = 50      // lines at once
	stderrRate  = 200 * time.Millisecond
	stderrKept  = 5 // last lines, to say why a child failed
)

// watch is what a child is started through. A process beside the child reads a
// pipe whose other end only this program has; when this program dies, by
// whatever signal, the read ends and the child's process group is killed. The
// shell then becomes the child, so that nothing stands between.
const watch = `((read -r _ <&3; kill -KILL 0) </dev/null >/dev/null 2>&1 &)
exec 3<&- "$@"`

// Command is a host that is started as a child process.
type Command struct {
	Path string // absolute
	Args []string
	Env  map[string]string // added to this program's own
	Dir  string
}

// child is a running child process with its pipe.
type child struct {
	*stdioPipe
	cmd    *exec.Cmd
	leash  *os.File // the watcher's pipe: closing it kills the group
	stderr *stderrLog
	exited chan struct{} // closed when it has been waited for
	state  error         // how it ended; set before exited is closed
	once   sync.Once
}

// startChild starts a child in a process group of its own.
func startChild(c Command, limit int64, log zerolog.Logger) (*child, error) {
	if !filepath.IsAbs(c.Path) {
		// Whatever PATH finds later is not what was read, shown and accepted.
		return nil, fmt.Errorf("start %s: %w when the configuration was read; give the command's full path, or install it and run drawbridge reload", c.Path, exec.ErrNotFound)
	}
	if _, err := exec.LookPath(c.Path); err != nil {
		return nil, fmt.Errorf("start %s: %w; give the command's full path, or install it", c.Path, err)
	}
	if c.Dir != "" {
		// A failed start would not say that it was the folder.
		if st, err := os.Stat(c.Dir); err != nil {
			return nil, fmt.Errorf("start %s: cwd: %w", c.Path, err)
		} else if !st.IsDir() {
			return nil, fmt.Errorf("start %s: cwd: %s is no folder", c.Path, c.Dir)
		}
	}
	cmd := exec.Command("/bin/sh", append([]string{"-c", watch, c.Path, c.Path}, c.Args...)...)
	cmd.Dir = c.Dir
	cmd.Env = os.Environ()
	for k, v := range c.Env {
		cmd.Env = append(cmd.Env, k+"="+v)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}

	var err error
	var ends []io.Closer // the child's ends, and ours until it runs
	fail := func(err error) (*child, error) {
		for _, e := range ends {
			e.Close()
		}
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	pipe := func() (r, w *os.File) {
		if err == nil {
			if r, w, err = os.Pipe(); err == nil {
				ends = append(ends, r, w)
			}
		}
		return r, w
	}
	inR, inW := pipe()
	outR, outW := pipe()
	errR, errW := pipe()
	leashR, leashW := pipe()
	if err != nil {
		return fail(err)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = inR, outW, errW
	cmd.ExtraFiles = []*os.File{leashR}
	if err := cmd.Start(); err != nil {
		return fail(err)
	}
	for _, f := range []*os.File{inR, outW, errW, leashR} {
		f.Close()
	}
	ch := &child{
		stdioPipe: newStdioPipe(inW, outR, limit),
		cmd:       cmd, leash: leashW,
		stderr: &stderrLog{log: log},
		exited: make(chan struct{}),
	}
	go func() {
		// Until the last process that holds it has closed it.
		ch.stderr.read(errR)
		errR.Close()
	}()
	go func() {
		ch.state = cmd.Wait()
		close(ch.exited)
	}()
	return ch, nil
}

// Receive says how the child ended, where it did.
func (c *child) Receive() (Incoming, error) {
	in, err := c.stdioPipe.Receive()
	if err == nil {
		return in, nil
	}
	// It closed its output; that is its end, or it is about to be.
	select {
	case <-c.exited:
	case <-time.After(inputGrace):
		return in, errors.New("it closed its output")
	}
	why := "it ended"
	if c.state != nil {
		why = "it ended: " + c.state.Error()
	}
	if last := c.stderr.last(); last != "" {
		why += "; its last words: " + last
	}
	return in, errors.New(why)
}

// Close ends the child and everything in its process group, and waits for it.
func (c *child) Close() error {
	c.once.Do(func() {
		c.in.Close() // the protocol's way to say that it is over
		if !c.wait(inputGrace) {
			c.signal(syscall.SIGTERM)
			if !c.wait(termGrace) {
				c.signal(syscall.SIGKILL)
			}
		}
		c.leash.Close() // ends the watcher, and what the child left behind
		<-c.exited
		c.stdioPipe.Close()
	})
	return nil
}

func (c *child) wait(d time.Duration) bool {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	select {
	case <-c.exited:
		return true
	case <-ctx.Done():
		return false
	}
}

// signal goes to the group; the child is its leader and has not been waited for
// when this is called with it running.
func (c *child) signal(s syscall.Signal) {
	_ = syscall.Kill(-c.cmd.Process.Pid, s)
}

// stderrLog puts a child's stderr into the log, at a bounded rate.
type stderrLog struct {
	log zerolog.Logger

	mu    sync.Mutex // guards lines
	lines []string   // the last ones
}

func (s *stderrLog) read(r io.Reader) {
	lines := bufio.NewReaderSize(r, stderrLine)
	tokens, at, dropped := stderrBurst, time.Now(), 0
	for {
		line, cut, err := lines.ReadLine()
		if err != nil {
			break
		}
		text := string(line)
		for cut && err == nil { // the rest of a long line
			_, cut, err = lines.ReadLine()
		}
		s.keep(text)
		if n := int(time.Since(at) / stderrRate); n > 0 {
			tokens, at = min(stderrBurst, tokens+n), at.Add(time.Duration(n)*stderrRate)
		}
		if tokens == 0 {
			dropped++
			continue
		}
		tokens--
		e := s.log.Info()
		if dropped > 0 {
			e, dropped = e.Int("dropped_lines", dropped), 0
		}
		e.Str("stderr", text).Msg("host says")
	}
	if dropped > 0 {
		s.log.Info().Int("dropped_lines", dropped).Msg("host said more on stderr than is kept")
	}
}

func (s *stderrLog) keep(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lines = append(s.lines, line); len(s.lines) > stderrKept {
		s.lines = append(s.lines[:0], s.lines[1:]...)
	}
}

// last returns the last line that is not empty.
func (s *stderrLog) last() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.lines) - 1; i >= 0; i-- {
		if s.lines[i] != "" {
			return string(wire.AppendString(nil, s.lines[i]))
		}
	}
	return ""
}
