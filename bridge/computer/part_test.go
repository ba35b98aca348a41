package computer

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/input"
)

// The record tells the role of the part that is meant, where somebody knows it.
func TestRecordNamesParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		named(r)
		r.look()
		r.driver.Part = func(_ context.Context, p *input.Point) (*input.Part, error) {
			switch {
			case p == nil:
				return &input.Part{Role: "text"}, nil
			case p.Y > 20:
				return &input.Part{}, nil
			}
			return &input.Part{Role: "push button"}, nil
		}
		res := r.call(t.Context(), `[{"type":"click","x":60,"y":10},{"type":"click","x":60,"y":50},{"type":"type","text":"a"}]`)
		e := res.StructuredContent.Executed
		if res.IsError || e[0].Target.Role != "push button" || e[1].Target.Role != "normal" || e[2].Focus.Before.Role != "text" || e[2].Focus.After.Role != "text" {
			t.Errorf("%+v, %+v, %+v", e[0].Target, e[1].Target, e[2].Focus)
		}
	})
}

// Whatever hangs when it is asked for a part costs 50 ms, and the record the role.
func TestPartsWaitForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t)
		named(r)
		r.look()
		r.driver.Part = func(ctx context.Context, _ *input.Point) (*input.Part, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		start := time.Now()
		res := r.call(t.Context(), `[{"type":"move","x":60,"y":10}]`)
		if took := time.Since(start); took > nameTime+time.Duration(DefaultConfig().SettleMS)*time.Millisecond+lookGap {
			t.Errorf("took %v", took)
		}
		if e := res.StructuredContent.Executed[0]; e.Target == nil || e.Target.Role != "normal" {
			t.Errorf("%+v", e.Target)
		}
	})
}

// Nothing is typed into a password field, by keys neither, and its holder is named.
func TestPasswordField(t *testing.T) {
	for _, action := range []string{`{"type":"type","text":"hunter2"}`, `{"type":"keypress","keys":["h"]}`} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			named(r)
			r.look()
			r.driver.Part = func(context.Context, *input.Point) (*input.Part, error) {
				return &input.Part{Role: "password text", Secure: true}, nil
			}
			res := r.call(t.Context(), `[{"type":"click","x":60,"y":10},`+action+`,{"type":"wait"}]`)
			s := res.StructuredContent.Stopped
			if s == nil || s.Reason != stop.SecureInput || s.Index != 1 || !strings.Contains(s.Message, `of "Editor"`) || res.statuses() != "executed refused skipped" {
				t.Errorf("stopped %+v, %s", s, res.statuses())
			}
			if e := res.StructuredContent.Executed[1]; e.Focus == nil || e.Focus.Before.Role != "password text" || e.Effect != nil {
				t.Errorf("%+v", e)
			}
			if strings.Contains(res.Content[0].Text, "hunter2") || slices.ContainsFunc(r.driver.Lines(), func(l string) bool { return strings.HasPrefix(l, "type") || strings.HasPrefix(l, "key") }) {
				t.Errorf("posted %q\n%s", r.driver.Lines(), res.Content[0].Text)
			}
		})
	}
}

// One that was clicked is one also when its program falls silent.
func TestPasswordFieldOfAHungProgram(t *testing.T) {
	for _, c := range []struct {
		before string
		want   bool // it is typed
	}{
		{`{"type":"click","x":60,"y":10}`, false},
		{`{"type":"click","x":60,"y":10},{"type":"move","x":60,"y":50}`, false},
		{`{"type":"click","x":60,"y":10},{"type":"click","x":60,"y":50}`, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			named(r)
			r.look()
			r.driver.Part = func(ctx context.Context, p *input.Point) (*input.Part, error) {
				if p != nil {
					return &input.Part{Role: "text", Secure: p.Y < 20}, nil
				}
				<-ctx.Done()
				return nil, ctx.Err()
			}
			res := r.call(t.Context(), "["+c.before+`,{"type":"type","text":"hunter2"}]`)
			if s := res.StructuredContent.Stopped; res.IsError == c.want || !c.want && s.Reason != stop.SecureInput {
				t.Errorf("%s: %+v", c.before, s)
			}
		})
	}
}

// A window that moves away from the pointer is not clicked, and nothing else is.
func TestAimed(t *testing.T) {
	at := input.Rect{X: -40, Y: 0, Width: 30, Height: 30}
	button := &input.Window{App: "Mover", Title: "secret title", Bounds: at}
	moved := *button
	moved.Bounds.X++
	for _, c := range []struct {
		name    string
		before  *input.Window
		after   *input.Window
		want    bool // it is clicked
		message string
	}{
		{"it stays", button, button, true, ""},
		{"another title", button, &input.Window{App: "Mover", Title: "other", Bounds: at}, true, ""},
		{"another window is there", button, thief, false, `"Thief"`},
		{"nothing is there", button, nil, false, "no window"},
		{"it moved a little", button, &moved, false, "moved"},
		{"nobody knew what was there", nil, thief, true, ""},
	} {
		for _, action := range []string{`{"type":"click","x":60,"y":10}`, `{"type":"double_click","x":60,"y":10}`,
			`{"type":"drag","path":[[60,10],[70,20]]}`, `{"type":"scroll","x":60,"y":10,"scroll_y":100}`} {
			t.Run(c.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newRig(t, func(o *Options) { o.Config.RecordTitles = false })
					var w windows
					w.set(c.before, nil)
					r.driver.Window = w.name
					r.look()
					r.driver.Before = func(_ context.Context, line string) error {
						if strings.HasPrefix(line, "move") {
							w.set(c.after, nil)
						}
						return nil
					}
					res := r.call(t.Context(), "["+action+`,{"type":"wait"}]`)
					if res.IsError == c.want {
						t.Fatalf("%s: %+v", action, res.StructuredContent.Stopped)
					}
					if c.want {
						return
					}
					s := res.StructuredContent.Stopped
					if s.Reason != stop.Misplaced || s.Index != 0 || !strings.Contains(s.Message, `"Mover"`) ||
						!strings.Contains(s.Message, c.message) || strings.Contains(s.Message, "secret") || res.statuses() != "partial skipped" {
						t.Errorf("%s: %+v, %s", action, s, res.statuses())
					}
					lines := slices.DeleteFunc(r.driver.Lines(), func(l string) bool { return l == "sync" })
					if len(lines) != 1 || !strings.HasPrefix(lines[0], "move") {
						t.Errorf("%s: posted %q", action, lines)
					}
				})
			})
		}
	}
}
