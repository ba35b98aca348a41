package capture

import (
	"bytes"
	"encoding/binary"
	"errors"
	"hash/adler32"
	"hash/crc32"
	"runtime"
	"sync"

	"github.com/klauspost/compress/flate"
)

// The PNG writer. It makes 8-bit RGB pictures, straight from BGRX and in strips
// that are compressed side by side; image/png takes about eight times as long
// on a desktop's picture.

const pngSignature = "\x89PNG\r\n\x1a\n"

// stripRows is the least height that is worth a strip of its own.
const stripRows = 64

// strip compresses a range of rows. Its parts are kept in a pool, because a
// flate writer is over half a megabyte.
type strip struct {
	fast  *flate.Writer // finds repeats
	noise *flate.Writer // only codes bytes by how frequent they are
	out   bytes.Buffer
	raw   []byte // filtered rows on their way to flate
	sum   uint32 // Adler-32 of everything that went to flate
	n     int    // how many bytes those were
}

var strips = sync.Pool{New: func() any {
	fast, err := flate.NewWriter(nil, flate.BestSpeed)
	if err != nil {
		panic(err) // only for a level that does not exist
	}
	noise, err := flate.NewWriter(nil, flate.HuffmanOnly)
	if err != nil {
		panic(err)
	}
	return &strip{fast: fast, noise: noise}
}}

func encodePNG(f *Frame) []byte {
	n := min(runtime.GOMAXPROCS(0), f.Height/stripRows)
	n = max(n, 1)
	parts := make([]*strip, n)
	var wg sync.WaitGroup
	for i := range parts {
		s := strips.Get().(*strip)
		parts[i] = s
		y0, y1 := f.Height*i/n, f.Height*(i+1)/n
		if i == n-1 {
			s.compress(f, y0, y1, true)
			continue
		}
		wg.Go(func() { s.compress(f, y0, y1, false) })
	}
	wg.Wait()

	sum, size := uint32(1), 2+4
	for _, s := range parts {
		sum = adlerCombine(sum, s.sum, s.n)
		size += s.out.Len()
	}
	out := make([]byte, 0, len(pngSignature)+3*12+13+size)
	out = append(out, pngSignature...)
	out = appendChunk(out, "IHDR", func(b []byte) []byte {
		b = binary.BigEndian.AppendUint32(b, uint32(f.Width))
		b = binary.BigEndian.AppendUint32(b, uint32(f.Height))
		return append(b, 8, 2, 0, 0, 0) // 8 bits a sample, RGB
	})
	out = appendChunk(out, "IDAT", func(b []byte) []byte {
		b = append(b, 0x78, 0x01)
		for _, s := range parts {
			b = append(b, s.out.Bytes()...)
		}
		return binary.BigEndian.AppendUint32(b, sum)
	})
	out = appendChunk(out, "IEND", func(b []byte) []byte { return b })
	for _, s := range parts {
		strips.Put(s)
	}
	return out
}

func appendChunk(b []byte, kind string, body func([]byte) []byte) []byte {
	start := len(b)
	b = append(b, 0, 0, 0, 0)
	b = append(b, kind...)
	b = body(b)
	binary.BigEndian.PutUint32(b[start:], uint32(len(b)-start-8))
	return binary.BigEndian.AppendUint32(b, crc32.ChecksumIEEE(b[start+4:]))
}

// compress filters and compresses rows y0 to y1. Only the last strip ends the
// deflate stream; the others end on a byte boundary.
func (s *strip) compress(f *Frame, y0, y1 int, last bool) {
	photo := isPhoto(f, y0, y1)
	rowLen := 1 + f.Width*3
	block := max(1, 32<<10/rowLen) // rows at once: what the cache holds
	if need := block * rowLen; cap(s.raw) < need {
		s.raw = make([]byte, need)
	}
	filter := func(y int) []byte {
		rows := min(block, y1-y)
		raw := s.raw[:rows*rowLen]
		for i := range rows {
			filterRow(raw[i*rowLen:(i+1)*rowLen], f, y+i, photo)
		}
		return raw
	}
	w := s.fast
	if photo {
		// Looking for repeats in noise takes longer and gains less than nothing.
		sample := filter((y0 + y1) / 2)
		if s.size(s.noise, sample) < s.size(s.fast, sample) {
			w = s.noise
		}
	}
	s.out.Reset()
	w.Reset(&s.out)
	s.n = 0
	sum := adler32.New()
	for y := y0; y < y1; y += block {
		raw := filter(y)
		sum.Write(raw)
		s.n += len(raw)
		w.Write(raw) // to a bytes.Buffer: cannot fail
	}
	s.sum = sum.Sum32()
	if last {
		w.Close()
	} else {
		w.Flush()
	}
}

