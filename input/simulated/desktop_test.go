package simulated

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"image"
	"os"
	"path/filepath"
	"reflect"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"drawbridge/capture"
	"drawbridge/input"
)

// hand makes gestures of single events, as a client's batch does.
type hand struct {
	t *testing.T
	d *Desktop
}

func newHand(t *testing.T, o Options) hand {
	t.Helper()
	return hand{t, New(o)}
}

func (h hand) do(err error) {
	h.t.Helper()
	if err != nil {
		h.t.Fatal(err)
	}
}

func (h hand) at(widget string) input.Point { return h.d.State().Widgets[widget].Center() }

func (h hand) move(x, y float64) {
	h.t.Helper()
	h.do(h.d.Move(h.t.Context(), input.Point{X: x, Y: y}))
}

func (h hand) press(b input.Button, clicks int) {
	h.t.Helper()
	h.do(h.d.Button(h.t.Context(), b, true, clicks))
}

func (h hand) release(b input.Button, clicks int) {
	h.t.Helper()
	h.do(h.d.Button(h.t.Context(), b, false, clicks))
}

func (h hand) click(p input.Point, b input.Button, count int) {
	h.t.Helper()
	h.move(p.X, p.Y)
	for n := 1; n <= count; n++ {
		h.press(b, n)
		h.release(b, n)
	}
}

func (h hand) chord(keys ...input.Key) {
	h.t.Helper()
	for _, k := range keys {
		h.do(h.d.Key(h.t.Context(), k, true))
	}
	for i := len(keys) - 1; i >= 0; i-- {
		h.do(h.d.Key(h.t.Context(), keys[i], false))
	}
}

func (h hand) enter(text string) {
	h.t.Helper()
	n, err := h.d.Type(h.t.Context(), text)
	h.do(err)
	if n != len(text) {
		h.t.Fatalf("Type reports %d of %d bytes", n, len(text))
	}
}

func TestClicks(t *testing.T) {
	h := newHand(t, Options{})
	press := h.at(Press)
	h.click(press, input.Left, 1)
	h.click(press, input.Right, 1)
	h.click(press, input.Middle, 1)
	h.click(press, input.Back, 1)
	h.click(press, input.Forward, 1)
	if got, want := h.d.State().Clicks, (Clicks{1, 1, 1, 1, 1, 0}); got != want {
		t.Errorf("one click each: %+v, want %+v", got, want)
	}
	h.click(press, input.Left, 2)
	if got, want := h.d.State().Clicks, (Clicks{3, 1, 1, 1, 1, 1}); got != want {
		t.Errorf("after a double click: %+v, want %+v", got, want)
	}
	// Two presses that both claim to be the first are no double click.
	for range 2 {
		h.click(press, input.Left, 1)
	}
	if got := h.d.State().Clicks; got.Left != 5 || got.Double != 1 {
		t.Errorf("after two single clicks: %+v, want left 5, double 1", got)
	}
	if got := h.d.State().Focus; got != Press {
		t.Errorf("focus %q after a click, want %q", got, Press)
	}
	// Pressed here, let go elsewhere: no click.
	h.move(press.X, press.Y)
	h.press(input.Left, 1)
	field := h.at(Field)
	h.move(field.X, field.Y)
	h.release(input.Left, 1)
	if got := h.d.State().Clicks.Left; got != 5 {
		t.Errorf("left %d after a press that was carried away, want 5", got)
	}

	h.click(h.at(Check), input.Left, 1)
	if !h.d.State().Checked {
		t.Error("the check box is not checked after a click")
	}
	h.click(h.at(Check), input.Right, 1)
	if !h.d.State().Checked {
		t.Error("a right click turned the check box over")
	}
	h.click(h.at(Field), input.Left, 1)
	h.enter("gone soon")
	h.click(h.at(Clear), input.Left, 1)
	if got := h.d.State().Text; got != "" {
		t.Errorf("text %q after a click on Clear, want none", got)
	}
}

