//go:build linux

package input

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/jezek/xgb/xproto"
)

// terminals paste by Ctrl+Shift+V, since Ctrl+V is a character to them. By
// WM_CLASS, in lower case.
var terminals = map[string]bool{
	"alacritty": true, "com.mitchellh.ghostty": true, "cool-retro-term": true, "deepin-terminal": true,
	"gnome-terminal": true, "gnome-terminal-server": true, "guake": true, "hyper": true, "kgx": true, "kitty": true,
	"konsole": true, "lxterminal": true, "mate-terminal": true, "org.gnome.console": true, "org.gnome.terminal": true,
	"org.wezfurlong.wezterm": true, "ptyxis": true, "qterminal": true, "rio": true, "sakura": true,
	"st-256color": true, "terminator": true, "terminology": true, "tilda": true, "tilix": true, "wezterm": true,
	"xfce4-terminal": true, "yakuake": true,
}

// primaryTerminals paste only what is selected, by Shift+Insert.
var primaryTerminals = map[string]bool{"xterm": true, "uxterm": true, "rxvt": true, "urxvt": true}

// pasteChord is how an application of that class pastes, and from where.
func pasteChord(class string) (keys []Key, primary bool) {
	class = strings.ToLower(class)
	switch {
	case terminals[class]:
		return []Key{Control, Shift, "v"}, false
	case primaryTerminals[class]:
		return []Key{Shift, Insert}, true
	}
	return []Key{Control, "v"}, false
}

// paste enters graphemes through the clipboard.
func (t *typing) paste(ctx context.Context, graphemes []string) error {
	d := t.d
	if d.clip == nil {
		k, err := openClipboard(ctx, d.display)
		if err != nil {
			return err
		}
		d.clip = k
	}
	to, err := d.ping.focus(ctx)
	if err != nil {
		return err
	}
	keys, primary := pasteChord(to.class)
	selection := d.clip.atom.clipboard
	if primary {
		selection = xproto.AtomPrimary
	}
	if t.pasted && selection != d.clip.selection {
		// The keyboard went to another kind of program in the middle of the text.
		if err := d.clip.restore(ctx); err != nil {
			return err
		}
		t.pasted = false
	}
	first := !t.pasted
	if first {
		if err := d.clip.keep(ctx, selection); err != nil {
			return err
		}
		t.pasted = true
	}
	text := strings.Join(graphemes, "")
	err = t.offerAndPress(ctx, to, keys, text, first)
	if errors.Is(err, errNotTaken) {
		// Some programs hear of an older change last, hold the clipboard for empty
		// of text, and take no paste until the next change. They have worked off all
		// keys by now, so a second press does not paste twice.
		err = t.offerAndPress(ctx, to, keys, text, true)
	}
	if err != nil {
		return err
	}
	t.done += len(text)
	// What follows must come after what was pasted.
	_, err = d.ping.wait(ctx, syncTimeout)
	return err
}

// offerAndPress puts text into the clipboard, presses the paste keys and waits
// until the text has been fetched. announce gives programs that watch the
// clipboard time to see that it holds text now.
func (t *typing) offerAndPress(ctx context.Context, to target, keys []Key, text string, announce bool) error {
	if err := t.d.clip.offer(ctx, text); err != nil {
		return err
	}
	if announce {
		if err := t.letNotice(ctx, to); err != nil {
			return err
		}
	}
	if err := t.d.chord(ctx, keys); err != nil {
		return err
	}
	err := t.d.clip.delivered(ctx, to.client, pasteTimeout)
	if errors.Is(err, errNotTaken) {
		// Perhaps it is only busy. To give up then would be worse than to wait: it
		// would paste what is put back.
		if _, err := t.d.ping.wait(ctx, drainTimeout); err != nil {
			return err
		}
		err = t.d.clip.delivered(ctx, to.client, convertTimeout)
	}
	return err
}

// letNotice waits until a program that watches the clipboard has looked at it.
func (t *typing) letNotice(ctx context.Context, to target) error {
	if ok, err := t.d.ping.wait(ctx, pasteTimeout); !ok || err != nil {
		return err
	}
	if err := t.d.clip.noticed(ctx, to.client); err != nil {
		return err
	}
	_, err := t.d.ping.wait(ctx, pasteTimeout)
	return err
}

// releaseTimeout bounds what must be done even after a cancel.
const releaseTimeout = 3 * time.Second

// chord presses keys in order and lets go of them in reverse, also when a press
// fails.
func (d *x11Driver) chord(ctx context.Context, keys []Key) error {
	var err error
	pressed := 0
	for _, k := range keys {
		pressed++
		if err = d.Key(ctx, k, true); err != nil {
			break
		}
	}
	// A cancel must not leave a key down.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTimeout)
	defer cancel()
	for i := pressed - 1; i >= 0; i-- {
		if err2 := d.keyUp(ctx, keys[i]); err == nil {
			err = err2
		}
	}
	return err
}
