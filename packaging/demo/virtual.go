package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// editorTime is how long the editor may take to come up, and to save.
const editorTime = 20 * time.Second

// editorText is what is typed: what every keyboard has, accents, scripts that no
// keyboard here has, characters made of several, tabs and newlines.
const editorText = "The quick brown fox, 0123456789 (jumps) [over] {the} \"lazy\" dog's ~!@#$%^&*_+-=|\\:;<>?/`\n" +
	"\täöü ÄÖÜ ß éèêë ñ çÇ Åå øØ ¿¡ £ €\n" +
	"日本語を入力する 한국어도 中文也可以 Привет Γειά\n" +
	"😀 👩‍💻 👍🏽 🇨🇭 ❤️ end"

// virtualDesktop types into a real editor and compares the file that it saved.
func virtualDesktop(ctx context.Context, c *client) (err error) {
	if err := c.listTools(ctx); err != nil {
		return err
	}
	empty, err := c.batch(ctx, action{"type": "screenshot"})
	if err != nil {
		return err
	}
	file := filepath.Join(filepath.Dir(c.state), "typed.txt")
	stop, err := startEditor(ctx, c, file)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	x, y, err := findEditor(ctx, c, empty)
	if err != nil {
		return err
	}
	answer, err := c.batch(ctx,
		action{"type": "click", "x": x, "y": y},
		action{"type": "type", "text": editorText},
		action{"type": "keypress", "keys": []string{"CTRL", "S"}},
	)
	if err != nil {
		return err
	}
	answer.print()
	return compareFile(ctx, file)
}

// startEditor starts mousepad on the agent's display. The file exists and is
// empty, so that saving asks no questions.
func startEditor(ctx context.Context, c *client, file string) (stop func() error, err error) {
	path, err := exec.LookPath("mousepad")
	if err != nil {
		return nil, fmt.Errorf("the editor is missing; on Debian: apt-get install mousepad: %w", err)
	}
	var status struct {
		Display string `json:"display"`
	}
	if err := c.do(ctx, &status, "status"); err != nil {
		return nil, err
	}
	if status.Display == "" {
		return nil, errors.New("the agent does not say which display it runs")
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		return nil, err
	}
	home, err := os.MkdirTemp("", "drawbridge-demo-home-")
	if err != nil {
		return nil, err
	}
	editor := exec.Command(path, "--disable-server", file)
	editor.Env = append(os.Environ(),
		"DISPLAY="+status.Display, "XAUTHORITY="+filepath.Join(c.state, "virtual", "Xauthority"),
		"WAYLAND_DISPLAY=", "GDK_BACKEND=x11", "NO_AT_BRIDGE=1", "GSETTINGS_BACKEND=memory", "LANG=C.UTF-8",
		"HOME="+home, "XDG_CONFIG_HOME="+home, "XDG_DATA_HOME="+home, "XDG_CACHE_HOME="+home, "XDG_RUNTIME_DIR="+home)
	if err := editor.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the editor: %w", err), os.RemoveAll(home))
	}
	return func() error {
		err := editor.Process.Kill()
		_ = editor.Wait() // it was killed; that is no news
		return errors.Join(err, os.RemoveAll(home))
	}, nil
}

// findEditor looks until a window has come up on the empty desktop and two looks
// are the same size, and returns the middle of it in picture pixels: a client
// has nothing but pictures, either.
func findEditor(ctx context.Context, c *client, empty answer) (x, y float64, err error) {
	ctx, cancel := context.WithTimeout(ctx, editorTime)
	defer cancel()
	before, err := load(empty.picture())
	if err != nil {
		return 0, 0, err
	}
	var last image.Rectangle
	err = poll(ctx, func() (bool, error) {
		a, err := c.batch(ctx, action{"type": "screenshot"})
		if err != nil {
			return false, err
		}
		after, err := load(a.picture())
		if err != nil {
			return false, err
		}
		area := changed(before, after)
		same := area == last && area.Dx() > 100 && area.Dy() > 100
		last = area
		if !same { // one more of many: only the last is kept
			return false, os.Remove(a.picture())
		}
		return true, nil
	})
	if err != nil {
		return 0, 0, fmt.Errorf("wait for the editor's window: %w", err)
	}
	return float64(last.Min.X+last.Max.X) / 2, float64(last.Min.Y+last.Max.Y) / 2, nil
}

func load(path string) (image.Image, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	img, err := png.Decode(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return img, nil
}

// changed is the smallest rectangle around what differs between two pictures of
// the same size.
func changed(a, b image.Image) image.Rectangle {
	var area image.Rectangle
	r := a.Bounds().Intersect(b.Bounds())
	for y := r.Min.Y; y < r.Max.Y; y++ {
		for x := r.Min.X; x < r.Max.X; x++ {
			if a.At(x, y) != b.At(x, y) {
				area = area.Union(image.Rect(x, y, x+1, y+1))
			}
		}
	}
	return area
}

// compareFile waits until the file has been saved and holds it against what was
// typed.
func compareFile(ctx context.Context, file string) error {
	ctx, cancel := context.WithTimeout(ctx, editorTime)
	defer cancel()
	var got []byte
	err := poll(ctx, func() (bool, error) {
		var err error
		got, err = os.ReadFile(file)
		return string(got) == editorText, err
	})
	if err == nil {
		fmt.Printf("\nThe editor saved %s: %d bytes, equal to what was sent.\n", file, len(got))
		return nil
	}
	if ctx.Err() == nil {
		return err
	}
	at := 0
	for at < min(len(got), len(editorText)) && got[at] == editorText[at] {
		at++
	}
	return fmt.Errorf("the editor saved %d bytes instead of %d; they differ from byte %d on: %q", len(got), len(editorText), at, bytes.ToValidUTF8(got[at:], nil))
}