func TestTextNeedsFocus(t *testing.T) {
	h := newHand(t, Options{})
	h.enter("lost")
	if got := h.d.State().Text; got != "" {
		t.Fatalf("text %q without focus, want none", got)
	}
	const text = "Grüße, naïve €\n\t日本語 👩‍💻🇨🇭👍🏽 x"
	h.click(h.at(Field), input.Left, 1)
	h.do(h.d.Key(t.Context(), input.CapsLock, true))
	h.do(h.d.Key(t.Context(), input.CapsLock, false))
	h.enter(text)
	if got := h.d.State().Text; got != text {
		t.Errorf("text %q, want %q", got, text)
	}
	h.d.Reset()
	h.do(h.d.Focus(Field))
	h.enter("a\r\nb\rc")
	if got, want := h.d.State().Text, "a\nb\nc"; got != want {
		t.Errorf("text %q, want %q", got, want)
	}
	if err := h.d.Focus("window"); err == nil {
		t.Error("Focus takes a widget that there is not")
	}
}

func TestTypeStopsBetweenGraphemes(t *testing.T) {
	h := newHand(t, Options{})
	h.do(h.d.Focus(Field))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	n, err := h.d.Type(ctx, "👩‍💻")
	if n != 0 || !errors.Is(err, context.Canceled) {
		t.Errorf("Type after cancel: %d, %v; want 0 and the cancel", n, err)
	}
	if got := h.d.State().Text; got != "" {
		t.Errorf("text %q, want none", got)
	}
}

func TestKeys(t *testing.T) {
	const ctrl, shift, alt, cmd = input.Control, input.Shift, input.Alt, input.Command
	chords := func(keys ...[]input.Key) [][]input.Key { return keys }
	k := func(keys ...input.Key) []input.Key { return keys }
	tests := []struct {
		name, text string
		keys       [][]input.Key
		want       string
		selected   string
	}{
		{"letters", "", chords(k("a"), k(shift, "b"), k("C"), k("é")), "aBCé", ""},
		{"punctuation", "", chords(k("/"), k(shift, "/"), k(shift, "1"), k("+"), k(input.KPAdd), k("kp7"), k(input.Space), k("-")), "/?!++7 -", ""},
		{"caps lock", "", chords(k(input.CapsLock), k("a"), k(shift, "a"), k("1"), k(input.CapsLock), k("a")), "Aa1a", ""},
		{"enter", "ab", chords(k(input.ArrowLeft), k(input.Enter)), "a\nb", ""},
		{"backspace takes a grapheme", "x👩‍💻", chords(k(input.Backspace)), "x", ""},
		{"delete", "abc", chords(k(input.Home), k(input.Delete)), "bc", ""},
		{"delete at the end", "abc", chords(k(input.Delete)), "abc", ""},
		{"select all", "one two", chords(k(ctrl, "a")), "one two", "one two"},
		{"select all on a Mac", "one two", chords(k(cmd, "a"), k(input.Backspace)), "", ""},
		{"copy and paste", "ab", chords(k(ctrl, "a"), k(ctrl, "c"), k(input.End), k(ctrl, "v")), "abab", ""},
		{"cut and paste", "ab", chords(k(shift, input.ArrowLeft), k(ctrl, "x"), k(input.Home), k(ctrl, "v")), "ba", ""},
		{"undo", "ab", chords(k(ctrl, "a"), k("x"), k("y"), k(ctrl, "z")), "ab", "ab"},
		{"undo with nothing to undo", "", chords(k(ctrl, "z")), "", ""},
		{"extend left", "abc", chords(k(shift, input.ArrowLeft), k(shift, input.ArrowLeft)), "abc", "bc"},
		{"collapse", "abc", chords(k(ctrl, "a"), k(input.ArrowLeft), k("x")), "xabc", ""},
		{"to the line's start", "ab\ncd", chords(k(shift, input.Home)), "ab\ncd", "cd"},
		{"to the text's start", "ab\ncd", chords(k(ctrl, shift, input.Home)), "ab\ncd", "ab\ncd"},
		{"word left", "one two", chords(k(ctrl, shift, input.ArrowLeft)), "one two", "two"},
		{"word left on a Mac", "one two", chords(k(alt, shift, input.ArrowLeft)), "one two", "two"},
		{"delete a word", "one two", chords(k(ctrl, input.Backspace)), "one ", ""},
		{"word right", "one two", chords(k(input.Home), k(ctrl, shift, input.ArrowRight)), "one two", "one"},
		{"up", "ab\ncd", chords(k(input.ArrowUp), k("x")), "abx\ncd", ""},
		{"down", "ab\ncd", chords(k(ctrl, input.Home), k(input.ArrowDown), k("x")), "ab\nxcd", ""},
		{"a shortcut types nothing", "a", chords(k(ctrl, "q"), k(alt, "q"), k("f5"), k(input.Escape)), "a", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			h := newHand(t, Options{})
			h.do(h.d.Focus(Field))
			h.enter(tt.text)
			for _, chord := range tt.keys {
				h.chord(chord...)
			}
			s := h.d.State()
			if s.Text != tt.want || s.Selected != tt.selected {
				t.Errorf("text %q, selected %q; want %q, %q", s.Text, s.Selected, tt.want, tt.selected)
			}
			var last []string
			for _, key := range tt.keys[len(tt.keys)-1] {
				last = append(last, string(key))
			}
			if !reflect.DeepEqual(s.Chord, last) {
				t.Errorf("last chord %q, want %q", s.Chord, last)
			}
			if len(s.Held.Keys) != 0 {
				t.Errorf("held after all: %q", s.Held.Keys)
			}
		})
	}
}

