//go:build linux

package virtual

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"drawbridge/internal/x11"
)

// Times that are far more than a healthy machine needs.
const (
	startTimeout = 20 * time.Second
	stopTimeout  = 3 * time.Second
)

// Virtual is a running desktop.
type Virtual struct {
	number  int
	auth    string // path of the authority file
	dir     string
	tempDir bool     // dir is ours to remove
	owned   *os.File // says of such a directory that its owner lives

	spawner *spawner
	server  *child
	wm      *child
	exited  chan struct{}

	closing sync.Once
}

// Available says whether Start can work here: nil, or an error that names what
// is missing and how to get it.
func Available() error {
	for _, p := range [][2]string{{serverProgram, serverPackage}, {wmProgram, wmPackage}} {
		if _, err := exec.LookPath(p[0]); err != nil {
			return fmt.Errorf("%s is %w: on Debian and Ubuntu, apt-get install %s", p[0], ErrMissing, p[1])
		}
	}
	return nil
}

// Start starts a desktop and returns when programs can be started on it. ctx
// bounds the start only; Close ends the desktop.
func Start(ctx context.Context, o Options) (*Virtual, error) {
	if err := Available(); err != nil {
		return nil, err
	}
	if o.Width == 0 && o.Height == 0 {
		o.Width, o.Height = 1280, 800
	}
	if o.Width < 1 || o.Height < 1 || o.Width > 32767 || o.Height > 32767 {
		return nil, fmt.Errorf("start a virtual desktop: %dx%d is no screen size; sides go from 1 to 32767", o.Width, o.Height)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	v := &Virtual{number: -1, spawner: newSpawner(), exited: make(chan struct{})}
	if err := v.start(ctx, o); err != nil {
		v.stop()
		return nil, fmt.Errorf("start a virtual desktop: %w", err)
	}
	go func() {
		<-v.server.done
		close(v.exited)
	}()
	return v, nil
}

func (v *Virtual) start(ctx context.Context, o Options) error {
	if err := v.makeDir(o.Dir); err != nil {
		return err
	}
	cookie := make([]byte, 16)
	rand.Read(cookie) // never fails
	// The server takes any record's key, whatever display it is for; the number is
	// known only once it runs.
	v.auth = filepath.Join(v.dir, "Xauthority")
	if err := writeFile(v.auth, x11.AppendAuthEntry(nil, 0, cookie)); err != nil {
		return err
	}
	if err := v.startServer(ctx, o); err != nil {
		return err
	}
	if err := writeFile(v.auth, x11.AppendAuthEntry(nil, v.number, cookie)); err != nil {
		return err
	}
	x11.SetCookie(v.number, cookie)
	return v.startWM(ctx)
}

func (v *Virtual) makeDir(dir string) error {
	if dir == "" {
		sweep(os.TempDir())
		tmp, err := os.MkdirTemp("", tempDirs)
		if err != nil {
			return err
		}
		v.dir, v.tempDir = tmp, true
		v.owned, err = own(tmp)
		return err
	}
	v.dir = dir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return os.Chmod(dir, 0o700)
}

// writeFile replaces a file whole, readable for this user alone.
func writeFile(path string, b []byte) error {
	tmp := path + ".new"
	if err := os.Remove(tmp); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	if err2 := f.Close(); err == nil {
		err = err2
	}
	if err == nil {
		err = os.Rename(tmp, path)
	}
	if err != nil {
		os.Remove(tmp)
	}
	return err
}

// startServer starts Xvfb on a display that it chooses itself. It writes the
// number to a pipe once it takes connections, so nothing is polled.
func (v *Virtual) startServer(ctx context.Context, o Options) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(serverProgram, "-displayfd", "3",
		"-screen", "0", fmt.Sprintf("%dx%dx24", o.Width, o.Height),
		"-nolisten", "tcp", "-noreset", "-auth", v.auth)
	cmd.ExtraFiles = []*os.File{w}
	v.server, err = v.spawner.start(cmd)
	w.Close()
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	line, err := readLine(r)
	if err != nil {
		if ctx.Err() != nil {
			return fmt.Errorf("%s did not get ready: %w", serverProgram, ctx.Err())
		}
		<-v.server.done // it closed the pipe by ending
		return fmt.Errorf("%s ended at once: %w", serverProgram, v.server.failure())
	}
	if v.number, err = strconv.Atoi(line); err != nil {
		return fmt.Errorf("%s reported the display %q", serverProgram, line)
	}
	// It complains of each display that another server has: no reason for an end.
	v.server.stderr.forget()
	return nil
}

