package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/bridge/computer"
	"drawbridge/capture"
	"drawbridge/input"
	"drawbridge/input/simulated"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var allChecks = []string{
	"pointer", "click", "double_click", "drag", "scroll_up", "scroll_down", "scroll_left", "scroll_right",
	"type_ascii", "type_accents", "type_emoji", "chord",
}

// simulatedDesk is a desk as package desk makes it, on a desktop of the test's.
func simulatedDesk(d *simulated.Desktop) *computer.Desk {
	return &computer.Desk{
		Backend: "simulated", Own: true, Input: d, Source: d,
		Permissions: func(context.Context) map[string]computer.Permission {
			state := map[bool]computer.Permission{true: computer.Granted, false: computer.Missing}
			in, out := d.Granted()
			return map[string]computer.Permission{computer.PermAccessibility: state[in], computer.PermScreenRecording: state[out]}
		},
		Close: d.Close,
	}
}

// broken is a driver with one thing that does not work. Each function says
// whether an event gets through, and may change it.
type broken struct {
	input.Driver
	move   func(held bool) bool
	button func(b input.Button, clicks int) bool
	scroll func(dx, dy float64) (float64, float64)
	key    func(k input.Key) bool
	text   func(s string) string

	held bool
}

func (b *broken) Move(ctx context.Context, p input.Point) error {
	if b.move != nil && !b.move(b.held) {
		return nil
	}
	return b.Driver.Move(ctx, p)
}

func (b *broken) Button(ctx context.Context, button input.Button, down bool, clicks int) error {
	b.held = down
	if b.button != nil && !b.button(button, clicks) {
		return nil
	}
	return b.Driver.Button(ctx, button, down, clicks)
}

func (b *broken) Scroll(ctx context.Context, dx, dy float64) error {
	if b.scroll != nil {
		dx, dy = b.scroll(dx, dy)
	}
	if dx == 0 && dy == 0 {
		return nil
	}
	return b.Driver.Scroll(ctx, dx, dy)
}

func (b *broken) Key(ctx context.Context, k input.Key, down bool) error {
	if b.key != nil && !b.key(k) {
		return nil
	}
	return b.Driver.Key(ctx, k, down)
}

func (b *broken) Type(ctx context.Context, text string) (int, error) {
	n := len(text)
	if b.text != nil {
		text = b.text(text)
	}
	if _, err := b.Driver.Type(ctx, text); err != nil {
		return 0, err
	}
	return n, nil
}

// keep drops the characters that f does not want.
func keep(f func(r rune) bool) func(string) string {
	return func(s string) string {
		return strings.Map(func(r rune) rune {
			if f(r) {
				return r
			}
			return -1
		}, s)
	}
}

// breakages is one way to break each kind of action, with the checks that must
// fail for it, and no others.
var breakages = []struct {
	name  string
	how   broken
	fails []string
	next  string // part of what to do, where that is special
}{
	{name: "nothing"},
	{name: "the pointer does not move", how: broken{move: func(bool) bool { return false }},
		fails: allChecks[:8], next: "pointer"},
	{name: "clicks are swallowed", how: broken{button: func(input.Button, int) bool { return false }},
		fails: []string{"click", "double_click", "drag"}},
	{name: "no second click", how: broken{button: func(_ input.Button, clicks int) bool { return clicks != 2 }},
		fails: []string{"double_click"}},
	{name: "no motion while dragging", how: broken{move: func(held bool) bool { return !held }},
		fails: []string{"drag"}},
	{name: "the wheel is dead", how: broken{scroll: func(float64, float64) (float64, float64) { return 0, 0 }},
		fails: []string{"scroll_up", "scroll_down", "scroll_left", "scroll_right"}},
	{name: "no scrolling down", how: broken{scroll: func(dx, dy float64) (float64, float64) { return dx, min(dy, 0) }},
		fails: []string{"scroll_down"}},
	{name: "no scrolling up", how: broken{scroll: func(dx, dy float64) (float64, float64) { return dx, max(dy, 0) }},
		fails: []string{"scroll_up"}},
	{name: "no scrolling left", how: broken{scroll: func(dx, dy float64) (float64, float64) { return max(dx, 0), dy }},
		fails: []string{"scroll_left"}},
	{name: "no scrolling right", how: broken{scroll: func(dx, dy float64) (float64, float64) { return min(dx, 0), dy }},
		fails: []string{"scroll_right"}},
	{name: "down is up", how: broken{scroll: func(dx, dy float64) (float64, float64) { return dx, -dy }},
		fails: []string{"scroll_up", "scroll_down"}, next: "invert_scroll"},
	{name: "the axes are exchanged", how: broken{scroll: func(dx, dy float64) (float64, float64) { return dy, dx }},
		fails: []string{"scroll_up", "scroll_down", "scroll_left", "scroll_right"}},
	{name: "modifiers are dropped", how: broken{key: func(k input.Key) bool { return !k.Modifier() }},
		fails: []string{"chord"}},
	{name: "only ASCII is typed", how: broken{text: keep(func(r rune) bool { return r < 0x80 })},
		fails: []string{"type_accents", "type_emoji"}, next: "clipboard"},
	{name: "no joiners", how: broken{text: keep(func(r rune) bool { return r != 0x200d })},
		fails: []string{"type_emoji"}},
	{name: "Shift is dropped while typing", how: broken{text: strings.ToLower},
		fails: []string{"type_ascii", "type_accents"}},
	{name: "the key is doubled", how: broken{text: func(s string) string { return s + s }},
		fails: []string{"type_ascii", "type_accents", "type_emoji"}},
}

