//go:build darwin || standin

package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Pictures by Apple's command, which needs no framework of ours.

// commandTime is what screencapture may take.
const commandTime = 10 * time.Second

// command takes the part r, in pixels, of a display.
func (s *quartzSource) command(ctx context.Context, d quartzDisplay, r image.Rectangle) (*Frame, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp("", "drawbridge-picture-")
	if err != nil {
		return nil, fmt.Errorf("screencapture: %w", err)
	}
	defer os.RemoveAll(dir)
	file := filepath.Join(dir, "display.png")
	// No sound; the display by its number, of which the main one has 1.
	args := []string{"-x", "-t", "png", "-D", strconv.Itoa(d.Index + 1)}
	if s.Pointer {
		args = append(args, "-C")
	}
	cmd := exec.CommandContext(ctx, "screencapture", append(args, file)...)
	cmd.WaitDelay = time.Second
	var said bytes.Buffer
	cmd.Stderr = &said
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		line, _, _ := strings.Cut(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("screencapture: %w: %s", err, line)
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, errors.New("screencapture ended well, but left no picture")
	}
	img, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, fmt.Errorf("screencapture: read its picture: %w", err)
	}
	size := img.Bounds()
	if size.Dx() != d.Pixels[0] || size.Dy() != d.Pixels[1] {
		return nil, fmt.Errorf("%w: screencapture's picture has %d×%d pixels, the display %d×%d", ErrDisplayChanged, size.Dx(), size.Dy(), d.Pixels[0], d.Pixels[1])
	}
	return s.frame(img, r.Add(size.Min)), nil
}

// frame copies the part r of an image.
func (s *quartzSource) frame(img image.Image, r image.Rectangle) *Frame {
	const channels = 4
	pix, release := s.memory(r.Dx() * r.Dy() * channels)
	rgba := &image.RGBA{Pix: pix, Stride: r.Dx() * channels, Rect: image.Rect(0, 0, r.Dx(), r.Dy())}
	draw.Draw(rgba, rgba.Rect, img, r.Min, draw.Src)
	for i := 0; i < len(pix); i += channels {
		pix[i], pix[i+2] = pix[i+2], pix[i]
	}
	return NewFrame(pix, rgba.Stride, r.Dx(), r.Dy(), release)
}
