package computer

import (
	"context"
	"errors"
	"image"
	"image/color"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/capture"
	"drawbridge/input"
)

// named makes the rig's windows: an editor has the keyboard, and lies under
// every point but those of the display's left half.
func named(r *rig) {
	r.driver.Window = func(_ context.Context, p *input.Point) (*input.Window, error) {
		w := &input.Window{App: "Editor", Title: "salary.txt", Role: "normal", Bounds: input.Rect{X: -20, Y: 5, Width: 20, Height: 30}}
		if p != nil && p.X < -20 {
			return nil, nil
		}
		return w, nil
	}
}

func TestRecordNamesWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		named(r)
		r.look()
		batch := `[{"type":"click","x":60,"y":10},{"type":"click","x":10,"y":10},{"type":"type","text":"a"},{"type":"wait"}]`
		res := r.call(t.Context(), batch)
		e := res.StructuredContent.Executed
		editor := Target{App: "Editor", Window: "salary.txt", Role: "normal"}
		if e[0].Target == nil || *e[0].Target != editor || e[0].Focus != nil {
			t.Errorf("a click into the editor: %+v, %+v", e[0].Target, e[0].Focus)
		}
		if e[1].Target != nil {
			t.Errorf("a click beside it: %+v", e[1].Target)
		}
		if f := e[2].Focus; e[2].Target != nil || f == nil || f.Before == nil || *f.Before != editor || f.After == nil || *f.After != editor {
			t.Errorf("text: %+v, %+v", e[2].Target, f)
		}
		if e[3].Target != nil || e[3].Focus != nil {
			t.Errorf("a wait: %+v, %+v", e[3].Target, e[3].Focus)
		}
		if text := res.Content[0].Text; !strings.Contains(text, `· on "Editor"`) || !strings.Contains(text, `· into "Editor"`) {
			t.Errorf("the text names no window: %s", text)
		}

		cfg := DefaultConfig()
		cfg.RecordTitles = false
		r.tool.SetConfig(cfg)
		res = r.call(t.Context(), batch)
		e = res.StructuredContent.Executed
		if e[0].Target.Window != "<hidden>" || e[2].Focus.Before.Window != "<hidden>" || strings.Contains(res.Content[0].Text, "salary") {
			t.Errorf("titles are recorded all the same: %+v, %+v", e[0].Target, e[2].Focus)
		}
	})
}

// A hung application costs 50 ms a question, and the record its name, no more.
func TestRecordWaitsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		r.driver.Window = func(ctx context.Context, p *input.Point) (*input.Window, error) {
			if p == nil {
				return nil, errors.New("no such window")
			}
			<-ctx.Done()
			return nil, ctx.Err()
		}
		start := time.Now()
		res := r.call(t.Context(), `[{"type":"move","x":60,"y":10},{"type":"keypress","keys":["a"]},{"type":"move","x":61,"y":10}]`)
		if res.IsError {
			t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
		}
		for i, e := range res.StructuredContent.Executed {
			if e.Target != nil || e.Focus != nil && (e.Focus.Before != nil || e.Focus.After != nil) {
				t.Errorf("%d: %+v %+v", i, e.Target, e.Focus)
			}
		}
		// The bubble's clock moves by what is waited for: the hold of the key, the
		// two names, and the settling of the picture.
		settled := time.Duration(DefaultConfig().SettleMS)*time.Millisecond + lookGap
		if took, want := time.Since(start), 2*nameTime+12*time.Millisecond+settled; took > want {
			t.Errorf("took %v, want %v", took, want)
		}
	})
}

func TestEffect(t *testing.T) {
	red := color.RGBA{R: 255, A: 255}
	for _, c := range []struct {
		name, actions string
		// paint is called before each event with its line.
		paint func(s paint, line string)
		want  []Effect
	}{
		{"nothing shows", `[{"type":"move","x":60,"y":10},{"type":"click","x":60,"y":10},{"type":"scroll","x":60,"y":10,"scroll_y":120},{"type":"type","text":"a"},{"type":"drag","path":[[60,10],[61,10]]}]`, nil,
			[]Effect{Confirmed, SuspectedNoop, SuspectedNoop, SuspectedNoop, SuspectedNoop}},
		{"the click shows", `[{"type":"click","x":60,"y":10}]`,
			func(s paint, line string) {
				if line == "left up 1" {
					s(image.Rect(58, 8, 62, 12), red)
				}
			}, []Effect{Delivered}},
		{"the text shows and is gone again", `[{"type":"type","text":"a"},{"type":"type","text":"b"}]`,
			func(s paint, line string) {
				s(image.Rect(50, 8, 52, 12), map[string]color.RGBA{`type "a"`: red}[line])
			}, []Effect{Delivered, Delivered}},
		{"it shows only after a while", `[{"type":"click","x":60,"y":10}]`,
			func(s paint, line string) {
				if line == "left up 1" {
					time.AfterFunc(200*time.Millisecond, func() { s(image.Rect(58, 8, 62, 12), red) })
				}
			}, []Effect{Delivered}},
		{"something shows outside the window that types", `[{"type":"type","text":"a"}]`,
			func(s paint, line string) { s(image.Rect(0, 0, 10, 10), red) }, []Effect{SuspectedNoop}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				named(r)
				r.look()
				r.driver.Before = func(_ context.Context, line string) error {
					if c.paint != nil {
						c.paint(func(at image.Rectangle, k color.RGBA) { r.screen.Paint(0, at, k) }, line)
					}
					return nil
				}
				res := r.call(t.Context(), c.actions)
				for i, e := range res.StructuredContent.Executed {
					if e.Effect == nil || *e.Effect != c.want[i] {
						t.Errorf("action %d is %v, want %s", i, e.Effect, c.want[i])
					}
				}
				if r.screen.Lent() != 0 {
					t.Errorf("%d frames lent", r.screen.Lent())
				}
			})
		})
	}
}

type paint func(image.Rectangle, color.RGBA)

// Where the screen cannot be looked at around a target, or the window with the
// keyboard is unknown, nothing is suspected.
func TestEffectNotReadable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		r.look()
		r.screen.Before = func(_ context.Context, _ capture.Display, part image.Rectangle) error {
			if !part.Empty() && part != onePixel {
				return errors.New("no part is given")
			}
			return nil
		}
		res := r.call(t.Context(), `[{"type":"click","x":60,"y":10},{"type":"keypress","keys":["a"]}]`)
		for i, e := range res.StructuredContent.Executed {
			if e.Effect == nil || *e.Effect != Delivered {
				t.Errorf("action %d: %v", i, e.Effect)
			}
		}
	})
}
