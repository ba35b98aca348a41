package agent

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// OpenTerminal returns the two ends of a new terminal.
func OpenTerminal() (master, slave *os.File, err error) {
	master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, fmt.Errorf("no pseudo terminal here: %w", err)
	}
	n := 0
	if err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err == nil {
		n, err = unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	}
	if err == nil {
		slave, err = os.OpenFile("/dev/pts/"+strconv.Itoa(n), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		master.Close()
		return nil, nil, err
	}
	return master, slave, nil
}

// What the agent shows at its terminal, in this order.
var (
	askedFor = regexp.MustCompile(`allow +([a-z]+) +yes`)
	counted  = regexp.MustCompile(`seconds left`)
	allowed  = regexp.MustCompile(`Allowed\.`)
)

// reflex is longer than the time in which an answer to a prompt does not count.
const reflex = 600 * time.Millisecond

// StartAllowed starts an agent at a terminal of its own. A person there allows what
// it asks first, which is that the rules of its configuration hold.
func StartAllowed(ctx context.Context, o Options) (*Agent, error) {
	master, slave, err := OpenTerminal()
	if err != nil {
		return nil, err
	}
	a := prepare(o)
	a.cmd.Stdin, a.cmd.Stdout, a.cmd.Stderr = slave, slave, slave
	a.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	go func() { // until all have closed the other end
		defer master.Close()
		_, _ = io.Copy(a.out, master)
	}()
	err = a.start(ctx)
	slave.Close()
	if err != nil {
		return nil, err
	}
	if err := a.allow(ctx, master); err != nil {
		return nil, errors.Join(err, a.Stop())
	}
	return a, nil
}

func (a *Agent) allow(ctx context.Context, terminal io.Writer) error {
	word, err := a.shows(ctx, askedFor)
	if err == nil {
		_, err = a.shows(ctx, counted)
	}
	if err != nil {
		return err
	}
	time.Sleep(reflex)
	if _, err := io.WriteString(terminal, "allow "+word+"\n"); err != nil {
		return err
	}
	_, err = a.shows(ctx, allowed)
	return err
}

// shows waits until the terminal shows something, and returns its last group.
func (a *Agent) shows(ctx context.Context, what *regexp.Regexp) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, serving)
	defer cancel()
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for {
		if m := what.FindStringSubmatch(a.Output()); m != nil {
			return m[len(m)-1], nil
		}
		select {
		case <-look.C:
		case <-a.done:
			return "", fmt.Errorf("the agent ended before it showed %q\n%s", what, a.out)
		case <-ctx.Done():
			return "", fmt.Errorf("the agent does not show %q: %w\n%s", what, context.Cause(ctx), a.out)
		}
	}
}
