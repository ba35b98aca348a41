package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"drawbridge/input"
)

// Window is a window of our own that gestures are made into. It notes what
// arrives there.
type Window interface {
	// Spots says where in the window each gesture belongs.
	Spots() Spots
	// Ready fails, saying why, when a press at the places given, or a key when
	// none is given, would go anywhere else than to this window.
	Ready(ctx context.Context, at ...input.Point) error
	// Begin gets the window ready for a gesture and forgets what it has seen.
	Begin(ctx context.Context) error
	// Seen waits until everything posted before has arrived, and tells what
	// arrived since Begin. enough says whether that is what was expected: where
	// nobody can tell that nothing more will come, Seen waits a while for it.
	Seen(ctx context.Context, enough func(Seen) bool) (Seen, error)
	Close() error
}

// Spots are places in global points.
type Spots struct {
	Click  input.Point
	Scroll input.Point
	Drag   [2]input.Point // from, to
}

// Seen is what arrived in a window.
type Seen struct {
	Clicks []Click       // presses that were let go at the same place
	Drag   []input.Point // press, motions while it was held, release; nil without motion
	Scroll [2]float64    // right and down positive, in the window's own unit
	Text   string
	Chords []Chord // keys that came with Control, Alt or Command
}

// Click is a press and a release.
type Click struct {
	Button input.Button
	Count  int // 2: the second of a double click
}

func (c Click) String() string { return fmt.Sprintf("%v click %d", c.Button, c.Count) }

// Chord is a key and what was held around it, in no special order.
type Chord struct {
	Mods []input.Key
	Key  input.Key
}

func (c Chord) String() string {
	var parts []string
	for _, m := range append(slices.Clone(c.Mods), c.Key) {
		parts = append(parts, string(m))
	}
	return strings.Join(parts, "+")
}

// equal compares chords without regard to the order of the modifiers.
func (c Chord) equal(o Chord) bool {
	a, b := slices.Clone(c.Mods), slices.Clone(o.Mods)
	slices.Sort(a)
	slices.Sort(b)
	return c.Key == o.Key && slices.Equal(a, b)
}

// String says what was seen, for people.
func (s Seen) String() string {
	var parts []string
	for _, c := range s.Clicks {
		parts = append(parts, c.String())
	}
	if s.Drag != nil {
		parts = append(parts, fmt.Sprintf("a drag over %d places", len(s.Drag)))
	}
	if s.Scroll != [2]float64{} {
		parts = append(parts, fmt.Sprintf("scrolling by %g, %g", s.Scroll[0], s.Scroll[1]))
	}
	if s.Text != "" {
		parts = append(parts, fmt.Sprintf("the text %q", s.Text))
	}
	for _, c := range s.Chords {
		parts = append(parts, "the chord "+c.String())
	}
	if parts == nil {
		return "nothing"
	}
	return strings.Join(parts, ", ")
}
