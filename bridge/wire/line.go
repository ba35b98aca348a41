package wire

import "bufio"

// ReadLine reads up to the next line feed, which it takes off. A line of more
// than limit bytes is read through and told as *ErrTooLarge. At the end of the
// input it returns io.EOF.
func ReadLine(r *bufio.Reader, limit int64) ([]byte, error) {
	if _, err := r.Peek(1); err != nil {
		return nil, err
	}
	return ReadMessage(&lineReader{r: r}, limit)
}
