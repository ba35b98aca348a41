package ui

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"image/png"
	"strings"
	"testing"
)

// TestIconsDifferInShape: without any colour the icons are told apart.
func TestIconsDifferInShape(t *testing.T) {
	for _, size := range []int{16, 22, 44} {
		for _, f := range Forms {
			for i, a := range Icons {
				for _, b := range Icons[i+1:] {
					x, y := a.Draw(f, size), b.Draw(f, size)
					differ := 0
					for j := 3; j < len(x.Pix); j += 4 {
						if (x.Pix[j] > 127) != (y.Pix[j] > 127) {
							differ++
						}
					}
					if differ < size*size/50 {
						t.Errorf("%s, %d pixels: %s and %s differ in %d", f, size, a, b, differ)
					}
				}
			}
		}
	}
}

// TestTemplateIsBlack: macOS takes the alpha channel alone.
func TestTemplateIsBlack(t *testing.T) {
	for _, i := range Icons {
		im := i.Draw(FormTemplate, 36)
		solid := 0
		for j := 0; j < len(im.Pix); j += 4 {
			if im.Pix[j]|im.Pix[j+1]|im.Pix[j+2] != 0 {
				t.Fatalf("%s has colour", i)
			}
			if im.Pix[j+3] == 255 {
				solid++
			}
		}
		if solid < 100 {
			t.Errorf("%s: %d solid pixels", i, solid)
		}
	}
}

// TestIconFiles holds every drawing to the bit.
func TestIconFiles(t *testing.T) {
	var sums strings.Builder
	for _, i := range Icons {
		for _, f := range Forms {
			data := i.PNG(f, 22)
			im, err := png.Decode(bytes.NewReader(data))
			if err != nil || im.Bounds().Dx() != 22 {
				t.Fatal(err)
			}
			fmt.Fprintf(&sums, "%s %s %.8x\n", i, f, sha256.Sum256(i.Draw(f, 22).Pix))
		}
	}
	golden(t, "icons.txt", sums.String())
}
