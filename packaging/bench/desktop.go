package main

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"drawbridge/packaging/agent"
)

// The size of the desktop that pictures are taken of.
const (
	deskWidth  = 1920
	deskHeight = 1080
)

// desktop is an agent with a virtual desktop of its own, and an editor on it.
type desktop struct {
	*agent.Agent
	client *client
	env    []string // that programs need to come onto the desktop
	text   string   // the file that the editor has open
	window string   // the editor's window, as xdotool numbers it
	editor *exec.Cmd
}

// startDesktop starts them. Pictures are not made smaller.
func startDesktop(ctx context.Context, b *bench, name string) (_ *desktop, err error) {
	for _, program := range []string{"Xvfb", "jwm", "mousepad", "xdotool"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is not installed", program)
		}
	}
	dir := filepath.Join(b.dir, name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	config := filepath.Join(dir, "config.yaml")
	// What xdotool does counts as a person's, for whose rest batches would wait.
	settings := fmt.Sprintf("virtual:\n  width: %d\n  height: %d\nhand_back:\n  quiet: 0s\ncomputer:\n  picture:\n    size: original\n", deskWidth, deskHeight)
	if err := os.WriteFile(config, []byte(settings), 0o600); err != nil {
		return nil, err
	}
	d := &desktop{text: filepath.Join(dir, "text.txt")}
	d.Agent, err = agent.Start(ctx, agent.Options{Bin: b.bin, State: filepath.Join(dir, "state"),
		Args: []string{"--config", config, "--backend", "virtual", "--allow", "computer"}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, d.close())
		}
	}()
	if d.env, err = displayOf(d.PID); err != nil {
		return nil, err
	}
	if d.client, err = dial(ctx, d.WebSocket(), d.Token); err != nil {
		return nil, err
	}
	return d, d.startEditor(ctx, dir)
}

// startEditor opens an empty file in mousepad and fills the desktop with it.
func (d *desktop) startEditor(ctx context.Context, dir string) error {
	if err := os.WriteFile(d.text, nil, 0o600); err != nil {
		return err
	}
	d.editor = exec.Command("mousepad", "--disable-server", d.text)
	d.editor.Env = append(os.Environ(), d.env...)
	d.editor.Env = append(d.editor.Env, "GSETTINGS_BACKEND=memory", "NO_AT_BRIDGE=1", "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir, "XDG_DATA_HOME="+dir)
	if err := d.editor.Start(); err != nil {
		d.editor = nil
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	out, err := d.xdotool(ctx, "search", "--sync", "--onlyvisible", "--class", "mousepad")
	if err != nil {
		return err
	}
	d.window = strings.Fields(out)[0]
	_, err = d.xdotool(ctx, "windowmove", d.window, "0", "0", "windowsize", "--sync", d.window, "1600", "900", "windowactivate", "--sync", d.window)
	return err
}

func (d *desktop) xdotool(ctx context.Context, args ...string) (string, error) {
	out, err := d.command(ctx, "xdotool", args...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("xdotool %s: %w: %s", args[0], err, out)
	}
	return string(out), nil
}

// command is a program that comes onto the desktop.
func (d *desktop) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), d.env...)
	return cmd
}

func (d *desktop) close() error {
	if d.client != nil {
		d.client.Close()
	}
	if d.editor != nil {
		_ = d.editor.Process.Kill()
		_ = d.editor.Wait() // killed: the error says so
	}
	return d.Stop()
}

// displayOf finds the display that a child of the process is on, and how to get
// onto it.
func displayOf(pid int) ([]string, error) {
	children, err := descendants(pid)
	if err != nil {
		return nil, err
	}
	for _, child := range children {
		environ, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", child))
		if err != nil {
			continue // it ended
		}
		var env []string
		for v := range strings.SplitSeq(string(environ), "\x00") {
			if name, _, _ := strings.Cut(v, "="); name == "DISPLAY" || name == "XAUTHORITY" {
				env = append(env, v)
			}
		}
		name, _ := os.ReadFile(fmt.Sprintf("/proc/%d/comm", child))
		if strings.TrimSpace(string(name)) == "jwm" {
			return env, nil
		}
	}
	return nil, fmt.Errorf("process %d has no jwm among its children that would show its display", pid)
}

// captures measures a picture of the whole desktop: for us from the call to the
// content block in the client's hands, for the others from starting the program
// to the PNG file.
func captures(ctx context.Context, b *bench) (_ []row, err error) {
	d, err := startDesktop(ctx, b, "capture")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	const what = "1920×1080 of a real desktop (X11) to a PNG content block"
	if _, err := d.client.computer(`{"type":"type","text":"Some text, so that there is something to see.\n"}`); err != nil {
		return nil, err
	}
	first, err := d.shoot()
	if err != nil {
		return nil, err
	}
	if first.size != image.Pt(deskWidth, deskHeight) {
		return nil, fmt.Errorf("the picture is %v", first.size)
	}

	peers := []struct {
		name string
		argv []string
		took []time.Duration
		err  error
	}{
		{name: "scrot", argv: []string{"scrot", "--overwrite", filepath.Join(b.dir, "scrot.png")}},
		{name: "PIL", argv: []string{pythonWithPIL(ctx), "-c", "from PIL import ImageGrab; import sys; ImageGrab.grab(xdisplay='').save(sys.argv[1])", filepath.Join(b.dir, "pil.png")}},
	}
	for i := range peers { // a first run of each, which also tells whether it is there
		p := &peers[i]
		if out, e := d.command(ctx, p.argv[0], p.argv[1:]...).CombinedOutput(); e != nil {
			p.err = fmt.Errorf("%s does not run here: %w: %s", p.name, e, lastLine(out))
		}
	}
	var ours []time.Duration
	for range b.rounds {
		shot, err := d.shoot()
		if err != nil {
			return nil, err
		}
		ours = append(ours, shot.took)
		for i := range peers {
			p := &peers[i]
			if p.err != nil {
				continue
			}
			begin := time.Now()
			if out, e := d.command(ctx, p.argv[0], p.argv[1:]...).CombinedOutput(); e != nil {
				p.err = fmt.Errorf("%s: %w: %s", p.name, e, lastLine(out))
				continue
			}
			p.took = append(p.took, time.Since(begin))
		}
	}
	var rows []row
	for _, p := range peers {
		if p.err != nil {
			rows = append(rows, row{what: what + ", against " + p.name, missing: oneLine(p.err.Error())})
			continue
		}
		rows = append(rows, row{what: what, ours: millis(median(ours)) + ", whole call",
			peer: millis(median(p.took)) + ", " + p.name + " to a file, whole command", measured: ratios(ours, p.took), limit: 0.2})
	}
	return rows, nil
}

