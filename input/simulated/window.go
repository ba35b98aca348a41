package simulated

import (
	"math"
	"slices"
	"time"

	"drawbridge/input"
)

// Rect is a part of the desktop: left, top, width and height, in points.
type Rect [4]float64

// Center is the middle of r.
func (r Rect) Center() input.Point { return input.Point{X: r[0] + r[2]/2, Y: r[1] + r[3]/2} }

func (r Rect) contains(p input.Point) bool {
	return p.X >= r[0] && p.X < r[0]+r[2] && p.Y >= r[1] && p.Y < r[1]+r[3]
}

func (r Rect) at(corner input.Point) Rect {
	return Rect{r[0] + corner.X, r[1] + corner.Y, r[2], r[3]}
}

// The widgets by name, as the state lists them.
const (
	Field  = "field"  // the text field
	Check  = "check"  // the check box
	Press  = "press"  // the button that counts its clicks
	Clear  = "clear"  // the button that empties the text field
	List   = "list"   // the list that scrolls both ways
	Box    = "box"    // the box to drag
	Target = "target" // where to drop it
)

// Where the widgets are in the window, in points from its corner. The box moves.
var (
	windowSize = [2]float64{720, 530}
	layout     = map[string]Rect{
		Field:  {20, 68, 430, 104},
		Check:  {474, 68, 226, 24},
		Press:  {474, 104, 108, 36},
		Clear:  {592, 104, 108, 36},
		List:   {20, 212, 430, 264},
		Target: {600, 380, 90, 84},
		Box:    {494, 232, 52, 52},
	}
	dragPane = Rect{474, 212, 226, 264}
)

// focusOrder is the order in which Tab goes round.
var focusOrder = []string{Field, Check, Press, Clear, List}

const (
	listRows   = 40
	rowHeight  = 24.0
	listWidth  = 900.0 // of the rows, most of it out of sight
	dragStarts = 3.0   // points of motion that make a press a drag
)

// kind says what an event is.
type kind uint8

const (
	motion kind = iota
	button
	wheel
	key
	typed
)

// event is one event as the window gets it.
type event struct {
	kind    kind
	due     time.Time
	at      input.Point
	mods    []input.Key
	caps    bool
	buttons []input.Button // motion: held
	button  input.Button
	down    bool
	clicks  int
	dx, dy  float64
	key     input.Key
	text    string
}

func (e event) with(m input.Key) bool { return slices.Contains(e.mods, m) }

// shortcut reports whether the chord's modifiers make it a command to the
// application, as Control does on Linux and Command on macOS.
func (e event) shortcut() bool { return e.with(input.Control) || e.with(input.Command) }

// window is the one window: what is in it, and what events do to it.
type window struct {
	corner    input.Point
	focus     string
	field     textField
	clipboard string
	checked   bool
	clicks    Clicks
	box       Rect // in the window
	offset    [2]float64
	row       int // selected in the list; -1: none
	chord     []string
	drag      Drag
	pressed   press
}

// press is a button held down: where it went down and what came of it.
type press struct {
	button input.Button // 0: none
	at     input.Point  // in the window
	widget string
	clicks int
	grip   input.Point // box: from its corner to where it was taken
	home   Rect        // box: where it was
	moving bool        // the motion was enough for a drag
	over   *Rect       // box: where a motion while moving carried it
}

func newWindow(corner input.Point) window {
	return window{corner: corner, box: layout[Box], row: -1}
}

// rect is the place of a widget in the window.
func (w *window) rect(widget string) Rect {
	if widget == Box {
		return w.box
	}
	return layout[widget]
}

// hit names the widget at p, the box before the target that it may lie on.
func (w *window) hit(p input.Point) string {
	for _, name := range []string{Box, Field, Check, Press, Clear, List, Target} {
		if w.rect(name).contains(p) {
			return name
		}
	}
	return ""
}

func (w *window) handle(e event) {
	e.at.X, e.at.Y = e.at.X-w.corner.X, e.at.Y-w.corner.Y
	switch e.kind {
	case motion:
		w.motion(e)
	case button:
		if e.down {
			w.press(e)
		} else {
			w.release(e)
		}
	case wheel:
		if w.hit(e.at) == List {
			w.scrollTo(w.offset[0]+e.dx, w.offset[1]+e.dy)
		}
	case key:
		if e.down && !e.key.Modifier() {
			w.key(e)
		}
	case typed:
		if w.focus == Field {
			w.field.insert(e.text)
		}
	}
}

func (w *window) scrollTo(x, y float64) {
	view := layout[List]
	w.offset[0] = min(max(x, 0), listWidth-view[2])
	w.offset[1] = min(max(y, 0), listRows*rowHeight-view[3])
}

