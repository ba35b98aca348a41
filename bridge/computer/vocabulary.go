package computer

import "drawbridge/input"

// fieldKind says what a field of an action holds.
type fieldKind uint8

const (
	coordinate fieldKind = iota // pixels of the picture
	delta                       // pixels to scroll
	buttonName
	modifiers
	chord
	pathPoints
	literal
	expectation
)

// fieldSpec describes one field of one action. The decoder and the schema are
// both made from it.
type fieldSpec struct {
	name     string
	kind     fieldKind
	required bool
	doc      string
}

type actionSpec struct {
	typ        ActionType
	verb, past string // for summaries
	doc        string
	fields     []fieldSpec
}

func (s actionSpec) fieldNames() []string {
	names := []string{"type"}
	for _, f := range s.fields {
		names = append(names, f.name)
	}
	return names
}

// pointer reports whether the action moves the pointer.
func (s actionSpec) pointer() bool {
	for _, f := range s.fields {
		if f.kind == coordinate || f.kind == pathPoints {
			return true
		}
	}
	return false
}

var (
	fieldX      = fieldSpec{"x", coordinate, true, "Pixels from the picture's left edge."}
	fieldY      = fieldSpec{"y", coordinate, true, "Pixels from the picture's top edge."}
	fieldButton = fieldSpec{"button", buttonName, false, "Which button; left when absent. wheel means middle."}
	fieldKeys   = fieldSpec{"keys", modifiers, false, "Modifier keys held around the action, such as [\"SHIFT\"]."}
	fieldExpect = fieldSpec{"expect", expectation, false, "What must be there right before the action, else nothing is sent: the window under the first point, or with keypress and type the one that has the keyboard."}
)

// vocabulary is the nine actions, in the order in which they are documented.
var vocabulary = []actionSpec{
	{Screenshot, "look", "looked", "Look. A picture is taken after the batch whatever it holds.", nil},
	{Click, "click", "clicked", "Move to a place and click.", []fieldSpec{fieldX, fieldY, fieldButton, fieldKeys, fieldExpect}},
	{DoubleClick, "double-click", "double-clicked", "Double-click the left button.", []fieldSpec{fieldX, fieldY, fieldKeys, fieldExpect}},
	{Move, "move", "moved", "Move the pointer, press nothing.", []fieldSpec{fieldX, fieldY, fieldKeys, fieldExpect}},
	{Drag, "drag", "dragged", "Press at the first point, follow the path, release at the last point.", []fieldSpec{
		{"path", pathPoints, true, "Two or more points of the picture, each [x, y] or {x, y}."}, fieldButton, fieldKeys, fieldExpect}},
	{Scroll, "scroll", "scrolled", "Turn the wheel at a place.", []fieldSpec{fieldX, fieldY,
		{"scroll_x", delta, false, "Pixels; positive moves on to the right."},
		{"scroll_y", delta, false, "Pixels; positive moves on down, as when reading on."}, fieldKeys, fieldExpect}},
	{Keypress, "press", "pressed", "Press one chord: any modifiers and one key, or modifiers alone.", []fieldSpec{
		{"keys", chord, true, "Names such as [\"CTRL\",\"C\"], [\"ENTER\"], [\"Page_Down\"], [\"ArrowLeft\"]; a character names its key."}, fieldExpect}},
	{Type, "type", "typed", "Type literal text, spaces, newlines and tabs included.", []fieldSpec{
		{"text", literal, true, "The text, exactly."}, fieldExpect}},
	{Wait, "wait", "waited", "Wait for the configured time.", nil},
}

// specOf returns the description of t.
func specOf(t ActionType) (actionSpec, bool) {
	for _, s := range vocabulary {
		if s.typ == t {
			return s, true
		}
	}
	return actionSpec{}, false
}

// buttons are the names of pointer buttons, wheel being another for middle.
var buttons = []struct {
	name   string
	button input.Button
}{
	{"left", input.Left}, {"right", input.Right}, {"middle", input.Middle},
	{"wheel", input.Middle}, {"back", input.Back}, {"forward", input.Forward},
}

func buttonNamed(name string) (input.Button, bool) {
	for _, b := range buttons {
		if b.name == name {
			return b.button, true
		}
	}
	return 0, false
}
