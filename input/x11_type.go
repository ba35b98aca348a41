//go:build linux

package input

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode"

	"github.com/jezek/xgb/xproto"
)

// Typing goes to the server in chunks, between which a cancel is heard. After
// some of them it waits until the application has taken them, so that a cancel
// stops the text and not only our part of it; not after each, because a toolkit
// may answer only once a frame.
const (
	chunkGraphemes = 64
	aheadGraphemes = 512
)

func (d *x11Driver) Type(ctx context.Context, text string) (int, error) {
	if err := checkText(text); err != nil {
		return 0, err
	}
	if err := d.refresh(ctx); err != nil {
		return 0, d.fail("type", err)
	}
	l, err := readLocks(ctx, d.conn)
	if err != nil {
		return 0, d.fail("type", err)
	}
	t := &typing{d: d, locks: l, graphemes: split(text)}
	n, err := t.run(ctx)
	if err != nil {
		return n, d.fail("type", err)
	}
	return n, nil
}

// typing is one Type call.
type typing struct {
	d         *x11Driver
	locks     locks
	graphemes []string

	events  []fake // not yet sent
	pending int    // graphemes in events
	bytes   int    // of those
	shift   bool   // held at the end of events
	level3  bool
	ahead   int  // graphemes sent since the application was waited for
	done    int  // bytes sent
	pasted  bool // the clipboard is to be put back
	unled   bool // nothing in the text leads to another field
}

func (t *typing) run(ctx context.Context) (n int, err error) {
	defer func() {
		if t.pasted {
			// Also after a cancel: the clipboard is the person's.
			err = errors.Join(err, t.d.clip.restore(context.WithoutCancel(ctx)))
		}
	}()
	for i := 0; i < len(t.graphemes); {
		if err := ctx.Err(); err != nil {
			return t.done, err
		}
		strokes, ok, err := t.strokes(ctx, i)
		if err != nil {
			return t.done, err
		}
		if ok {
			g := t.graphemes[i]
			t.add(g, strokes)
			if i++; i < len(t.graphemes) && leads(g) {
				if err := t.led(ctx); err != nil {
					return t.done, err
				}
			}
			if t.pending >= chunkGraphemes {
				if err := t.flush(ctx); err != nil {
					return t.done, err
				}
			}
			continue
		}
		if err := t.flush(ctx); err != nil {
			return t.done, err
		}
		end := t.pasteEnd(i)
		if err := t.paste(ctx, t.graphemes[i:end]); err != nil {
			return t.done, err
		}
		i = end
	}
	return t.done, t.flush(ctx)
}

// leads tells whether a grapheme may move the keyboard to another field.
func leads(g string) bool { return g == "\t" || g == "\n" || g == "\r\n" || g == "\r" }

// led refuses to go on where a Tab or Return has led into a field that hides what
// is typed. In a text of several lines they are text, and where nothing is told of
// the window's parts nothing can be known.
func (t *typing) led(ctx context.Context) error {
	if t.unled {
		return nil
	}
	if err := t.flush(ctx); err != nil {
		return err
	}
	if _, err := t.d.ping.wait(ctx, syncTimeout); err != nil {
		return err
	}
	part, err := t.d.partFocused(ctx)
	if err != nil && ctx.Err() != nil {
		return err
	}
	t.unled = part == nil || part.Lines
	if part != nil && part.Secure {
		return fmt.Errorf("%w: the text led into a password field", ErrSecureInput)
	}
	return nil
}

// runes lists the characters to enter for a grapheme; a CR LF is one Return.
func runes(g string) []rune {
	if g == "\r\n" {
		return []rune{'\n'}
	}
	return []rune(g)
}

// plain finds the stroke for a character in the keymap or among our bindings.
func (t *typing) plain(r rune) (stroke, bool) {
	syms := keysymsOfRune(r)
	s, ok := t.d.keys.find(t.locks.group, syms...)
	if !ok {
		s, ok = t.d.pool.find(syms[0])
	}
	// With Caps Lock on, applications capitalise what the key itself does not.
	if ok && t.locks.caps && !s.letter && unicode.ToUpper(r) != r {
		ok = false
	}
	if ok && s.keypad {
		ok = false // depends on Num Lock, and is never the only key
	}
	return s, ok
}

// typeable tells whether keys can enter the grapheme, perhaps after a binding.
func (t *typing) typeable(g string) bool {
	for _, r := range runes(g) {
		if _, ok := t.plain(r); !ok && !t.bindable(r) {
			return false
		}
	}
	return true
}

func (t *typing) bindable(r rune) bool {
	return t.d.own && !(t.locks.caps && unicode.ToUpper(r) != r)
}

