package computer

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/bridge/stop"
	"drawbridge/input"
)

// windows is a desktop of named windows: one lies under every point, one has the
// keyboard.
type windows struct {
	mu           sync.Mutex
	under, focus *input.Window
}

func (w *windows) name(_ context.Context, p *input.Point) (*input.Window, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if p != nil {
		return w.under, nil
	}
	return w.focus, nil
}

func (w *windows) set(under, focus *input.Window) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.under, w.focus = under, focus
}

var (
	editor  = &input.Window{App: "Mousepad", Title: "a.txt - Mousepad", Role: "normal"}
	thief   = &input.Window{App: "Thief", Title: "mine"}
	dock    = &input.Window{App: "Panel", Role: "dock"}
	nowhere *input.Window
)

func TestExpect(t *testing.T) {
	for _, c := range []struct {
		name, action string
		under, focus *input.Window
		want         bool
	}{
		{"the app is there", `{"type":"click","x":1,"y":1,"expect":{"app":"mousepad"}}`, editor, thief, true},
		{"app and title are", `{"type":"scroll","x":1,"y":1,"scroll_y":9,"expect":{"app":"Mousepad","window":"A.TXT"}}`, editor, thief, true},
		{"another app is", `{"type":"click","x":1,"y":1,"expect":{"app":"Mousepad"}}`, thief, editor, false},
		{"another title is", `{"type":"drag","path":[[1,1],[2,2]],"expect":{"window":"b.txt"}}`, editor, editor, false},
		{"a part of the app is not the app", `{"type":"move","x":1,"y":1,"expect":{"app":"Mouse"}}`, editor, editor, false},
		{"nothing is there", `{"type":"double_click","x":1,"y":1,"expect":{"window":"a"}}`, nowhere, editor, false},
		{"the app has the keyboard", `{"type":"type","text":"a","expect":{"app":"Mousepad"}}`, thief, editor, true},
		{"another has the keyboard", `{"type":"keypress","keys":["a"],"expect":{"app":"Mousepad"}}`, editor, thief, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var w windows
				w.set(c.under, c.focus)
				r.driver.Window = w.name
				r.look()
				res := r.call(t.Context(), `[{"type":"wait"},`+c.action+`]`)
				if res.IsError == c.want {
					t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
				}
				if c.want {
					return
				}
				if s := res.StructuredContent.Stopped; s.Reason != stop.Expect || s.Index != 1 || res.statuses() != "executed refused" {
					t.Errorf("stopped: %+v, %s", s, res.statuses())
				}
				if lines := r.driver.Lines(); len(slices.DeleteFunc(lines, func(l string) bool { return l == "sync" })) > 0 {
					t.Errorf("posted %q", lines)
				}
			})
		})
	}
}

// A person who ends the batch while its window is asked for is the reason, and not
// that the window was not told.
func TestExpectIsInterrupted(t *testing.T) {
	for _, action := range []string{`{"type":"click","x":1,"y":1,"expect":{"app":"Mousepad"}}`, `{"type":"keypress","keys":["a"],"expect":{"app":"Mousepad"}}`} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.look()
			r.driver.Window = func(ctx context.Context, _ *input.Point) (*input.Window, error) {
				r.person.Act("pressed a key")
				<-ctx.Done()
				return nil, context.Cause(ctx)
			}
			if s := r.call(t.Context(), "["+action+"]").StructuredContent.Stopped; s == nil || s.Reason != stop.HandBack || s.Index != 0 {
				t.Errorf("%s: stopped %+v", action, s)
			}
		})
	}
}

// What is hidden from the record can be expected, and stays hidden.
func TestExpectHidesTitles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRig(t, func(o *Options) { o.Config.RecordTitles = false })
		var w windows
		w.set(editor, editor)
		r.driver.Window = w.name
		r.look()
		if res := r.call(t.Context(), `[{"type":"click","x":1,"y":1,"expect":{"window":"a.txt"}}]`); res.IsError {
			t.Errorf("stopped: %+v", res.StructuredContent.Stopped)
		}
		res := r.call(t.Context(), `[{"type":"click","x":1,"y":1,"expect":{"window":"b"}}]`)
		if s := res.StructuredContent.Stopped; s == nil || strings.Contains(s.Message, "a.txt") {
			t.Errorf("stopped: %+v", s)
		}
	})
}

func TestFocusStolen(t *testing.T) {
	const batch = `[{"type":"click","x":1,"y":1},{"type":"screenshot"},{"type":"type","text":"secret"}]`
	for _, c := range []struct {
		name string
		act  func(w *windows, line string) // before each event
		from *input.Window                 // has the keyboard at first
		on   *input.Window                 // lies under the click
		want bool                          // the text is typed
	}{
		{"the click moves the keyboard", func(w *windows, line string) {
			if line == "left up 1" {
				w.set(editor, editor)
			}
		}, thief, editor, true},
		{"it moves a little later", func(w *windows, line string) {
			if line == "left up 1" {
				time.AfterFunc(focusTime/2, func() { w.set(editor, editor) })
			}
		}, thief, editor, true},
		{"a window keeps the keyboard", nil, thief, editor, false},
		{"a window takes it back", func(w *windows, line string) {
			if line == "left down 1" {
				w.set(editor, editor)
			}
			if line == "left up 1" {
				w.set(editor, thief)
			}
		}, thief, editor, false},
		{"a window that the click opened has it", func(w *windows, line string) {
			if line == "left up 1" {
				w.set(editor, &input.Window{App: "Viewer"})
			}
		}, thief, editor, true},
		{"a dock takes no keyboard", nil, thief, dock, true},
		{"nothing has it", nil, nowhere, editor, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				var w windows
				w.set(c.on, c.from)
				r.driver.Window = w.name
				r.driver.Before = func(_ context.Context, line string) error {
					if c.act != nil {
						c.act(&w, line)
					}
					return nil
				}
				r.look()
				res := r.call(t.Context(), batch)
				if res.IsError == c.want {
					t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
				}
				if typed := slices.Contains(r.driver.Lines(), `type "secret"`); typed != c.want {
					t.Errorf("typed: %v", typed)
				}
				if s := res.StructuredContent.Stopped; !c.want && (s.Reason != stop.FocusStolen || s.Index != 2 || !strings.Contains(s.Message, "Thief")) {
					t.Errorf("stopped: %+v", s)
				}
				if c.want {
					return
				}
				// Sent again it is meant.
				if res := r.call(t.Context(), `[{"type":"type","text":"secret"}]`); res.IsError {
					t.Errorf("sent again: %+v", res.StructuredContent.Stopped)
				}
			})
		})
	}
}

