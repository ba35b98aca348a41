package computer

import (
	"fmt"
	"slices"
	"unicode/utf8"

	"drawbridge/bridge/keyname"
)

// maxQuoted is how much of a stranger's word an error repeats.
const maxQuoted = 40

// quote shows a stranger's word in an error, on one line and not too long.
func quote(s string) string {
	if utf8.RuneCountInString(s) > maxQuoted {
		return fmt.Sprintf("%q…", string([]rune(s)[:maxQuoted]))
	}
	return fmt.Sprintf("%q", s)
}

// nearest returns the known name that word most likely meant, or "".
func nearest(word string, known []string) string {
	if len(word) > 64 {
		return ""
	}
	word = keyname.Fold(word)
	best, distance := "", 1+len(word)/3
	for _, k := range known {
		if d := editDistance(word, keyname.Fold(k)); d < distance || (d == distance && best == "") {
			best, distance = k, d
		}
	}
	return best
}

// didYouMean is nearest as an aside, or nothing.
func didYouMean(word string, known []string) string {
	if n := nearest(word, known); n != "" {
		return fmt.Sprintf(" (did you mean %q?)", n)
	}
	return ""
}

// editDistance counts insertions, deletions, replacements and swaps of
// neighbours that turn a into b.
func editDistance(a, b string) int {
	ra, rb := []rune(a), []rune(b)
	var before, last []int
	row := make([]int, len(rb)+1)
	for j := range row {
		row[j] = j
	}
	for i := range ra {
		before, last = last, slices.Clone(row)
		row[0] = i + 1
		for j := range rb {
			cost := 1
			if ra[i] == rb[j] {
				cost = 0
			}
			row[j+1] = min(last[j]+cost, last[j+1]+1, row[j]+1)
			if i > 0 && j > 0 && ra[i] == rb[j-1] && ra[i-1] == rb[j] {
				row[j+1] = min(row[j+1], before[j-1]+1)
			}
		}
	}
	return row[len(rb)]
}