// strokes finds the strokes for grapheme i. On a display of our own it binds
// what is missing, for the text that follows too. ok is false when keys cannot
// enter the grapheme.
func (t *typing) strokes(ctx context.Context, i int) (strokes []stroke, ok bool, err error) {
	g := t.graphemes[i]
	if !t.typeable(g) {
		return nil, false, nil
	}
	rs := runes(g)
	for _, r := range rs {
		if _, ok := t.plain(r); !ok {
			if err := t.bindAhead(ctx, i); err != nil {
				return nil, false, err
			}
			break
		}
	}
	for _, r := range rs {
		s, ok := t.plain(r)
		if !ok {
			// A grapheme of more characters than the pool holds.
			return nil, false, nil
		}
		strokes = append(strokes, s)
	}
	return strokes, true, nil
}

// bindAhead binds what the graphemes from i on lack, as far as there is room.
// When not even the first fits, all bindings go; keys sent under them must have
// been taken by then.
func (t *typing) bindAhead(ctx context.Context, i int) error {
	missing := t.missing(i, t.d.pool.room())
	if missing == nil {
		if err := t.flush(ctx); err != nil {
			return err
		}
		if err := t.d.emptyPool(ctx); err != nil {
			return err
		}
		if missing = t.missing(i, t.d.pool.room()); missing == nil {
			return nil
		}
	}
	return t.d.bind(ctx, missing, false)
}

// missing lists the keysyms that whole graphemes from i on lack, at most room;
// nil when those of the first do not fit.
func (t *typing) missing(i, room int) []xproto.Keysym {
	var syms []xproto.Keysym
	seen := map[xproto.Keysym]bool{}
	for _, g := range t.graphemes[i:] {
		if !t.typeable(g) {
			break
		}
		before := len(syms)
		for _, r := range runes(g) {
			sym := keysymsOfRune(r)[0]
			if _, ok := t.plain(r); !ok && !seen[sym] {
				seen[sym] = true
				syms = append(syms, sym)
			}
		}
		if len(syms) > room {
			syms = syms[:before]
			break
		}
		if len(syms) == room {
			break
		}
	}
	if len(syms) == 0 {
		return nil
	}
	return syms
}

// add queues the strokes of a grapheme.
func (t *typing) add(g string, strokes []stroke) {
	for _, s := range strokes {
		t.hold(&t.shift, t.locks.shifted(s), t.shiftCode())
		t.hold(&t.level3, s.level3, t.d.keys.level3)
		t.events = append(t.events, press(s.code), release(s.code))
	}
	t.pending++
	t.bytes += len(g)
}

func (t *typing) hold(held *bool, want bool, code byte) {
	switch {
	case *held == want:
		return
	case want:
		t.events = append(t.events, press(code))
	default:
		t.events = append(t.events, release(code))
	}
	*held = want
}

func (t *typing) shiftCode() byte {
	s, _ := t.d.keys.find(0, symShift)
	return s.code
}

// flush sends what is queued.
func (t *typing) flush(ctx context.Context) error {
	if t.pending == 0 {
		return nil
	}
	t.hold(&t.shift, false, t.shiftCode())
	t.hold(&t.level3, false, t.d.keys.level3)
	events := t.events
	t.events = nil // a call that was given up may still read the old ones
	// A piece goes out whole or not at all, or nobody could tell how much of the
	// text had been sent when ctx ends meanwhile.
	whole, end := outlive(ctx, pieceTimeout)
	err := t.d.post(whole, events...)
	end()
	if err != nil {
		return err
	}
	t.done += t.bytes
	t.d.undrained += len(events) / 2
	t.ahead += t.pending
	t.pending, t.bytes = 0, 0
	if t.ahead < aheadGraphemes {
		return nil
	}
	t.ahead = 0
	ok, err := t.d.ping.wait(ctx, syncTimeout)
	if ok {
		t.d.undrained = 0
	}
	return err
}

// pieceTimeout is how long a piece that is being sent may go on after its
// context ended. It takes a few milliseconds, unless the server hangs.
const pieceTimeout = 250 * time.Millisecond

// outlive returns a context that ends that much later than ctx.
func outlive(ctx context.Context, by time.Duration) (context.Context, context.CancelFunc) {
	later, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { time.AfterFunc(by, cancel) })
	return later, func() { stop(); cancel() }
}

// emptyPool makes room for new bindings.
func (d *x11Driver) emptyPool(ctx context.Context) error {
	if err := d.ping.drained(ctx, d.undrained); err != nil {
		return err
	}
	d.undrained = 0
	d.pool.clear()
	return nil
}

func (d *x11Driver) bind(ctx context.Context, syms []xproto.Keysym, alone bool) error {
	d.bound = true
	return d.pool.bind(ctx, d.conn, syms, alone)
}

// pasteEnd returns the end of what is to be pasted from grapheme i on: up to the
// last one of its line that keys cannot enter. Newlines and tabs stay keys, since
// they may mean more than text.
func (t *typing) pasteEnd(i int) int {
	end := i + 1
	for j := i + 1; j < len(t.graphemes); j++ {
		switch g := t.graphemes[j]; {
		case g == "\n" || g == "\r\n" || g == "\r" || g == "\t":
			return end
		case !t.typeable(g):
			end = j + 1
		}
	}
	return end
}