// pythonWithPIL picks the Python that has PIL: Debian's package serves Debian's
// own, which need not be the first in the path.
func pythonWithPIL(ctx context.Context) string {
	const debian = "/usr/bin/python3"
	if exec.CommandContext(ctx, debian, "-c", "import PIL").Run() == nil {
		return debian
	}
	return "python3"
}

// shot is one picture that a call brought.
type shot struct {
	took time.Duration
	size image.Point
}

func (d *desktop) shoot() (shot, error) {
	begin := time.Now()
	answer, err := d.client.computer(`{"type":"screenshot"}`)
	if err != nil {
		return shot{}, err
	}
	took := time.Since(begin)
	data, err := answer.picture()
	if err != nil {
		return shot{}, err
	}
	raw, err := base64.StdEncoding.DecodeString(data)
	if err != nil {
		return shot{}, err
	}
	img, err := png.DecodeConfig(bytes.NewReader(raw))
	if err != nil {
		return shot{}, err
	}
	return shot{took, image.Pt(img.Width, img.Height)}, nil
}

// typed is the text of the typing measurement: 1,120 characters of ASCII, all
// printable ones among them, in 20 lines.
func typed() string {
	var b strings.Builder
	for i := range 20 {
		for j := range 55 {
			b.WriteByte(byte(' ' + (i*55+j)%95))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// typingRounds is small: the peer takes seconds.
const typingRounds = 3

// typing measures the text into a real editor and compares what it saved.
func typing(ctx context.Context, b *bench) (_ []row, err error) {
	d, err := startDesktop(ctx, b, "typing")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, d.close()) }()
	text := typed()
	quoted, err := quote(text)
	if err != nil {
		return nil, err
	}
	if _, err := d.client.computer(`{"type":"screenshot"}`); err != nil { // coordinates are measured in it
		return nil, err
	}
	if _, err := d.client.computer(`{"type":"click","x":800,"y":500}`); err != nil {
		return nil, err
	}
	var ours, peer []time.Duration
	oursExact, peerExact := 0, 0
	for range min(b.rounds, typingRounds) {
		exact, took, err := d.typeAndSave(ctx, text, func() error {
			_, err := d.client.computer(`{"type":"type","text":` + quoted + `}`)
			return err
		})
		if err != nil {
			return nil, err
		}
		ours = append(ours, took)
		if exact {
			oursExact++
		}
		exact, took, err = d.typeAndSave(ctx, text, func() error {
			cmd := d.command(ctx, "xdotool", "type", "--file", "-")
			cmd.Stdin = strings.NewReader(text)
			return cmd.Run()
		})
		if err != nil {
			return nil, err
		}
		peer = append(peer, took)
		if exact {
			peerExact++
		}
	}
	r := row{
		what:     "1,120 characters of ASCII into mousepad",
		ours:     fmt.Sprintf("%s, whole call with settling and picture, %d of %d exact", millis(median(ours)), oursExact, len(ours)),
		peer:     fmt.Sprintf("%s, `xdotool type` as it comes, %d of %d exact", millis(median(peer)), peerExact, len(peer)),
		measured: ratios(ours, peer), limit: 0.1,
	}
	if oursExact != len(ours) {
		r.failed = "the text was not exact"
	}
	return []row{r}, nil
}

// typeAndSave empties the editor, lets enter do its work, saves, and tells
// whether the file then holds the text.
func (d *desktop) typeAndSave(ctx context.Context, text string, enter func() error) (exact bool, took time.Duration, err error) {
	if _, err := d.client.computer(`{"type":"keypress","keys":["ctrl","a"]},{"type":"keypress","keys":["BackSpace"]},{"type":"keypress","keys":["ctrl","s"]}`); err != nil {
		return false, 0, err
	}
	if !d.fileBecomes(ctx, "") {
		return false, 0, errors.New("the editor did not save an empty text")
	}
	begin := time.Now()
	if err := enter(); err != nil {
		return false, 0, err
	}
	took = time.Since(begin)
	if _, err := d.client.computer(`{"type":"keypress","keys":["ctrl","s"]}`); err != nil {
		return false, 0, err
	}
	return d.fileBecomes(ctx, text), took, nil
}

// fileBecomes waits a while for the editor's file to hold the text.
func (d *desktop) fileBecomes(ctx context.Context, text string) bool {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	look := time.NewTicker(20 * time.Millisecond)
	defer look.Stop()
	for {
		b, err := os.ReadFile(d.text)
		if err == nil && string(b) == text {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-look.C:
		}
	}
}
