//go:build darwin || standin

package input

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unicode/utf16"
	"unsafe"

	"drawbridge/internal/quartz"
)

// quartzLayout says where the characters are on a keyboard.
type quartzLayout struct {
	id      string                // the input source's, "com.apple.keylayout.French"
	chord   map[rune]quartzStroke // dead keys included: a chord does not compose
	command map[rune]quartzStroke // while Command is held: some layouts are others then
	text    map[rune]quartzStroke // with Shift at most, and no dead keys
}

// lastPlace is behind the last key code that may type a character of the main
// block: the keypad's and the function keys' are skipped.
const lastPlace = 128

// readLayout tries every key of a layout. translate gives the characters of a
// key under modifiers (cmdKey, shiftKey, optionKey), with dead keys as
// characters of their own or not, and says whether the key was a dead one.
func readLayout(id string, translate func(code uint16, mods int, deadToo bool) (text string, dead bool)) *quartzLayout {
	l := &quartzLayout{id: id, chord: map[rune]quartzStroke{}, command: map[rune]quartzStroke{}, text: map[rune]quartzStroke{}}
	notHere := map[uint16]bool{kVK_JIS_KeypadComma: true}
	for _, s := range quartzNamed {
		notHere[s.code] = true
	}
	delete(notHere, kVK_Space) // named, but it types a character too
	for _, m := range quartzModifiers {
		notHere[m.code] = true
	}
	add := func(to map[rune]quartzStroke, text string, s quartzStroke) {
		r := []rune(text)
		if len(r) != 1 || isControl(r[0]) {
			return
		}
		if _, ok := to[r[0]]; !ok {
			to[r[0]] = s
		}
	}
	// The levels in the order in which they are preferred.
	for _, level := range []struct {
		mods int
		keys []Key
	}{{0, nil}, {shiftKey, []Key{Shift}}, {optionKey, []Key{Alt}}, {shiftKey | optionKey, []Key{Shift, Alt}}} {
		for code := range uint16(lastPlace) {
			if notHere[code] {
				continue
			}
			s := quartzStroke{code: code, mods: level.keys}
			text, _ := translate(code, level.mods, true)
			add(l.chord, text, s)
			if level.mods&optionKey != 0 {
				continue
			}
			if text, dead := translate(code, level.mods, false); !dead {
				add(l.text, text, s)
			}
			text, _ = translate(code, level.mods|cmdKey, true)
			add(l.command, text, s)
		}
	}
	return l
}

// quartzKeyboard knows the layouts. HIToolbox wants to be asked about them on
// the main thread only.
type quartzKeyboard struct {
	current *quartzLayout
	ascii   *quartzLayout // the one that Latin letters are looked up in otherwise
}

// refresh reads the layouts again if they are others than the last time.
func (k *quartzKeyboard) refresh(ctx context.Context) error {
	current, ascii := k.current, k.ascii
	var now, latin *quartzLayout
	err := quartz.OnMain(ctx, func() {
		now = layoutOf(tisCopyCurrentKeyboardLayoutInputSource(), current)
		latin = layoutOf(tisCopyCurrentASCIICapableKeyboardLayoutInputSource(), ascii)
	})
	if err != nil {
		return fmt.Errorf("read the keyboard layout: %w", err)
	}
	k.current, k.ascii = now, latin
	if now == nil && latin == nil {
		return errors.New("read the keyboard layout: macOS gives no key table for it")
	}
	return nil
}

// layoutOf reads the layout of an input source, which it releases, unless it is
// the one known already. It is nil where the source has no key table.
func layoutOf(source quartz.Ref, known *quartzLayout) *quartzLayout {
	if source == 0 {
		return nil
	}
	defer quartz.Release(source)
	id := quartz.String(tisGetInputSourceProperty(source, kTISPropertyInputSourceID))
	if known != nil && known.id == id {
		return known
	}
	data := tisGetInputSourceProperty(source, kTISPropertyUnicodeKeyLayoutData)
	if data == 0 || cfDataGetLength(data) == 0 {
		return nil
	}
	table, keyboard := cfDataGetBytePtr(data), uint32(lmGetKbdType())
	return readLayout(id, func(code uint16, mods int, deadToo bool) (string, bool) {
		return ucTranslate(table, keyboard, code, mods, deadToo)
	})
}

