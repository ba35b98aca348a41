package simulated

import (
	"strings"

	"github.com/rivo/uniseg"

	"drawbridge/input"
)

// The text field has a grid of cells: most characters take one, wide ones (CJK,
// emoji) two.
const (
	cellWidth  = 9.0
	lineHeight = 18.0
	fieldPad   = 6.0
	tabStop    = 4
)

var (
	fieldColumns = int((layout[Field][2] - 2*fieldPad) / cellWidth)
	fieldLines   = int((layout[Field][3] - 2*fieldPad) / lineHeight)
)

// fieldPoint turns a place in the window into one in the field's grid.
func fieldPoint(p input.Point) input.Point {
	return input.Point{X: p.X - layout[Field][0] - fieldPad, Y: p.Y - layout[Field][1] - fieldPad}
}

// textField is editable text of several lines with a caret, a selection and
// undo. Places in it are byte offsets, always between graphemes.
type textField struct {
	text          string
	anchor, caret int // the selection lies between them
	top           int // first line in sight
	undo          []textSnapshot
	merging       bool // the next insertion belongs to the last undo step
}

type textSnapshot struct {
	text          string
	anchor, caret int
}

const undoSteps = 100

func (t *textField) selection() (from, to int) {
	return min(t.anchor, t.caret), max(t.anchor, t.caret)
}

func (t *textField) selected() string {
	from, to := t.selection()
	return t.text[from:to]
}

// moveTo puts the caret somewhere; extend keeps the other end of the selection.
func (t *textField) moveTo(caret int, extend bool) {
	t.caret, t.merging = caret, false
	if !extend {
		t.anchor = caret
	}
	t.reveal()
}

func (t *textField) remember() {
	if len(t.undo) == undoSteps {
		t.undo = t.undo[1:]
	}
	t.undo = append(t.undo, textSnapshot{t.text, t.anchor, t.caret})
}

// insert puts s in the place of the selection. Insertions one after the other
// are one step for undo.
func (t *textField) insert(s string) {
	from, to := t.selection()
	if !t.merging || from != to {
		t.remember()
	}
	t.text = t.text[:from] + s + t.text[to:]
	t.moveTo(from+len(s), false)
	t.merging = true
}

// remove deletes the selection or, without one, what lies between the caret and
// the given place.
func (t *textField) remove(until int) {
	from, to := t.selection()
	if from == to {
		from, to = min(from, until), max(from, until)
	}
	if from == to {
		return
	}
	t.remember()
	t.text = t.text[:from] + t.text[to:]
	t.moveTo(from, false)
}

func (t *textField) replaceAll(s string) {
	t.anchor, t.caret = 0, len(t.text)
	t.merging = false
	t.insert(s)
	t.merging = false
}

func (t *textField) key(e event, clipboard *string) {
	if e.shortcut() {
		t.shortcut(e, clipboard)
		return
	}
	extend := e.with(input.Shift)
	word := e.with(input.Alt)
	from, to := t.selection()
	collapse := from != to && !extend && !word
	switch e.key {
	case input.ArrowLeft:
		switch {
		case collapse:
			t.moveTo(from, false)
		case word:
			t.moveTo(t.wordBefore(), extend)
		default:
			t.moveTo(t.before(t.caret), extend)
		}
	case input.ArrowRight:
		switch {
		case collapse:
			t.moveTo(to, false)
		case word:
			t.moveTo(t.wordAfter(), extend)
		default:
			t.moveTo(t.after(t.caret), extend)
		}
	case input.ArrowUp:
		t.moveTo(t.vertical(-1), extend)
	case input.ArrowDown:
		t.moveTo(t.vertical(1), extend)
	case input.Home:
		t.moveTo(t.lineStart(), extend)
	case input.End:
		t.moveTo(t.lineEnd(), extend)
	case input.Backspace:
		t.remove(t.before(t.caret))
	case input.Delete:
		t.remove(t.after(t.caret))
	case input.Enter, input.KPEnter:
		t.insert("\n")
	case input.Escape:
		t.moveTo(t.caret, false)
	default:
		if s := keyText(e.key, e.with(input.Shift), e.caps); s != "" && !e.with(input.Alt) {
			t.insert(s)
		}
	}
}

// shortcut does what Control (or Command) and a key ask for.
func (t *textField) shortcut(e event, clipboard *string) {
	extend := e.with(input.Shift)
	switch input.Key(strings.ToLower(string(e.key))) {
	case "a":
		t.anchor, t.caret, t.merging = 0, len(t.text), false
	case "c", "x":
		if s := t.selected(); s != "" {
			*clipboard = s
			if e.key == "x" || e.key == "X" {
				t.remove(t.caret)
			}
		}
	case "v":
		t.merging = false
		t.insert(*clipboard)
		t.merging = false
	case "z":
		if n := len(t.undo); n > 0 {
			last := t.undo[n-1]
			t.undo = t.undo[:n-1]
			t.text, t.anchor = last.text, last.anchor
			t.moveTo(last.caret, true)
		}
	case input.ArrowLeft:
		t.moveTo(t.wordBefore(), extend)
	case input.ArrowRight:
		t.moveTo(t.wordAfter(), extend)
	case input.Home:
		t.moveTo(0, extend)
	case input.End:
		t.moveTo(len(t.text), extend)
	case input.Backspace:
		t.remove(t.wordBefore())
	case input.Delete:
		t.remove(t.wordAfter())
	}
}

