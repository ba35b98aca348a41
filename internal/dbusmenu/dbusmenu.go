// Package dbusmenu reads and clicks the menu of a status item over the session
// bus, as a panel does. Tests see by it what a panel was told to show.
package dbusmenu

import (
	"context"
	"fmt"

	"github.com/godbus/dbus/v5"
)

const (
	menuPath  = "/StatusNotifierItem/menu"
	menuIface = "com.canonical.dbusmenu"
)

// Item is one line of a menu. What is hidden is none.
type Item struct {
	ID        int32
	Label     string // as it goes over the bus: an underscore is two
	Separator bool
	Disabled  bool
	Checked   bool
	Sub       []Item
}

// node is an item as it goes over the bus.
type node struct {
	ID    int32
	Props map[string]dbus.Variant
	Kids  []dbus.Variant
}

func (n node) item() (it Item, shown bool, err error) {
	if v, ok := n.Props["visible"].Value().(bool); ok && !v {
		return it, false, nil
	}
	it.ID = n.ID
	it.Label, _ = n.Props["label"].Value().(string)
	it.Separator = n.Props["type"].Value() == "separator"
	if v, ok := n.Props["enabled"].Value().(bool); ok {
		it.Disabled = !v
	}
	it.Checked = n.Props["toggle-state"].Value() == int32(1)
	for _, v := range n.Kids {
		var k node
		if err := dbus.Store([]any{v.Value()}, &k); err != nil {
			return it, false, fmt.Errorf("an item of the menu has another shape than expected: %w", err)
		}
		sub, ok, err := k.item()
		if err != nil {
			return it, false, err
		}
		if ok {
			it.Sub = append(it.Sub, sub)
		}
	}
	return it, true, nil
}

// Read reads the whole menu of the status item that has this name on the bus.
func Read(ctx context.Context, conn *dbus.Conn, name string) ([]Item, error) {
	var revision uint32
	var root node
	if err := conn.Object(name, menuPath).CallWithContext(ctx, menuIface+".GetLayout", 0, int32(0), int32(-1), []string{}).Store(&revision, &root); err != nil {
		return nil, fmt.Errorf("the menu of %s: %w", name, err)
	}
	it, _, err := root.item()
	return it.Sub, err
}

// Click clicks an item.
func Click(ctx context.Context, conn *dbus.Conn, name string, id int32) error {
	return conn.Object(name, menuPath).CallWithContext(ctx, menuIface+".Event", 0, id, "clicked", dbus.MakeVariant(int32(0)), uint32(0)).Err
}