// lateWindows are windows of a busy machine, which tells who has the keyboard only
// sometimes.
type lateWindows struct {
	windows
	late []error // the answers to questions about the keyboard, in their order; what follows is answered
}

func (w *lateWindows) name(ctx context.Context, p *input.Point) (*input.Window, error) {
	if p == nil && len(w.late) > 0 {
		err := w.late[0]
		w.late = w.late[1:]
		if errors.Is(err, context.DeadlineExceeded) {
			<-ctx.Done()
		}
		if err != nil {
			return nil, err
		}
	}
	return w.windows.name(ctx, p)
}

// Where nobody tells in time who had the keyboard before a click, nothing is typed
// into another program than the one that was clicked.
func TestFocusUntold(t *testing.T) {
	hangs, late := context.DeadlineExceeded, input.ErrLate
	for _, c := range []struct {
		name string
		late []error
		has  *input.Window
		want bool // the text is typed
	}{
		{"the one that was clicked has it", []error{hangs}, editor, true},
		{"another one has it", []error{hangs}, thief, false},
		{"nobody has it", []error{hangs}, nowhere, true},
		{"nobody tells afterwards either", []error{hangs, hangs, hangs}, thief, true},
		{"it is told when it was late twice", []error{late, late}, editor, true},
		{"it is told when it was late twice, and keeps the keyboard", []error{late, late}, thief, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newRig(t)
				w := lateWindows{late: c.late}
				w.set(editor, c.has)
				r.driver.Window = w.name
				r.look()
				res := r.call(t.Context(), `[{"type":"click","x":1,"y":1},{"type":"type","text":"secret"}]`)
				if res.IsError == c.want {
					t.Fatalf("stopped: %+v", res.StructuredContent.Stopped)
				}
				if s := res.StructuredContent.Stopped; s != nil && (s.Reason != stop.FocusStolen || s.Index != 1 || slices.Contains(r.driver.Lines(), `type "secret"`)) {
					t.Errorf("stopped: %+v; sent %q", s, r.driver.Lines())
				}
			})
		})
	}
}

// slowTyping is a driver to which text takes time, as a long one does.
type slowTyping struct {
	input.Driver
	input.Namer
	letter time.Duration
}

func (d slowTyping) Type(ctx context.Context, text string) (int, error) {
	for i := range text {
		if err := sleep(ctx, d.letter); err != nil {
			return i, err
		}
	}
	return len(text), nil
}

func TestFocusStolenInAText(t *testing.T) {
	for _, c := range []struct {
		after time.Duration
		want  bool
	}{{500 * time.Millisecond, false}, {time.Second, true}} {
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t)
			r.tool.Close()
			desk := *r.tool.desk
			desk.Input = slowTyping{r.driver, r.driver, 100 * time.Millisecond}
			r.tool = New(Options{Desk: &desk, Config: DefaultConfig(), Lease: r.lease})
			t.Cleanup(r.tool.Close)
			var w windows
			w.set(editor, editor)
			r.driver.Window = w.name
			// The batch begins to type at once: its clock starts here.
			time.AfterFunc(c.after+time.Millisecond, func() { w.set(editor, thief) })
			res := r.call(t.Context(), `[{"type":"type","text":"0123456789"}]`)
			if res.IsError == c.want {
				t.Fatalf("after %v: %+v", c.after, res.StructuredContent.Stopped)
			}
			if c.want {
				return
			}
			s, e := res.StructuredContent.Stopped, res.StructuredContent.Executed[0]
			if s.Reason != stop.FocusStolen || !strings.Contains(s.Message, "Thief") || e.Status != Partial || e.Summary != "typed 5 of 10 characters" ||
				e.Focus.Before.App != "Mousepad" || e.Focus.After.App != "Thief" {
				t.Errorf("stopped %+v, %+v", s, e)
			}
		})
	}
}

func TestDecodeExpect(t *testing.T) {
	for in, want := range map[string]string{
		`{"app":"a","window":"b"}`: "",
		`{"app":"a"}`:              "",
		`{}`:                       "an object with app, window or both",
		`"a"`:                      `is "a"`,
		`{"app":""}`:               "field expect.app",
		`{"app":5}`:                "field expect.app: is 5",
		`{"application":"a"}`:      `the field "application" is not known`,
	} {
		b, err := decode(json.RawMessage(`{"actions":[{"type":"keypress","keys":["a"],"expect":`+in+`}]}`), allLimits)
		switch {
		case want == "" && (err != nil || b.actions[0].expect == nil || b.actions[0].expect.app != "a"):
			t.Errorf("%s: %+v, %v", in, b, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", in, err, want)
		}
	}
	if _, err := decode(json.RawMessage(`{"actions":[{"type":"wait","expect":{"app":"a"}}]}`), allLimits); err == nil {
		t.Error("a wait expects something")
	}
}
