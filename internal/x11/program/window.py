"""One window of a kind, for tests: program.go says which and what it tells."""
import sys

import gi

gi.require_version("Gtk", "3.0")
from gi.repository import Gdk, GLib, Gtk  # noqa: E402

kind, title, x, y, width, height = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:7])


def tell(*words):
    print(*words, flush=True)


GLib.set_prgname(title.lower())
Gdk.set_program_class(title)
window = Gtk.Window(title=title)
window.set_default_size(width, height)
window.move(x, y)
window.add_events(Gdk.EventMask.ENTER_NOTIFY_MASK | Gdk.EventMask.BUTTON_PRESS_MASK | Gdk.EventMask.KEY_PRESS_MASK)
window.connect("destroy", Gtk.main_quit)
window.connect("button-press-event", lambda w, e: tell("press"))
window.connect("key-press-event", lambda w, e: tell("key"))
window.connect("focus-in-event", lambda w, e: tell("focused"))
window.connect("map-event", lambda w, e: GLib.idle_add(tell, "ready"))


def flee(w, e):
    # Over its frame the pointer has not come to the window itself.
    if e.detail != Gdk.NotifyType.INFERIOR:
        w.move(0, 0)


def steal(w, e):
    GLib.idle_add(w.get_window().focus, Gdk.CURRENT_TIME)


if kind == "deaf":
    window.add(Gtk.DrawingArea())
elif kind == "mover":
    window.connect("enter-notify-event", flee)
elif kind == "thief":
    window.connect("focus-out-event", steal)
elif kind == "form":
    box = Gtk.Box(orientation=Gtk.Orientation.VERTICAL, homogeneous=True)
    name, secret, notes = Gtk.Entry(), Gtk.Entry(visibility=False), Gtk.TextView()
    for part, what in ((name, "name"), (secret, "secret"), (notes, "notes")):
        changes = part.get_buffer() if part is notes else part
        changes.connect("changed", lambda b, what=what: tell("changed", what))
        box.add(part)
    button = Gtk.Button(label="OK")
    button.connect("clicked", lambda b: tell("clicked"))
    box.add(button)
    window.add(box)
else:
    sys.exit("no window is called " + kind)

window.show_all()
Gtk.main()