// failed lists the checks that failed, and complains about those that do not say
// what to do.
func failed(t *testing.T, r Report) (names []string) {
	t.Helper()
	var all []string
	for _, c := range r.Checks {
		all = append(all, c.Name)
		if c.Detail == "" || c.OK != (c.Next == "") {
			t.Errorf("check %+v: want a detail always, and what to do next when it fails only", c)
		}
		if !c.OK {
			names = append(names, c.Name)
		}
	}
	want := allChecks
	if r.Measured != nil { // what only this machine can tell
		want = slices.Insert(slices.Clone(want), 1, "wheel", "person")
	}
	if !slices.Equal(all, want) {
		t.Errorf("checks %q, want %q", all, want)
	}
	return names
}

// testBreakages breaks one thing after the other, each on a desk of its own.
func testBreakages(t *testing.T, open func(t *testing.T) *computer.Desk) {
	for _, b := range breakages {
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			desk := open(t)
			real := desk.Input
			start, err := real.Pointer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			how := b.how
			how.Driver = real
			desk.Input = &how
			r := Run(t.Context(), Options{Desk: desk, TestInput: true})
			if got := failed(t, r); !slices.Equal(got, b.fails) {
				for _, c := range r.Checks {
					t.Logf("%+v", c)
				}
				t.Errorf("failed: %q, want %q", got, b.fails)
			}
			if r.OK != (b.fails == nil) {
				t.Errorf("ok is %v", r.OK)
			}
			for _, c := range r.Checks {
				if !c.OK && !strings.Contains(c.Next, b.next) {
					t.Errorf("%s says to do %q, want something with %q", c.Name, c.Next, b.next)
				}
			}
			if at, err := real.Pointer(t.Context()); err != nil || at != start {
				t.Errorf("the pointer is at %v (%v), want it back at %v", at, err, start)
			}
		})
	}
}

func TestSimulated(t *testing.T) {
	testBreakages(t, func(t *testing.T) *computer.Desk {
		d := simulated.New(simulated.Options{})
		t.Cleanup(func() {
			if s := d.State(); s.Text != "" || s.Clicks.Left != 0 || len(s.Held.Keys)+len(s.Held.Buttons) != 0 {
				t.Errorf("left behind: %+v", s)
			}
		})
		return simulatedDesk(d)
	})
}

func TestSimulatedWithALag(t *testing.T) {
	d := simulated.New(simulated.Options{Lag: 30 * time.Millisecond})
	if got := failed(t, Run(t.Context(), Options{Desk: simulatedDesk(d), TestInput: true})); got != nil {
		t.Errorf("failed: %q", got)
	}
}

func TestWithoutTestInputNothingIsPosted(t *testing.T) {
	d := simulated.New(simulated.Options{})
	r := Run(t.Context(), Options{Desk: simulatedDesk(d)})
	if !r.OK || len(r.Checks) != 0 {
		t.Errorf("report %+v, want it ok and without checks", r)
	}
	if n := d.State().Events; n != 0 {
		t.Errorf("%d events were posted", n)
	}
}

func TestInvertScroll(t *testing.T) {
	d := simulated.New(simulated.Options{})
	desk := simulatedDesk(d)
	desk.Input = &broken{Driver: d, scroll: func(dx, dy float64) (float64, float64) { return -dx, -dy }}
	if got := failed(t, Run(t.Context(), Options{Desk: desk, TestInput: true, InvertScroll: true})); got != nil {
		t.Errorf("failed with invert_scroll set: %q", got)
	}
}

func TestMissingPermissions(t *testing.T) {
	d := simulated.New(simulated.Options{WithholdInput: true, WithholdCapture: true})
	r := Run(t.Context(), Options{Desk: simulatedDesk(d), TestInput: true})
	if r.OK || r.Capture.OK || r.Capture.Next == "" {
		t.Errorf("ok %v, capture %+v", r.OK, r.Capture)
	}
	for _, p := range r.Permissions {
		if p.State != computer.Missing || p.For == "" || p.How == "" {
			t.Errorf("permission %+v", p)
		}
	}
	// The events are dropped without an error: what arrived is what counts.
	if got := failed(t, r); !slices.Equal(got, allChecks) {
		t.Errorf("failed: %q, want all", got)
	}
}

// elsewhere is a window that is covered, or does not have the keyboard.
type elsewhere struct {
	Window
	pointer, keyboard bool
}