// size compresses b alone, to see how well w does.
func (s *strip) size(w *flate.Writer, b []byte) int {
	s.out.Reset()
	w.Reset(&s.out)
	w.Write(b)
	w.Flush()
	return s.out.Len()
}

// isPhoto looks at samples of some rows: do neighbours mostly differ? A flat
// desktop compresses best unfiltered (repeated bytes are what deflate finds), a
// photo by differences.
func isPhoto(f *Frame, y0, y1 int) bool {
	same, all := 0, 0
	step := max(1, (y1-y0)/32)
	for y := y0; y < y1; y += step {
		row := f.row(y)
		for i := 4; i < len(row); i += 4 * 7 {
			if row[i] == row[i-4] && row[i+1] == row[i-3] && row[i+2] == row[i-2] {
				same++
			}
			all++
		}
	}
	return same*2 < all
}

// PNG filter types.
const (
	filterNone = 0
	filterSub  = 1
	filterUp   = 2
)

// filterRow writes row y as filter type and RGB bytes to dst.
func filterRow(dst []byte, f *Frame, y int, photo bool) {
	row := f.row(y)
	var prev []byte
	kind := filterNone
	if photo {
		kind = filterSub
		if y > 0 {
			prev = f.row(y - 1)
			if upIsBetter(row, prev) {
				kind = filterUp
			}
		}
	}
	dst[0] = byte(kind)
	out := dst[1:]
	switch kind {
	case filterNone:
		for i, j := 0, 0; i < len(row); i, j = i+4, j+3 {
			p, q := row[i:i+4:i+4], out[j:j+3:j+3]
			q[0], q[1], q[2] = p[2], p[1], p[0]
		}
	case filterSub:
		var r, g, b byte
		for i, j := 0, 0; i < len(row); i, j = i+4, j+3 {
			p, q := row[i:i+4:i+4], out[j:j+3:j+3]
			q[0], q[1], q[2] = p[2]-r, p[1]-g, p[0]-b
			r, g, b = p[2], p[1], p[0]
		}
	case filterUp:
		for i, j := 0, 0; i < len(row); i, j = i+4, j+3 {
			p, u, q := row[i:i+4:i+4], prev[i:i+4:i+4], out[j:j+3:j+3]
			q[0], q[1], q[2] = p[2]-u[2], p[1]-u[1], p[0]-u[0]
		}
	}
}

// upIsBetter compares samples of a row with the pixel above and the pixel to the
// left.
func upIsBetter(row, prev []byte) bool {
	up, sub := 0, 0
	for i := 4; i < len(row); i += 32 {
		g := row[i+1]
		if g == prev[i+1] {
			up++
		}
		if g == row[i-3] {
			sub++
		}
	}
	return up >= sub
}

// adlerCombine returns the Adler-32 of two runs of bytes, of which the second is
// n2 long, from the sums of each (zlib's adler32_combine).
func adlerCombine(sum1, sum2 uint32, n2 int) uint32 {
	const mod = 65521
	n := uint64(n2 % mod)
	a1, b1 := uint64(sum1&0xffff), uint64(sum1>>16)
	a2, b2 := uint64(sum2&0xffff), uint64(sum2>>16)
	a := (a1 + a2 + mod - 1) % mod
	b := (b1 + b2 + n*(a1+mod-1)) % mod
	return uint32(b<<16 | a)
}

// DecodeSize reads the size of a PNG picture from its header, which is the
// authority on it.
func DecodeSize(png []byte) (width, height int, err error) {
	const head = len(pngSignature) + 8 + 13
	if len(png) < head || string(png[:len(pngSignature)]) != pngSignature || string(png[12:16]) != "IHDR" {
		return 0, 0, errors.New("this is no PNG picture: it does not start with a PNG header")
	}
	w, h := binary.BigEndian.Uint32(png[16:]), binary.BigEndian.Uint32(png[20:])
	if w == 0 || h == 0 || w > 1<<31-1 || h > 1<<31-1 {
		return 0, 0, errors.New("the PNG header holds no usable size")
	}
	return int(w), int(h), nil
}
