package conformance

import (
	"bufio"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Baseline says which of the suite's checks are not expected to succeed, and why.
//
// Its text has one entry a line: a revision, what is meant, and the reason.
// Empty lines and lines that begin with # are for people.
//
//	2025-11-25  ping:ping   why this check of this scenario does not succeed
//	*           caching:x   the same, in both revisions
//	-           tasks       why this scenario is not run at all
type Baseline struct {
	checks map[string]string // by "revision scenario:check"
	notRun map[string]string // by scenario
}

// ReadBaseline reads the text of a baseline. revisions are the ones that * stands
// for.
func ReadBaseline(r io.Reader, revisions []string) (*Baseline, error) {
	b := &Baseline{checks: map[string]string{}, notRun: map[string]string{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		words := strings.Fields(line)
		if len(words) < 3 {
			return nil, fmt.Errorf("line %d: want a revision, a check and the reason, got %q", n, line)
		}
		revision, what, why := words[0], words[1], strings.Join(words[2:], " ")
		if revision == "-" {
			b.notRun[what] = why
			continue
		}
		if !strings.Contains(what, ":") {
			return nil, fmt.Errorf("line %d: want scenario:check, got %q", n, what)
		}
		matched := false
		for _, v := range revisions {
			if revision != "*" && revision != v {
				continue
			}
			matched = true
			key := v + " " + what
			if _, twice := b.checks[key]; twice {
				return nil, fmt.Errorf("line %d: %s is there twice", n, key)
			}
			b.checks[key] = why
		}
		if !matched {
			return nil, fmt.Errorf("line %d: unknown revision %q; have %s, * and -", n, revision, strings.Join(revisions, ", "))
		}
	}
	return b, lines.Err()
}

// Check is one check of one scenario as the suite reports it. A check that runs
// several times counts as its worst outcome.
type Check struct {
	Revision, Scenario, ID string
	Status                 string // SUCCESS, INFO, SKIPPED, WARNING, FAILURE
	Message                string
}

func (c Check) key() string { return c.Revision + " " + c.Scenario + ":" + c.ID }

// severities orders the suite's words; what it does not know is worst.
var severities = map[string]int{"SUCCESS": 1, "INFO": 2, "SKIPPED": 3, "WARNING": 4, "FAILURE": 5}

func severity(status string) int {
	if s, ok := severities[status]; ok {
		return s
	}
	return len(severities) + 1
}

// good is true for a check about which there is nothing to explain.
func (c Check) good() bool { return severity(c.Status) <= severities["INFO"] }

// Worst keeps the worst outcome of every check, in the order of the first.
func Worst(all []Check) []Check {
	var out []Check
	at := map[string]int{}
	for _, c := range all {
		i, seen := at[c.key()]
		switch {
		case !seen:
			at[c.key()] = len(out)
			out = append(out, c)
		case severity(c.Status) > severity(out[i].Status):
			out[i] = c
		}
	}
	return out
}

// Judge compares what ran with the baseline and returns what is wrong, one
// sentence each: a check that should have succeeded, a stale entry, a scenario
// that neither ran nor is excused. offered are all scenarios of the suite.
func (b *Baseline) Judge(ran []Check, offered []string) []string {
	var wrong []string
	used, scenarios := map[string]bool{}, map[string]bool{}
	for _, c := range Worst(ran) {
		scenarios[c.Scenario] = true
		_, excused := b.checks[c.key()]
		switch {
		case excused && c.good():
			wrong = append(wrong, fmt.Sprintf("%s succeeds now: take it out of the baseline", c.key()))
		case !excused && !c.good():
			wrong = append(wrong, fmt.Sprintf("%s: %s: %s", c.key(), c.Status, c.Message))
		}
		used[c.key()] = true
	}
	for _, key := range slices.Sorted(maps.Keys(b.checks)) {
		if !used[key] {
			wrong = append(wrong, fmt.Sprintf("%s is in the baseline and was never checked", key))
		}
	}
	for _, name := range offered {
		_, excused := b.notRun[name]
		switch {
		case excused && scenarios[name]:
			wrong = append(wrong, fmt.Sprintf("scenario %s ran: take it out of the baseline", name))
		case !excused && !scenarios[name]:
			wrong = append(wrong, fmt.Sprintf("scenario %s did not run and the baseline does not say why", name))
		}
		delete(scenarios, name)
	}
	for _, name := range slices.Sorted(maps.Keys(scenarios)) {
		wrong = append(wrong, fmt.Sprintf("scenario %s ran and is not in the suite's list", name))
	}
	return wrong
}

// Table prints one line a scenario: how many checks succeeded in each revision,
// and the reasons for the others.
func (b *Baseline) Table(ran []Check, offered, revisions []string) string {
	type cell struct{ good, bad int }
	cells := map[string]*cell{}
	reasons := map[string][]string{}
	for _, c := range Worst(ran) {
		k := c.Scenario + " " + c.Revision
		if cells[k] == nil {
			cells[k] = &cell{}
		}
		if c.good() {
			cells[k].good++
			continue
		}
		cells[k].bad++
		why, excused := b.checks[c.key()]
		if !excused {
			why = "NOT EXPECTED: " + c.ID
		}
		if !slices.Contains(reasons[c.Scenario], why) {
			reasons[c.Scenario] = append(reasons[c.Scenario], why)
		}
	}
	var t strings.Builder
	fmt.Fprintf(&t, "| scenario | %s | not succeeding, because |\n|---|%s---|\n", strings.Join(revisions, " | "), strings.Repeat("---|", len(revisions)))
	for _, name := range offered {
		fmt.Fprintf(&t, "| %s |", name)
		for _, v := range revisions {
			switch c := cells[name+" "+v]; {
			case c == nil:
				t.WriteString(" – |")
			default:
				fmt.Fprintf(&t, " %d of %d |", c.good, c.good+c.bad)
			}
		}
		why := strings.Join(reasons[name], "; ")
		if r, ok := b.notRun[name]; ok {
			why = "not run: " + r
		}
		fmt.Fprintf(&t, " %s |\n", why)
	}
	return t.String()
}
