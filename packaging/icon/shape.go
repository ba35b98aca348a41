package icon

import "slices"

// grid is the side of the square that shapes are drawn on. Its y grows downward.
const grid = 1024

// sub is how many samples a pixel has in each direction.
const sub = 8

// A span is the part of a scan line from x0 up to x1, in grid units.
type span struct{ x0, x1 int }

// A shape gives the spans that it covers at a height y. Everything is counted in
// whole fixed-point units, so that every machine draws the same bytes: floating
// point is rounded differently where multiply and add are one instruction.
type shape interface {
	spans(y int) []span
}

// fixed is how many units a grid unit has in the coordinates of spans.
const fixed = 256

type point struct{ x, y int } // grid units

// polygon is filled by the even-odd rule.
type polygon []point

func (p polygon) spans(y int) []span {
	var xs []int
	for i, a := range p {
		b := p[(i+1)%len(p)]
		ay, by := a.y*fixed, b.y*fixed
		if (ay <= y) == (by <= y) {
			continue
		}
		xs = append(xs, a.x*fixed+(b.x-a.x)*fixed*(y-ay)/(by-ay))
	}
	slices.Sort(xs)
	var out []span
	for i := 0; i+1 < len(xs); i += 2 {
		out = append(out, span{xs[i], xs[i+1]})
	}
	return out
}

func rect(x0, y0, x1, y1 int) polygon {
	return polygon{{x0, y0}, {x1, y0}, {x1, y1}, {x0, y1}}
}

// roundRect is a rectangle with corners of radius r.
type roundRect struct{ x0, y0, x1, y1, r int }

func (q roundRect) spans(y int) []span {
	y0, y1, r := q.y0*fixed, q.y1*fixed, q.r*fixed
	if y < y0 || y >= y1 {
		return nil
	}
	dy := 0
	switch {
	case y < y0+r:
		dy = y0 + r - y
	case y > y1-r:
		dy = y - (y1 - r)
	}
	in := r - isqrt(r*r-dy*dy)
	return []span{{q.x0*fixed + in, q.x1*fixed - in}}
}

// isqrt is the integer square root.
func isqrt(n int) int {
	if n < 2 {
		return max(n, 0)
	}
	x := n
	for y := (x + 1) / 2; y < x; y = (x + n/x) / 2 {
		x = y
	}
	return x
}

// coverage returns how much of each pixel of an n by n picture the shapes cover
// together, from 0 to 255, row by row.
func coverage(n int, shapes []shape) []uint8 {
	out := make([]uint8, n*n)
	side := n * sub
	count := make([]int, n)
	var line []span // in samples
	for py := range n {
		clear(count)
		for s := range sub {
			// The middle of the sample.
			y := (2*(py*sub+s) + 1) * grid * fixed / (2 * side)
			line = line[:0]
			for _, sh := range shapes {
				for _, sp := range sh.spans(y) {
					line = append(line, span{sample(sp.x0, side), sample(sp.x1, side)})
				}
			}
			slices.SortFunc(line, func(a, b span) int { return a.x0 - b.x0 })
			end := 0
			for _, sp := range line {
				add(count, max(sp.x0, end), sp.x1)
				end = max(end, sp.x1)
			}
		}
		for px, c := range count {
			out[py*n+px] = uint8(c * 255 / (sub * sub))
		}
	}
	return out
}

// add counts the samples from x0 up to x1 in their pixels.
func add(count []int, x0, x1 int) {
	for x0 < x1 {
		next := min((x0/sub+1)*sub, x1)
		count[x0/sub] += next - x0
		x0 = next
	}
}

// sample is the first sample whose middle is at x or right of it.
func sample(x, side int) int {
	s := (2*x*side/(grid*fixed) + 1) / 2
	return min(max(s, 0), side)
}