// before and after are the places one grapheme away from at.
func (t *textField) before(at int) int {
	last := 0
	for i := 0; i < at; i = t.after(i) {
		last = i
	}
	return last
}

func (t *textField) after(at int) int {
	grapheme, _, _, _ := uniseg.FirstGraphemeClusterInString(t.text[at:], -1)
	return at + len(grapheme)
}

// words calls f with each word and each run between words, until f says no.
func (t *textField) words(f func(from, to int) bool) {
	rest, at, state := t.text, 0, -1
	for rest != "" {
		var word string
		word, rest, state = uniseg.FirstWordInString(rest, state)
		if !f(at, at+len(word)) {
			return
		}
		at += len(word)
	}
}

func (t *textField) wordBefore() int {
	found := 0
	t.words(func(from, to int) bool {
		if from < t.caret && strings.TrimSpace(t.text[from:to]) != "" {
			found = from
		}
		return to < t.caret
	})
	return found
}

func (t *textField) wordAfter() int {
	found := len(t.text)
	t.words(func(from, to int) bool {
		if to > t.caret && strings.TrimSpace(t.text[from:to]) != "" {
			found = to
			return false
		}
		return true
	})
	return found
}

func (t *textField) lineStart() int {
	return strings.LastIndexByte(t.text[:t.caret], '\n') + 1
}

func (t *textField) lineEnd() int {
	if i := strings.IndexByte(t.text[t.caret:], '\n'); i >= 0 {
		return t.caret + i
	}
	return len(t.text)
}

// click puts the caret where the pointer is; two clicks select the word there,
// three the line.
func (t *textField) click(p input.Point, clicks int, extend bool) {
	under, caret := t.hit(p)
	switch {
	case clicks == 2:
		t.words(func(from, to int) bool {
			if under < to {
				t.anchor = from
				t.moveTo(to, true)
				return false
			}
			return true
		})
	case clicks >= 3:
		t.moveTo(under, false)
		t.anchor = t.lineStart()
		t.moveTo(t.lineEnd(), true)
	default:
		t.moveTo(caret, extend)
	}
}

// drag extends the selection to where the pointer is.
func (t *textField) drag(p input.Point) {
	_, caret := t.hit(p)
	t.moveTo(caret, true)
}

// cell is one grapheme on the grid.
type cell struct {
	at, column, width int
	grapheme          string
}

// line is one line as it is shown: a line of the text or, where that is too
// long, a part of it.
type line struct {
	from, to int // to lies before the newline
	cells    []cell
}

// lines lays the text out.
func (t *textField) lines() []line {
	lines := []line{{}}
	column, state := 0, -1
	for at, rest := 0, t.text; rest != ""; {
		var grapheme string
		var width int
		grapheme, rest, width, state = uniseg.FirstGraphemeClusterInString(rest, state)
		if grapheme == "\n" {
			at += len(grapheme)
			lines = append(lines, line{from: at, to: at})
			column = 0
			continue
		}
		if grapheme == "\t" {
			width = tabStop - column%tabStop
		}
		width = max(width, 1)
		if column+width > fieldColumns {
			lines = append(lines, line{from: at, to: at})
			column = 0
		}
		last := &lines[len(lines)-1]
		last.cells = append(last.cells, cell{at, column, width, grapheme})
		at += len(grapheme)
		last.to = at
		column += width
	}
	return lines
}

// place is where the caret at an offset is shown.
func place(lines []line, at int) (row, column int) {
	for row = len(lines) - 1; row > 0 && lines[row].from > at; row-- {
	}
	for _, c := range lines[row].cells {
		if c.at >= at {
			return row, c.column
		}
		column = c.column + c.width
	}
	return row, column
}

// hit is what lies at a place in the grid: the grapheme under it, and the place
// between graphemes nearest to it.
func (t *textField) hit(p input.Point) (under, caret int) {
	lines := t.lines()
	row := min(max(t.top+int(p.Y/lineHeight), 0), len(lines)-1)
	l := lines[row]
	for _, c := range l.cells {
		x := p.X - float64(c.column)*cellWidth
		if width := float64(c.width) * cellWidth; x < width {
			if x < width/2 {
				return c.at, c.at
			}
			return c.at, c.at + len(c.grapheme)
		}
	}
	if n := len(l.cells); n > 0 {
		return l.cells[n-1].at, l.to
	}
	return l.from, l.from
}

// vertical is the place as many lines up or down.
func (t *textField) vertical(by int) int {
	lines := t.lines()
	row, column := place(lines, t.caret)
	row += by
	if row < 0 {
		return 0
	}
	if row >= len(lines) {
		return len(t.text)
	}
	for _, c := range lines[row].cells {
		if c.column+c.width > column {
			return c.at
		}
	}
	return lines[row].to
}

// reveal brings the caret's line into sight.
func (t *textField) reveal() {
	row, _ := place(t.lines(), t.caret)
	t.top = min(max(t.top, row-fieldLines+1), row)
}
