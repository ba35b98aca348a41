package simulated

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
)

// State is all that can be read back. Places are in global points, offsets in
// text are bytes.
type State struct {
	V         int             `json:"v"`
	Banner    string          `json:"banner"`
	Text      string          `json:"text"`
	Selection [2]int          `json:"selection"`
	Selected  string          `json:"selected"`
	Caret     int             `json:"caret"`
	Clipboard string          `json:"clipboard"`
	Focus     string          `json:"focus"` // the widget with the keyboard
	Checked   bool            `json:"checked"`
	Clicks    Clicks          `json:"clicks"`
	List      ListState       `json:"list"`
	Box       BoxState        `json:"box"`
	Drag      Drag            `json:"drag"`
	Chord     []string        `json:"chord"` // the last key, after its modifiers
	Pointer   [2]float64      `json:"pointer"`
	Held      Held            `json:"held"`
	Events    int             `json:"events"` // posted so far
	Widgets   map[string]Rect `json:"widgets"`
	Displays  []DisplayState  `json:"displays"`
}

// DisplayState is one display, as capture knows it.
type DisplayState struct {
	Index  int        `json:"index"`
	Name   string     `json:"name"`
	Points [2]float64 `json:"points"`
	Pixels [2]int     `json:"pixels"`
	Origin [2]float64 `json:"origin"`
	Scale  float64    `json:"scale"`
}

// Clicks counts what the button "press" got. The two clicks of a double click
// are two left ones, too.
type Clicks struct {
	Left    int `json:"left"`
	Right   int `json:"right"`
	Middle  int `json:"middle"`
	Back    int `json:"back"`
	Forward int `json:"forward"`
	Double  int `json:"double"`
}

// ListState is how far the list is scrolled, right and down, in points, how far
// it can be, and which row is selected (-1: none).
type ListState struct {
	Offset [2]float64 `json:"offset"`
	Max    [2]float64 `json:"max"`
	Row    int        `json:"row"`
}

// BoxState is where the box is, and whether that is on the target.
type BoxState struct {
	Place    [2]float64 `json:"place"`
	OnTarget bool       `json:"on_target"`
}

// Drag is the last press and the motions while it was held.
type Drag struct {
	Button  string       `json:"button"`
	Path    [][2]float64 `json:"path"`
	Dropped bool         `json:"dropped"` // the box was carried and let go
}

// Held is what is down.
type Held struct {
	Keys     []string `json:"keys"`
	Buttons  []string `json:"buttons"`
	CapsLock bool     `json:"caps_lock"`
}

// State reads everything back, as far as the window has seen the events.
func (d *Desktop) State() State {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.catchUp()
	return d.state()
}

// state is State with mu held. Lists are never nil: a reader of the file gets
// [] and not null.
func (d *Desktop) state() State {
	w := &d.window
	from, to := w.field.selection()
	s := State{
		V: 1, Banner: Banner,
		Text: w.field.text, Selection: [2]int{from, to}, Selected: w.field.selected(), Caret: w.field.caret,
		Clipboard: w.clipboard, Focus: w.focus, Checked: w.checked, Clicks: w.clicks,
		List: ListState{
			Offset: w.offset, Row: w.row,
			Max: [2]float64{listWidth - layout[List][2], listRows*rowHeight - layout[List][3]},
		},
		Box:      BoxState{Place: [2]float64{w.box[0] + w.corner.X, w.box[1] + w.corner.Y}, OnTarget: w.onTarget()},
		Drag:     Drag{Button: w.drag.Button, Path: append([][2]float64{}, w.drag.Path...), Dropped: w.drag.Dropped},
		Chord:    append([]string{}, w.chord...),
		Pointer:  [2]float64{d.pointer.X, d.pointer.Y},
		Held:     Held{Keys: []string{}, Buttons: []string{}, CapsLock: d.caps},
		Events:   d.posted,
		Widgets:  map[string]Rect{},
		Displays: []DisplayState{},
	}
	for _, m := range d.displays {
		s.Displays = append(s.Displays, DisplayState(m))
	}
	for _, k := range d.keys {
		s.Held.Keys = append(s.Held.Keys, string(k))
	}
	for _, b := range d.buttons {
		s.Held.Buttons = append(s.Held.Buttons, b.String())
	}
	for name := range layout {
		s.Widgets[name] = w.rect(name).at(w.corner)
	}
	return s
}

// save writes the state file if it does not hold the present state. A failure is
// kept for the next Sync or Close to report, and tried again by the next save.
// Called with mu held.
func (d *Desktop) save() {
	if d.stateFile == "" || d.written == d.rev {
		return
	}
	d.writeErr = writeJSON(d.stateFile, d.state())
	if d.writeErr == nil {
		d.written = d.rev
	}
}

// writeJSON replaces a file in one step, so that a reader never sees half of it.
func writeJSON(path string, v any) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("write the simulated desktop's state to %s: %w", path, err)
		}
	}()
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".simulated-*")
	if err != nil {
		return err
	}
	_, err = f.Write(append(data, '\n'))
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the error that counts is the first
	}
	return err
}
