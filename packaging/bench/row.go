package main

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// row is one line of the table.
type row struct {
	what string // what was done, the same on both sides
	ours string // what it took us
	peer string // what it took the peer, and who that is
	// The bar: measured must be at most (or at least) limit. An empty unit is a
	// ratio. Without a bar the row is there for comparison.
	measured float64
	unit     string
	atLeast  bool
	limit    float64
	missing  string // why it was not measured; then the rest but what is empty
	failed   string // why the figure does not count although it was measured
}

func (r row) bar() string {
	if r.limit == 0 {
		return "–"
	}
	sign := "≤"
	if r.atLeast {
		sign = "≥"
	}
	return sign + " " + number(r.limit) + r.suffix()
}

func (r row) suffix() string {
	if r.unit == "" {
		return " ×"
	}
	return " " + r.unit
}

func (r row) verdict() string {
	switch {
	case r.failed != "":
		return "missed: " + r.failed
	case r.limit == 0:
		return "–"
	case r.atLeast == (r.measured >= r.limit), r.measured == r.limit:
		return "ok"
	}
	return "missed"
}

func table(rows []row) string {
	var b strings.Builder
	b.WriteString("| what | Drawbridge | peer | measured | bar | |\n|---|---|---|---|---|---|\n")
	for _, r := range rows {
		if r.missing != "" {
			fmt.Fprintf(&b, "| %s | | | | | not measured: %s |\n", r.what, r.missing)
			continue
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s%s | %s | %s |\n", r.what, r.ours, r.peer, number(r.measured), r.suffix(), r.bar(), r.verdict())
	}
	return b.String()
}

// number prints three significant digits at most.
func number(f float64) string {
	switch {
	case f >= 100:
		return fmt.Sprintf("%.0f", f)
	case f >= 10:
		return strings.TrimSuffix(fmt.Sprintf("%.1f", f), ".0")
	}
	s := strings.TrimRight(fmt.Sprintf("%.2f", f), "0")
	return strings.TrimSuffix(s, ".")
}

// median returns the middle of v, which must not be empty.
func median[T int | float64 | time.Duration](v []T) T {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[len(s)/2]
}

// ratios divides a by b round by round and takes the median, so that a machine
// that is slow for a while does not favour one side.
func ratios[T float64 | time.Duration](a, b []T) float64 {
	r := make([]float64, len(a))
	for i := range a {
		r[i] = float64(a[i]) / float64(b[i])
	}
	return median(r)
}

func millis(d time.Duration) string { return number(float64(d)/float64(time.Millisecond)) + " ms" }
func micros(d time.Duration) string { return number(float64(d)/float64(time.Microsecond)) + " µs" }

// oneLine makes s fit into a cell.
func oneLine(s string) string {
	s = strings.Join(strings.Fields(strings.ReplaceAll(s, "|", "/")), " ")
	if r := []rune(s); len(r) > 300 {
		s = string(r[:300]) + "…"
	}
	return s
}
