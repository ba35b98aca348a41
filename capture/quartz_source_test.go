//go:build standin

package capture

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"drawbridge/input/virtual"
	"drawbridge/packaging/standin"
)

// The X display of these tests has 1280 by 800 pixels. Of two displays the main
// one, a Retina one, lies on its right half; the other has a negative origin.
const (
	onePlain    = "1:0,0,1280,800,1,0,0"
	oneRetina   = "7:0,0,640,400,2,0,0"
	twoDisplays = "1:0,0,320,400,2,640,0 2:-640,-100,640,800,1,0,0"
)

type macScreen struct {
	*standin.Desk
	v *virtual.Virtual
}

func openScreen(t testing.TB, displays string) *macScreen {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(context.Background(), virtual.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	var cookie string
	for _, e := range v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	s, err := standin.Open(v.Display(), cookie, displays, filepath.Join(t.TempDir(), "posted"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return &macScreen{s, v}
}

func (m *macScreen) source(t testing.TB, o QuartzOptions) Source {
	t.Helper()
	s, err := OpenQuartz(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func (m *macScreen) set(t testing.TB, name, value string) {
	t.Helper()
	if err := m.Set(name, value); err != nil {
		t.Fatal(err)
	}
}

func displaysOf(t testing.TB, s Source) []Display {
	t.Helper()
	all, err := s.Displays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// paint puts something to see onto the screen: xterm's are text on white.
func (m *macScreen) paint(t testing.TB) {
	t.Helper()
	for _, program := range []string{"xsetroot", "scrot"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("%s is missing", program)
		}
	}
	cmd := exec.Command("xsetroot", "-mod", "7", "5", "-fg", "#3366cc", "-bg", "#f0e0d0")
	cmd.Env = m.v.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
}

// truth is what the X layer sees of a part of the screen, in its pixels.
func (m *macScreen) truth(t testing.TB, r image.Rectangle) *Frame {
	t.Helper()
	s, err := OpenX11(m.v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	f, err := s.Grab(t.Context(), displaysOf(t, s)[0], r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(f.Release)
	return f
}

func sameFrame(t testing.TB, got, want *Frame) {
	t.Helper()
	if got.Width != want.Width || got.Height != want.Height {
		t.Fatalf("%d×%d pixels, want %d×%d", got.Width, got.Height, want.Width, want.Height)
	}
	colours := map[[3]byte]bool{}
	for y := range got.Height {
		for x := range got.Width {
			g, w := got.Pix[y*got.Stride+x*4:][:3], want.Pix[y*want.Stride+x*4:][:3]
			if !bytes.Equal(g, w) {
				t.Fatalf("pixel %d,%d is %v, want %v", x, y, g, w)
			}
			colours[[3]byte(g)] = true
		}
	}
	if len(colours) < 2 && got.Width > 1 {
		t.Error("there is nothing to see, so nothing was compared")
	}
}

func TestQuartzDisplays(t *testing.T) {
	for _, c := range []struct {
		spec string
		want []Display
	}{
		{onePlain, []Display{{Name: "display 1", Points: [2]float64{1280, 800}, Pixels: [2]int{1280, 800}, Scale: 1}}},
		{oneRetina, []Display{{Name: "display 7", Points: [2]float64{640, 400}, Pixels: [2]int{1280, 800}, Scale: 2}}},
		{"1:0,0,853,533,1.5,0,0", []Display{{Name: "display 1", Points: [2]float64{853, 533}, Pixels: [2]int{1280, 800}, Scale: 1280.0 / 853}}},
		{twoDisplays, []Display{
			{Name: "display 1", Points: [2]float64{320, 400}, Pixels: [2]int{640, 800}, Scale: 2},
			{Index: 1, Name: "display 2", Points: [2]float64{640, 800}, Pixels: [2]int{640, 800}, Origin: [2]float64{-640, -100}, Scale: 1},
		}},
	} {
		m := openScreen(t, c.spec)
		if got := displaysOf(t, m.source(t, QuartzOptions{})); !slices.Equal(got, c.want) {
			t.Errorf("%s:\n%+v\nwant\n%+v", c.spec, got, c.want)
		}
	}
}

func TestQuartzGrab(t *testing.T) {
	m := openScreen(t, twoDisplays)
	m.paint(t)
	s := m.source(t, QuartzOptions{Way: QuartzNative, Pointer: true})
	all := displaysOf(t, s)
	for _, c := range []struct {
		index int
		r     image.Rectangle
		x     image.Rectangle // on the X display
	}{
		{0, image.Rectangle{}, image.Rect(640, 0, 1280, 800)},
		{1, image.Rectangle{}, image.Rect(0, 0, 640, 800)},
		{0, image.Rect(10, 20, 111, 51), image.Rect(650, 20, 751, 51)},
		{1, image.Rect(639, 799, 640, 800), image.Rect(639, 799, 640, 800)},
	} {
		f, err := s.Grab(t.Context(), all[c.index], c.r)
		if err != nil {
			t.Fatal(err)
		}
		sameFrame(t, f, m.truth(t, c.x))
		f.Release()
		log, err := m.Posted()
		if err != nil {
			t.Fatal(err)
		}
		want := fmt.Sprintf("capture %d %dx%d ours-left-out=1 cursor=1", c.index+1, c.x.Dx(), c.x.Dy())
		if !slices.Equal(log, []string{want}) {
			t.Errorf("%v, want %s", log, want)
		}
	}
	s.Idle()
	if f, err := s.Grab(t.Context(), all[0], image.Rectangle{}); err != nil {
		t.Error(err)
	} else {
		f.Release()
	}
}

func TestQuartzGrabRefuses(t *testing.T) {
	m := openScreen(t, onePlain)
	s := m.source(t, QuartzOptions{})
	d := displaysOf(t, s)[0]
	for _, c := range []struct {
		setting, value, back string
		want                 error
	}{
		{"screen", "0", "1", ErrPermission}, {"locked", "1", "0", ErrLocked}, {"asleep", "1", "0", ErrAsleep},
		{"graphic", "0", "1", ErrLoginWindow}, {"console", "0", "1", ErrLoginWindow},
		{"displays", oneRetina, onePlain, ErrDisplayChanged},
		{"sck", "error:-3801", "ok", ErrPermission},
	} {
		m.set(t, c.setting, c.value)
		f, err := s.Grab(t.Context(), d, image.Rectangle{})
		if !errors.Is(err, c.want) || f != nil {
			t.Errorf("%s=%s: %v, want %v", c.setting, c.value, err, c.want)
		}
		if got := QuartzMayRecord(); got != (c.setting != "screen") {
			t.Errorf("%s=%s: may record: %v", c.setting, c.value, got)
		}
		m.set(t, c.setting, c.back)
	}
	if _, err := s.Grab(t.Context(), d, image.Rect(0, 0, 1281, 1)); err == nil {
		t.Error("a rectangle outside of the display was taken")
	}
	if f, err := s.Grab(t.Context(), d, image.Rectangle{}); err != nil {
		t.Error(err)
	} else {
		f.Release()
	}
}

// fakeCommand puts a screencapture onto the path that does what a script says.
func fakeCommand(t testing.TB, script string) (calls string) {
	t.Helper()
	dir := t.TempDir()
	calls = filepath.Join(dir, "calls")
	if err := os.WriteFile(filepath.Join(dir, "screencapture"), []byte("#!/bin/sh\necho \"$*\" >>"+calls+"\n"+script), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return calls
}

// shoot is a screencapture of twoDisplays.
const shoot = `
while [ $# -gt 1 ]; do case $1 in -D) n=$2; shift;; esac; shift; done
case $n in 1) area=640,0,640,800;; 2) area=0,0,640,800;; *) echo "no display $n" >&2; exit 1;; esac
DISPLAY=%s XAUTHORITY=%s exec scrot -o -a $area "$1"
`

func (m *macScreen) shoot(t testing.TB) (calls string) {
	var cookie string
	for _, e := range m.v.Env() {
		if value, ok := strings.CutPrefix(e, "XAUTHORITY="); ok {
			cookie = value
		}
	}
	return fakeCommand(t, fmt.Sprintf(shoot, m.v.Display(), cookie))
}

// TestQuartzFallsBack: whatever ScreenCaptureKit does, there is a picture within
// its deadline, by Apple's command.
func TestQuartzFallsBack(t *testing.T) {
	m := openScreen(t, twoDisplays)
	m.paint(t)
	calls := m.shoot(t)
	for _, c := range []struct {
		sck, way string
		commands int // calls of screencapture for two pictures
		native   string
	}{
		{"ok", QuartzAuto, 0, ""},
		{"late:50", QuartzAuto, 0, ""},
		{"once:-3811", QuartzAuto, 0, ""}, // one that passes by itself is tried again
		{"never", QuartzAuto, 2, "did not answer in time"},
		{"late:100000", QuartzAuto, 2, "did not answer in time"},
		{"error:-3811", QuartzAuto, 2, "it was refused (com.apple.ScreenCaptureKit.SCStreamErrorDomain -3811)"},
		{"nothing", QuartzAuto, 2, "brought nothing"},
		{"ok", QuartzScreencapture, 2, ""},
	} {
		t.Run(c.way+" "+c.sck, func(t *testing.T) {
			m.set(t, "sck", c.sck)
			os.Remove(calls)
			deadline := time.Minute // for an answer that comes
			if c.native == "did not answer in time" {
				deadline = 500 * time.Millisecond
			}
			s := m.source(t, QuartzOptions{Way: c.way, Deadline: deadline})
			all := displaysOf(t, s)
			for i, r := range []image.Rectangle{{}, image.Rect(5, 6, 105, 66)} {
				f, err := s.Grab(t.Context(), all[i], r)
				if err != nil {
					t.Fatal(err)
				}
				x := image.Rect(640, 0, 1280, 800)
				if i == 1 {
					x = r
				}
				sameFrame(t, f, m.truth(t, x))
				f.Release()
			}
			b, _ := os.ReadFile(calls)
			if got := strings.Count(string(b), "\n"); got != c.commands {
				t.Errorf("screencapture was called %d times, want %d:\n%s", got, c.commands, b)
			}
			if c.native == "" {
				return
			}
			s = m.source(t, QuartzOptions{Way: QuartzNative, Deadline: deadline})
			if f, err := s.Grab(t.Context(), all[0], image.Rectangle{}); err == nil || !strings.Contains(err.Error(), c.native) || f != nil {
				t.Errorf("native: %v, want %s", err, c.native)
			}
		})
	}
	// Both ways fail: both reasons are told.
	m.set(t, "sck", "error:-3811")
	fakeCommand(t, "echo 'could not create image' >&2; exit 1")
	s := m.source(t, QuartzOptions{})
	if _, err := s.Grab(t.Context(), displaysOf(t, s)[0], image.Rectangle{}); err == nil ||
		!strings.Contains(err.Error(), "-3811") || !strings.Contains(err.Error(), "could not create image") {
		t.Errorf("%v", err)
	}
}

func TestQuartzCommandFails(t *testing.T) {
	m := openScreen(t, onePlain)
	s := m.source(t, QuartzOptions{Way: QuartzScreencapture})
	d := displaysOf(t, s)[0]
	for script, want := range map[string]string{
		"exit 0": "left no picture",
		"while [ $# -gt 1 ]; do shift; done; echo no picture >$1": "read its picture",
		"sleep 60": "context canceled",
	} {
		calls := fakeCommand(t, script)
		ctx, cancel := context.WithCancel(t.Context())
		if script == "sleep 60" {
			go func() {
				for _, err := os.Stat(calls); err != nil; _, err = os.Stat(calls) {
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
		}
		if f, err := s.Grab(ctx, d, image.Rectangle{}); err == nil || !strings.Contains(err.Error(), want) || f != nil {
			t.Errorf("%s: %v, want %s", script, err, want)
		}
		cancel()
	}
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "drawbridge-picture-*"))
	if err != nil || left != nil {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestOpenQuartzNames(t *testing.T) {
	if _, err := OpenQuartz(QuartzOptions{Way: "magic"}); err == nil || !strings.Contains(err.Error(), `"magic"`) {
		t.Error(err)
	}
}
