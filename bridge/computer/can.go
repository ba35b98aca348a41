package computer

import (
	"fmt"

	"drawbridge/input"
)

// check refuses what the backend cannot do, by action and field. Which actions
// it knows at all was seen when they were decoded.
func (c *Can) check(b *batch, display int) error {
	if c == nil {
		return nil
	}
	if c.MainDisplay && display != 0 {
		return fmt.Errorf("display %d is not the main one, which is 0", display)
	}
	for i, a := range b.actions {
		name := fmt.Sprintf("actions[%d] (%s)", i, a.spec.typ)
		if c.PlainClicks && a.spec.pointer() {
			if a.button != input.Left {
				return fmt.Errorf("%s: button: only left is possible", name)
			}
			if len(a.mods) > 0 {
				return fmt.Errorf("%s: keys: none can be held", name)
			}
		}
		if !c.ASCII {
			continue
		}
		for at, r := range a.text {
			if r > '~' {
				return fmt.Errorf("%s: text: byte %d is no ASCII, and only that can be typed", name, at)
			}
		}
	}
	return nil
}