func (w elsewhere) Ready(_ context.Context, at ...input.Point) error {
	if len(at) > 0 && w.pointer || len(at) == 0 && w.keyboard {
		return os.ErrPermission
	}
	return nil
}

func TestNothingIsSentToOtherWindows(t *testing.T) {
	for _, tt := range []struct {
		name              string
		pointer, keyboard bool
		fails             []string
	}{
		{"covered", true, false, allChecks[1:8]},
		{"without the keyboard", false, true, allChecks[8:]},
		{"both", true, true, allChecks[1:]},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := simulated.New(simulated.Options{})
			r := Run(t.Context(), Options{Desk: simulatedDesk(d), TestInput: true,
				Open: func(context.Context) (Window, error) {
					return elsewhere{openSimulated(d, d), tt.pointer, tt.keyboard}, nil
				}})
			if got := failed(t, r); !slices.Equal(got, tt.fails) {
				t.Errorf("failed: %q, want %q", got, tt.fails)
			}
			if tt.pointer && tt.keyboard {
				// 40 points away, back, and at the end to where it was.
				if n := d.State().Events; n != 3 {
					t.Errorf("%d events were posted, want the pointer's 3", n)
				}
			}
		})
	}
}

func TestNoWindow(t *testing.T) {
	d := simulated.New(simulated.Options{})
	r := Run(t.Context(), Options{Desk: simulatedDesk(d), TestInput: true,
		Open: func(context.Context) (Window, error) { return nil, os.ErrDeadlineExceeded }})
	if got := failed(t, r); !slices.Equal(got, allChecks[1:]) {
		t.Errorf("failed: %q, want all but the pointer", got)
	}
}

func TestDesktopGone(t *testing.T) {
	d := simulated.New(simulated.Options{})
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	r := Run(t.Context(), Options{Desk: simulatedDesk(d), TestInput: true})
	if got := failed(t, r); r.OK || r.Capture.OK || !slices.Equal(got, allChecks) {
		t.Errorf("ok %v, capture %+v, failed %q", r.OK, r.Capture, got)
	}
}

func TestCaptureWithoutADisplay(t *testing.T) {
	d := simulated.New(simulated.Options{})
	d.SetDisplays()
	r := Run(t.Context(), Options{Desk: simulatedDesk(d)})
	if r.OK || r.Capture.OK || r.Capture.Error == "" || r.Capture.Next == "" {
		t.Errorf("ok %v, capture %+v", r.OK, r.Capture)
	}
}

// TestShape holds the report's JSON and its text against golden files.
func TestShape(t *testing.T) {
	d := simulated.New(simulated.Options{Displays: []capture.Display{
		simulated.Display(0, 800, 600, 1, input.Point{}),
		simulated.Display(1, 1440, 900, 2, input.Point{X: -1440, Y: -300}),
	}})
	desk := simulatedDesk(d)
	desk.Reason = "asked for by a test"
	desk.Input = &broken{Driver: d, scroll: func(dx, dy float64) (float64, float64) { return dx, -dy }}
	r := Run(t.Context(), Options{Desk: desk, TestInput: true})
	r.Platform, r.Binary = "here/now", "/somewhere/drawbridge"
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	golden(t, "report.json", append(data, '\n'))
	var text bytes.Buffer
	if err := r.Write(&text); err != nil {
		t.Fatal(err)
	}
	golden(t, "report.txt", text.Bytes())

	var back Report
	if err := json.Unmarshal(data, &back); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(back, r) {
		t.Errorf("read back from JSON: %+v, want %+v", back, r)
	}
}

func golden(t *testing.T, name string, got []byte) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs (-update rewrites it):\n%s", path, got)
	}
}

// TestHeld: where no gesture may be made that is said once, with what to do about it;
// nothing is made, and what was held in the middle of the test is not called broken.
func TestHeld(t *testing.T) {
	const why, next = "everything is paused by a tester", "go on first"
	for after, want := range map[int][]string{0: {"input"}, 1: {"input"}, 3: {"pointer", "click", "input"}} {
		d := simulated.New(simulated.Options{})
		asked := 0
		r := Run(t.Context(), Options{Desk: simulatedDesk(d), TestInput: true, Held: func() (string, string) {
			if asked++; asked > after {
				return why, next
			}
			return "", ""
		}})
		var names []string
		for _, c := range r.Checks {
			names = append(names, c.Name)
		}
		if last := r.Checks[len(r.Checks)-1]; r.OK || !slices.Equal(names, want) || last.OK || last.Detail != "not tested: "+why || last.Next != next {
			t.Errorf("held at question %d: %+v", after+1, r.Checks)
		}
	}
	d := simulated.New(simulated.Options{})
	r := Run(t.Context(), Options{Desk: simulatedDesk(d), Held: func() (string, string) { return why, next }})
	if !r.OK || len(r.Checks) > 0 {
		t.Errorf("only looked: %+v", r)
	}
}
