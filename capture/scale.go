package capture

import (
	"encoding/binary"
	"runtime"
	"sync"
)

// scale returns a copy of f of w by h pixels, each the average of the area of f
// that it covers. This keeps small text readable, which is what a model needs;
// sharper filters cost many times as much and ring at edges.
func scale(f *Frame, w, h int) *Frame {
	// The weights have eight bits, so an average over very many pixels would be
	// coarse: halve first until there are few.
	for f.Width >= 8*w && f.Height >= 8*h {
		g := lend((f.Width+1)/2, (f.Height+1)/2)
		areaAverage(g, f)
		defer g.Release()
		f = g
	}
	out := lend(w, h)
	if f.Width == 2*w && f.Height == 2*h {
		parallelRows(h, func(y0, y1 int) {
			for y := y0; y < y1; y++ {
				halveRow(out.row(y), f.row(2*y), f.row(2*y+1))
			}
		})
		return out
	}
	areaAverage(out, f)
	return out
}

func lend(w, h int) *Frame {
	p := getPixels(w * h * 4)
	return NewFrame(*p, w*4, w, h, func() { putPixels(p) })
}

// parallelRows calls f for ranges that together are [0, n), on as many
// goroutines as there are processors, and waits for them.
func parallelRows(n int, f func(y0, y1 int)) {
	k := max(1, min(runtime.GOMAXPROCS(0), n/16))
	var wg sync.WaitGroup
	for i := range k - 1 {
		wg.Go(func() { f(n*i/k, n*(i+1)/k) })
	}
	f(n*(k-1)/k, n)
	wg.Wait()
}

// halveRow averages squares of two by two pixels of two rows. Four channels go
// at once, in the lanes of a 64-bit number.
func halveRow(dst, row0, row1 []byte) {
	const even = 0x00ff00ff00ff00ff
	for i := 0; i < len(dst); i += 4 {
		a, b := binary.LittleEndian.Uint64(row0[2*i:]), binary.LittleEndian.Uint64(row1[2*i:])
		lo := a&even + b&even
		hi := a>>8&even + b>>8&even
		lo = (lo + lo>>32 + 0x00020002) >> 2 & 0x00ff00ff
		hi = (hi + hi>>32 + 0x00020002) >> 2 & 0x00ff00ff
		binary.LittleEndian.PutUint32(dst[i:], uint32(lo|hi<<8))
	}
}

// axis says, for each picture pixel along one axis, which source pixels make it
// up: those from first[i] on, with the weights[i*n:][:n], which sum to 256. All
// have the same number n, so that the loops over them do not branch; what is too
// many weighs nothing.
type axis struct {
	n       int
	first   []int
	weights []uint64
}

// newAxis computes the shares of from source pixels in to picture pixels.
func newAxis(from, to int) axis {
	// In units of 1/to source pixel, picture pixel i covers [i*from, (i+1)*from).
	a := axis{n: 1, first: make([]int, to)}
	for i := range to {
		a.n = max(a.n, ((i+1)*from+to-1)/to-i*from/to)
	}
	if a.n < 3 && from >= 3 {
		a.n = 3 // what shrinkRow does without a loop
	}
	a.weights = make([]uint64, to*a.n)
	for i := range to {
		lo, hi := i*from, (i+1)*from
		a.first[i] = min(lo/to, from-a.n)
		// Rounding the running sum, not each weight, makes them sum to 256.
		given := 0
		for p := lo / to; p*to < hi; p++ {
			upTo := ((min((p+1)*to, hi)-lo)*256 + from/2) / from
			a.weights[i*a.n+p-a.first[i]] = uint64(upTo - given)
			given = upTo
		}
	}
	return a
}

// areaAverage fills dst with f, scaled along both axes, rows first.
//
// Blue, green and red travel in three lanes of 21 bits of one number, so that a
// weight is one multiplication: 8 bits times weights that sum to 256 are 16
// bits; 12 of them are kept for the second axis, whose sums then have 20.
func areaAverage(dst, f *Frame) {
	ax, ay := newAxis(f.Width, dst.Width), newAxis(f.Height, dst.Height)
	const lane12 = 0xfff | 0xfff<<21 | 0xfff<<42
	const half = 1<<11 | 1<<(21+11) | 1<<(42+11)
	parallelRows(dst.Height, func(y0, y1 int) {
		line := make([]uint64, dst.Width) // the last source row, scaled along x
		have := -1
		sum := make([]uint64, dst.Width)
		for y := y0; y < y1; y++ {
			for x := range sum {
				sum[x] = half
			}
			for k, w := range ay.weights[y*ay.n:][:ay.n] {
				if w == 0 {
					continue
				}
				if sy := ay.first[y] + k; sy != have {
					shrinkRow(line, f.row(sy), ax)
					have = sy
				}
				for x, v := range line {
					sum[x] += v >> 4 & lane12 * w
				}
			}
			out := dst.row(y)
			for x, v := range sum {
				binary.LittleEndian.PutUint32(out[4*x:], uint32(v>>12&0xff|v>>(33-8)&0xff00|v>>(54-16)&0xff0000))
			}
		}
	})
}

// lanes spreads a pixel's blue, green and red.
func lanes(b []byte) uint64 {
	p := uint64(binary.LittleEndian.Uint32(b))
	return p&0xff | p&0xff00<<13 | p&0xff0000<<26
}

// shrinkRow scales one source row along x into lanes of 16 bits.
func shrinkRow(line []uint64, row []byte, a axis) {
	first := a.first[:len(line)]
	if a.n == 3 {
		for x := range line {
			w, p := a.weights[3*x:][:3:3], row[4*first[x]:][:12:12]
			line[x] = lanes(p)*w[0] + lanes(p[4:])*w[1] + lanes(p[8:])*w[2]
		}
		return
	}
	for x := range line {
		var v uint64
		p := row[4*first[x]:]
		for k, w := range a.weights[x*a.n:][:a.n] {
			v += lanes(p[4*k:]) * w
		}
		line[x] = v
	}
}