func ucTranslate(table unsafe.Pointer, keyboard uint32, code uint16, mods int, deadToo bool) (string, bool) {
	var options uint32
	if deadToo {
		options = kUCKeyTranslateNoDeadKeysMask
	}
	var dead uint32
	var n uint
	var units [8]uint16
	// The modifiers are those of an event record, without its low byte.
	status := ucKeyTranslate(table, code, kUCKeyActionDown, uint32(mods>>8)&0xff, keyboard, options, &dead, uint(len(units)), &n, &units[0])
	if status != 0 || n > uint(len(units)) {
		return "", false
	}
	return string(utf16.Decode(units[:n])), dead != 0
}

// stroke finds a key: by name, else as a character of the layout in force, else
// of the ASCII-capable one.
func (k *quartzKeyboard) stroke(ctx context.Context, key Key, command bool) (quartzStroke, error) {
	if s, ok := quartzNamed[key]; ok {
		return s, nil
	}
	r := []rune(string(key))
	if len(r) != 1 {
		return quartzStroke{}, fmt.Errorf("%q: %w", string(key), ErrNoKey)
	}
	if err := k.refresh(ctx); err != nil {
		return quartzStroke{}, err
	}
	for _, l := range []*quartzLayout{k.current, k.ascii} {
		if l == nil {
			continue
		}
		if command {
			if s, ok := l.command[r[0]]; ok {
				return s, nil
			}
		}
		if s, ok := l.chord[r[0]]; ok {
			return s, nil
		}
	}
	return quartzStroke{}, fmt.Errorf("%q is not on this keyboard: %w", string(key), ErrNoKey)
}

// switchTime is how long applications take to notice another input source.
const switchTime = 50 * time.Millisecond

// plain makes sure that no input method composes what is typed: it selects the
// ASCII-capable layout where one is on, and returns what selects it again.
func (k *quartzKeyboard) plain(ctx context.Context) (func(), error) {
	nothing := func() {}
	var method quartz.Ref
	selected := make(chan quartz.Ref, 1)
	var status int32
	err := quartz.OnMain(ctx, func() {
		source := tisCopyCurrentKeyboardInputSource()
		if source == 0 || cfEqual(tisGetInputSourceProperty(source, kTISPropertyInputSourceType), kTISTypeKeyboardLayout) {
			quartz.Release(source)
			selected <- 0
			return
		}
		ascii := tisCopyCurrentASCIICapableKeyboardLayoutInputSource()
		defer quartz.Release(ascii)
		status = tisSelectInputSource(ascii)
		selected <- source
	})
	back := func() {
		// Also after an end of ctx that came before the main thread got there.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseTime)
		defer cancel()
		_ = quartz.OnMain(ctx, func() { // nobody is left to be told
			select {
			case method = <-selected:
			default:
			}
			if method != 0 {
				tisSelectInputSource(method)
				quartz.Release(method)
				method = 0
			}
		})
	}
	if err != nil {
		if errors.Is(err, quartz.ErrNoLoop) {
			return nothing, nil // then all text goes as Unicode
		}
		back()
		return nothing, fmt.Errorf("ask for the input source: %w", err)
	}
	if method = <-selected; method == 0 {
		return nothing, nil
	}
	if status != 0 {
		back()
		return nothing, fmt.Errorf("an input method is on and could not be switched off while typing (status %d); select a keyboard layout in the input menu", status)
	}
	if err := sleepFor(ctx, switchTime); err != nil {
		back()
		return nothing, err
	}
	return func() { _ = sleepFor(context.WithoutCancel(ctx), switchTime); back() }, nil
}

func sleepFor(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
