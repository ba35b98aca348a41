// Package simulated is a desktop that lives in this process: one window with a
// text field, a check box, buttons, a list that scrolls both ways and a box to
// drag onto a target. It is an [input.Driver] and a [capture.Source] at once.
// Nothing it shows is a real application; every picture carries a banner that
// says so.
//
// It is there for tests and for a first try on a machine without any display.
// So it is only worth something where it behaves like the real thing. What it
// imitates, and where that was observed:
//
//   - A double click is a press whose click state is 2 (macOS; the second of two
//     single presses does not count there either).
//   - A drag needs motion while the button is down. The first motion starts it,
//     a later one carries it over the target; a jump straight to the end drops
//     nothing (GTK, Cocoa, browsers).
//   - A button acts on the release, and only when press and release are on it.
//   - Text goes where the keyboard focus is and is lost where there is none.
//   - Keys are separate from text: Shift and Caps Lock change what a key types,
//     Control or Command makes it a shortcut, and what is held stays held.
//   - An application may lag behind the display server: the pointer moves at
//     once, the window follows ([Options.Lag]), and Sync waits for it.
//   - Without permission macOS reports success and drops the events; here too.
//   - Displays may have any scale and negative origins and may change at any
//     time. A picture of a display that has changed is refused.
//
// Every action has an effect that can be read back: from [Desktop.State] in the
// same process, from the state file by everybody else.
package simulated
