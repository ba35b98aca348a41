package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"drawbridge/input/simulated"
)

const (
	demoText   = "Grüße from a client: 日本語 👩‍💻 done."
	demoScroll = 240
)

// simulatedDesktop sends one batch to the simulated desktop and reads every
// effect back from the file that the desktop itself writes.
func simulatedDesktop(ctx context.Context, c *client) error {
	if err := c.listTools(ctx); err != nil {
		return err
	}
	first, err := c.batch(ctx, action{"type": "screenshot"})
	if err != nil {
		return err
	}
	fmt.Println("first picture", first.picture())
	before, err := readState(c.state)
	if err != nil {
		return err
	}
	answer, err := c.batch(ctx, demoBatch(first, before)...)
	if err != nil {
		return err
	}
	answer.print()
	after, err := readState(c.state)
	if err != nil {
		return err
	}
	fmt.Println("\nread back from the desktop")
	failed := false
	for _, e := range effects {
		mark := "ok  "
		if !e.seen(before, after) {
			mark, failed = "FAIL", true
		}
		fmt.Printf("  %s  %s\n", mark, e.what)
	}
	if failed {
		return errors.New("not every action had its effect")
	}
	return nil
}

func readState(dir string) (s simulated.State, err error) {
	data, err := os.ReadFile(filepath.Join(dir, "simulated.json"))
	if err == nil {
		err = json.Unmarshal(data, &s)
	}
	if err != nil {
		return s, fmt.Errorf("read the desktop's state back: %w", err)
	}
	return s, nil
}

// demoBatch is what is sent, measured in the picture given.
func demoBatch(picture answer, s simulated.State) []action {
	at := func(widget string) (x, y float64) {
		p := s.Widgets[widget].Center()
		return picture.place(p.X, p.Y)
	}
	pointed := func(kind, widget string, more action) action {
		x, y := at(widget)
		a := action{"type": kind, "x": x, "y": y}
		for k, v := range more {
			a[k] = v
		}
		return a
	}
	fromX, fromY := at(simulated.Box)
	toX, toY := at(simulated.Target)
	return []action{
		pointed("click", simulated.Check, nil),
		pointed("click", simulated.Press, action{"button": "right"}),
		pointed("click", simulated.Field, nil),
		{"type": "type", "text": demoText},
		{"type": "drag", "path": [][2]float64{{fromX, fromY}, {toX, toY}}},
		pointed("scroll", simulated.List, action{"scroll_x": 0, "scroll_y": demoScroll}),
		pointed("double_click", simulated.Press, nil),
		pointed("click", simulated.Field, nil),
		{"type": "keypress", "keys": []string{"CTRL", "A"}},
		{"type": "keypress", "keys": []string{"CTRL", "C"}},
		pointed("move", simulated.Target, nil),
	}
}

// effects is what must be found afterwards.
var effects = []struct {
	what string
	seen func(before, after simulated.State) bool
}{
	{"click: the check box is checked", func(before, after simulated.State) bool {
		return !before.Checked && after.Checked
	}},
	{"right click: the button counts one", func(_, after simulated.State) bool { return after.Clicks.Right == 1 }},
	{"click and type: the field has the focus and holds the text, emoji included", func(_, after simulated.State) bool {
		return after.Focus == simulated.Field && after.Text == demoText
	}},
	{"drag: the box lies on the target", func(before, after simulated.State) bool {
		return !before.Box.OnTarget && after.Box.OnTarget && after.Drag.Button != ""
	}},
	{"scroll: the list went down by that much", func(before, after simulated.State) bool {
		return after.List.Offset == [2]float64{before.List.Offset[0], before.List.Offset[1] + demoScroll}
	}},
	{"double click: the button counts two clicks and one double click", func(_, after simulated.State) bool {
		return after.Clicks.Left == 2 && after.Clicks.Double == 1
	}},
	{"chord Ctrl+A: all the text is selected", func(_, after simulated.State) bool { return after.Selected == demoText }},
	{"chord Ctrl+C: the clipboard holds it", func(_, after simulated.State) bool {
		return after.Clipboard == demoText && slices.Equal(after.Chord, []string{"control", "c"})
	}},
	{"move: the pointer is over the target", func(_, after simulated.State) bool {
		target := after.Widgets[simulated.Target]
		x, y := after.Pointer[0], after.Pointer[1]
		return x >= target[0] && y >= target[1] && x < target[0]+target[2] && y < target[1]+target[3]
	}},
	{"nothing is held down", func(_, after simulated.State) bool {
		return len(after.Held.Keys) == 0 && len(after.Held.Buttons) == 0
	}},
}
