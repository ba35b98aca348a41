package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"syscall"

	"drawbridge/app/config"
	"drawbridge/bridge/control"
	"drawbridge/ui"
)

// Exit codes of every command.
const (
	exitOK      = 0
	exitFailed  = 1
	exitUsage   = 2 // wrong usage or configuration
	exitRefused = 3 // by a person, a rule, the deadline, or because nobody could be asked
	exitNoAgent = 4
)

// version is set by the build.
var version = "dev"

// buildVersion is version, or what the module was installed as.
func buildVersion() string {
	if version == "dev" {
		if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
			return info.Main.Version
		}
	}
	return version
}

// stdio is what a command reads and writes besides files.
type stdio struct {
	in     io.Reader
	out    io.Writer
	err    io.Writer
	getenv func(string) string
}

// exitError ends a command with a code. Its message goes to standard error; with
// no message the command has said what there is to say.
type exitError struct {
	code int
	err  error
	hint string // what to do next
}

func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit %d", e.code)
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

func usagef(format string, args ...any) error {
	return &exitError{code: exitUsage, err: fmt.Errorf(format, args...)}
}

// run runs one command line and returns its exit code.
func run(args []string, io stdio) int {
	c := &cli{stdio: io}
	root := c.root()
	root.SetArgs(args)
	return report(io.err, root.ExecuteContext(context.Background()))
}

// untilSignal is a context that ends when the command is told to end. A second
// signal ends the process, whatever it is at.
func untilSignal(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}

// report writes what a command failed with, and what to do next, and returns its
// exit code.
func report(w io.Writer, err error) int {
	if err == nil {
		return exitOK
	}
	code, hint := exitFailed, ""
	var exit *exitError
	var conf *config.Error
	switch {
	case errors.As(err, &exit):
		code, hint = exit.code, exit.hint
		if exit.err == nil {
			return code
		}
	case errors.As(err, &conf):
		code = exitUsage
	case errors.Is(err, control.ErrNoAgent):
		code, hint = exitNoAgent, "start it with: drawbridge run"
	case errors.Is(err, os.ErrNotExist):
		code = exitFailed
	}
	// A host, or a file, may have a part in it.
	for i, line := range strings.Split(ui.EscapeControls(strings.TrimRight(err.Error(), "\n")), "\n") {
		if i == 0 {
			line = "drawbridge: " + line
		}
		fmt.Fprintln(w, line)
	}
	if hint != "" {
		fmt.Fprintln(w, "  "+hint)
	}
	return code
}
