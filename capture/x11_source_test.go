//go:build linux

package capture

import (
	"bytes"
	"context"
	"errors"
	"image"
	"image/color"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jezek/xgb/xproto"

	"drawbridge/input/virtual"
	"drawbridge/internal/x11"
)

// desk starts an X server of 640 by 400 and paints its root window: a white
// ground, a red bar of 10 rows on top and a blue square of 20 at (300, 200).
func desk(t testing.TB) *virtual.Virtual {
	return deskOf(t, 640, 400)
}

func deskOf(t testing.TB, w, h int) *virtual.Virtual {
	t.Helper()
	if err := virtual.Available(); err != nil {
		t.Skip(err)
	}
	v, err := virtual.Start(t.Context(), virtual.Options{Width: w, Height: h})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { v.Close() })
	c, err := x11.Dial(t.Context(), v.Display(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	win, err := xproto.NewWindowId(c.Conn)
	if err != nil {
		t.Fatal(err)
	}
	gc, err := xproto.NewGcontextId(c.Conn)
	if err != nil {
		t.Fatal(err)
	}
	rect := func(colour uint32, x, y, w, h int) {
		xproto.ChangeGC(c.Conn, gc, xproto.GcForeground, []uint32{colour})
		err := xproto.PolyFillRectangleChecked(c.Conn, xproto.Drawable(win), gc,
			[]xproto.Rectangle{{X: int16(x), Y: int16(y), Width: uint16(w), Height: uint16(h)}}).Check()
		if err != nil {
			t.Fatal(err)
		}
	}
	err = xproto.CreateWindowChecked(c.Conn, 24, win, c.Root, 0, 0, uint16(w), uint16(h), 0,
		xproto.WindowClassInputOutput, c.Screen.RootVisual,
		xproto.CwBackPixel|xproto.CwOverrideRedirect, []uint32{0xffffff, 1}).Check()
	if err != nil {
		t.Fatal(err)
	}
	xproto.MapWindow(c.Conn, win)
	if err := xproto.CreateGCChecked(c.Conn, gc, xproto.Drawable(win), 0, nil).Check(); err != nil {
		t.Fatal(err)
	}
	rect(0xffffff, 0, 0, w, h)
	rect(0xff0000, 0, 0, w, 10)
	rect(0x0000ff, 300, 200, 20, 20)
	return v
}

// painted is the colour that desk gave a pixel.
func painted(x, y int) color.RGBA {
	switch {
	case y < 10:
		return color.RGBA{255, 0, 0, 255}
	case image.Pt(x, y).In(image.Rect(300, 200, 320, 220)):
		return color.RGBA{0, 0, 255, 255}
	}
	return color.RGBA{255, 255, 255, 255}
}

func open(t testing.TB, v *virtual.Virtual) *x11Source {
	t.Helper()
	s, err := OpenX11(v.Display())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s.(*x11Source)
}

func mainDisplay(t testing.TB, s Source) Display {
	t.Helper()
	ds, err := s.Displays(t.Context())
	if err != nil || len(ds) == 0 {
		t.Fatalf("displays %v, %v", ds, err)
	}
	return ds[0]
}

// checkPainted compares a frame of the part r with what was painted.
func checkPainted(t *testing.T, f *Frame, r image.Rectangle) {
	t.Helper()
	if f.Width != r.Dx() || f.Height != r.Dy() {
		t.Fatalf("the frame is %dx%d, want %v", f.Width, f.Height, r.Size())
	}
	for y := range f.Height {
		for x := range f.Width {
			if got, want := at(f, x, y), painted(r.Min.X+x, r.Min.Y+y); got != want {
				t.Fatalf("pixel %d,%d of %v is %v, want %v", x, y, r, got, want)
			}
		}
	}
}

func TestGrabShowsWhatIsDrawn(t *testing.T) {
	v := desk(t)
	for _, shared := range []bool{true, false} {
		name := map[bool]string{true: "shared memory", false: "socket"}[shared]
		t.Run(name, func(t *testing.T) {
			s := open(t, v)
			if !s.shared {
				t.Fatal("the server shares no memory")
			}
			s.shared = shared
			d := mainDisplay(t, s)
			if d.Pixels != [2]int{640, 400} || d.Points != [2]float64{640, 400} || d.Scale != 1 || d.Origin != [2]float64{} || !d.Main() {
				t.Errorf("display %+v", d)
			}
			for _, r := range []image.Rectangle{{}, image.Rect(290, 5, 333, 207), image.Rect(639, 399, 640, 400), image.Rect(0, 9, 640, 11)} {
				f, err := s.Grab(t.Context(), d, r)
				if err != nil {
					t.Fatal(err)
				}
				if r.Empty() {
					r = image.Rect(0, 0, 640, 400)
				}
				checkPainted(t, f, r)
				f.Release()
			}
			if s.shared != shared {
				t.Errorf("the way of taking pictures changed to shared=%v", s.shared)
			}
		})
	}
}

func TestGrabRefuses(t *testing.T) {
	s := open(t, desk(t))
	d := mainDisplay(t, s)
	for _, r := range []image.Rectangle{image.Rect(-1, 0, 5, 5), image.Rect(630, 0, 641, 5), image.Rect(0, 0, 1, 401)} {
		if f, err := s.Grab(t.Context(), d, r); err == nil || !strings.Contains(err.Error(), "640x400") {
			t.Errorf("%v: %v, %v", r, f, err)
		}
	}
	for _, change := range []func(*Display){
		func(d *Display) { d.Pixels[0]++ },
		func(d *Display) { d.Origin[0] = 7 },
		func(d *Display) { d.Name = "another" },
	} {
		other := d
		change(&other)
		if _, err := s.Grab(t.Context(), other, image.Rectangle{}); !errors.Is(err, ErrDisplayChanged) {
			t.Errorf("%+v: %v", other, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Grab(ctx, d, image.Rectangle{}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// xrandr runs the program against the desk.
func xrandr(t *testing.T, v *virtual.Virtual, args ...string) {
	t.Helper()
	if _, err := exec.LookPath("xrandr"); err != nil {
		t.Skip("xrandr is missing: apt-get install x11-xserver-utils")
	}
	cmd := exec.Command("xrandr", args...)
	cmd.Env = v.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("xrandr %v: %v: %s", args, err, out)
	}
}

func TestTwoMonitors(t *testing.T) {
	v := desk(t)
	s := open(t, v)
	before := mainDisplay(t, s)
	xrandr(t, v, "--setmonitor", "left", "310/100x400/100+0+0", "screen")
	xrandr(t, v, "--setmonitor", "*right", "330/100x300/100+310+100", "none")
	if _, err := s.Grab(t.Context(), before, image.Rectangle{}); !errors.Is(err, ErrDisplayChanged) {
		t.Errorf("the display of before: %v", err)
	}
	ds, err := s.Displays(t.Context())
	if err != nil || len(ds) != 2 {
		t.Fatalf("displays %+v, %v", ds, err)
	}
	// The primary one comes first, whatever the server's order.
	want := []Display{
		{0, "right", [2]float64{330, 300}, [2]int{330, 300}, [2]float64{310, 100}, 1},
		{1, "left", [2]float64{310, 400}, [2]int{310, 400}, [2]float64{0, 0}, 1},
	}
	for i, d := range ds {
		if d != want[i] {
			t.Errorf("display %d is %+v, want %+v", i, d, want[i])
		}
		f, err := s.Grab(t.Context(), d, image.Rectangle{})
		if err != nil {
			t.Fatal(err)
		}
		o := image.Pt(int(d.Origin[0]), int(d.Origin[1]))
		checkPainted(t, f, image.Rectangle{o, o.Add(image.Pt(d.Pixels[0], d.Pixels[1]))})
		f.Release()
	}
}

func TestIdleGivesMemoryBack(t *testing.T) {
	v := desk(t)
	s := open(t, v)
	d := mainDisplay(t, s)
	grab := func() *Frame {
		f, err := s.Grab(t.Context(), d, image.Rectangle{})
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	attached := func() int {
		// Segments that were removed but are still attached are listed as deleted.
		b, err := os.ReadFile("/proc/self/maps")
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(b, []byte("/SYSV"))
	}
	base := attached()
	grab().Release()
	if n := attached() - base; n != 1 {
		t.Fatalf("%d segments are attached after a grab, want 1", n)
	}
	a, b, c := grab(), grab(), grab()
	a.Release()
	b.Release()
	c.Release()
	c.Release() // does nothing
	if n := attached() - base; n != keepSegments {
		t.Errorf("%d segments are kept, want %d", n, keepSegments)
	}
	held := grab()
	s.Idle()
	if n := attached() - base; n != 1 {
		t.Errorf("%d segments after Idle, want the one in use", n)
	}
	checkPainted(t, held, image.Rect(0, 0, 640, 400))
	held.Release()
	if n := attached() - base; n != 0 {
		t.Errorf("%d segments after the last frame went", n)
	}
	f := grab()
	s.Close()
	f.Release()
	if n := attached() - base; n != 0 {
		t.Errorf("%d segments after Close", n)
	}
}

func TestConcurrentGrabs(t *testing.T) {
	s := open(t, desk(t))
	d := mainDisplay(t, s)
	var wg sync.WaitGroup
	for i := range 6 {
		wg.Go(func() {
			for range 8 {
				f, err := s.Grab(t.Context(), d, image.Rect(0, i, 640, i+100))
				if err != nil {
					t.Error(err)
					return
				}
				if got := at(f, 5, 20); got != painted(5, i+20) {
					t.Errorf("a pixel is %v", got)
				}
				f.Release()
				if i == 0 {
					s.Idle()
				}
			}
		})
	}
	wg.Wait()
}

// TestServerDies ends the X server under grabs that run: they fail by name and
// nothing hangs.
func TestServerDies(t *testing.T) {
	v := desk(t)
	s := open(t, v)
	d := mainDisplay(t, s)
	var wg sync.WaitGroup
	errs := make(chan error, 4)
	grabbed := make(chan struct{})
	var once sync.Once
	for range cap(errs) {
		wg.Go(func() {
			for {
				f, err := s.Grab(t.Context(), d, image.Rectangle{})
				if err != nil {
					errs <- err
					return
				}
				f.Release()
				once.Do(func() { close(grabbed) })
			}
		})
	}
	<-grabbed
	v.Close()
	wg.Wait()
	for range cap(errs) {
		if err := <-errs; !errors.Is(err, ErrGone) {
			t.Errorf("the error is %v, want ErrGone", err)
		}
	}
	if _, err := s.Displays(t.Context()); !errors.Is(err, ErrGone) {
		t.Errorf("Displays: %v", err)
	}
	s.Idle()
}

func TestOpenX11Refuses(t *testing.T) {
	t.Setenv("DISPLAY", "")
	for display, want := range map[string]string{
		"":            "$DISPLAY is not set",
		"nonsense":    "no X display name",
		":59000":      "connect to the X display :59000",
		"/no/where:1": "connect to the X display /no/where:1",
	} {
		if s, err := OpenX11(display); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, %v", display, s, err)
		}
	}
}

func TestOtherDepthsAreRefused(t *testing.T) {
	good := func() (*xproto.SetupInfo, *xproto.ScreenInfo) {
		return &xproto.SetupInfo{
				ImageByteOrder: xproto.ImageOrderLSBFirst,
				PixmapFormats:  []xproto.Format{{Depth: 1, BitsPerPixel: 1}, {Depth: 24, BitsPerPixel: 32}},
			}, &xproto.ScreenInfo{RootDepth: 24, RootVisual: 33, AllowedDepths: []xproto.DepthInfo{{Depth: 24,
				Visuals: []xproto.VisualInfo{{VisualId: 33, RedMask: 0xff0000, GreenMask: 0xff00, BlueMask: 0xff}}}}}
	}
	if err := checkVisual(good()); err != nil {
		t.Errorf("an ordinary screen: %v", err)
	}
	for want, change := range map[string]func(*xproto.SetupInfo, *xproto.ScreenInfo){
		"depth of 30 bits": func(_ *xproto.SetupInfo, s *xproto.ScreenInfo) { s.RootDepth = 30 },
		"depth of 16 bits": func(_ *xproto.SetupInfo, s *xproto.ScreenInfo) { s.RootDepth = 16 },
		"most significant": func(s *xproto.SetupInfo, _ *xproto.ScreenInfo) { s.ImageByteOrder = xproto.ImageOrderMSBFirst },
		"24 bits a pixel":  func(s *xproto.SetupInfo, _ *xproto.ScreenInfo) { s.PixmapFormats[1].BitsPerPixel = 24 },
		"red 0xff,": func(_ *xproto.SetupInfo, s *xproto.ScreenInfo) {
			s.AllowedDepths[0].Visuals[0].RedMask, s.AllowedDepths[0].Visuals[0].BlueMask = 0xff, 0xff0000
		},
	} {
		setup, screen := good()
		change(setup, screen)
		if err := checkVisual(setup, screen); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want an error with %q, got %v", want, err)
		}
	}
}

// TestAgainstScrot holds a picture against that of another program.
func TestAgainstScrot(t *testing.T) {
	v := desk(t)
	file := scrot(t, v)
	s := open(t, v)
	f, err := s.Grab(t.Context(), mainDisplay(t, s), image.Rectangle{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Release()
	r, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	img, err := png.Decode(r)
	if err != nil {
		t.Fatal(err)
	}
	for y := range f.Height {
		for x := range f.Width {
			r, g, b, _ := img.At(x, y).RGBA()
			if want := (color.RGBA{byte(r >> 8), byte(g >> 8), byte(b >> 8), 255}); at(f, x, y) != want {
				t.Fatalf("pixel %d,%d is %v, scrot has %v", x, y, at(f, x, y), want)
			}
		}
	}
}

func scrot(t testing.TB, v *virtual.Virtual) string {
	t.Helper()
	if _, err := exec.LookPath("scrot"); err != nil {
		t.Skip("scrot is missing: apt-get install scrot")
	}
	file := filepath.Join(t.TempDir(), "scrot.png")
	cmd := exec.Command("scrot", "--overwrite", file)
	cmd.Env = v.Env()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("scrot: %v: %s", err, out)
	}
	return file
}

func BenchmarkCapture1080pPNG(b *testing.B) {
	s := open(b, deskOf(b, 1920, 1080))
	d := mainDisplay(b, s)
	for b.Loop() {
		f, err := s.Grab(b.Context(), d, image.Rectangle{})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := Encode(f, EncodeOptions{Format: PNG}); err != nil {
			b.Fatal(err)
		}
		f.Release()
	}
}

func BenchmarkScrot1080p(b *testing.B) {
	v := deskOf(b, 1920, 1080)
	for b.Loop() {
		scrot(b, v)
	}
}

func BenchmarkGrab1080p(b *testing.B) {
	s := open(b, deskOf(b, 1920, 1080))
	d := mainDisplay(b, s)
	for _, shared := range []bool{true, false} {
		name := map[bool]string{true: "shared", false: "socket"}[shared]
		b.Run(name, func(b *testing.B) {
			s.shared = shared
			for b.Loop() {
				f, err := s.Grab(b.Context(), d, image.Rectangle{})
				if err != nil {
					b.Fatal(err)
				}
				f.Release()
			}
		})
	}
}