func TestUnknownKeys(t *testing.T) {
	d := New(Options{})
	for _, k := range []input.Key{"", "hyper", "ab", "\x00", "\n", "\xff", "f25", "kp10"} {
		if err := d.Key(t.Context(), k, true); !errors.Is(err, input.ErrNoKey) {
			t.Errorf("key %q: %v, want ErrNoKey", k, err)
		}
	}
	if err := d.Button(t.Context(), 0, true, 1); err == nil {
		t.Error("button 0 is taken")
	}
	if s := d.State(); s.Events != 0 {
		t.Errorf("%d events were posted, want none", s.Events)
	}
}

func TestTabGoesRound(t *testing.T) {
	h := newHand(t, Options{})
	var got []string
	for range len(focusOrder) + 1 {
		h.chord(input.Tab)
		got = append(got, h.d.State().Focus)
	}
	if want := append(focusOrder[:len(focusOrder):len(focusOrder)], Field); !reflect.DeepEqual(got, want) {
		t.Errorf("Tab: %q, want %q", got, want)
	}
	h.chord(input.Shift, input.Tab)
	if got := h.d.State().Focus; got != List {
		t.Errorf("back from the first: %q, want %q", got, List)
	}
	h.do(h.d.Focus(Check))
	h.chord(input.Space)
	h.do(h.d.Focus(Press))
	h.chord(input.Enter)
	h.do(h.d.Focus(List))
	h.chord(input.End)
	s := h.d.State()
	if !s.Checked || s.Clicks.Left != 1 || s.List.Offset[1] != s.List.Max[1] {
		t.Errorf("by keyboard: checked %v, clicks %+v, list %+v", s.Checked, s.Clicks, s.List)
	}
	h.chord(input.Home)
	h.chord(input.ArrowDown)
	if s := h.d.State(); s.List.Row != 0 || s.List.Offset[1] != 0 {
		t.Errorf("list %+v, want row 0 at the top", s.List)
	}
}

