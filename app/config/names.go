package config

import (
	"fmt"
	"sort"
	"strings"
)

// squash takes away what differs between ways of writing one name:
// maxActionsPerCall, max-actions-per-call and MAX_ACTIONS_PER_CALL.
func squash(s string) string {
	return strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(s))
}

// nearest returns the known name that was most likely meant, or "". A dotted
// name is compared by its last part.
func nearest(name string, known []string) string {
	known = append([]string(nil), known...)
	sort.Strings(known)
	want := squash(name)
	best, bestDistance := "", len(want)/3+1
	for _, k := range known {
		last := k[strings.LastIndexByte(k, '.')+1:]
		d := distance(want, squash(last))
		if d < bestDistance {
			best, bestDistance = k, d
		}
	}
	return best
}

func suggestion(name string) string {
	if name == "" {
		return ""
	}
	return fmt.Sprintf("; did you mean %s?", name)
}

// distance is the number of insertions, deletions and replacements between two
// names. Long ones are cut, since no known name is long.
func distance(a, b string) int {
	const cut = 64
	a, b = a[:min(len(a), cut)], b[:min(len(b), cut)]
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost++
			}
			diagonal = row[j+1]
			row[j+1] = min(cost, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
