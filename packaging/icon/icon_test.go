package icon

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"flag"
	"image/png"
	"os"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// TestICNS reads the file back: its chunks must be the ten that macOS asks for,
// each a PNG of the size that its type means.
func TestICNS(t *testing.T) {
	b, err := ICNS()
	if err != nil {
		t.Fatal(err)
	}
	if string(b[:4]) != "icns" || int(binary.BigEndian.Uint32(b[4:])) != len(b) {
		t.Fatalf("header % x for %d bytes", b[:8], len(b))
	}
	// From Apple's list of icon types.
	want := map[string]int{
		"icp4": 16, "icp5": 32, "ic11": 32, "ic12": 64, "ic07": 128,
		"ic13": 256, "ic08": 256, "ic14": 512, "ic09": 512, "ic10": 1024,
	}
	for rest := b[8:]; len(rest) > 0; {
		kind, size := string(rest[:4]), int(binary.BigEndian.Uint32(rest[4:]))
		c, err := png.DecodeConfig(bytes.NewReader(rest[8:size]))
		if err != nil {
			t.Fatalf("%s: %v", kind, err)
		}
		if c.Width != want[kind] || c.Height != want[kind] {
			t.Errorf("%s has %dx%d pixels, want %d", kind, c.Width, c.Height, want[kind])
		}
		delete(want, kind)
		rest = rest[size:]
	}
	if len(want) != 0 {
		t.Errorf("missing: %v", want)
	}
}

// TestSameEverywhere holds the pixels against a digest, so that another machine
// that draws anything else is noticed.
func TestSameEverywhere(t *testing.T) {
	h := sha256.New()
	for _, n := range []int{16, 128} {
		h.Write(App(n).Pix)
		h.Write(Glyph(n, true).Pix)
		h.Write(Glyph(n, false).Pix)
	}
	got := hex.EncodeToString(h.Sum(nil)) + "\n"
	const golden = "testdata/pixels.sha256"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("pixels hash to %s want %s", got, want)
	}
}

// TestDrawing looks at single pixels, at the places of the 1024 grid.
func TestDrawing(t *testing.T) {
	app := App(256)
	for _, c := range []struct {
		what  string
		x, y  int
		alpha uint8
		light bool
	}{
		{"outside the plate", 20, 512, 0, false},
		{"the plate's cut corner", 112, 112, 0, false},
		{"the plate", 512, 200, 255, false},
		{"the left tower", 300, 500, 255, true},
		{"between two merlons", 282, 300, 255, false},
		{"the bridge", 512, 625, 255, true},
		{"under the bridge", 512, 700, 255, false},
	} {
		p := app.NRGBAAt(c.x/4, c.y/4)
		if p.A != c.alpha || (p.R > 0xe0) != c.light {
			t.Errorf("%s: %v at %d,%d", c.what, p, c.x, c.y)
		}
	}
	if up, down := Glyph(256, true), Glyph(256, false); up.AlphaAt(128, 156).A != 0 || down.AlphaAt(128, 156).A != 255 {
		t.Error("a raised bridge leaves its place open, a lowered one fills it")
	}
}

func TestIsqrt(t *testing.T) {
	for n := range 5000 {
		if r := isqrt(n); r*r > n || (r+1)*(r+1) <= n {
			t.Fatalf("isqrt(%d) = %d", n, r)
		}
	}
	if isqrt(-4) != 0 {
		t.Error("below zero there is no root")
	}
}
