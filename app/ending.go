package main

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/rs/zerolog"
	"golang.org/x/sys/unix"

	"drawbridge/app/config"
	"drawbridge/packaging/login"
)

// What starts the agent at login starts it again when it failed, and not where it
// ended with exitUsage on Linux, or well on macOS.

// passing errors of the system are those that another start need not meet.
var passing = []error{
	unix.ENOSPC, unix.EDQUOT, unix.EIO, unix.EMFILE, unix.ENFILE, unix.ENOMEM, unix.EAGAIN, unix.EINTR,
	unix.EBUSY, unix.ETIMEDOUT, unix.ESTALE, unix.EADDRINUSE, context.Canceled, context.DeadlineExceeded,
}

// staying marks an error about files or settings: until a person mends them, each
// start would meet it. It leaves alone what may pass, and what has a code already.
func staying(err error) error {
	var exit *exitError
	var conf *config.Error
	if err == nil || errors.As(err, &exit) || errors.As(err, &conf) ||
		slices.ContainsFunc(passing, func(p error) bool { return errors.Is(err, p) }) {
		return err
	}
	return &exitError{code: exitUsage, err: err}
}

// forLaunchd is how the agent ends with an error where launchd started it, which has
// no code that keeps it from starting a program again: only one that ended well
// stays ended.
func forLaunchd(err error, getenv func(string) string) error {
	var exit *exitError
	var conf *config.Error
	hint := ""
	switch {
	case getenv("XPC_SERVICE_NAME") != login.Label:
		return err
	case errors.As(err, &exit) && exit.code == exitUsage:
		hint = exit.hint
	case !errors.As(err, &conf):
		return err
	}
	return &exitError{code: exitOK, err: err, hint: hint}
}

// endByCrash has a crash of the agent end it by a signal. Go would end it with
// exitUsage, after which nothing starts it again. No picture of its memory, which
// holds tokens, is written.
func endByCrash() {
	debug.SetTraceback("crash")
	var limit unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_CORE, &limit) == nil {
		limit.Cur = 0
		_ = unix.Setrlimit(unix.RLIMIT_CORE, &limit) // then the system's own limit holds
	}
}

// logBeside writes to the log of an agent before it is opened by its owner: of a
// start that ends early. Where it cannot be opened, standard error has to do.
func (c *cli) logBeside(write func(zerolog.Logger)) {
	dir, err := c.stateDir()
	if err != nil {
		return
	}
	if _, err := os.Stat(dir); err != nil {
		return // nothing is made for the log's sake
	}
	// It is not for this process to put the file aside: an agent may run.
	f, err := openLogFile(filepath.Join(dir, logName), math.MaxInt64)
	if err != nil {
		return
	}
	defer f.Close()
	write(zerolog.New(f).With().Timestamp().Int("pid", syscall.Getpid()).Logger())
}
