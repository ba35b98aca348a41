package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"image"
	"image/jpeg"
	"sync"
)

// Formats that Encode writes.
const (
	PNG  = "png"
	JPEG = "jpeg"
)

// maxEdge bounds a picture's sides, so that no size computed from them
// overflows. X11 coordinates end earlier, at 32,767.
const maxEdge = 1 << 16

// EncodeOptions say how a frame becomes a picture.
type EncodeOptions struct {
	Format        string // PNG (also when empty) or JPEG
	Quality       int    // of a JPEG, 1 to 100; 0 means 80
	Width, Height int    // size of the picture in its own pixels; 0 means the frame's
}

// Encode writes the frame as a picture of the wanted size. It scales before it
// encodes, because encoding is what costs. The result is a fresh slice.
func Encode(f *Frame, o EncodeOptions) ([]byte, error) {
	if err := checkFrame(f); err != nil {
		return nil, err
	}
	w, h := o.Width, o.Height
	if w == 0 {
		w = f.Width
	}
	if h == 0 {
		h = f.Height
	}
	if w < 1 || h < 1 || w > maxEdge || h > maxEdge {
		return nil, fmt.Errorf("encode a picture: %dx%d is no size for one; sides go from 1 to %d", w, h, maxEdge)
	}
	switch o.Format {
	case "", PNG, JPEG:
	default:
		return nil, fmt.Errorf("encode a picture: unknown format %q; known are %q and %q", o.Format, PNG, JPEG)
	}
	if o.Quality < 0 || o.Quality > 100 {
		return nil, fmt.Errorf("encode a picture: quality %d; it goes from 1 to 100", o.Quality)
	}
	if w != f.Width || h != f.Height {
		scaled := scale(f, w, h)
		defer scaled.Release()
		f = scaled
	}
	if o.Format == JPEG {
		return encodeJPEG(f, o.Quality)
	}
	return encodePNG(f), nil
}

func checkFrame(f *Frame) error {
	switch {
	case f == nil || f.Pix == nil:
		return errors.New("encode a picture: the frame is empty or was released")
	case f.Width < 1 || f.Height < 1 || f.Width > maxEdge || f.Height > maxEdge:
		return fmt.Errorf("encode a picture: the frame says it is %dx%d", f.Width, f.Height)
	case f.Stride < f.Width*4 || len(f.Pix) < f.Stride*(f.Height-1)+f.Width*4:
		return fmt.Errorf("encode a picture: %d bytes with rows of %d are too few for %dx%d",
			len(f.Pix), f.Stride, f.Width, f.Height)
	}
	return nil
}

// row returns the bytes of row y, without what pads them.
func (f *Frame) row(y int) []byte {
	return f.Pix[y*f.Stride:][: f.Width*4 : f.Width*4]
}

func encodeJPEG(f *Frame, quality int) ([]byte, error) {
	if quality == 0 {
		quality = 80
	}
	pix := getPixels(f.Width * f.Height * 4)
	defer putPixels(pix)
	img := &image.RGBA{Pix: *pix, Stride: f.Width * 4, Rect: image.Rect(0, 0, f.Width, f.Height)}
	for y := range f.Height {
		src, dst := f.row(y), img.Pix[y*img.Stride:]
		for i := 0; i < len(src); i += 4 {
			v := binary.LittleEndian.Uint32(src[i:])
			binary.LittleEndian.PutUint32(dst[i:], v>>16&0xff|v&0xff00|v&0xff<<16|0xff000000)
		}
	}
	var out bytes.Buffer
	if err := jpeg.Encode(&out, img, &jpeg.Options{Quality: quality}); err != nil {
		return nil, fmt.Errorf("encode a JPEG: %w", err)
	}
	return out.Bytes(), nil
}

// pixels lends the memory of scaled pictures. A sync.Pool is emptied by the
// garbage collector, so an idle program keeps none.
var pixels sync.Pool

func getPixels(n int) *[]byte {
	if p, _ := pixels.Get().(*[]byte); p != nil && cap(*p) >= n {
		*p = (*p)[:n]
		return p
	}
	b := make([]byte, n)
	return &b
}

func putPixels(p *[]byte) { pixels.Put(p) }
