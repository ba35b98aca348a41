//go:build standin

package standin

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"drawbridge/internal/quartz"
)

// ErrNoXvfb: the X server that stands in for the screen is not installed.
var ErrNoXvfb = errors.New("Xvfb is not installed (Debian package xvfb)")

// Screen starts an X server of that many pixels with no window manager, as macOS
// has none, and puts it into DISPLAY: AppKit knows one display in its life. It ends
// with this process: Xlib ends a process whose server went away first. It needs
// [quartz.Loop].
func Screen(width, height int) (display string, err error) {
	server, err := exec.LookPath("Xvfb")
	if err != nil {
		return "", ErrNoXvfb
	}
	r, w, err := os.Pipe()
	if err != nil {
		return "", err
	}
	defer r.Close()
	defer w.Close()
	cmd := exec.Command(server, "-displayfd", "3", "-screen", "0", fmt.Sprintf("%dx%dx24", width, height), "-nolisten", "tcp", "-noreset", "-ac")
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // of the first thread, which lives as long as the process
	if err := quartz.Load(); err != nil {
		return "", err
	}
	var startErr error
	err = quartz.OnMain(context.Background(), func() { startErr = cmd.Start() })
	if err = errors.Join(err, startErr); err != nil {
		return "", err
	}
	w.Close()
	number, err := bufio.NewReader(r).ReadString('\n')
	if err != nil {
		return "", fmt.Errorf("Xvfb did not start: %w", err)
	}
	display = ":" + strings.TrimSpace(number)
	return display, os.Setenv("DISPLAY", display)
}