func TestSelectWithThePointer(t *testing.T) {
	h := newHand(t, Options{})
	h.do(h.d.Focus(Field))
	h.enter("alpha beta gamma\n日本 x")
	field := h.d.State().Widgets[Field]
	cell := func(row, column float64) input.Point {
		return input.Point{X: field[0] + fieldPad + (column+0.5)*cellWidth, Y: field[1] + fieldPad + (row+0.5)*lineHeight}
	}
	h.click(cell(0, 7), input.Left, 2)
	if got := h.d.State().Selected; got != "beta" {
		t.Errorf("a double click selects %q, want beta", got)
	}
	h.click(cell(0, 7), input.Left, 3)
	if got := h.d.State().Selected; got != "alpha beta gamma" {
		t.Errorf("a triple click selects %q, want the line", got)
	}
	h.move(cell(0, 5.9).X, cell(0, 0).Y) // right half of the space: after it
	h.press(input.Left, 1)
	h.move(cell(1, 0).X, cell(1, 0).Y)
	h.move(cell(1, 2.9).X, cell(1, 0).Y) // right half of the second wide one
	h.release(input.Left, 1)
	if got, want := h.d.State().Selected, "beta gamma\n日本"; got != want {
		t.Errorf("a drag selects %q, want %q", got, want)
	}
	h.click(cell(0, -0.3), input.Left, 1) // left half of the first: before it
	h.do(h.d.Key(t.Context(), input.Shift, true))
	h.click(cell(0, 4.7), input.Left, 1)
	h.do(h.d.Key(t.Context(), input.Shift, false))
	if got := h.d.State().Selected; got != "alpha" {
		t.Errorf("a click with Shift selects %q, want alpha", got)
	}
}

func TestLongTextIsWrappedAndKeptInSight(t *testing.T) {
	f := &textField{}
	for range 20 * fieldColumns {
		f.insert("x")
	}
	lines := f.lines()
	if len(lines) != 20 {
		t.Fatalf("%d lines, want 20", len(lines))
	}
	for i, l := range lines {
		if len(l.cells) != fieldColumns {
			t.Errorf("line %d has %d cells, want %d", i, len(l.cells), fieldColumns)
		}
	}
	if want := 20 - fieldLines; f.top != want {
		t.Errorf("first line in sight %d, want %d", f.top, want)
	}
	f.moveTo(0, false)
	if f.top != 0 {
		t.Errorf("first line in sight %d with the caret at the start, want 0", f.top)
	}
}

func TestScroll(t *testing.T) {
	h := newHand(t, Options{})
	list := h.at(List)
	h.move(list.X, list.Y)
	scroll := func(dx, dy float64, want [2]float64) {
		t.Helper()
		h.do(h.d.Scroll(t.Context(), dx, dy))
		if got := h.d.State().List.Offset; got != want {
			t.Errorf("scroll %g, %g: offset %v, want %v", dx, dy, got, want)
		}
	}
	scroll(0, 120.5, [2]float64{0, 120.5})
	scroll(60, 0, [2]float64{60, 120.5})
	scroll(0, -20.5, [2]float64{60, 100})
	scroll(-1000, -1000, [2]float64{0, 0})
	scroll(1e9, 1e9, h.d.State().List.Max)
	h.d.ScrollTo(10, 20)
	h.move(1, 1)
	scroll(5, 5, [2]float64{10, 20}) // not on the list
	h.move(list.X, list.Y)
	h.click(h.at(List), input.Left, 1)
	// The middle of the list is 132 points down, 20 of them scrolled away.
	if got := h.d.State().List.Row; got != (132+20)/24 {
		t.Errorf("row %d selected, want %d", got, (132+20)/24)
	}
}

