//go:build darwin || standin

package input

import (
	"context"
	"time"
	"unicode/utf16"
	"unicode/utf8"
)

const (
	// mostUnits is how much of a Unicode string an event carries; what is longer
	// is cut off by macOS without a word.
	mostUnits = 20

	// Applications lose keys that come faster.
	strokePace = 1500 * time.Microsecond
	stringPace = 5 * time.Millisecond
)

// quartzPiece is what one press of text enters: a key, or a string.
type quartzPiece struct {
	bytes  int // of the text
	stroke quartzStroke
	units  []uint16 // where there is no key; UTF-16
}

// quartzPieces cuts text into presses: keys where the layout has them, else
// strings of whole graphemes. A grapheme that no event can carry is cut between
// its characters. l may be nil.
func quartzPieces(text string, l *quartzLayout) []quartzPiece {
	var all []quartzPiece
	// add appends to the last string while it fits, unless it starts afresh.
	add := func(units []uint16, bytes int, join bool) {
		if n := len(all); join && n > 0 && all[n-1].units != nil && len(all[n-1].units)+len(units) <= mostUnits {
			all[n-1].units = append(all[n-1].units, units...)
			all[n-1].bytes += bytes
			return
		}
		all = append(all, quartzPiece{bytes: bytes, units: units})
	}
	for _, g := range split(text) {
		switch g {
		case "\n", "\r", "\r\n":
			all = append(all, quartzPiece{bytes: len(g), stroke: quartzNamed[Enter]})
			continue
		case "\t":
			all = append(all, quartzPiece{bytes: len(g), stroke: quartzNamed[Tab]})
			continue
		}
		if l != nil && len(g) == 1 {
			if s, ok := l.text[rune(g[0])]; ok {
				all = append(all, quartzPiece{bytes: 1, stroke: s})
				continue
			}
		}
		units := utf16.Encode([]rune(g))
		if len(units) <= mostUnits {
			add(units, len(g), true)
			continue
		}
		join := false
		for _, r := range g {
			add(utf16.Encode([]rune{r}), utf8.RuneLen(r), join)
			join = true
		}
	}
	return all
}

func (d *quartzDriver) Type(ctx context.Context, text string) (n int, err error) {
	if err := checkText(text); err != nil {
		return 0, err
	}
	if err := d.mayType(ctx); err != nil {
		return 0, err
	}
	back, err := d.keys.plain(ctx)
	if err != nil {
		return 0, err
	}
	defer back()
	var layout *quartzLayout
	if d.keys.refresh(ctx) == nil {
		layout = d.keys.current
	}
	shift := false
	hold := func(down bool) error {
		if shift == down {
			return nil
		}
		shift = down
		return d.modifier(Shift, down)
	}
	defer func() {
		if e := hold(false); err == nil {
			err = e
		}
	}()
	for _, p := range quartzPieces(text, layout) {
		if err := d.mayType(ctx); err != nil {
			return n, err
		}
		if err := hold(len(p.stroke.mods) > 0); err != nil {
			return n, err
		}
		pace := strokePace
		if p.units != nil {
			pace = stringPace
		}
		for _, down := range []bool{true, false} {
			// The string goes on the press only: some applications would enter it
			// twice.
			units := p.units
			if !down {
				units = nil
			}
			if err := d.key(p.stroke.code, down, p.stroke.flags, units); err != nil {
				return n, err
			}
		}
		n += p.bytes
		if err := sleepFor(ctx, pace); err != nil {
			return n, err
		}
	}
	return n, nil
}
