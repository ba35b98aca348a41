package audit

import (
	"fmt"
	"strings"
	"time"
)

// Outage is a stretch in which the log could not be written, as the first record
// after it tells: a disk was full or failed. Records of it are missing for good.
type Outage struct {
	Seq   uint64    `json:"seq"`   // of the record that tells it
	Lost  int       `json:"lost"`  // records that are missing
	Late  int       `json:"late"`  // ends of calls that follow it instead of standing in their place
	Since time.Time `json:"since"` // when the first of them was to be written
	Until time.Time `json:"until"` // when writing worked again
	Why   string    `json:"why"`
}

// gap is what a log remembers while it cannot be written.
type gap struct {
	lost  int
	late  []Record // ends of calls whose start is on file
	since time.Time
	why   error
}

func (g *gap) is() bool { return g.lost+len(g.late) > 0 }

// gapForm is the text of the note that tells a gap, for Sscanf too.
const gapForm = "gap: %d records are missing and %d come late, since %s: "

func (g gap) String() string {
	return fmt.Sprintf(gapForm+"%v", g.lost, len(g.late), g.since.UTC().Format(time.RFC3339), g.why)
}

// parseGap reads the note that tells a gap.
func parseGap(text string) (g Outage, ok bool) {
	var since string
	if n, _ := fmt.Sscanf(text, gapForm, &g.Lost, &g.Late, &since); n < 3 {
		return g, false
	}
	var err error
	if g.Since, err = time.Parse(time.RFC3339, strings.TrimSuffix(since, ":")); err != nil {
		return g, false
	}
	_, g.Why, ok = strings.Cut(text, since+" ")
	return g, ok
}