func (w *window) press(e event) {
	if w.pressed.button != 0 {
		return // a second button while one is down starts nothing
	}
	p := press{button: e.button, at: e.at, widget: w.hit(e.at), clicks: e.clicks}
	w.drag = Drag{Button: e.button.String(), Path: [][2]float64{w.global(e.at)}}
	if e.button == input.Left && slices.Contains(focusOrder, p.widget) {
		w.focus = p.widget
	}
	if e.button == input.Left {
		switch p.widget {
		case Field:
			w.field.click(fieldPoint(e.at), e.clicks, e.with(input.Shift))
		case Box:
			p.grip = input.Point{X: e.at.X - w.box[0], Y: e.at.Y - w.box[1]}
			p.home = w.box
		case List:
			w.row = int((e.at.Y - layout[List][1] + w.offset[1]) / rowHeight)
		}
	}
	w.pressed = p
}

func (w *window) motion(e event) {
	p := &w.pressed
	if !slices.Contains(e.buttons, p.button) {
		return // plain motion
	}
	w.drag.Path = append(w.drag.Path, w.global(e.at))
	started := p.moving
	p.moving = p.moving || math.Hypot(e.at.X-p.at.X, e.at.Y-p.at.Y) >= dragStarts
	if p.button != input.Left {
		return
	}
	switch p.widget {
	case Field:
		w.field.drag(fieldPoint(e.at))
	case Box:
		if started { // the motion that starts a drag does not yet carry it
			over := Rect{e.at.X - p.grip.X, e.at.Y - p.grip.Y, w.box[2], w.box[3]}
			over[0] = min(max(over[0], dragPane[0]), dragPane[0]+dragPane[2]-over[2])
			over[1] = min(max(over[1], dragPane[1]), dragPane[1]+dragPane[3]-over[3])
			p.over = &over
			w.box = over
		}
	}
}

func (w *window) release(e event) {
	p := w.pressed
	if p.button != e.button {
		return
	}
	w.pressed = press{}
	if p.widget == Box && p.over != nil {
		w.drag.Dropped = true
		return
	}
	if p.moving || w.hit(e.at) != p.widget {
		return
	}
	switch p.widget {
	case Press:
		w.clicks.count(p.button, p.clicks)
	case Clear:
		if p.button == input.Left {
			w.field.replaceAll("")
		}
	case Check:
		if p.button == input.Left {
			w.checked = !w.checked
		}
	}
}

// count adds a click; the second of a double click counts as a double click too.
func (c *Clicks) count(b input.Button, clicks int) {
	switch b {
	case input.Left:
		c.Left++
		if clicks == 2 {
			c.Double++
		}
	case input.Right:
		c.Right++
	case input.Middle:
		c.Middle++
	case input.Back:
		c.Back++
	case input.Forward:
		c.Forward++
	}
}

func (w *window) key(e event) {
	w.chord = nil
	for _, m := range e.mods {
		w.chord = append(w.chord, string(m))
	}
	w.chord = append(w.chord, string(e.key))
	if e.key == input.Tab && !e.shortcut() && !e.with(input.Alt) {
		w.tab(e.with(input.Shift))
		return
	}
	switch w.focus {
	case Field:
		w.field.key(e, &w.clipboard)
	case List:
		w.listKey(e.key)
	case Check:
		if e.key == input.Space {
			w.checked = !w.checked
		}
	case Press, Clear:
		if e.key == input.Space || e.key == input.Enter || e.key == input.KPEnter {
			if w.focus == Press {
				w.clicks.count(input.Left, 1)
			} else {
				w.field.replaceAll("")
			}
		}
	}
}

func (w *window) tab(back bool) {
	step := 1
	if back {
		step = -1
	}
	i := slices.Index(focusOrder, w.focus) // -1 where nothing has the focus
	if i < 0 && back {
		i = 0
	}
	w.focus = focusOrder[(i+step+len(focusOrder))%len(focusOrder)]
}

func (w *window) listKey(k input.Key) {
	page := layout[List][3] - rowHeight
	x, y := w.offset[0], w.offset[1]
	switch k {
	case input.ArrowUp:
		w.row = max(w.row-1, 0)
	case input.ArrowDown:
		w.row = min(w.row+1, listRows-1)
	case input.ArrowLeft:
		x -= rowHeight
	case input.ArrowRight:
		x += rowHeight
	case input.PageUp:
		y -= page
	case input.PageDown:
		y += page
	case input.Home:
		y = 0
	case input.End:
		y = listRows * rowHeight
	}
	if k == input.ArrowUp || k == input.ArrowDown { // keep the selected row in sight
		top := float64(w.row) * rowHeight
		y = min(max(y, top-page), top)
	}
	w.scrollTo(x, y)
}

// global turns a place in the window into one on the desktop.
func (w *window) global(p input.Point) [2]float64 {
	return [2]float64{p.X + w.corner.X, p.Y + w.corner.Y}
}

// onTarget reports whether the middle of the box lies on the target.
func (w *window) onTarget() bool { return layout[Target].contains(w.box.Center()) }
