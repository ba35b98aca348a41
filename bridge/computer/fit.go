package computer

import "math"

const (
	// maxSide is the longest side of a picture that was not asked to be
	// original: a longer one in a conversation of many pictures makes a model's
	// service refuse every later request of the session.
	maxSide = 2000
	// maxOriginal is the largest picture in all.
	maxOriginal = 10_240_000
)

// fit returns the size of the picture that is made of width × height pixels. It
// never enlarges, keeps the sides' ratio within a pixel, and never exceeds a cap.
func (c PictureConfig) fit(width, height int) (w, h int) {
	long, area := float64(max(width, height)), float64(width)*float64(height)
	scale := 1.0
	if c.Size == "original" {
		scale = min(scale, math.Sqrt(maxOriginal/area))
	} else {
		scale = min(scale, maxSide/long)
		if c.MaxEdge > 0 {
			scale = min(scale, float64(c.MaxEdge)/long)
		}
		if c.MaxPixels > 0 {
			scale = min(scale, math.Sqrt(float64(c.MaxPixels)/area))
		}
	}
	if scale == 1 {
		return width, height
	}
	// A hair is added before rounding down, so that an exact cap is reached.
	side := func(n int) int { return max(1, int(math.Floor(float64(n)*scale+1e-9))) }
	return side(width), side(height)
}
