package main

import (
	"testing"
	"time"
)

func TestTable(t *testing.T) {
	got := table([]row{
		{what: "a", ours: "1 ms", peer: "10 ms", measured: 0.1, limit: 0.2},
		{what: "b", ours: "3 ms", peer: "1 ms", measured: 3.004, limit: 3},
		{what: "c", ours: "90", peer: "10", measured: 9, limit: 8, atLeast: true},
		{what: "d", ours: "70", peer: "10", measured: 7, limit: 8, atLeast: true},
		{what: "e", ours: "41", peer: "–", measured: 41.25, unit: "MiB", limit: 40},
		{what: "f", ours: "x", peer: "y", measured: 1234.5},
		{what: "g", missing: "scrot is not installed"},
		{what: "h", ours: "1 ms", peer: "10 ms", measured: 0.1, limit: 0.2, failed: "the text was wrong"},
		{what: "i", ours: "8", peer: "1", measured: 8, limit: 8, atLeast: true},
	})
	const want = `| what | Drawbridge | peer | measured | bar | |
|---|---|---|---|---|---|
| a | 1 ms | 10 ms | 0.1 × | ≤ 0.2 × | ok |
| b | 3 ms | 1 ms | 3 × | ≤ 3 × | missed |
| c | 90 | 10 | 9 × | ≥ 8 × | ok |
| d | 70 | 10 | 7 × | ≥ 8 × | missed |
| e | 41 | – | 41.2 MiB | ≤ 40 MiB | missed |
| f | x | y | 1234 × | – | – |
| g | | | | | not measured: scrot is not installed |
| h | 1 ms | 10 ms | 0.1 × | ≤ 0.2 × | missed: the text was wrong |
| i | 8 | 1 | 8 × | ≥ 8 × | ok |
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestRatiosTakeTheMedianRound(t *testing.T) {
	ours := []time.Duration{2, 300, 3}
	peer := []time.Duration{1, 100, 1}
	if got := ratios(ours, peer); got != 3 {
		t.Errorf("got %v, want 3", got)
	}
}

func TestOneLine(t *testing.T) {
	if got := oneLine("a |\n\tb"); got != "a / b" {
		t.Errorf("got %q", got)
	}
}
