//go:build linux

package input

import (
	"fmt"
	"math"
)

// notchPixels is what applications scroll by for one notch of a wheel, about:
// Chromium says 53, GTK's text view three lines of some 17 pixels.
const notchPixels = 53

// maxNotches bounds one call, since each notch is two events.
const maxNotches = 2000

// wheel turns pixels into notches. The first amount in a direction, however
// small, is a notch at least, so that every scroll does something; what it was
// too much or too little is carried to the next one of the same gesture. A
// motion or a click ends the gesture.
type wheel struct{ x, y axisCarry }

type axisCarry struct {
	pixels  float64 // still to scroll; negative: scrolled too far
	going   bool
	forward bool
}

func (w *wheel) turn(dx, dy float64) (nx, ny int, err error) {
	for _, d := range []float64{dx, dy} {
		if !(math.Abs(d) <= maxNotches*notchPixels) {
			return 0, 0, fmt.Errorf("scroll by %g pixels: at most %d can be scrolled at once", d, maxNotches*notchPixels)
		}
	}
	return w.x.turn(dx), w.y.turn(dy), nil
}

func (a *axisCarry) turn(d float64) int {
	if d == 0 {
		return 0
	}
	sign := 1
	if d < 0 {
		sign = -1
	}
	if !a.going || a.forward != (d > 0) {
		*a = axisCarry{going: true, forward: d > 0}
		if math.Abs(d) < notchPixels {
			a.pixels = math.Abs(d) - notchPixels
			return sign
		}
	}
	a.pixels += math.Abs(d)
	n := max(0, int(math.Round(a.pixels/notchPixels)))
	a.pixels -= float64(n * notchPixels)
	return sign * n
}