// readLine reads to the first newline.
func readLine(r *os.File) (string, error) {
	var b []byte
	buf := make([]byte, 16)
	for {
		n, err := r.Read(buf)
		b = append(b, buf[:n]...)
		if line, _, ok := bytes.Cut(b, []byte("\n")); ok {
			return string(line), nil
		}
		if err != nil {
			return "", err
		}
	}
}

const wmConfigName = "jwmrc"

// wmConfig keeps jwm out of the way: no tray, no menus, no keys of its own, so
// that every chord reaches the application.
const wmConfig = `<?xml version="1.0"?>
<JWM>
  <FocusModel>click</FocusModel>
  <MoveMode coordinates="off">opaque</MoveMode>
  <ResizeMode coordinates="off">opaque</ResizeMode>
  <SnapMode distance="0">none</SnapMode>
  <Desktops width="1" height="1">
    <Background type="solid">#3b4252</Background>
  </Desktops>
</JWM>
`

func (v *Virtual) startWM(ctx context.Context) error {
	config := filepath.Join(v.dir, wmConfigName)
	if err := writeFile(config, []byte(wmConfig)); err != nil {
		return err
	}
	ready, err := watchWM(ctx, v.Display())
	if err != nil {
		return err
	}
	defer ready.conn.Close()
	cmd := exec.Command(wmProgram, "-f", config)
	cmd.Env = v.Env()
	if v.wm, err = v.spawner.start(cmd); err != nil {
		return err
	}
	select {
	case <-ready.up:
		return nil
	case <-v.wm.done:
		return fmt.Errorf("%s ended at once: %w", wmProgram, v.wm.failure())
	case <-ctx.Done():
		return fmt.Errorf("%s did not get ready: %w", wmProgram, ctx.Err())
	}
}

// Display is the name that X clients connect to (":99").
func (v *Virtual) Display() string { return fmt.Sprintf(":%d", v.number) }

// Env is the environment for programs that are to run on this desktop: ours,
// with the display and its key in place of the person's.
func (v *Virtual) Env() []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool {
		name, _, _ := strings.Cut(s, "=")
		switch name {
		case "DISPLAY", "XAUTHORITY", "WAYLAND_DISPLAY", "WAYLAND_SOCKET", "XDG_SESSION_TYPE":
			return true
		}
		return false
	})
	return append(env, "DISPLAY="+v.Display(), "XAUTHORITY="+v.auth, "XDG_SESSION_TYPE=x11")
}

// Exited is closed when the X server has ended, by Close or otherwise.
func (v *Virtual) Exited() <-chan struct{} { return v.exited }

// Err says why the X server ended; nil while it runs.
func (v *Virtual) Err() error {
	select {
	case <-v.exited:
		return v.server.failure()
	default:
		return nil
	}
}

// Close ends the desktop, waits until its programs are gone and removes what
// Start made. Programs that others started on it lose their display.
func (v *Virtual) Close() error {
	v.stop()
	<-v.exited
	return nil
}

func (v *Virtual) stop() {
	v.closing.Do(func() {
		for _, c := range []*child{v.wm, v.server} {
			if c != nil {
				c.stop(stopTimeout)
			}
		}
		v.spawner.close()
		if v.number >= 0 {
			x11.SetCookie(v.number, nil)
		}
		if v.tempDir {
			os.RemoveAll(v.dir)
			if v.owned != nil {
				v.owned.Close()
			}
			return
		}
		if v.auth != "" {
			os.Remove(v.auth)
		}
		os.Remove(filepath.Join(v.dir, wmConfigName))
	})
}