func TestDrag(t *testing.T) {
	steps := func(from, to input.Point, n int) []input.Point {
		var path []input.Point
		for i := 1; i <= n; i++ {
			f := float64(i) / float64(n)
			path = append(path, input.Point{X: from.X + f*(to.X-from.X), Y: from.Y + f*(to.Y-from.Y)})
		}
		return path
	}
	for _, tt := range []struct {
		name    string
		motions int
		button  input.Button
		want    bool
	}{
		{"many motions", 20, input.Left, true},
		{"one in between", 2, input.Left, true},
		{"a jump", 1, input.Left, false},
		{"no motion", 0, input.Left, false},
		{"another button", 20, input.Right, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			h := newHand(t, Options{})
			from, to := h.at(Box), h.at(Target)
			before := h.d.State().Box
			h.move(from.X, from.Y)
			h.press(tt.button, 1)
			for _, p := range steps(from, to, tt.motions) {
				h.move(p.X, p.Y)
			}
			h.release(tt.button, 1)
			s := h.d.State()
			if s.Box.OnTarget != tt.want || s.Drag.Dropped != tt.want {
				t.Errorf("on target %v, dropped %v; want %v", s.Box.OnTarget, s.Drag.Dropped, tt.want)
			}
			if !tt.want && s.Box != before {
				t.Errorf("the box is at %v, want %v", s.Box, before)
			}
			if len(s.Drag.Path) != 1+tt.motions {
				t.Errorf("path of %d places, want %d", len(s.Drag.Path), 1+tt.motions)
			}
			if tt.want && h.at(Box) != to {
				t.Errorf("the box is at %v, want %v", h.at(Box), to)
			}
		})
	}
	t.Run("motion without a button", func(t *testing.T) {
		h := newHand(t, Options{})
		from, to := h.at(Box), h.at(Target)
		for _, p := range steps(from, to, 20) {
			h.move(p.X, p.Y)
		}
		if s := h.d.State(); s.Box.OnTarget || len(s.Drag.Path) != 0 {
			t.Errorf("plain motion dragged: %+v, path %v", s.Box, s.Drag.Path)
		}
	})
}

func TestReleaseStray(t *testing.T) {
	h := newHand(t, Options{})
	h.do(h.d.Key(t.Context(), input.Shift, true))
	h.do(h.d.Key(t.Context(), "a", true))
	h.press(input.Left, 1)
	if got, want := h.d.State().Held, (Held{Keys: []string{"shift", "a"}, Buttons: []string{"left"}}); !reflect.DeepEqual(got, want) {
		t.Fatalf("held %+v, want %+v", got, want)
	}
	h.do(h.d.ReleaseStray(t.Context()))
	if got, want := h.d.State().Held, (Held{Keys: []string{}, Buttons: []string{}}); !reflect.DeepEqual(got, want) {
		t.Errorf("held after release %+v, want %+v", got, want)
	}
	h.do(h.d.ReleaseStray(t.Context()))
}

func TestPermissions(t *testing.T) {
	h := newHand(t, Options{WithholdInput: true, WithholdCapture: true})
	before := h.d.State()
	h.click(h.at(Check), input.Left, 1) // reported as done, and dropped
	if after := h.d.State(); !reflect.DeepEqual(before, after) {
		t.Errorf("dropped events changed something: %+v", after)
	}
	displays, err := h.d.Displays(t.Context())
	h.do(err)
	if _, err := h.d.Grab(t.Context(), displays[0], image.Rectangle{}); !errors.Is(err, capture.ErrPermission) {
		t.Errorf("Grab: %v, want ErrPermission", err)
	}
	h.d.Grant(true, true)
	if in, out := h.d.Granted(); !in || !out {
		t.Errorf("Granted says %v, %v after a grant", in, out)
	}
	h.click(h.at(Check), input.Left, 1)
	if !h.d.State().Checked {
		t.Error("the click is dropped after the grant")
	}
}

func TestLag(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHand(t, Options{Lag: 300 * time.Millisecond})
		check := h.at(Check)
		h.click(check, input.Left, 1)
		if h.d.State().Checked {
			t.Error("the window saw the click at once")
		}
		if p, err := h.d.Pointer(t.Context()); err != nil || p != check {
			t.Errorf("pointer at %v (%v), want %v at once", p, err, check)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		if err := h.d.Sync(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Sync with a short deadline: %v", err)
		}
		h.do(h.d.Sync(t.Context()))
		if !h.d.State().Checked {
			t.Error("the window did not see the click when Sync returned")
		}
	})
}

func TestStateFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "simulated.json")
	h := newHand(t, Options{StateFile: path})
	read := func() State {
		t.Helper()
		data, err := os.ReadFile(path)
		h.do(err)
		var s State
		dec := json.NewDecoder(bytes.NewReader(data))
		dec.DisallowUnknownFields()
		h.do(dec.Decode(&s))
		return s
	}
	if s := read(); s.V != 1 || s.Banner != "SIMULATED DESKTOP - no real application" {
		t.Errorf("the first state is %+v", s)
	}
	h.click(h.at(Field), input.Left, 1)
	h.enter("by Sync 👍🏽")
	h.do(h.d.Sync(t.Context()))
	if got, want := read(), h.d.State(); !reflect.DeepEqual(got, want) {
		t.Errorf("after Sync the file holds\n%+v\nwant\n%+v", got, want)
	}
	h.enter("!")
	displays, err := h.d.Displays(t.Context())
	h.do(err)
	_, err = h.d.Grab(t.Context(), displays[0], image.Rectangle{})
	h.do(err)
	if got := read().Text; got != "by Sync 👍🏽!" {
		t.Errorf("after Grab the file holds the text %q", got)
	}
	h.enter("?")
	h.do(h.d.Close())
	h.do(h.d.Close())
	if got := read().Text; got != "by Sync 👍🏽!?" {
		t.Errorf("after Close the file holds the text %q", got)
	}
	info, err := os.Stat(path)
	h.do(err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, want 0600", info.Mode())
	}
	entries, err := os.ReadDir(dir)
	h.do(err)
	if len(entries) != 1 {
		t.Errorf("left in the folder: %v", entries)
	}
}

func TestStateFileCannotBeWritten(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "not there yet")
	d := New(Options{StateFile: filepath.Join(dir, "simulated.json")})
	if err := d.Sync(t.Context()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Sync: %v, want that the folder does not exist", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := d.Sync(t.Context()); err != nil {
		t.Errorf("Sync once the folder is there: %v", err)
	}
}

func TestClosed(t *testing.T) {
	d := New(Options{})
	displays, err := d.Displays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	_, typeErr := d.Type(t.Context(), "x")
	_, pointerErr := d.Pointer(t.Context())
	for name, err := range map[string]error{
		"Move": d.Move(t.Context(), input.Point{}), "Key": d.Key(t.Context(), "a", true), "Type": typeErr,
		"Button": d.Button(t.Context(), input.Left, true, 1), "Scroll": d.Scroll(t.Context(), 0, 1),
		"Pointer": pointerErr, "Sync": d.Sync(t.Context()),
	} {
		if !errors.Is(err, input.ErrGone) {
			t.Errorf("%s after Close: %v, want ErrGone", name, err)
		}
	}
	_, displaysErr := d.Displays(t.Context())
	_, grabErr := d.Grab(t.Context(), displays[0], image.Rectangle{})
	if !errors.Is(displaysErr, capture.ErrGone) || !errors.Is(grabErr, capture.ErrGone) {
		t.Errorf("Displays, Grab after Close: %v, %v; want ErrGone", displaysErr, grabErr)
	}
}

func TestManyAtOnce(t *testing.T) {
	h := newHand(t, Options{StateFile: filepath.Join(t.TempDir(), "s.json")})
	h.do(h.d.Focus(Field))
	displays, err := h.d.Displays(t.Context())
	h.do(err)
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for range 5 {
				if _, err := h.d.Grab(t.Context(), displays[0], image.Rect(0, 0, 40, 40)); err != nil {
					t.Error(err)
				}
				h.d.State()
				h.d.Idle()
			}
		})
	}
	h.enter("typed while others look")
	wg.Wait()
	if got := h.d.State().Text; got != "typed while others look" {
		t.Errorf("text %q", got)
	}
}
