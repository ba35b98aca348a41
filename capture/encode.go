package capture

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"image/png"

	"golang.org/x/image/draw"
)

// EncodeOptions say what Encode makes.
type EncodeOptions struct {
	Format        string // png or jpeg
	Quality       int    // of a jpeg
	Width, Height int    // target size in pixels; 0 keeps the frame's own
}

// Encode makes a picture file of f, scaled to the target size first.
func Encode(f *Frame, o EncodeOptions) ([]byte, error) {
	src := image.NewRGBA(image.Rect(0, 0, f.Width, f.Height))
	for y := range f.Height {
		for x := range f.Width {
			p := f.Pix[y*f.Stride+x*4:]
			src.SetRGBA(x, y, color.RGBA{p[2], p[1], p[0], 255})
		}
	}
	if (o.Width != 0 && o.Width != f.Width) || (o.Height != 0 && o.Height != f.Height) {
		dst := image.NewRGBA(image.Rect(0, 0, o.Width, o.Height))
		draw.ApproxBiLinear.Scale(dst, dst.Bounds(), src, src.Bounds(), draw.Src, nil)
		src = dst
	}
	var b bytes.Buffer
	switch o.Format {
	case "png":
		if err := (&png.Encoder{CompressionLevel: png.BestSpeed}).Encode(&b, src); err != nil {
			return nil, fmt.Errorf("encode png: %w", err)
		}
	case "jpeg":
		if err := jpeg.Encode(&b, src, &jpeg.Options{Quality: o.Quality}); err != nil {
			return nil, fmt.Errorf("encode jpeg: %w", err)
		}
	default:
		return nil, fmt.Errorf("picture format %q is not known; use png or jpeg", o.Format)
	}
	return b.Bytes(), nil
}
