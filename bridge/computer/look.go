package computer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	_ "image/jpeg" // the headers of both formats are read back
	_ "image/png"
	"strings"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/capture"
)

const (
	// lookTime is what a final look may take on its own account, whatever became
	// of the batch: the caller waits for it.
	lookTime = 5 * time.Second
	lookGap  = 50 * time.Millisecond // between two looks that are compared
	syncTime = 500 * time.Millisecond
)

var onePixel = image.Rect(0, 0, 1, 1)

const staleDisplay = "the displays changed since that picture was taken, so its coordinates may mean other places; take a new screenshot"

var errNoDisplay = errors.New("does not exist now")

// shot is what a final look brought.
type shot struct {
	display capture.Display
	geo     *geometry // nil when there is no picture
	frame   [2]int    // pixels that were captured
	mime    string
	data    []byte
	err     error // why there is no picture
}

// look takes the picture that ends a batch. It works after ctx has ended. With
// settle it first lets the applications take what was sent and waits until the
// display stands still, for as long as ctx lives.
func (r *run) look(ctx context.Context, settle bool) (s shot) {
	// The batch's end does not end the look, which has a time of its own.
	own, cancel := context.WithTimeout(context.WithoutCancel(ctx), lookTime+time.Duration(r.cfg.SettleMaxMS)*time.Millisecond)
	defer cancel()
	s.err = r.tool.guarded("look", func() error {
		if settle {
			r.tool.sync(ctx)
			_ = sleep(ctx, time.Duration(r.cfg.SettleMS)*time.Millisecond) // ended early, we look early
		}
		err := r.tool.shoot(own, r.cfg, r.display, &s, func(d capture.Display) (*capture.Frame, error) {
			if !settle {
				return r.tool.desk.Source.Grab(own, d, image.Rectangle{})
			}
			return r.tool.still(ctx, own, d, time.Duration(r.cfg.SettleMaxMS-r.cfg.SettleMS)*time.Millisecond)
		})
		return err
	})
	// A caller that cancelled gets no answer: a picture that it never saw must
	// not become the one on which it measures.
	if s.err == nil && (r.stopped == nil || r.stopped.Reason != stop.Cancelled) {
		r.tool.pictures.add(r.caller, s.geo)
	}
	return s
}

// sync waits until the events have arrived, as far as the platform can tell.
func (t *Tool) sync(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, syncTime)
	defer cancel()
	if err := t.desk.Input.Sync(ctx); err != nil {
		// The picture is taken all the same; it shows what there is.
		t.log.Debug().Err(err).Msg("sync before the picture")
	}
}

// still looks until two looks are equal, for at most limit or until ctx ends.
func (t *Tool) still(ctx, own context.Context, d capture.Display, limit time.Duration) (*capture.Frame, error) {
	start := time.Now()
	last, err := t.desk.Source.Grab(own, d, image.Rectangle{})
	if err != nil {
		return nil, err
	}
	for time.Since(start) < limit {
		if sleep(ctx, lookGap) != nil {
			break
		}
		next, err := t.desk.Source.Grab(own, d, image.Rectangle{})
		if err != nil {
			last.Release()
			return nil, err
		}
		same := equalFrames(last, next)
		last.Release()
		last = next
		if same {
			break
		}
	}
	return last, nil
}

func equalFrames(a, b *capture.Frame) bool {
	if a.Width != b.Width || a.Height != b.Height {
		return false
	}
	for y := range a.Height {
		if !bytes.Equal(a.Pix[y*a.Stride:][:a.Width*4], b.Pix[y*b.Stride:][:b.Width*4]) {
			return false
		}
	}
	return true
}

// shoot fills s with a picture of the display with this index, made of the
// frame that grab takes. A display that changes meanwhile is tried once more.
func (t *Tool) shoot(ctx context.Context, cfg *Config, index int, s *shot, grab func(capture.Display) (*capture.Frame, error)) (err error) {
	for range 2 {
		if s.display, err = t.display(ctx, index); err != nil {
			return err
		}
		var f *capture.Frame
		if f, err = grab(s.display); err == nil {
			return s.encode(f, cfg.Picture)
		}
		if !errors.Is(err, capture.ErrDisplayChanged) {
			break
		}
	}
	return fmt.Errorf("take the picture: %w", err)
}

// encode makes the picture of f, which it releases.
func (s *shot) encode(f *capture.Frame, c PictureConfig) error {
	defer f.Release()
	s.frame = [2]int{f.Width, f.Height}
	w, h := c.fit(f.Width, f.Height)
	data, err := capture.Encode(f, capture.EncodeOptions{Format: c.Format, Quality: c.JPEGQuality, Width: w, Height: h})
	if err != nil {
		return fmt.Errorf("encode the picture: %w", err)
	}
	// What the model measures on is the file, so the file has the last word.
	header, format, err := image.DecodeConfig(bytes.NewReader(data))
	if err != nil {
		return fmt.Errorf("read the picture's header: %w", err)
	}
	s.data, s.mime = data, "image/"+format
	s.geo = &geometry{id: newPictureID(), display: s.display, width: header.Width, height: header.Height}
	return nil
}

// display returns the display with this index as it is now.
func (t *Tool) display(ctx context.Context, index int) (capture.Display, error) {
	all, err := t.desk.Source.Displays(ctx)
	if err != nil {
		return capture.Display{}, fmt.Errorf("list the displays: %w", err)
	}
	var there []string
	for _, d := range all {
		if d.Index == index {
			return d, nil
		}
		there = append(there, fmt.Sprintf("%d (%s)", d.Index, d.Name))
	}
	if there == nil {
		return capture.Display{}, fmt.Errorf("display %d %w; there are no displays", index, errNoDisplay)
	}
	return capture.Display{}, fmt.Errorf("display %d %w; the displays are: %s; choose one of them as display in the configuration",
		index, errNoDisplay, strings.Join(there, ", "))
}

// mayLook refuses where the platform shows us nothing.
func (t *Tool) mayLook(ctx context.Context) error {
	if t.permission(ctx, PermScreenRecording) == Missing {
		return &stop.Error{Reason: stop.Permission, Message: "screen recording is not granted, so no picture can be taken; " +
			"grant it to Drawbridge in System Settings, Privacy & Security, Screen & System Audio Recording, then run drawbridge doctor"}
	}
	return nil
}

// mayAct refuses where the platform would drop our events and report success.
func (t *Tool) mayAct(ctx context.Context) error {
	for _, name := range []string{PermAccessibility, PermPostEvents} {
		if t.permission(ctx, name) == Missing {
			return &stop.Error{Reason: stop.Permission, Message: name + " is not granted, so no input can be sent; " +
				"grant it to Drawbridge in System Settings, Privacy & Security, Accessibility, then run drawbridge doctor; screenshot and wait work without it"}
		}
	}
	return nil
}

func (t *Tool) permission(ctx context.Context, name string) Permission {
	if t.desk.Permissions == nil {
		return Unknown
	}
	p, ok := t.desk.Permissions(ctx)[name]
	if !ok {
		return Unknown
	}
	return p
}
